"""A gradient over very many paths: the count and the layers against every path, written out one by one."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab import nn
from lab.autograd.spread import NAMED


def recorded(n_walks: int = 1, batch: int = 20):
    model = nn.mlp(4, 5, 3, 2, activation=nn.Tanh, rng=0)
    inputs = np.random.default_rng(1).normal(size=(batch, 4))
    with lab.record() as rec:
        for _ in range(n_walks):
            lab.cross_entropy(model(inputs), np.arange(batch) % 2).backward()
    return rec


def written_out(rec, index):
    """Every path of the entry."""
    every = lab.why("0.weight", index, recording=rec, n_paths=100_000, budget=10**9)
    assert every.n_open == 0
    return every.paths


@pytest.mark.parametrize("n_walks", [1, 2])
def test_all_paths_are_counted_and_what_goes_through_each_layer_is_the_sum_of_its_paths(n_walks):
    rec = recorded(n_walks)
    told = lab.why("0.weight", (1, 2), recording=rec, n_paths=1)
    paths = written_out(rec, (1, 2))
    assert told.n_all == len(paths) > 100
    assert [layer.name for layer in told.layers] == ["1: tanh", "3: tanh", "4: add"]
    for layer in told.layers:
        module, op = layer.name.split(": ")
        through: dict[int, float] = {}
        for path in paths:
            [place] = [p for p in path.places if (p.module, p.op) == (module, op)]
            through[place.entry[-1]] = through.get(place.entry[-1], 0.0) + path.share
        largest = sorted(through, key=lambda k: -abs(through[k]))
        assert [k for k, _ in layer.shares] == largest[:NAMED]
        np.testing.assert_allclose([s for _, s in layer.shares], [through[k] for k in largest[:NAMED]], rtol=1e-6)
        assert layer.rest == pytest.approx(sum(through[k] for k in largest[NAMED:]), rel=1e-6, abs=1e-12)
        assert layer.total == pytest.approx(told.gradient, rel=1e-6)


def test_a_branch_around_a_layer_makes_it_none_that_all_paths_go_through():
    w = lab.tensor(np.linspace(0.1, 0.9, 9).reshape(3, 3), requires_grad=True, name="w")
    with lab.record() as rec:
        h = np.ones((4, 3)) @ w
        ((lab.tanh(h) + h) * 2.0).sum().backward()
    told = lab.why("w", (0, 0), recording=rec, n_paths=1)
    assert told.n_all == len(lab.why("w", (0, 0), recording=rec, n_paths=100, budget=10**6).paths) == 8
    assert told.layers == (), "few paths are told as paths"
    with lab.record() as rec:
        h = np.ones((100, 3)) @ w
        ((lab.tanh(h) + h) * 2.0).sum().backward()
    told = lab.why("w", (0, 0), recording=rec, n_paths=1)
    assert told.n_all == 200
    assert [layer.op for layer in told.layers] == ["multiply"], "not tanh, which half of the paths go around"


def test_where_the_largest_paths_are_most_of_the_gradient_nothing_is_counted():
    x = lab.tensor(3.0, requires_grad=True, name="x")
    with lab.record() as rec:
        (x * x + lab.sin(x)).backward()
    told = lab.why("x", recording=rec, n_paths=2)
    assert (told.n_all, told.layers) == (0, ())
