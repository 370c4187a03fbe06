"""Graphs in files: what was saved comes back in another process; what is no graph is refused before it does harm."""

import io
import json
import pickle
import struct
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

import lab
from lab.errors import GraphError
from lab.graph import load, save
from lab.graph.execute import run_arrays
from tests.graph.graphs import CASES, of_gradient, of_sample
from tests.graph.test_text import LOOP

RUN = """
import sys, numpy as np
from lab.graph import load
from lab.graph.execute import run_arrays
for i in range(int(sys.argv[2])):
    saved = load(f"{sys.argv[1]}/{i}.graph")
    given = [saved.weights[f"x{k}"] for k in range(len(saved.weights))]
    np.savez(f"{sys.argv[1]}/{i}.npz", *run_arrays(saved.graph, [*given, *saved.graph.captured]))
"""


@pytest.mark.slow
def test_the_graph_of_every_op_and_of_its_gradient_runs_in_another_process(tmp_path):
    made = [m for name, i in CASES for m in (of_sample(name, i), of_gradient(name, i)) if m]
    for i, (graph, xs) in enumerate(made):
        n = len(xs) - len(graph.captured)
        save(graph, tmp_path / f"{i}.graph", {f"x{k}": xs[k] for k in range(n)})
    subprocess.run([sys.executable, "-c", RUN, str(tmp_path), str(len(made))], check=True)
    for i, (graph, xs) in enumerate(made):
        with np.load(tmp_path / f"{i}.npz") as there:
            for a, b in zip(there.values(), run_arrays(graph, xs), strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_model_comes_back_with_its_weights_and_its_captured_tensors(tmp_path):
    model = lab.nn.mlp(3, 4, 2, rng=0)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    graph = lab.make_graph(model)(x)
    assert len(graph.captured) == 4
    save(graph, tmp_path / "model.graph", model.state_dict())
    saved = load(tmp_path / "model.graph")
    assert saved.weights.keys() == model.state_dict().keys()
    np.testing.assert_array_equal(run_arrays(saved.graph, [x, *saved.graph.captured])[0], model(x).numpy())
    again = lab.nn.mlp(3, 4, 2, rng=1)
    again.load_state_dict(saved.weights)
    np.testing.assert_array_equal(again(x).numpy(), model(x).numpy())


def test_branches_and_loops_are_saved_and_equal_graphs_give_equal_bytes(tmp_path):
    graph = lab.graph.parse(LOOP)
    for name in ("a", "b"):
        save(graph, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert load(tmp_path / "a").graph == graph


@pytest.mark.parametrize(("graph", "weights", "problem"), [
    (3, None, "what is saved is a Graph\ngiven: .*3\nhint:  "),
    (lab.make_graph(lab.sin)(1.0), {"w": "x"}, "weights are arrays of numbers\ngiven: w='x'\nhint:  "),
    (lab.make_graph(lab.sin)(1.0), {"w": None}, "weights are arrays of numbers\ngiven: w=None\nhint:  "),
])  # fmt: skip
def test_what_is_no_graph_and_what_are_no_weights_is_refused_in_three_lines(tmp_path, graph, weights, problem):
    with pytest.raises(GraphError, match=problem):
        save(graph, tmp_path / "x.graph", weights)
    assert not list(tmp_path.iterdir())


def test_what_a_file_cannot_hold_is_refused_and_leaves_what_was_there(tmp_path):
    @lab.custom_vjp
    def rounded(x):
        return lab.rint(x)

    rounded.defvjp(lambda x: (lab.rint(x), None), lambda kept, ct: (ct,))
    path = tmp_path / "kept"
    save(lab.make_graph(lambda x: x)(1.0), path)
    before = path.read_bytes()
    with pytest.raises(GraphError, match="an op of its own"):
        save(lab.make_graph(rounded)(1.0), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


@pytest.fixture
def parts(tmp_path):
    path = tmp_path / "f.graph"
    save(lab.make_graph(lambda x: x * np.arange(9.0))(np.ones(9)), path, {"w": np.ones(2)})
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(tmp_path, parts):
    path = tmp_path / "changed.graph"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def npy(value, **options):
    buffer = io.BytesIO()
    np.save(buffer, value, **options)
    return buffer.getvalue()


def about(parts, **changes):
    return json.dumps({**json.loads(parts["about.json"]), **changes}).encode()


HOSTILE = {
    "an array of objects": (lambda p: {"array0.npy": npy(np.array([{}]), allow_pickle=True)}, "no graph file"),
    "a pickle": (lambda p: {"array0.npy": pickle.dumps(1)}, "no graph file"),
    "another shape": (lambda p: {"array0.npy": npy(np.ones(8))}, "line"),
    "an unknown op": (lambda p: {"graph.txt": p["graph.txt"].replace(b"multiply", b"system")}, "no op is called"),
    "an illegal graph": (lambda p: {"graph.txt": p["graph.txt"].replace(b"b:f64[9]", b"b:f32[9]")}, "not legal"),
    "bytes that are no text": (lambda p: {"graph.txt": b"\xff\xfe"}, "no graph file"),
    "another format": (lambda p: {"about.json": b"[]"}, "something else"),
    "no json": (lambda p: {"about.json": b"{"}, "no graph file"),
    "a newer version": (lambda p: {"about.json": about(p, version=2)}, "another version"),
    "more parts than announced": (lambda p: {"more": b""}, "not those that it announces"),
    "fewer parts than announced": (lambda p: {"about.json": about(p, constants=2)}, "not those that it announces"),
    "a count that is no number": (lambda p: {"about.json": about(p, constants="1")}, "cannot be"),
    "a negative count": (lambda p: {"about.json": about(p, constants=-1)}, "cannot be"),
    "captured values of no input": (lambda p: {"about.json": about(p, weights=[], captured=1)}, "not legal"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused(what, tmp_path, parts):
    change, words = HOSTILE[what]
    with pytest.raises(GraphError, match=words) as caught:
        load(written(tmp_path, {**parts, **change(parts)}))
    assert len(str(caught.value).splitlines()) in (2, 3)


def test_a_cut_an_empty_and_a_foreign_file_are_refused(tmp_path, parts):
    whole = written(tmp_path, parts).read_bytes()
    for content in (b"", b"PK", whole[: len(whole) // 2], b"\x89PNG" + whole[4:100]):
        path = tmp_path / "broken"
        path.write_bytes(content)
        with pytest.raises(GraphError, match="no graph file"):
            load(path)
    for place in range(0, len(whole), 7):  # a flipped byte is noticed, or stands where it says nothing
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            saved = load(path)
        except GraphError:
            continue
        assert saved.graph == load(written(tmp_path, parts)).graph
        np.testing.assert_array_equal(saved.weights["w"], np.ones(2))


def test_a_file_that_unpacks_to_more_than_the_limit_is_not_unpacked(tmp_path, parts):
    with pytest.raises(GraphError, match="more memory than the limit"):
        load(written(tmp_path, parts), max_bytes=100)


def bomb(n):
    """A packed .npy of n zeros."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(8 * n)


def packed(path, parts, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def lying(content, name, size):
    """A zip whose directory and local header announce another size of a part."""
    content, name = bytearray(content), name.encode()
    for signature, at, header in ((b"PK\x03\x04", 22, 30), (b"PK\x01\x02", 24, 46)):
        place = 0
        while content[(place := content.index(signature, place)) + header :][: len(name)] != name:
            place += 4
        content[place + at : place + at + 4] = struct.pack("<I", size)
    return bytes(content)


def peak_of(call):
    """Bytes that a call held at most."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(path, words):
    with pytest.raises(GraphError, match=words) as caught:
        load(path)
    assert len(str(caught.value).splitlines()) == 3


def test_a_bomb_is_refused_by_what_it_announces_and_loaded_by_who_trusts_it(tmp_path, parts):
    big = 40 * 2**20
    path = packed(tmp_path / "bomb", {**parts, "array1.npy": bomb(big)})
    assert path.stat().st_size < 2**20
    assert peak_of(lambda: refused(path, "more memory than the limit")) < 16 * 2**20
    assert load(path, max_bytes=2**30).weights["w"].shape == (big,)


@pytest.mark.parametrize("size", [0, 10, 144])
def test_a_part_that_is_larger_than_it_announces_is_never_unpacked(tmp_path, parts, size):
    path = packed(tmp_path / "bomb", {**parts, "array1.npy": bomb(10 * 2**20)})
    path.write_bytes(lying(path.read_bytes(), "array1.npy", size))
    assert peak_of(lambda: refused(path, "no graph file")) < 16 * 2**20


LYING_SHAPES = ["1000000000000,", "-1,", "2, 3", "2" * 5000 + ",", "1, " * 70, "0, 99999999999999999"]


@pytest.mark.parametrize("shape", LYING_SHAPES)
def test_an_array_whose_header_lies_is_refused_before_memory_is_taken(tmp_path, parts, shape):
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}\n".encode()
    lies = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(16)
    path = written(tmp_path, {**parts, "array1.npy": lies})
    assert peak_of(lambda: refused(path, "no graph file")) < 16 * 2**20


def test_truths_are_true_or_false(tmp_path, parts):
    content = npy(np.array([True, False]))
    assert load(written(tmp_path, {**parts, "array1.npy": content})).weights["w"].tolist() == [True, False]
    refused(written(tmp_path, {**parts, "array1.npy": content[:-1] + b"\x02"}), "no graph file")


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "graph.txt/../x", "array1.npy\n", "\u202eyf.1yarra"])
def test_a_part_of_another_name_is_refused_and_nothing_is_written(tmp_path, parts, name):
    inside = tmp_path / "inside"
    inside.mkdir()
    path = written(inside, {**parts, name: b"x"})
    refused(path, "no graph file")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.graph", "inside"]
    assert [p.name for p in inside.iterdir()] == [path.name]


def test_a_part_that_is_there_twice_is_refused(tmp_path, parts):
    path = written(tmp_path, {**parts, "graph.tx_": parts["graph.txt"]})
    path.write_bytes(path.read_bytes().replace(b"graph.tx_", b"graph.txt"))
    refused(path, "in it twice")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_part_packed_without_a_bound_is_refused(tmp_path, parts, method):
    refused(packed(tmp_path / "f", parts, method), "packed in a way")


def test_a_million_parts_are_counted_and_not_listed(tmp_path):
    path = tmp_path / "f"
    path.write_bytes((b"PK\x01\x02" + bytes(42)) * 10**6 + b"PK\x05\x06" + bytes(18))
    refused(path, "1,000,000 parts of 65,535")


@pytest.mark.parametrize("about", [b"[" * 200_000, b'{"a":' * 100_000, b"1" * 10_000, b"NaN", b"\xff", b""])
def test_json_of_any_depth_is_refused(tmp_path, parts, about):
    refused(written(tmp_path, {**parts, "about.json": about}), "no graph file")


@pytest.mark.parametrize("n", [10**6, 10**9])
def test_a_graph_of_large_shapes_takes_no_memory_until_it_runs(tmp_path, parts, n):
    text = f"graph(a:f64[{n}]) {{ let b:f64[{n}] = tanh(a) c:f64[{n}] = add(b, a) in (c) }}".encode()
    content = {**parts, "graph.txt": text, "about.json": about(parts, constants=0, weights=["w", "v"])}
    assert peak_of(lambda: load(written(tmp_path, content))) < 4 * 2**20
