"""Every rule of the table of legal graphs can be offended, and says so."""

import dataclasses

import numpy as np
import pytest

import lab
from lab.errors import GraphError
from lab.graph.ir import Equation, Graph, Var
from lab.graph.parsing import parse
from lab.graph.verify import LEGAL, verify
from lab.ops import PRIMITIVES
from lab.shapes import Spec

F = np.dtype(float)
BASE = lab.make_graph(lambda x, y: lab.sum(lab.tanh(x) * y, axis=0))(np.ones(3), np.ones(3))
TANH, TIMES, SUM = BASE.equations
A, B = BASE.inputs


def changed(k: int, **changes: object) -> Graph:
    equations = list(BASE.equations)
    equations[k] = dataclasses.replace(equations[k], **changes)
    return dataclasses.replace(BASE, equations=tuple(equations))


INNER = parse("graph(a:f64[]) { let b:f64[] = cond(True, a) { then = graph(a:f64[]) { let in (a) } "
              "otherwise = graph(a:f64[]) { let in (a) } } in (b) }")  # fmt: skip
THEN = INNER.equations[0].params["then"]

ILLEGAL = {
    "what is used is defined before": dataclasses.replace(BASE, equations=(TIMES, TANH, SUM)),
    "a variable is defined once": dataclasses.replace(BASE, equations=(TANH, TANH, TIMES, SUM)),
    "every captured value has an input of its shape and dtype": dataclasses.replace(BASE, captured=(np.ones(4),)),
    "a graph inside another takes all that it needs as operands": dataclasses.replace(
        INNER,
        equations=(
            dataclasses.replace(
                INNER.equations[0],
                params={**INNER.equations[0].params, "then": dataclasses.replace(THEN, captured=(np.asarray(1.0),))},
            ),
        ),
    ),
    "operands and parameters are those of the op": changed(2, params={"axis": 0}),
}


def with_buffers(*places: int) -> Graph:
    return dataclasses.replace(
        BASE, equations=tuple(dataclasses.replace(e, buffer=(p,)) for e, p in zip(BASE.equations, places, strict=True))
    )


def test_a_legal_graph_passes():
    verify(BASE)
    verify(with_buffers(0, 1, 0))
    verify(with_buffers(0, 0, 1))  # in place: the operand is read for the last time


@pytest.mark.parametrize("sentence", LEGAL)
def test_every_rule_can_be_offended(sentence):
    graph = ILLEGAL.get(sentence, BASE)
    if sentence.startswith("a buffer"):
        both = Equation(PRIMITIVES["add"], (TANH.out, TIMES.out), (Var(9, Spec((3,), F)),), {}, "", (2,))
        graph = with_buffers(0, 0, 1)
        graph = dataclasses.replace(graph, equations=(*graph.equations, both), outputs=(both.out,))
    if sentence.startswith("the shape"):
        wrong = dataclasses.replace(SUM, outs=(Var(4, Spec((4,), F)),))
        graph = dataclasses.replace(BASE, equations=(TANH, TIMES, wrong), outputs=wrong.outs)
    with pytest.raises(GraphError) as caught:
        verify(graph, after="my_pass")
    assert sentence in str(caught.value)
    assert "after my_pass" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 3


def test_a_parameter_that_is_no_number_is_refused():
    with pytest.raises(GraphError, match="cannot hold this parameter"):
        verify(changed(2, params={"axis": lambda: 0, "keepdims": False}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cond(a, b) { then = graph(a:f64[]) { let in (a) } otherwise = graph(a:f64[]) { let in (a) } }", "one bool"),
        ("cond(True, b) { then = graph(a:f32[]) { let in (a) } otherwise = graph(a:f64[]) { let in (a) } }", "take"),
        ("cond(True, b) { then = graph(a:f64[]) { let in (1) } otherwise = graph(a:f64[]) { let in (a) } }", "same"),
        ("while_loop(b, n_fixed=0) { test = graph(a:f64[]) { let in (a) } body = graph(a:f64[]) { let in (a) } }",
         "one bool"),
        ("while_loop(b, n_fixed=0) { test = graph(a:f64[]) { let in (True) } body = graph(a:f64[]) { let in (1) } }",
         "a turn"),
        ("scan(b, n_fixed=0, n_carry=0, length=2, reverse=False) { body = graph(a:f64[]) { let in (a) } }", "length"),
    ],
)  # fmt: skip
def test_graphs_inside_that_do_not_fit_are_refused(text, words):
    with pytest.raises(GraphError, match=words):
        parse(f"graph(a:f64[] b:f64[]) {{ let c:f64[] = {text} in (c) }}")
