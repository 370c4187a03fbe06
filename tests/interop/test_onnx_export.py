"""The ONNX model of a graph: onnxruntime gives what the graph gives."""

import dataclasses
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

import lab
from lab.errors import ArgumentError, GraphError, UnsupportedError
from lab.graph import Graph
from lab.graph.ir import Equation, Var
from lab.graph.parsing import parse
from lab.interop import export_numpy, export_onnx, onnx_export
from lab.interop.nodes.table import EMITTERS, REFUSED, SINGLE
from lab.interop.onnx_export import onnx_model
from lab.ops import PRIMITIVES
from lab.shapes import Spec
from tests.graph.test_text import LOOP
from tests.interop.exports import after_passes, draw, expected, models, ops_of, single, special, table, with_values

OPTIONS = onnxruntime.SessionOptions()
OPTIONS.intra_op_num_threads = OPTIONS.inter_op_num_threads = 1
OPTIONS.log_severity_level = 3


def outputs(model, xs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: np.asarray(x) for i, x in zip(session.get_inputs(), xs, strict=False)})


def assert_same(name, outs, wanted):
    for a, b in zip(outs, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), name
        near = 1e-4 if b.dtype == np.float32 else 1e-9
        scale = np.max(np.abs(b), initial=0.0, where=np.isfinite(b)) if b.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(a, b, near, near * scale, err_msg=name)


def test_every_op_of_the_table_and_its_gradient_runs_there_or_is_refused_by_name():
    cases, run = table(), set()
    for name, graph, xs in cases:
        refused = ops_of(graph) & {*REFUSED, *SINGLE}
        if refused:
            with pytest.raises(UnsupportedError, match=f"^({'|'.join(refused)}) .*cannot be written in ONNX"):
                onnx_model(graph)
        else:
            assert_same(name, outputs(onnx_model(graph), xs), expected(graph, xs))
            run |= ops_of(graph)
    assert run == set(PRIMITIVES) - {*REFUSED, *SINGLE}
    assert not set(REFUSED) & set(EMITTERS)


def test_special_numbers_give_what_they_give_in_numpy():
    for name, graph, xs in special({*REFUSED, *SINGLE}):
        (a,), (b,) = outputs(onnx_model(graph), xs), expected(graph, xs)
        np.testing.assert_allclose(a, b, 1e-11, 2e-16, err_msg=name)


def test_what_the_runtime_has_in_float32_alone_is_written_in_float32():
    for name, graph, xs in single(SINGLE):
        assert_same(name, outputs(onnx_model(graph), xs), expected(graph, xs))


def test_every_op_is_written_in_float32_too():
    for name, graph, xs in single([n for n, op in PRIMITIVES.items() if n not in REFUSED and not op.collective]):
        assert_same(name, outputs(onnx_model(graph), xs), expected(graph, xs))


def test_whole_models_and_every_graph_between_two_passes_run_there():
    for name, graph, xs in [*models(), *after_passes()]:
        assert_same(name, outputs(onnx_model(graph), xs), expected(graph, xs))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_name_with_its_reason(name):
    spec = Spec((2, 2), np.dtype(float))
    a, b = Var(0, spec), Var(1, spec)
    op = PRIMITIVES[name]
    inputs = (a,) * len(op.arguments)
    with pytest.raises(UnsupportedError) as caught:
        onnx_model(Graph((a,), (Equation(op, inputs, (b,), dict(op.defaults)),), (b,)))
    assert str(caught.value).splitlines()[:2] == [f"{name} cannot be written in ONNX", f"given: {REFUSED[name]}"]


def test_branches_and_loops_become_those_of_onnx():
    graph = parse(LOOP)
    model, xs = onnx_model(graph), [np.asarray(1.5), np.asarray(0)]
    assert {"If", "Loop"} <= {n.op_type for n in model.graph.node}
    assert_same("loop", outputs(model, xs), expected(graph, xs))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 3])
def test_scans_of_any_length_and_direction_are_written(length, reverse):
    f = lambda x: lab.scan(lambda c, row: (c * 0.5 + row, c - row), 1.0, x, reverse=reverse)  # noqa: E731
    graph, xs = with_values(f, np.arange(1.0, 1.0 + length))
    assert_same("scan", outputs(onnx_model(graph), xs), expected(graph, xs))


def test_a_loop_that_does_not_begin_gives_what_it_was_given():
    graph, xs = with_values(lambda x: lab.while_loop(lambda y: y < 0.0, lambda y: y - 1.0, x), np.float64(3.0))
    assert_same("loop", outputs(onnx_model(graph), xs), [np.asarray(3.0)])


