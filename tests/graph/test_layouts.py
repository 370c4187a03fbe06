"""How operands lie beside a full value: along channels, rows or columns, and on axes of length 1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab.graph.compiled import Compiled
from lab.graph.execute import run_arrays
from lab.graph.passes import optimized
from lab.graph.spaces import Space
from lab.kernels import rowloop

RNG = np.random.default_rng(0)


def agree(graph, xs, *, rtol=1e-11):
    for _ in range(2):  # the second run in the buffers of the first
        for a, b in zip(Compiled(graph).arrays(xs), run_arrays(graph, xs), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b[np.isfinite(b)]).max(initial=0.0))


def weighted(x, b, axes):
    y = lab.relu(x + b) * 0.5
    return lab.sum(lab.tanh(lab.sum(y * x, axis=axes))) + lab.sum(y * b)


@settings(max_examples=150, deadline=None)
@given(
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    ones=st.lists(st.booleans(), min_size=5, max_size=5),
    axes=st.sets(st.integers(0, 4)),
    cut=st.integers(0, 4),
)
def test_broadcast_operands_and_sums_over_any_axes_are_what_they_are_eager(shape, ones, axes, cut):
    operand = [1 if one else n for n, one in zip(shape, ones, strict=False)][min(cut, len(shape)) :]
    xs = [RNG.normal(size=shape), RNG.normal(size=operand)]
    over = tuple(axis for axis in axes if axis < len(shape))
    f = lab.value_and_grad(lambda x, b: weighted(x, b, over), (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rowloop, "have_compiler", lambda: False)
        patch.setattr(rowloop, "_loops", {})
        agree(lab.make_graph(f)(*xs), xs)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (1, 1, 1, 1), (2, 3, 7)])
@pytest.mark.parametrize("whole", [True, False])
def test_a_bias_of_channels_and_its_gradient_run_in_loops(shape, whole):
    bias = (*((1,) if whole else ()), shape[1], *(1,) * (len(shape) - 2))
    xs = [RNG.normal(size=shape).astype("f"), RNG.normal(size=bias).astype("f"), RNG.normal(size=shape).astype("f")]
    f = lab.value_and_grad(lambda x, b, w: lab.sum(lab.relu(x + b) * w), (0, 1))
    agree(lab.make_graph(f)(*xs), xs, rtol=1e-5)


def test_nan_and_inf_of_one_channel_stay_in_it():
    x, b = RNG.normal(size=(2, 3, 2, 2)), np.array([[[np.nan]], [[np.inf]], [[1.0]]])
    graph = lab.make_graph(lab.grad(lambda b, x: lab.sum(lab.relu(x + b) * x)))(b, x)
    (slope,) = Compiled(graph).arrays([b, x])
    np.testing.assert_allclose(slope, run_arrays(graph, [b, x])[0])
    assert np.isfinite(slope[2])


def test_bias_relu_and_their_gradients_are_two_loops_around_a_convolution():
    x, w, b = RNG.normal(size=(2, 1, 5, 5)), RNG.normal(size=(3, 1, 3, 3)), RNG.normal(size=3)

    def loss(w, b):
        return lab.sum(lab.max_pool2d(lab.relu(lab.conv2d(x, w, b, padding=1))))

    names = [e.op.name for e in optimized(lab.make_graph(lab.grad(loss, (0, 1)))(w, b)).equations]
    assert [n for n in names if n not in ("reshape", "stop_gradient", "broadcast_to")] == [
        "conv", "fused", "max_pool_back", "fused", "conv_weight",
    ]  # fmt: skip


def test_a_space_knows_what_lies_along_it():
    space = Space((8, 4, 5, 5), -2, 1)
    assert (space.n_rows, space.n_columns, space.n_cycle) == (32, 25, 4)
    assert [space.layout(s) for s in ((8, 4, 1, 1), (5, 5), (1, 4, 1, 1), (8, 1, 1, 1), (4,), (1,))] == [
        "column", "row", "cycle", "", "", "single",
    ]  # fmt: skip
    assert [space.over(a) for a in ((2, 3), (0, 1), (0, 2, 3), (0, 1, 2, 3), (3,))] == [
        "columns", "rows", "cycle", "all", "",
    ]  # fmt: skip


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("size", [(6,), (5, 6)])
def test_convolutions_and_pooling_in_kept_room_are_what_they_are_eager(size, groups, stride):
    xs = [RNG.normal(size=(3, 2, *size)), RNG.normal(size=(4, 2 // groups, *(3,) * len(size))), RNG.normal(size=4)]
    convolve, pool = (lab.conv1d, lab.max_pool1d) if len(size) == 1 else (lab.conv2d, lab.max_pool2d)

    def loss(x, w, b):
        y = convolve(lab.tanh(x), w, b, stride=stride, padding=1, groups=groups)
        return lab.sum(pool(lab.relu(y), 3, 1, 1) ** 2)

    agree(lab.make_graph(lab.value_and_grad(loss, (0, 1, 2)))(*xs), xs)
    agree(lab.make_graph(lab.grad(lambda w: lab.sum(lab.grad(loss, 1)(xs[0], w, xs[2]) ** 2)))(xs[1]), [xs[1]])


def test_equal_constants_are_read_once_and_ones_in_rows_as_their_labels():
    labels = RNG.integers(0, 50, 100)
    hot, weights = np.eye(50)[labels], RNG.normal(size=(100, 50))
    x = RNG.normal(size=(100, 50))
    graph = lab.make_graph(lambda x: (lab.tanh(x) * weights - hot) * weights.copy())(x)
    (only,) = optimized(graph).equations
    assert [a.spec.shape for a in only.inputs] == [(100, 50), (100, 50), (100,)]
    agree(graph, [x])
    odd = hot.copy()
    odd[3] = odd[3] * 2.0
    graph = lab.make_graph(lambda x: lab.tanh(x) - odd)(x)
    assert [a.spec.shape for a in optimized(graph).equations[0].inputs] == [(100, 50), (100, 50)]
    agree(graph, [x])


def test_ones_in_rows_that_no_loop_reads_stay_a_constant():
    hot = np.eye(80)[RNG.integers(0, 80, 60)]
    x = RNG.normal(size=(80, 60))
    graph = lab.make_graph(lambda x: x @ hot + lab.sum(lab.reshape(x, shape=(60, 80)).T * hot.T))(x)
    assert "one_hot" not in [e.op.name for e in optimized(graph).equations]
    agree(graph, [x])


def test_sums_over_several_axes_and_parts_put_back_are_written_into_buffers():
    x = RNG.normal(size=(3, 40, 40))

    def f(x):
        turned = lab.transpose(x * 2.0, axes=(1, 0, 2))
        both = lab.reshape(turned, shape=(120, 40)) @ turned[0].T + 1.0
        return lab.sum(both, axis=0), lab.sum(lab.reshape(turned, shape=(40, 120)) * 3.0), lab.sum(x, axis=(0, 1))

    agree(lab.make_graph(f)(x), [x])
    parts = lab.make_graph(lab.grad(lambda x: lab.sum(lab.tanh(x[1]) * lab.sin(x[0]) + x[-1, 2:3])))(x)
    agree(parts, [x])
    code = Compiled(parts).source
    assert code.count("scatter_add_into") == code.count(" = scatter_add(")
