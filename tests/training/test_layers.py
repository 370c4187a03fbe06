"""What `fit` tells of the layers: statistics of what each gives, compared with NumPy, and the gradient by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lab
from lab.events import LayerMeasured, ParameterMeasured
from lab.nn import Embedding, Linear, Module, ReLU, Sequential
from lab.nn.module import WATCH
from lab.training.layers import Watch, given


def small():
    rng = np.random.default_rng(0)
    inputs, targets = rng.normal(size=(20, 3)).astype(np.float32), rng.integers(0, 2, 20)
    return Sequential(Linear(3, 4, rng=1), ReLU(), Linear(4, 2, rng=2)), (inputs, targets)


def fitted(model, data, **options):
    run = lab.fit(model, data, batch_size=10, **options)
    run.wait()
    return run.recording


def layers(rec):
    return [e for e in rec if isinstance(e, LayerMeasured)]


def test_statistics_are_those_of_numpy_and_the_gradient_is_that_of_the_formula():
    model, (x, targets) = small()
    w0, b0, w1, b1 = (p.numpy().astype(np.float64) for p in model.parameters())
    with Watch() as watch:
        loss = lab.cross_entropy(model(lab.tensor(x)), targets)
    loss.backward()
    first, second, third = watch.events(7)
    z = x @ w0 + b0
    h = np.maximum(z, 0)
    y = h @ w1 + b1
    p = np.exp(y - y.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    dy = (p - np.eye(2)[targets]) / len(x)
    dh = dy @ w1.T
    dz = dh * (z > 0)
    for event, out, gradient in ((first, z, dz), (second, h, dh), (third, y, dy)):
        assert event.step == 7
        assert event.n_entries == out.size
        np.testing.assert_allclose([event.mean, event.deviation], [out.mean(), out.std()], rtol=1e-5)
        np.testing.assert_allclose(event.gradient_norm, np.linalg.norm(gradient), rtol=1e-5)
        assert (event.n_units, event.n_dead) == (out.shape[1], int((out == 0).all(0).sum()))
    assert [(e.name, e.kind) for e in (first, second, third)] == [("0", "Linear"), ("1", "ReLU"), ("2", "Linear")]


def test_units_that_are_zero_for_every_example_are_dead():
    assert given(np.array([[0.0, 0.0, 1.0], [0.0, 2.0, 0.0]]))[-2:] == (3, 1)
    assert given(np.zeros((5, 2, 3)))[-2:] == (6, 6)
    assert given(np.array([1.0, np.nan, np.inf]))[:4] == (3, 1.0, 0.0, 2)
    assert given(np.array([1e200, -1e200])).deviation == np.inf


def test_a_run_tells_them_at_measured_steps_beside_its_parameters():
    model, data = small()
    rec = fitted(model, data, epochs=3, measure_every=2)
    measured = {e.step for e in rec if isinstance(e, ParameterMeasured)}
    assert measured == {1, 3, 5}
    assert [(e.step, e.name) for e in layers(rec)] == [(s, n) for s in (1, 3, 5) for n in ("0", "1", "2")]


def test_a_run_that_measures_nothing_tells_none():
    model, data = small()
    assert not layers(fitted(model, data, epochs=1, measure_every=0))


def test_what_is_learned_is_the_same_whether_layers_are_measured_or_not():
    ends = []
    for every in (0, 1):
        model, data = small()
        fitted(model, data, epochs=2, measure_every=every)
        ends.append([p.numpy().tobytes() for p in model.parameters()])
    assert ends[0] == ends[1]


def test_a_layer_through_which_no_gradient_comes_has_none_and_a_lookup_is_watched_too():
    table, head = Embedding(5, 3, rng=0), ReLU()
    with Watch() as watch:
        out = head(table(np.array([0, 1, 2])))
    (first, second) = watch.events(1)
    assert (first.kind, second.kind) == ("Embedding", "ReLU")
    assert math.isnan(first.gradient_norm)
    out.sum().backward()
    assert not any(math.isnan(e.gradient_norm) for e in watch.events(1))


def test_only_modules_without_modules_are_layers_and_nothing_is_watched_afterwards():
    class Block(Module):
        def __init__(self):
            self.inner = Linear(2, 2, rng=0)

        def forward(self, x):
            return self.inner(x) + x

    model = Sequential(Block(), ReLU())
    with Watch() as watch:
        model(lab.tensor(np.ones((3, 2))))
    assert [e.name for e in watch.events(1)] == ["0.inner", "1"]
    assert WATCH.get() is None
    model(lab.tensor(np.ones((3, 2))))
    assert len(list(watch.events(1))) == 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_counted(value):
    with Watch() as watch:
        ReLU()(lab.tensor([[value, 2.0], [1.0, 2.0]], requires_grad=True))
    (event,) = watch.events(1)
    assert event.n_nonfinite == 1
    assert math.isfinite(event.mean)
