"""Stages: contiguous, even by bytes, refused where they cannot be; micro-batches cover a batch once."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.autograd import wrap
from lab.errors import ArgumentError, ScheduleError
from lab.nn import Linear, Module, ReLU, Sequential, Tanh, mlp
from lab.parallel.pipeline.stages import cuts, micro_batches, split


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
def test_no_other_cuts_are_more_even(sizes, data):
    n_parts = data.draw(st.integers(1, len(sizes)))

    def cost(found):
        return sum(sum(sizes[a:b]) ** 2 for a, b in pairwise((0, *found, len(sizes))))

    every = list(combinations(range(1, len(sizes)), n_parts - 1))
    least = min(map(cost, every))
    assert cuts(sizes, n_parts) == max(found for found in every if cost(found) == least)


@pytest.mark.parametrize("n_stages", [1, 2, 3, 4, 5])
def test_the_stages_one_after_another_are_the_model(n_stages):
    model = mlp(6, 8, 5, 3, rng=0)
    x = wrap(np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32))
    found = x
    stages = split(model, n_stages)
    for stage in stages:
        found = stage(found)
    assert np.array_equal(found.numpy(), model(x).numpy())
    assert [layer for stage in stages for layer in stage.layers] == list(model)
    assert [p.name for stage in stages for p in stage.parameters()] == [name for name, _ in model.named_parameters()]


def test_stages_are_even_by_bytes_and_an_activation_stays_with_its_layer():
    model = mlp(64, 128, 128, 10, rng=0)
    assert [(i.first, len(i.layers)) for i in split(model, 3)] == [(0, 2), (2, 2), (4, 1)]
    assert [i.n_bytes for i in split(model, 3)] == [33280, 66048, 5160]
    assert [i.n_bytes for i in split(model, 4)] == [33280, 66048, 0, 5160]  # 3 layers have parameters, 4 stages
    assert [i.n_bytes for i in split(mlp(*[16] * 9, rng=0), 4)] == [2 * 4 * 17 * 16] * 4


def test_a_hundred_layers_are_cut_in_no_time():
    assert len(cuts([1] * 100, 16)) == 15


@pytest.mark.parametrize(
    ("model", "given"),
    [(Linear(2, 2, rng=0), "a Linear"), (Linear, "the class Linear"), (np.tanh, "a ufunc"), (None, "None")],
)
def test_what_is_no_sequential_is_refused_with_a_hint(model, given):
    with pytest.raises(ArgumentError) as caught:
        split(model, 2)
    assert str(caught.value) == (
        f"only a Sequential can be cut into stages\ngiven: {given}\n"
        "hint:  a pipeline cuts between the layers of a Sequential(...); a layer may be a Module of yours"
    )


def test_a_sequential_with_another_forward_cannot_be_cut():
    class Twice(Sequential):
        def forward(self, x):
            return super().forward(super().forward(x))

    with pytest.raises(ArgumentError, match="given: a Twice with a forward of its own"):
        split(Twice(Linear(2, 2, rng=0), Tanh()), 2)


def test_more_stages_than_layers_are_refused_by_arithmetic():
    with pytest.raises(ArgumentError) as caught:
        split(mlp(2, 3, 1, rng=0), 5)
    assert str(caught.value) == (
        "there are fewer layers than stages\ngiven: 5 stages, 3 layers: 2 would have none\n"
        "hint:  at most n_stages=3, or a model with more layers"
    )
    with pytest.raises(ArgumentError, match=r"n_stages is a whole number of at least 1\ngiven: n_stages=0"):
        split(mlp(2, 3, 1, rng=0), 0)


def test_a_parameter_lies_in_one_stage_only():
    class Tied(Module):
        def __init__(self, other):
            self.weight = other.weight

        def forward(self, x):
            return x @ self.weight

    first = Linear(4, 4, rng=0)
    model = Sequential(first, ReLU(), Tied(first))
    with pytest.raises(ArgumentError, match=r"two stages cannot share a parameter\ngiven: 0.weight in stages 0 and 1"):
        split(model, 2)
    assert len(split(model, 1)[0].parameters()) == 2  # each once


@given(st.integers(0, 40), st.integers(1, 12))
def test_micro_batches_cover_every_example_once_and_are_even(n_examples, n_micro):
    parts = micro_batches(n_examples, n_micro)
    assert [i for part in parts for i in range(n_examples)[part]] == list(range(n_examples))
    sizes = [part.stop - part.start for part in parts]
    assert len(sizes) == n_micro
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


def test_a_batch_is_cut_into_at_least_one_micro_batch():
    with pytest.raises(ScheduleError, match="at least one micro-batch\ngiven: n_micro=0"):
        micro_batches(4, 0)


def test_a_stage_says_what_it_is():
    assert repr(split(mlp(64, 10, 2, rng=0), 2)[1]) == "Stage 1: layers 2 Linear; 88 bytes of parameters"
