import numpy as np
import pytest

from lab import ops
from lab.autograd import tensor
from lab.errors import ArgumentError, ShapeError
from lab.nn import INITS, Linear, ReLU, Sequential, Sigmoid, Softmax, Tanh, cross_entropy, kaiming, mlp, mse


def as_tensor(*rows):
    return tensor(np.array(rows, np.float32))


@pytest.mark.parametrize("lead", [(), (5,), (2, 3)])
def test_linear_takes_any_leading_axes(lead):
    layer, x = Linear(4, 3, rng=0), np.random.default_rng(1).standard_normal((*lead, 4)).astype(np.float32)
    out = layer(tensor(x))
    assert out.shape == (*lead, 3)
    assert np.allclose(out.numpy(), x @ layer.weight.numpy() + layer.bias.numpy(), atol=1e-6)


def test_linear_without_bias_is_the_product():
    layer = Linear(2, 2, bias=False, rng=0)
    assert layer.bias is None
    assert np.allclose(layer(as_tensor([1, 0])).numpy(), layer.weight.numpy()[0])


@pytest.mark.parametrize(("name", "bound"), [("kaiming", np.sqrt(6 / 50)), ("xavier", np.sqrt(6 / 250))])
def test_starting_weights_fill_the_range_of_the_paper(name, bound):
    weight = Linear(50, 200, init=name, rng=0).weight.numpy()
    assert 0.99 * bound < abs(weight).max() <= bound * (1 + 1e-6)
    assert weight.var() == pytest.approx(bound**2 / 3, rel=0.03)


def test_kaiming_keeps_the_size_of_a_signal_through_twenty_relu_layers():
    rng, x = np.random.default_rng(0), np.random.default_rng(1).standard_normal((100, 256))
    for _ in range(20):
        x = np.maximum(x @ kaiming(256, 256, rng), 0)
    assert 0.5 < np.sqrt((x**2).mean()) < 2


def test_a_function_may_make_the_starting_weights():
    layer = Linear(2, 3, init=lambda n_in, n_out, rng: np.full((n_in, n_out), 0.5))
    assert np.array_equal(layer.weight.numpy(), np.full((2, 3), 0.5))


@pytest.mark.parametrize(
    ("module", "function"),
    [(ReLU(), ops.relu), (Tanh(), ops.tanh), (Sigmoid(), ops.sigmoid), (Softmax(), lambda x: ops.softmax(x, axis=-1))],
)
def test_activations_are_their_functions(module, function):
    x = as_tensor([-1, 0.5], [2, 3])
    assert np.array_equal(module(x).numpy(), function(x).numpy())


def test_softmax_takes_an_axis():
    assert np.allclose(Softmax(axis=0)(as_tensor([1, 2], [3, 4])).numpy().sum(axis=0), 1)


def test_cross_entropy_of_even_odds_is_the_logarithm_of_the_classes():
    assert cross_entropy(as_tensor([0, 0, 0, 0]), np.array([2])).item() == pytest.approx(np.log(4))


def test_mse_is_the_mean_square_and_differentiates():
    x = tensor([1.0, 4.0], requires_grad=True)
    loss = mse(x, np.array([0.0, 2.0]))
    loss.backward()
    assert loss.item() == 2.5
    assert x.grad.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Linear(0, 1), ArgumentError, "n_in is a whole number of at least 1\ngiven: n_in=0\nhint:  Linear("),
        (lambda: Linear(1, -1), ArgumentError, "n_out is a whole number of at least 1\ngiven: n_out=-1"),
        (lambda: mlp(4, 2.5), ArgumentError, "n_out is a whole number of at least 1\ngiven: n_out=2.5"),
        (lambda: mlp("4", 2), ArgumentError, "n_in is a whole number of at least 1\ngiven: n_in='4'"),
        (lambda: mlp(4, 2, rng="a"), ArgumentError, "rng is a seed of 0 or more, a Generator, or None\ngiven: rng='a'"),
        (
            lambda: mlp(3, 2, rng=0)("abc"),
            ArgumentError,
            "layer '0' Linear(3, 2) cannot take this input\ngiven: 'abc'\nhint:  give it a tensor or an array",
        ),
        (
            lambda: Linear(1, 1, init="best"),
            ArgumentError,
            "no such initialisation\ngiven: 'best'\nhint:  one of kaiming, xavier, or a function",
        ),
        (lambda: Sequential(ops.relu), ArgumentError, "a Sequential is made of modules\ngiven: "),
        (lambda: mlp(3), ArgumentError, "an input and an output size\ngiven: (3,)"),
        (
            lambda: mlp(3, 2, rng=0)(as_tensor([1, 2])),
            ShapeError,
            "layer '0' Linear(3, 2) cannot take this input\ngiven: shape (1, 2)\nhint:  its last axis must have 3",
        ),
        (lambda: Linear(3, 2)(tensor(1.0)), ShapeError, "layer Linear(3, 2) cannot take this input\ngiven: shape ()"),
        (
            lambda: mse(as_tensor([1], [2]), np.array([1.0, 2.0])),
            ShapeError,
            "mse compares equal shapes\ngiven: (2, 1) and (2,)",
        ),
    ],
)
def test_errors_name_the_layer_and_what_it_wants(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_every_initialisation_has_its_source():
    assert all("20" in rule.__doc__ or "arXiv" in rule.__doc__ for rule in INITS.values())
