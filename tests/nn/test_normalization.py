"""Normalising layers against their formulas in NumPy, in training and in use; what batches leave in the state."""

import copy
import pickle

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, ShapeError, UnsupportedError
from lab.nn import BatchNorm1d, BatchNorm2d, GroupNorm, Linear, Module, RMSNorm, Sequential, buffer

RNG = np.random.default_rng(3)


def drawn(*shape):
    return RNG.normal(2.0, 3.0, shape).astype(np.float32)


def with_parameters(layer):
    for p in layer.parameters():
        p.value[...] = drawn(*p.shape)
    return layer


def by_channel(values, x):
    return np.reshape(values, (-1, *(1,) * (x.ndim - 2)))


def test_rms_norm_is_its_formula():
    layer, x = with_parameters(RMSNorm(5)), drawn(2, 3, 5)
    want = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * layer.scale.numpy()
    assert np.allclose(layer(lab.tensor(x)).numpy(), want, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 6), (3, 6, 4), (3, 6, 2, 5)])
@pytest.mark.parametrize("n_groups", [1, 2, 6])
def test_group_norm_is_its_formula_group_by_group(n_groups, shape):
    layer, x = with_parameters(GroupNorm(n_groups, 6, epsilon=0.1)), drawn(*shape)
    want = np.empty_like(x)
    for i in range(len(x)):
        for g in np.split(np.arange(6), n_groups):
            want[i, g] = (x[i, g] - x[i, g].mean()) / np.sqrt(x[i, g].var() + 0.1)
    want = want * by_channel(layer.scale.numpy(), x) + by_channel(layer.shift.numpy(), x)
    assert np.allclose(layer(lab.tensor(x)).numpy(), want, atol=1e-5)


BATCHES = [(BatchNorm1d, (7, 3)), (BatchNorm1d, (4, 3, 5)), (BatchNorm2d, (4, 3, 2, 5))]


@pytest.mark.parametrize(("kind", "shape"), BATCHES)
def test_batch_norm_is_its_formula_and_its_running_statistics_are_torchs(kind, shape):
    layer, axes = with_parameters(kind(3, momentum=0.25)), (0, *range(2, len(shape)))
    scale, shift = layer.scale.numpy(), layer.shift.numpy()
    mean, var = np.zeros(3), np.ones(3)
    for x in (drawn(*shape), drawn(*shape)):
        even = (x - by_channel(x.mean(axes), x)) / np.sqrt(by_channel(x.var(axes), x) + 1e-5)
        assert np.allclose(layer(x).numpy(), even * by_channel(scale, x) + by_channel(shift, x), atol=1e-5)
        n = x.size // 3
        mean = 0.75 * mean + 0.25 * x.mean(axes)
        var = 0.75 * var + 0.25 * x.var(axes) * n / (n - 1)
    assert np.allclose(layer.running_mean.numpy(), mean, rtol=1e-5)
    assert np.allclose(layer.running_var.numpy(), var, rtol=1e-5)

    layer.eval()
    x, kept = drawn(*shape), layer.state_dict()
    even = (x - by_channel(mean, x)) / np.sqrt(by_channel(var, x) + 1e-5)
    assert np.allclose(layer(x).numpy(), even * by_channel(scale, x) + by_channel(shift, x), atol=1e-5)
    assert np.allclose(layer(x[:1]).numpy(), layer(x).numpy()[:1], atol=1e-6)
    assert all(np.array_equal(kept[name], value) for name, value in layer.state_dict().items())


def test_the_gradient_of_batch_norm_is_the_central_difference_through_mean_and_variance():
    with lab.settings(dtype="float64"):
        layer = BatchNorm1d(2)
    x, weights = RNG.normal(size=(5, 2)), RNG.normal(size=(5, 2))
    leaf = lab.tensor(x, requires_grad=True)
    (layer(leaf) * weights).sum().backward()
    direction, h = RNG.normal(size=x.shape), 1e-6
    up, down = ((layer(x + sign * h * direction) * weights).sum().item() for sign in (1, -1))
    assert np.vdot(leaf.grad.numpy(), direction) == pytest.approx((up - down) / (2 * h), rel=1e-6)


def normed():
    return Sequential(Linear(2, 3, rng=0), BatchNorm1d(3))