def test_numbers_of_python_are_constants_and_inputs_of_what_they_meet(tmp_path):
    f = lab.jit(lambda x, n: (x * n + 1.0, n * 2))
    f(draw(3), 2.0)
    path = export_onnx(f, tmp_path / "f.onnx", check=True)
    single_, number = outputs(onnx.load(path), [draw(3), np.float64(3.0)])
    np.testing.assert_array_equal(single_, draw(3) * np.float32(3) + np.float32(1))
    assert (number.dtype, number.item()) == (np.float64, 6.0)


def test_inputs_and_outputs_have_the_names_that_were_given_and_nodes_say_where_they_come_from(tmp_path):
    graph = lab.make_graph(lambda x, y: (x + y, lab.tanh(x)))(draw(3), draw(3))
    model = onnx.load(export_onnx(graph, tmp_path / "f.onnx", names=["v1", "c1", "sum", 'a "b"\n;é']))
    assert [i.name for i in model.graph.input] == ["v1", "c1"]
    assert [o.name for o in model.graph.output] == ["sum", 'a "b"\n;é']
    assert [i.name for i in onnx_model(graph, ["p", "q"]).graph.input] == ["p", "q"]
    assert model.graph.node[0].doc_string.startswith("test_onnx_export.py:")
    assert (model.producer_name, model.opset_import[0].version) == ("autodiff-lab", 18)
    for names in (["x"], ["x", "x"], ["x", ""], ["x", "y", "z"], ["a", "b", "c", "a"]):
        with pytest.raises(ArgumentError, match="one for each input"):
            onnx_model(graph, names)


def test_a_hostile_origin_is_one_line_of_the_documentation():
    graph = lab.make_graph(lambda x: lab.tanh(x))(1.0)
    hostile = dataclasses.replace(graph.equations[0], origin="/home/me/x.py:1\n\x00\ud800 y")
    model = onnx_model(dataclasses.replace(graph, equations=(hostile,)))
    assert model.graph.node[0].doc_string == "x.py:1??? y"


def test_captured_tensors_are_initialisers_and_equal_constants_are_one():
    w = lab.tensor(draw(4, 4))
    graph = lab.make_graph(lambda x: (x @ w + 1.0) * (x @ w + 1.0))(draw(2, 4))
    assert sorted(tuple(i.dims) for i in onnx_model(graph).graph.initializer) == [(), (4, 4)]


def test_what_cannot_be_a_model_is_refused(tmp_path):
    half = lab.make_graph(lambda x: x + 1.0)(np.ones(2, np.float16))
    with pytest.raises(UnsupportedError, match="dtype that ONNX export does not know"):
        onnx_model(half)
    rounded = lab.custom_vjp(lambda x: lab.rint(x))
    rounded.defvjp(lambda x: (lab.rint(x), None), lambda kept, ct: (ct,))
    with pytest.raises(UnsupportedError, match="it has no formula"):
        onnx_model(lab.make_graph(rounded)(1.0))
    with pytest.raises(ArgumentError, match="what is exported is a Graph"):
        export_onnx(abs, tmp_path / "f.onnx")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_three_lines_say_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UnsupportedError) as caught:
        onnx_model(lab.make_graph(lambda x: x + 1.0)(1.0))
    lines = str(caught.value).splitlines()
    assert (lines[0], lines[2]) == ("ONNX needs the package onnx", 'hint:  pip install "autodiff-lab[onnx]"')


def test_the_check_notices_a_model_that_gives_something_else(tmp_path, monkeypatch):
    graph = lab.make_graph(lambda x: x + 1.0)(np.ones(3))
    export_onnx(graph, tmp_path / "f.onnx", check=True)
    before = (tmp_path / "f.onnx").read_bytes()
    other = onnx_model(lab.make_graph(lambda x: x + 1.5)(np.ones(3)))
    monkeypatch.setattr(onnx_export, "onnx_model", lambda *_: other)
    with pytest.raises(GraphError, match="something else than the lab"):
        export_onnx(graph, tmp_path / "f.onnx", check=True)
    assert (tmp_path / "f.onnx").read_bytes() == before


def test_inputs_of_the_other_order_of_bytes_are_exported_in_that_of_the_format(tmp_path):
    graph = lab.make_graph(lambda x: lab.tanh(x) + 1.0)(np.ones(3, ">f4"))
    export_onnx(graph, tmp_path / "f.onnx", check=True)


def test_names_that_are_no_words_are_refused(tmp_path):
    graph = lab.make_graph(lab.tanh)(np.ones(3))
    with pytest.raises(ArgumentError, match="names are one for each input"):
        export_onnx(graph, tmp_path / "f.onnx", names=[3])
    with pytest.raises(ArgumentError, match="the names of 1 inputs cannot be these\ngiven: 3"):
        export_numpy(graph, tmp_path / "f.py", names=[3])
