"""Visits of a backward walk: once each in topological order, once for each path without; the same gradient."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, GradientError
from lab.events import NodeVisited


def squarings(n, x=1.1):
    y = lab.tensor(x, requires_grad=True, name="x")
    for _ in range(n):
        y = y * y
    return y


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_a_chain_of_squarings_has_a_path_for_each_subset(n):
    assert [*lab.count_visits(squarings(n)).by_node.values()] == [1] * (n + 1)
    assert [*lab.count_visits(squarings(n), "path").by_node.values()] == [2**k for k in range(n + 1)]


@pytest.mark.parametrize("order", ["topological", "path"])
def test_the_gradient_is_that_of_backward(order):
    rng = np.random.default_rng(0)
    x = lab.tensor(rng.normal(size=(3, 4)), requires_grad=True)
    w = lab.tensor(rng.normal(size=4).astype(np.float32), requires_grad=True)
    h = lab.tanh(x * w)
    with np.errstate(divide="ignore"):  # of the branch that is not taken
        y = lab.sum(lab.where(h > 0, lab.log(lab.maximum(h, 0.0)), h) * h + x)
    gradients = lab.count_visits(y, order).gradients
    assert x.grad is None
    y.backward()
    for leaf in (x, w):
        np.testing.assert_allclose(gradients[leaf.node.id], leaf.grad.numpy(), rtol=1e-5)
        assert gradients[leaf.node.id].dtype == leaf.dtype


def test_each_visit_is_told_with_where_it_came_from():
    y = squarings(2)
    with lab.record() as rec:
        made = lab.count_visits(y, "path")
    told = [e for e in rec if isinstance(e, NodeVisited)]
    root, middle, leaf = made.by_node
    assert [e.number for e in told] == [1, 2, 3, 4, 5, 6, 7]
    assert [e.node for e in told] == [root, middle, leaf, leaf, middle, leaf, leaf]
    assert [(e.source, e.argument) for e in told] == [
        (-1, -1), (root, 0), (middle, 0), (middle, 1), (root, 1), (middle, 0), (middle, 1),
    ]  # fmt: skip


def test_too_many_visits_are_refused_with_their_number_before_the_walk():
    with pytest.raises(ArgumentError, match=r"2,199,023,255,551 visits of 41 nodes") as caught:
        lab.count_visits(squarings(40, 1.0), "path")
    assert len(str(caught.value).splitlines()) == 3
    assert lab.count_visits(squarings(40, 1.0)).total == 41


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: lab.count_visits(squarings(1), "breadth"), ArgumentError, "no such order"),
    (lambda: lab.count_visits(lab.tensor(2.0)), GradientError, "this has none"),
    (lambda: lab.count_visits(2.0), GradientError, "this has none"),
    (lambda: lab.count_visits(squarings(1, np.ones(2))), GradientError, "several entries"),
])  # fmt: skip
def test_what_cannot_be_walked_is_refused_in_three_lines(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
