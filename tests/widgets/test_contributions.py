"""ContributionView: each rule as a product and each sum as it grows, compared with what one works out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lab
from lab.autograd.local import local_jacobian
from lab.autograd.recorded import NotKept, Recorded
from lab.autograd.reread import Rules
from tests.widgets.golden import FORWARD, product_plus_x, recorded, training
from widgets import ContributionView
from widgets.pictures.theme import short


def stops(view):
    return [int(p) for p in view.stop_positions(view.recording)]


def boxes(view, k):
    return {n.id: (n.label, n.sublabel, n.gradient) for n in view.picture_at(stops(view)[k]).nodes}


def tensors(**values):
    return [lab.tensor(v, requires_grad=True, name=name) for name, v in values.items()]


def test_the_picture_of_each_rule_is_what_one_works_out_by_hand():
    view = ContributionView(product_plus_x())  # z = x * y + x at 2, 3
    assert boxes(view, 0) == {"in": ("gradient of v₂", "1.0", "")}
    assert boxes(view, 1) == {
        "in": ("gradient of v₂", "1.0", ""),
        "4.0": ("∂v₂/∂v₁ = 1.0", "ct", "1.0 × 1.0 = 1.0"), "4.1": ("∂v₂/∂x = 1.0", "ct", "1.0 × 1.0 = 1.0"),
        "sum3": ("v₁", "1.0", "complete"), "sum1": ("x", "1.0", "1 more to come"),
    }  # fmt: skip
    assert boxes(view, 2) == {
        "in": ("gradient of v₁", "1.0", ""),
        "3.0": ("∂v₁/∂x = 3.0", "ct * y", "3.0 × 1.0 = 3.0"), "3.1": ("∂v₁/∂y = 2.0", "ct * x", "2.0 × 1.0 = 2.0"),
        "sum1": ("x", "1.0 + 3.0 = 4.0", "complete"), "sum2": ("y", "2.0", "complete"),
    }  # fmt: skip
    assert len(stops(view)) == 3


def test_a_value_that_waits_is_told_from_one_that_is_complete_by_its_state():
    view = ContributionView(product_plus_x())
    states = [{n.id: n.state for n in view.picture_at(p).nodes if n.id.startswith("sum")} for p in stops(view)]
    assert states == [{}, {"sum3": "done", "sum1": "waiting"}, {"sum1": "done", "sum2": "done"}]


def test_an_operand_used_twice_in_one_operation_gets_two_products_and_one_sum():
    (x,) = tensors(x=-3.0)
    with lab.record() as rec:
        (x * x).backward()
    made = boxes(ContributionView(rec), 1)
    assert [words[2] for name, words in made.items() if "." in name] == ["−3.0 × 1.0 = −3.0"] * 2
    assert [words[1] for name, words in made.items() if "sum" in name] == ["−3.0 + (−3.0) = −6.0"]


def test_a_second_walk_counts_only_what_came_back_in_it():
    view = ContributionView(product_plus_x(2))
    assert boxes(view, -1)["sum1"] == ("x", "1.0 + 3.0 = 4.0", "complete")
    assert boxes(view, 4)["sum1"] == ("x", "1.0", "1 more to come")


@pytest.mark.parametrize(("f", "shape"), [
    (lambda x: lab.tanh(x), (4,)), (lambda x: x @ np.arange(6.0).reshape(3, 2), (2, 3)),
    (lambda x: lab.sum(x * x, axis=0), (3, 2)), (lambda x: lab.softmax(x), (5,)), (lambda x: x * np.ones((3, 4)), (4,)),
])  # fmt: skip
def test_local_derivatives_of_recorded_operations_are_those_of_finite_differences(f, shape):
    x = lab.tensor(np.random.default_rng(0).normal(size=shape), requires_grad=True, name="x")
    with lab.record() as rec:
        y = f(x)
    rules, eps = Rules(Recorded(rec)), 1e-6
    jacobian = np.eye(x.size)
    for op in (e for e in rec if isinstance(e, lab.events.OpRecorded)):  # a chain: the product of its factors
        parts = [local_jacobian(rules, op.node, i) for i, p in enumerate(op.parents) if p >= 0]
        jacobian = sum(parts) @ jacobian
    columns = []
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = eps
        ends = [f(lab.tensor(x.numpy() + sign * step.reshape(shape))).numpy() for sign in (1, -1)]
        columns.append(((ends[0] - ends[1]) / (2 * eps)).reshape(-1))
    np.testing.assert_allclose(jacobian, np.stack(columns, 1), rtol=1e-6, atol=1e-8)
    assert jacobian.shape == (y.size, x.size)


def test_arrays_are_told_by_shape_and_norm_and_a_large_jacobian_is_not_built():
    (w,) = tensors(w=np.full((4, 3), 2.0))
    x = np.ones((100, 4))
    with lab.record() as rec:
        lab.sum(lab.tanh(lab.tensor(x) @ w)).backward()
    view = ContributionView(rec)
    last = [words for name, words in boxes(view, -1).items() if "." in name]
    slope = 100 * (1 - math.tanh(8.0) ** 2)
    norm = short(float(np.linalg.norm(np.full((4, 3), slope))))
    assert last == [("∂v₁/∂w: 300×12", "a.T @ ct", f"4×3 norm {norm}")]
    assert "it has 3,600 entries and is never built" in view.text_at(len(rec))
    product = next(e for e in rec if isinstance(e, lab.events.OpRecorded)).node
    with pytest.raises(NotKept, match="never built"):
        local_jacobian(Rules(Recorded(rec)), product, 1)


def test_small_arrays_are_told_entry_by_entry():
    (x,) = tensors(x=[1.0, 2.0])
    with lab.record() as rec:
        lab.sum(x * np.array([3.0, -4.0])).backward()
    assert [w for name, w in boxes(ContributionView(rec), -1).items() if name != "in"] == [
        ("∂v₁/∂x: diagonal [3.0, −4.0]", "ct * y", "[3.0, −4.0]"), ("x", "[3.0, −4.0]", "complete"),
    ]  # fmt: skip


def test_without_values_rules_and_progress_are_still_told():
    (x,) = tensors(x=2.0)
    with lab.record(detail="shape") as rec:
        (x * x).backward()
    text = ContributionView(rec).text_at(len(rec))
    assert "the gradient that came in is not recorded" in text
    assert "rule ct * y." in text
    assert "2 contributions, complete" in text


def test_under_create_graph_the_walk_is_not_lost_among_what_it_records():
    (x,) = tensors(x=2.0)
    with lab.record() as rec:
        (x * x * x).backward(create_graph=True)
    view = ContributionView(rec)
    assert boxes(view, 1)["sum" + str(rec[0].node)] == ("x", "4.0", "2 more to come")
    assert boxes(view, -1)["sum" + str(rec[0].node)] == ("x", "4.0 + 4.0 + 4.0 = 12.0", "complete")


def test_of_many_operands_the_first_are_drawn_and_the_others_counted():
    (x,) = tensors(x=np.arange(3.0))
    with lab.record() as rec:
        lab.sum(lab.concatenate([x] * 14)).backward()
    view = ContributionView(rec)
    assert len([n for n in boxes(view, -1) if "." in n]) == 10
    assert "4 more operands" in view.picture_at(len(rec)).caption
    assert "sum of 14" in boxes(view, -1)[f"sum{rec[0].node}"][1]


def test_before_a_walk_it_says_what_to_do():
    words = ContributionView(recorded(FORWARD)).text_at(len(FORWARD))
    assert ".backward()" in words
    assert "GraphView" in words
    assert "LossView" in ContributionView(training([1.0, 2.0])).text_at(2)
