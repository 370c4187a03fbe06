"""Graphs as values: how they print, run, pickle, and that tracing loses nothing."""

import dataclasses
import pickle
import textwrap

import numpy as np
import pytest

import lab
from lab.errors import ConcretizationError
from lab.graph import Graph, Literal, Var
from lab.graph.execute import replayer, run
from lab.graph.passes import stages
from lab.shapes import Spec
from tests.numerics import close


def test_a_graph_prints_as_a_program():
    graph = lab.make_graph(lambda x, w: lab.sum(lab.tanh(lab.matmul(x, w)) * 2.0 + 1, axis=0))(
        np.ones((2, 3), "float32"), np.ones((3, 4), "float32")
    )
    expected = """
        graph(a:f32[2,3] b:f32[3,4]) { let
            c:f32[2,4] = matmul(a, b)
            d:f32[2,4] = tanh(c)
            e:f32[2,4] = multiply(d, 2.0)
            f:f32[2,4] = add(e, 1)
            g:f32[4] = sum(f, axis=0, keepdims=False)
          in (g) }"""
    assert str(graph) == textwrap.dedent(expected).strip()
    assert repr(graph) == str(graph)


def test_the_gradient_of_a_function_is_a_graph_of_the_same_ops():
    graph = lab.make_graph(lab.grad(lambda x: lab.tanh(x) * x))(1.0)
    assert {e.op.name for e in graph.equations} <= {
        "tanh",
        "multiply",
        "subtract",
        "add",
        "power",
        "broadcast_to",
        "reshape",
    }
    close(run(graph, [0.5])[0], np.tanh(0.5) + 0.5 / np.cosh(0.5) ** 2)


def test_printing_handles_constants_parameters_and_many_variables():
    big = np.arange(8.0).reshape(2, 4)

    def f(x):
        y = lab.where(x > 0, x, big) + np.float32(1.5) + True + np.array([1, 2, 3, 4])
        for _ in range(30):
            y = y * 1.0
        return y[0], y[:, [0, 0]], 3.0, x

    text = str(lab.make_graph(f)(np.ones((2, 4))))
    lines = text.splitlines()
    assert "const0:f64[2,4]" in text
    assert "aa:" in text
    assert all(len(line) < 140 for line in lines)
    assert lines[-1].endswith("3.0, a) }")
    names = [line.split(":")[0].strip() for line in lines[1:-1]]
    assert len(set(names)) == len(names)


def test_every_equation_reads_only_what_was_defined_before():
    graph = lab.make_graph(lab.grad(lambda x: lab.cross_entropy(lab.relu(x) @ np.ones((3, 2)), np.array([0, 1]))))(
        np.ones((2, 3))
    )
    known = set(graph.inputs)
    for e in graph.equations:
        assert all(a in known for a in e.inputs if isinstance(a, Var))
        assert e.out not in known
        known.add(e.out)
    assert all(a in known for a in graph.outputs if isinstance(a, Var))


def test_equations_know_the_line_that_made_them():
    def f(x):
        return lab.exp(x)

    (equation,) = lab.make_graph(f)(1.0).equations
    assert equation.origin == f"{__file__}:{f.__code__.co_firstlineno + 1}"
    assert equation.buffer == ()


def test_captured_tensors_are_the_last_inputs():
    w, v = lab.tensor([1.0, 2.0]), lab.tensor(3.0)
    graph = lab.make_graph(lambda x: x * w + v + w)(np.ones(2))
    assert len(graph.inputs) == 3
    assert graph.captured[0] is w
    assert graph.captured[1] is v
    close(run(graph, [np.ones(2), *graph.captured])[0], [5.0, 7.0])


def test_graphs_are_values():
    make = lab.make_graph(lambda x: lab.exp(x) * 2.0)
    a, b = make(1.0), make(1.0)
    assert a == b
    assert str(pickle.loads(pickle.dumps(a))) == str(a)
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.equations = ()
    assert Graph((Var(0, Spec((), np.dtype("f8"))),), (), (Literal(1.0),)).outputs == (Literal(1.0),)


def test_running_and_replaying_agree_for_arrays_tensors_and_tracers():
    f = lambda x: lab.softmax(x * 2.0) @ x + lab.max(x)  # noqa: E731
    x = np.array([0.5, -1.0, 2.0])
    graph = lab.make_graph(f)(x)
    replay = replayer(graph)
    close(run(graph, [x])[0], f(x))
    close(run(graph, [lab.tensor(x)])[0], f(x))
    close(replay([lab.tensor(x)])[0], f(x))
    close(lab.grad(lambda x: run(graph, [x])[0])(x), lab.grad(f)(x))
    close(lab.vmap(lambda x: replay([x])[0])(np.stack([x, x]))[1], f(x))


def test_no_arguments_and_no_equations():
    assert str(lab.make_graph(lambda: 1.0)()) == "graph() { let\n  in (1.0) }"
    close(lab.jit(lambda: 1.0)(), 1.0)


def test_make_graph_refuses_code_that_needs_values():
    with pytest.raises(ConcretizationError, match="the value of a traced variable"):
        lab.make_graph(lambda x: x if x > 0 else -x)(1.0)


def test_the_mimebundle_has_plain_text_and_escaped_html():
    bundle = lab.make_graph(lambda x: x > 0.0)(1.0)._repr_mimebundle_()
    assert "greater(a, 0.0)" in bundle["text/plain"]
    assert "<pre" in bundle["text/html"]
    assert "=&gt;" not in bundle["text/plain"]


def test_no_grad_inside_a_trace_is_written_down():
    def f(x):
        with lab.no_grad():
            y = x * x
        return y * x

    assert "stop_gradient" in str(lab.make_graph(f)(1.0))


def test_an_equation_that_meets_others_inside_is_neither_left_out_nor_shared():
    def f(x):
        turn = lambda c, _: (lab.all_reduce(c, axis_name="i"), None)  # noqa: E731
        ends = [lab.scan(turn, x, None, length=2)[0] for _ in range(2)]
        return ends[0] * 0.0 + x

    x = lab.tensor(1.0)
    held = []
    lab.vmap(lambda x: held.append(lab.make_graph(f)(x)) or x, axis_name="i")(np.ones(2))
    for stage in stages(held[0]):
        assert sum(e.meets for e in stage.graph.equations) == 2
    alone = lab.make_graph(lambda x: lab.scan(lambda c, _: (c, c), x, None, length=2))(x)
    assert not any(e.meets for e in alone.equations)
