"""How operations and operands are written on a graph."""

from __future__ import annotations

import math

import pytest

import lab
from lab.events import BackwardFinished, BackwardStarted, OpRecorded
from tests.widgets.golden import leaf, op, recorded, rule, stored
from widgets.tape import wording
from widgets.tape.tape import Entry
from widgets.views.graph.inspector import inspected
from widgets.views.graph.view import GraphView


def entry(op="multiply", parents=(1,), params="", constants=()):
    return Entry(2, op, "", parents, (), "float64", constants, params=params)


@pytest.mark.parametrize(
    ("op", "params", "written"),
    [
        ("sum", "axis=0", "sum(w, axis=0)"),
        ("sum", "", "sum(w)"),
        ("getitem", "[0]", "w[0]"),
        ("getitem", "index=[1:]", "w[1:]"),
        ("getitem", "1:, ::2", "w[1:, ::2]"),
        ("getitem", "", "getitem(w)"),
        ("exp", "", "exp(w)"),
    ],
)
def test_parameters_are_written_where_one_writes_them(op, params, written):
    assert wording.expression(entry(op, params=params), {1: "w"}) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("(2,) float64", "array(2)"),
        ("(64, 10) float32", "data 64×10"),
        ("() float32", "scalar"),
        ("2.0", "2.0"),
    ],
)
def test_an_operand_that_is_not_tracked_reads_like_no_list(text, written):
    assert wording.operands(entry(parents=(-1,), constants=(text,)), {}) == [written]


def test_an_untracked_array_of_a_run_is_named_as_an_array():
    w = lab.tensor([1.0, 2.0], requires_grad=True, name="w")
    with lab.record() as rec:
        lab.tensor([3.0, 4.0]) * w
    assert "array(2) * w" in GraphView(rec).text_at(len(rec))


def with_hook(contribution, gradient):
    events = [*leaf(1, "x", 2.0), *op(2, "multiply", (-1, 1), 6.0, ("3.0", "")), BackwardStarted(2, 1, 0)]
    events += rule(2, "multiply", 1.0, {1: (1, contribution)}, 2)
    events += [*stored(1, gradient), BackwardFinished(2, 1, 0, "")]
    return recorded(events)


def test_a_gradient_that_a_hook_changed_says_so():
    rec = with_hook(3.0, 30.0)
    view = GraphView(rec)
    box = next(n for n in view.picture_at(len(rec)).nodes if n.id == "1")
    assert box.gradient == "grad +30.0 after a hook"
    assert "x = 2.0, gradient 30.0 after a hook (3.0 came back)" in view.text_at(len(rec))
    assert "changed by a hook" in view.picture_at(len(rec)).caption
    assert "after a hook" in inspected(view.state_at(len(rec)), "1", rec)


def test_a_gradient_that_is_the_sum_says_nothing_of_hooks():
    for rec in (with_hook(3.0, 3.0), with_hook(math.nan, math.nan), with_hook(1e30, 1e30 * (1 + 1e-15))):
        assert "hook" not in GraphView(rec).text_at(len(rec))


def test_the_hook_of_a_real_leaf_and_of_a_result_are_seen():
    x = lab.tensor(2.0, requires_grad=True, name="x")
    x.register_hook(lambda ct: ct * 10)
    with lab.record(detail="value") as rec:
        y = x * 3.0
        y.register_hook(lambda ct: ct * 2)
        (y + 1.0).backward()
    text = GraphView(rec).text_at(len(rec))
    assert "x = 2.0, gradient 60.0 after a hook (6.0 came back)" in text
    assert "gradient 2.0 after a hook (1.0 came back)" in text


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding_of_many_contributions_is_no_hook(dtype):
    x = lab.tensor([0.1, -3.3, 1e3], requires_grad=True, name="x", dtype=dtype)
    with lab.record(detail="value") as rec:
        y = x * 0.1
        for k in range(12):
            y = y + x * (0.37 * (-1) ** k)
        y.sum().backward()
    assert "hook" not in GraphView(rec).text_at(len(rec))


def test_a_part_of_a_graph_is_not_suspected_of_hooks():
    x = lab.tensor(2.0, requires_grad=True, name="x")
    y = x * 3.0
    with lab.record(detail="value") as rec:
        z = x * y
        z.backward()
    assert "hook" not in GraphView(rec).text_at(len(rec))
    assert len(rec.positions(OpRecorded)) == 1
    large = [*leaf(1, "x", 2.0), *op(2, "exp", (1,), 7.0), *op(3, "exp", (1,), 7.0), BackwardStarted(3, 2, 0)]
    large += [*rule(3, "exp", 1.0, {0: (1, 1.0)}, 1), *rule(2, "exp", 1.0, {0: (1, 1.0)}, 1), *stored(1, 2.0)]
    rec = recorded(large)
    assert "hook" not in GraphView(rec, limit=2).text_at(len(rec))