def test_buffers_are_no_parameters_but_part_of_the_state():
    model = normed()
    model(drawn(8, 2))
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias", "1.scale", "1.shift"]
    assert list(model.state_dict()) == [*dict(model.named_parameters()), "1.running_mean", "1.running_var"]
    twin = normed()
    twin.load_state_dict(model.state_dict())
    others, x = (twin, copy.deepcopy(model), pickle.loads(pickle.dumps(model))), drawn(4, 2)
    assert all(np.array_equal(other.eval()(x).numpy(), model.eval()(x).numpy()) for other in others)
    model.train()(x)
    assert not any(np.array_equal(other(x).numpy(), model.eval()(x).numpy()) for other in others)


def test_a_state_without_the_buffers_is_refused_and_nothing_is_loaded():
    model, state = normed(), normed().state_dict()
    before = model.state_dict()
    del state["1.running_var"]
    state["0.weight"] += 1
    with pytest.raises(ArgumentError, match=r"the state lacks parameters of the model\ngiven: 1\.running_var\nhint"):
        model.load_state_dict(state)
    assert all(np.array_equal(before[name], value) for name, value in model.state_dict().items())


def test_a_graph_of_an_evaluation_survives_training_after_it():
    layer = BatchNorm1d(2).eval()
    x = lab.tensor(drawn(4, 2), requires_grad=True)
    loss = layer(x).sum()
    layer.train()(drawn(4, 2))
    loss.backward()
    assert np.allclose(x.grad.numpy(), 1 / np.sqrt(1 + 1e-5))


def test_transforms_take_a_model_with_buffers():
    model, x = normed(), drawn(8, 2)
    y = drawn(8, 3)

    def loss(model):
        return lab.nn.mse(model(x), y)

    loss(model).backward()
    seen_once = model[1].running_mean.numpy()
    found = lab.grad(loss)(model)
    assert np.allclose(found[0].weight.numpy(), model[0].weight.grad.numpy(), atol=1e-6)
    assert np.allclose(model[1].running_mean.numpy(), 1.9 * seen_once, rtol=1e-4)
    fast = lab.jit(loss)
    model.eval()
    for _ in range(2):
        assert fast(model).item() == pytest.approx(loss(model).item(), rel=1e-5)
        model.train()(x)
        model.eval()
    each = lab.vmap(model)(x[:, None])
    assert np.allclose(each.numpy()[:, 0], model(x).numpy(), atol=1e-5)


def test_a_class_of_ones_own_may_have_buffers():
    class Counts(Module):
        buffers = ("n_calls",)

        def __init__(self):
            self.n_calls = buffer(0.0)

        def forward(self, x):
            self.n_calls.value = self.n_calls.value + 1
            return x

    model = Sequential(Counts())
    model(model(1.0))
    assert {name: value.tolist() for name, value in model.state_dict().items()} == {"0.n_calls": 2.0}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: RMSNorm(3)(drawn(2, 4)), ShapeError, "layer RMSNorm(3) cannot take this input\ngiven: shape (2, 4)"),
        (lambda: GroupNorm(4, 6), ArgumentError, "the groups of a GroupNorm divide its channels\ngiven: 6 channels, 4"),
        (lambda: GroupNorm(2, 6)(drawn(6)), ShapeError, "given: shape (6,)\nhint:  (batch, 6 channels, ...)"),
        (lambda: GroupNorm(2, 6)(None), ArgumentError, "GroupNorm(2, 6) cannot take this input\ngiven: None\nhint:"),
        (lambda: BatchNorm1d(0), ArgumentError, "n is a whole number of at least 1\ngiven: n=0"),
        (lambda: BatchNorm1d(2, momentum=1.5), ArgumentError, "the share of a new batch\ngiven: momentum=1.5"),
        (lambda: BatchNorm1d(2, momentum="a"), ArgumentError, "momentum is a number\ngiven: momentum='a'"),
        (
            lambda: Sequential(BatchNorm1d(2))(drawn(4, 3)),
            ShapeError,
            "given: shape (4, 3)\nhint:  (batch, 2 channels) or (batch, 2 channels, length)",
        ),
        (lambda: BatchNorm2d(2)(drawn(4, 2)), ShapeError, "hint:  (batch, 2 channels, height, width)"),
        (
            lambda: BatchNorm1d(2)(drawn(1, 2)),
            ShapeError,
            "a variance needs at least two numbers of each channel\ngiven: shape (1, 2)\nhint:  a larger batch, or",
        ),
        (
            lambda: lab.jit(BatchNorm1d(2))(drawn(4, 2)),
            UnsupportedError,
            "BatchNorm1d cannot remember a batch whose numbers are hidden\ngiven: called in training inside jit",
        ),
    ],
)
def test_errors_say_what_was_wrong(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
