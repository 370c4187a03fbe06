"""Convolution and pooling beyond what the table tests: other libraries, odd numbers, and the way they are computed."""

import autograd
import autograd.scipy.signal
import numpy as np
import pytest
import scipy.signal

import lab
from lab import kernels
from lab.errors import LabError
from lab.ops import sliding
from lab.ops.windows import windows
from tests.numerics import close

RNG = np.random.default_rng(0)


def drawn(*shapes):
    return [RNG.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("mode", ["valid", "same"])
@pytest.mark.parametrize("kernel", [(3,), (3, 5), (1, 3)])
def test_one_channel_is_the_correlation_of_scipy(kernel, mode):
    x, w = drawn((9, 8)[: len(kernel)], kernel)
    found = (lab.conv1d if len(kernel) == 1 else lab.conv2d)(x[None, None], w[None, None], padding=mode)
    close(found[0, 0], scipy.signal.correlate(x, w, mode), rtol=1e-12)


def test_a_transposed_convolution_is_the_full_convolution_of_scipy():
    x, w = drawn((6, 5), (3, 2))
    close(lab.conv_transpose2d(x[None, None], w[None, None])[0, 0], scipy.signal.convolve(x, w, "full"), rtol=1e-12)


def test_gradients_of_channels_are_those_of_autograd():
    x, w, ct = drawn((2, 3, 6, 5), (4, 3, 3, 2), (2, 4, 4, 4))

    def theirs(x, w):
        out = autograd.scipy.signal.convolve(
            x, w[:, :, ::-1, ::-1], axes=([2, 3], [2, 3]), dot_axes=([1], [1]), mode="valid"
        )
        return (out * ct).sum()

    def ours(x, w):
        return lab.sum(lab.conv2d(x, w) * ct)

    for i in (0, 1):
        close(lab.grad(ours, argnums=i)(x, w), autograd.grad(theirs, i)(x, w), rtol=1e-11)


def test_a_bias_is_added_to_its_channel_and_gets_the_sum_of_its_cotangents():
    x, w, b = drawn((2, 3, 5), (4, 3, 2), (4,))
    close(lab.conv1d(x, w, b), lab.conv1d(x, w) + b[:, None], rtol=1e-14)
    close(lab.grad(lambda b: lab.sum(lab.conv1d(x, w, b)))(b), np.full(4, 8.0))


@pytest.mark.parametrize("dtype", ["int64", "float16", "float64"])
def test_every_dtype_keeps_its_own(dtype):
    x, w = (RNG.integers(-3, 3, shape).astype(dtype) for shape in [(2, 2, 5, 4), (3, 2, 2, 2)])
    found = lab.conv2d(x, w, padding=1)
    assert found.dtype == dtype
    close(found, lab.conv2d(x.astype(float), w.astype(float), padding=1), rtol=0)  # small integers: exact in all


def test_float16_is_summed_in_float32():
    ones = np.ones((1, 3000, 1), np.float16)  # 2,048 + 1 is 2,048 in float16
    assert lab.conv1d(ones, ones).item() == 3000


def test_a_batch_in_parts_has_the_bits_of_a_batch_at_once(monkeypatch):
    x, w = drawn((7, 2, 6, 6), (4, 2, 3, 3))
    once, plan = lab.conv2d(x, w, padding=1), windows("conv2d", (6, 6), (3, 3), 1, 1)
    gradients = sliding.spread_back(once, w, plan, 1), sliding.correlate_weight(x, once, plan, 1)
    monkeypatch.setattr(sliding, "CACHE", 12_000)  # two examples
    assert sliding.Columns(plan, 7, 1, 2, np.dtype(float)).step == 2
    assert np.array_equal(lab.conv2d(x, w, padding=1), once)
    assert np.array_equal(sliding.spread_back(once, w, plan, 1), gradients[0])
    close(sliding.correlate_weight(x, once, plan, 1), gradients[1], rtol=1e-13)  # a sum over the parts


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_the_windows_that_see_it(odd):
    x, w = drawn((1, 1, 5, 5), (1, 1, 2, 2))
    x[0, 0, 0, 4] = odd
    w[0, 0, 0, 0] = 0.5
    assert np.argwhere(~np.isfinite(lab.conv2d(x, w)[0, 0])).tolist() == [[0, 3]]
    slope = lab.grad(lambda w: lab.sum(lab.conv2d(x, w)))(w)
    assert np.argwhere(~np.isfinite(np.asarray(slope.numpy())[0, 0])).tolist() == [[0, 1]]


def test_an_empty_batch_gives_an_empty_batch_and_zero_gradients():
    x, w = np.zeros((0, 2, 5, 5)), np.ones((3, 2, 3, 3))
    assert lab.conv2d(x, w).shape == (0, 3, 3, 3)
    assert lab.max_pool2d(x).shape == lab.avg_pool2d(x).shape == (0, 2, 2, 2)
    close(lab.grad(lambda w: lab.sum(lab.conv2d(x, w)))(w), np.zeros(w.shape))
    assert lab.grad(lambda x: lab.sum(lab.max_pool2d(x)))(x).shape == x.shape


def test_the_third_derivative_of_a_convolution_is_one_again():
    x, w = drawn((1, 1, 4), (1, 1, 2))

    def f(w):
        return lab.sum(lab.conv1d(lab.conv1d(x, w) ** 2, w))

    direction = np.ones_like(w)

    def derivative(f):
        return lambda w: lab.jvp(f, (w,), (direction,))[1]

    third = derivative(derivative(derivative(f)))(w)
    # a polynomial of degree three along the direction: its leading coefficient, from four values
    values = [lab.sum(f(w + t * direction)).item() for t in range(4)]
    close(third, np.diff(values, 3)[0], rtol=1e-9)


# --- pooling ---------------------------------------------------------------------------------------------------------

GEOMETRIES = [
    (size, kernel, stride, padding)
    for size in ((5,), (6, 5))
    for kernel, stride, padding in [(2, None, 0), (3, 1, 1), (2, 3, 1), (1, 2, 0), (4, 2, 2)]
]


@pytest.mark.parametrize(("size", "kernel", "stride", "padding"), GEOMETRIES)
@pytest.mark.parametrize("values", ["ties", "odd"])
def test_kernel_and_places_agree_on_ties_nan_and_infinities(size, kernel, stride, padding, values):
    choices = [-1.0, 0.0, -0.0, 2.0] if values == "ties" else [np.nan, -np.inf, np.inf, 0.0]
    x = RNG.choice(choices, (3, 2, *size))
    options = {"kernel": kernel, "stride": stride, "padding": padding}
    places = lab.argmax_pool(x, **options).reshape(6, -1)
    close(lab.max_pool(x, **options).reshape(6, -1), np.take_along_axis(x.reshape(6, -1), places, 1), rtol=0)
    ct = RNG.normal(size=lab.max_pool(x, **options).shape)
    expected = np.zeros((6, int(np.prod(size))))
    np.add.at(expected, (np.arange(6)[:, None], places), ct.reshape(6, -1))
    _, back = lab.vjp(lambda x: lab.max_pool(x, **options), x)
    close(back(ct)[0], expected.reshape(x.shape), rtol=1e-14)


def test_of_equal_entries_the_first_gets_the_gradient():
    slope = lab.grad(lambda x: lab.sum(lab.max_pool2d(x)))(np.zeros((1, 1, 2, 2)))
    assert slope.numpy().tolist() == [[[[1.0, 0.0], [0.0, 0.0]]]]


def test_entries_that_lost_get_exactly_nothing_from_a_singular_branch():
    x = np.array([[[0.0, 4.0]]])
    with np.errstate(all="ignore"):
        slope = lab.grad(lambda x: lab.sum(lab.max_pool1d(lab.sqrt(x))))(x)  # sqrt has no finite slope at 0
    assert slope.numpy().tolist() == [[[0.0, 0.25]]]


@pytest.mark.parametrize("dtype", ["int64", "float16"])
def test_what_the_kernel_is_not_compiled_for_is_pooled_as_well(dtype):
    x = RNG.integers(-9, 9, (2, 1, 4, 4)).astype(dtype)
    found = lab.max_pool2d(x, 3, 1, 1)
    assert found.dtype == dtype
    close(found, lab.max_pool2d(x.astype(float), 3, 1, 1), rtol=0)


def test_the_mean_of_integers_is_a_float():
    assert lab.avg_pool1d(np.array([[[1, 2, 3, 5]]])).tolist() == [[[1.5, 4.0]]]


def test_without_numba_the_twins_pool_and_convolve(monkeypatch):
    x, w = drawn((2, 1, 6, 6), (2, 1, 3, 3))
    found = lab.max_pool2d(lab.conv2d(x, w, stride=2, padding=1))
    for name, module in [("im2col", kernels), ("max_pool", kernels)]:
        monkeypatch.setattr(module, name, kernels.KERNELS[name].twin)
    close(lab.max_pool2d(lab.conv2d(x, w, stride=2, padding=1)), found, rtol=1e-13)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: lab.conv2d(np.ones((1, 3, 8, 8)), np.ones((4, 2, 3, 3))),
            ("conv2d has a weight for other channels\n"
            "given: x (1, 3, 8, 8) has 3 channels, weight (4, 2, 3, 3) takes 2\n"
            "hint:  x is (batch, channels, ...), the weight (out, in / groups, ...); "
            "groups divides both numbers of channels"),
        ),
        (
            lambda: lab.conv2d(np.ones((1, 4, 8, 8)), np.ones((3, 2, 3, 3)), groups=2),
            ("conv2d has a weight for other channels\n"
            "given: x (1, 4, 8, 8) has 4 channels, weight (3, 2, 3, 3) takes 2 in each of 2 groups"),
        ),
        (
            lambda: lab.conv1d(np.ones((1, 1, 4)), np.ones((1, 1, 3)), dilation=3, padding=1),
            ("conv1d has a kernel that is larger than its input\n"
            "given: kernel (3,), with dilation (7,); input (4,), with padding (6,)\n"
            "hint:  a smaller kernel, or more padding"),
        ),
        (
            lambda: lab.conv2d(np.ones((1, 1, 4, 4)), np.ones((1, 1, 2, 2)), stride=(1, -2)),
            ("conv2d needs stride as a whole number of at least 1\ngiven: stride=(1, -2)\n"
            "hint:  stride=1, or one for each of 2 axes: stride=(1, 1)"),
        ),
        (
            lambda: [lab.conv1d(np.ones((1, 1, 4)), np.ones((1, 1, 2)), stride=s) for s in (1, True)],
            "conv1d needs stride as a whole number of at least 1\ngiven: stride=True",
        ),
        (
            lambda: lab.conv2d(np.ones((1, 1, 4, 4)), np.ones((1, 1, 2, 2)), padding="same", stride=2),
            "conv2d keeps its size only with stride 1\ngiven: padding='same', stride=(2, 2)",
        ),
        (
            lambda: lab.conv_transpose1d(np.ones((1, 1, 4)), np.ones((1, 1, 2)), output_padding=1),
            "conv_transpose1d needs an output_padding below its stride\ngiven: output_padding (1,), stride (1,)",
        ),
        (
            lambda: lab.max_pool2d(np.ones((4, 4))),
            "max_pool2d takes (batch, channels, height, width)\ngiven: shape (4, 4)\nhint:  one example needs a batch",
        ),
    ],
)
def test_errors_name_the_function_and_both_shapes(call, message):
    with pytest.raises(LabError) as caught:
        call()
    assert str(caught.value).startswith(message)
