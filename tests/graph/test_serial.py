"""Graphs in files: what was saved comes back in another process; what is no graph is refused before it does harm."""

import io
import json
import pickle
import subprocess
import sys
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
