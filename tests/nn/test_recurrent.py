"""Cells against torch's formulas, written out in NumPy gate by gate; dropout, which is random in training only."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, ShapeError
from lab.nn import Dropout, GRUCell, Linear, LSTMCell, RNNCell, Sequential

N_IN, N = 3, 4
RNG = np.random.default_rng(5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def with_biases(kind):
    with lab.settings(dtype="float64"):
        cell = kind(N_IN, N, rng=0)
    for part in (cell.input, cell.hidden):
        part.bias.value[...] = RNG.normal(size=part.bias.shape)
    return cell


def gates(cell, x, h):
    """What each gate gets from the input and from the hidden state, a pair for each."""
    pairs = ((x, cell.input), (h, cell.hidden))
    both = [v @ part.weight.numpy() + part.bias.numpy() for v, part in pairs]
    return [(both[0][:, i : i + N], both[1][:, i : i + N]) for i in range(0, both[0].shape[1], N)]


def rnn(cell, x, h):
    return np.tanh(sum(gates(cell, x, h)[0]))


def lstm(cell, x, state):
    i, f, g, o = (sum(pair) for pair in gates(cell, x, state[0]))
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(cell, x, h):
    (x_r, h_r), (x_z, h_z), (x_n, h_n) = gates(cell, x, h)
    r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
    return (1 - z) * np.tanh(x_n + r * h_n) + z * h


@pytest.mark.parametrize(("kind", "formula"), [(RNNCell, rnn), (LSTMCell, lstm), (GRUCell, gru)])
def test_a_cell_is_its_formula_over_a_sequence_from_zeros_on(kind, formula):
    cell, zeros = with_biases(kind), np.zeros((2, N))
    state, want = None, (zeros, zeros) if kind is LSTMCell else zeros
    for x in RNG.normal(size=(5, 2, N_IN)):
        state, want = cell(lab.tensor(x), state), formula(cell, x, want)
    found = [part.numpy() for part in state] if kind is LSTMCell else state.numpy()
    assert np.allclose(found, want, rtol=1e-12)


@pytest.mark.parametrize("kind", [RNNCell, LSTMCell, GRUCell])
def test_gradients_flow_back_through_all_steps(kind):
    cell, xs = with_biases(kind), RNG.normal(size=(4, 2, N_IN))

    def loss(xs):
        state = None
        for x in xs:
            state = cell(x, state)
        return lab.sum((state[0] if kind is LSTMCell else state) ** 2)

    leaves = [lab.tensor(x, requires_grad=True) for x in xs]
    loss(leaves).backward()
    direction, h = RNG.normal(size=xs.shape), 1e-6
    slope = (loss(xs + h * direction).item() - loss(xs - h * direction).item()) / (2 * h)
    assert sum(np.vdot(x.grad.numpy(), d) for x, d in zip(leaves, direction, strict=True)) == pytest.approx(
        slope, rel=1e-6
    )
    assert all(p.grad is not None and np.any(p.grad.numpy()) for p in cell.parameters())


def test_weights_lie_as_torchs_transposed_and_start_within_its_bound():
    cell = LSTMCell(30, 25, rng=0)
    assert {n: p.shape for n, p in cell.named_parameters()} == {
        "input.weight": (30, 100), "input.bias": (100,), "hidden.weight": (25, 100), "hidden.bias": (100,),
    }  # fmt: skip
    for part in (cell.input, cell.hidden):
        assert 0.19 < np.abs(part.weight.numpy()).max() <= 0.2


def test_a_cell_says_which_part_cannot_take_what():
    with pytest.raises(ShapeError, match=r"layer 'input' Linear\(3, 16\) cannot take this input\ngiven: shape"):
        LSTMCell(3, 4)(np.ones((2, 5)))
    with pytest.raises(ShapeError, match=r"layer 'hidden' Linear\(4, 4\) cannot take this input\ngiven: shape"):
        RNNCell(3, 4)(np.ones((2, 3)), np.ones((2, 5)))
    with pytest.raises(ArgumentError, match=r"n is a whole number of at least 1\ngiven: n=0\nhint:  GRUCell\(8, 32\)"):
        GRUCell(3, 0)


# --- dropout ------------------------------------------------------------------------------------------------------


def test_dropout_keeps_the_mean_in_training_and_everything_in_use():
    layer, x = Dropout(0.25, rng=0), np.ones(40_000, np.float32)
    out = layer(lab.tensor(x)).numpy()
    assert set(np.unique(out)) == {0.0, np.float32(1 / 0.75)}
    assert (out == 0).mean() == pytest.approx(0.25, abs=0.01)
    assert not np.array_equal(out, layer(lab.tensor(x)).numpy())
    assert np.array_equal(Dropout(0.25, rng=0)(lab.tensor(x)).numpy(), out)
    assert layer.eval()(x) is x


@pytest.mark.parametrize("executor", ["interpreted", "compiled", "parallel"])
def test_a_compiled_training_step_has_the_masks_of_a_plain_one(executor):
    x, y = np.random.default_rng(0).normal(size=(6, 4)), np.random.default_rng(1).normal(size=(6, 2))
    start = [np.random.default_rng(2).normal(size=shape) for shape in ((4, 16), (16, 2))]
    found = []
    for transform in (lambda f: f, lambda f: lab.jit(f, executor=executor)):
        first, second = Dropout(rng=2), Dropout(0.1, rng=3)

        def loss(weights, first=first, second=second):
            return lab.mse(second(first(lab.tanh(x @ weights[0])) @ weights[1]), y)

        def step(weights, loss=loss):
            value, slopes = lab.value_and_grad(loss)(weights)
            return value, [w - 0.1 * slope for w, slope in zip(weights, slopes, strict=True)]

        go, weights, seen = transform(step), list(map(lab.tensor, start)), []
        for _ in range(5):
            value, weights = go(weights)
            seen.append(value.item())
        found.append((seen, first.rng.bit_generator.state, second.rng.bit_generator.state))
    assert np.allclose(found[0][0], found[1][0])
    assert found[0][1:] == found[1][1:]
    assert len(set(found[0][0])) == 5


def test_dropout_has_the_same_mask_backward_and_when_it_is_done_again_by_checkpoint():
    model = Sequential(Linear(4, 64, rng=0), Dropout(rng=0))
    x = lab.tensor(np.ones((2, 4)), requires_grad=True)
    out = lab.checkpoint(model)(x)
    out.sum().backward()
    kept = (out.numpy() != 0) * 2.0
    assert np.allclose(x.grad.numpy(), kept @ model[0].weight.numpy().T, atol=1e-5)


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan"), "a"])
def test_a_rate_that_is_no_share_is_refused(rate):
    with pytest.raises(ArgumentError, match="rate"):
        Dropout(rate)
