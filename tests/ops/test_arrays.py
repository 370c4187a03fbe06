"""Reductions, scans, orders, norms, moved entries: NumPy's dtypes, HIPS autograd's gradients, the conventions."""

import re
import warnings

import autograd
import autograd.numpy as anp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import lab
from lab.errors import LabError
from tests.numerics import array, close, numeric_grad

DTYPES = ["bool", "int8", "uint8", "int64", "float16", "float32", "float64"]
INDICES = np.array([[0], [-1], [1]])

# Each is called with np and with lab.
CALLS = {
    "prod": lambda m, x: m.prod(x, axis=1),
    "prod of two": lambda m, x: m.prod(x, axis=(0, -1), keepdims=True),
    "var": lambda m, x: m.var(x, axis=(0, 1)),
    "std": lambda m, x: m.std(x, axis=-1, ddof=1),
    "median": lambda m, x: m.median(x, axis=0),
    "median of all": lambda m, x: m.median(x, keepdims=True),
    "any": lambda m, x: m.any(x, axis=0),
    "all": lambda m, x: m.all(x),
    "count_nonzero": lambda m, x: m.count_nonzero(x, axis=1),
    "argmax": lambda m, x: m.argmax(x, axis=1),
    "argmin": lambda m, x: m.argmin(x, keepdims=True),
    "cumsum": lambda m, x: m.cumsum(x),
    "cumprod": lambda m, x: m.cumprod(x, axis=1),
    "diff": lambda m, x: m.diff(x, n=2, axis=0),
    "diff with ends": lambda m, x: m.diff(x, prepend=0, append=np.zeros((3, 2), x.dtype)),
    "sort": lambda m, x: m.sort(x, axis=0),
    "sort of all": lambda m, x: m.sort(x, axis=None),
    "argsort": lambda m, x: m.argsort(x, axis=-1, **({"kind": "stable"} if m is np else {})),
    "norm": lambda m, x: _norm(m)(x),
    "norm 1": lambda m, x: _norm(m)(x, 1, axis=0),
    "norm inf": lambda m, x: _norm(m)(x, np.inf),
    "norm 3": lambda m, x: _norm(m)(x, 3, axis=0),
    "norm 0": lambda m, x: _norm(m)(x, 0, axis=0),
    "norm 0.5": lambda m, x: _norm(m)(x, 0.5, axis=0),
    "norm -2": lambda m, x: _norm(m)(x + 1, -2, axis=0),
    "Frobenius": lambda m, x: _norm(m)(x, "fro", axis=(1, 0), keepdims=True),
    "matrix -1": lambda m, x: _norm(m)(x, -1),
    "matrix -inf": lambda m, x: _norm(m)(x, -np.inf, axis=(-1, 0), keepdims=True),
    "trace": lambda m, x: m.trace(x),
    "triu": lambda m, x: m.triu(x, 1),
    "tril of a vector": lambda m, x: m.tril(x[0], -1),
    "diag": lambda m, x: m.diag(x, 1),
    "diag of a vector": lambda m, x: m.diag(x[0], -2),
    "diagonal": lambda m, x: m.diagonal(x, -1),
    "diagonal outside": lambda m, x: m.diagonal(x, 9),
    "pad": lambda m, x: m.pad(x, 1),
    "pad with constants": lambda m, x: m.pad(x, ((1, 0), (2, 2)), constant_values=((1, 0), (1, 1))),
    "pad symmetric": lambda m, x: m.pad(x, 5, mode="symmetric"),
    "pad reflect": lambda m, x: m.pad(x, ((7, 3), (0, 1)), mode="reflect"),
    "pad edge": lambda m, x: m.pad(x, (1, 2), "edge"),
    "roll": lambda m, x: m.roll(x, (1, -7), axis=(0, 0)),
    "roll by one": lambda m, x: m.roll(x, 1, axis=(0, 1)),
    "tile": lambda m, x: m.tile(x, (2, 1, 2)),
    "repeat": lambda m, x: m.repeat(x, [1, 0, 2], axis=0),
    "flip": lambda m, x: m.flip(x),
    "expand_dims": lambda m, x: m.expand_dims(x, (0, -2)),
    "squeeze": lambda m, x: m.squeeze(x[:, None, :1]),
    "moveaxis": lambda m, x: m.moveaxis(x[None], (0, -1), (-1, 0)),
    "swapaxes": lambda m, x: m.swapaxes(x, 0, -1),
    "ravel": lambda m, x: m.ravel(x.T),
    "take": lambda m, x: m.take(x, np.array([[0, -1]]), axis=1),
    "take_along_axis": lambda m, x: m.take_along_axis(x, INDICES, axis=1),
    "vstack": lambda m, x: m.vstack([x, x[0]]),
    "hstack": lambda m, x: m.hstack([x, x]),
    "dstack": lambda m, x: m.dstack([x, x]),
    "atleast_3d": lambda m, x: m.atleast_3d(x),
    "split": lambda m, x: m.split(x, [1, 2, 7], axis=1)[1],
    "array_split": lambda m, x: m.array_split(x, 3, axis=-1)[0],
}


def _norm(m):
    return m.linalg.norm if m is np else m.norm


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_values_and_dtypes_are_numpys_in_every_spelling(call):
    for dtype in DTYPES:
        x = np.random.default_rng(0).integers(0, 3, (3, 4)).astype(dtype)
        ways = (
            lambda: call(lab, x),  # noqa: B023 - called at once
            lambda: call(lab, lab.tensor(x)),  # noqa: B023
            lambda: call(np, lab.tensor(x)),  # noqa: B023
            lambda: lab.jit(lambda x: call(lab, x))(x),  # noqa: B023
            lambda: lab.vmap(lambda x: call(lab, x))(x[None])[0],  # noqa: B023
        )
        try:
            expected = np.asarray(call(np, x))
        except (TypeError, ValueError):
            for way in ways:
                with pytest.raises(LabError):
                    way()
            continue
        for way in ways:
            found = array(way())
            assert found.dtype == expected.dtype
            close(found, expected, rtol={"float16": 2e-3, "float32": 1e-6}.get(dtype, 1e-12))


SMOOTH = {
    "prod": lambda m, x: m.prod(x, axis=0),
    "var": lambda m, x: m.var(x, axis=1, ddof=1),
    "std": lambda m, x: m.std(x, axis=(0, 1)),
    "norm": lambda m, x: m.norm(x) if m is lab else m.linalg.norm(x),
    "norm 3": lambda m, x: m.norm(x, 3, 1) if m is lab else m.linalg.norm(x, 3, 1),
    "cumsum": lambda m, x: m.cumsum(x, axis=1),
    "diff": lambda m, x: m.diff(x, n=2, axis=1),
    "sort": lambda m, x: m.sort(x[0]),
    "trace": lambda m, x: m.trace(x),
    "triu": lambda m, x: m.triu(x, 1),
    "diag": lambda m, x: m.diag(x[0]),
    "diagonal": lambda m, x: m.diagonal(x[:, :3], 0, -1, -2),
    "pad": lambda m, x: m.pad(x, ((1, 2), (0, 1)), "constant"),
    "roll": lambda m, x: m.roll(x, 2, axis=1),
    "tile": lambda m, x: m.tile(x, (2, 3)),
    "repeat": lambda m, x: m.repeat(x, 3, axis=1),
    "flip": lambda m, x: x[::-1] if m is anp else m.flip(x, 0),
    "moveaxis": lambda m, x: m.moveaxis(x, 0, 1),
    "split": lambda m, x: m.array_split(x, 3, axis=1)[1],
    "fancy": lambda m, x: x[[0, 0, 2], [1, 1, -1]],
    "max": lambda m, x: m.max(x, axis=1),
}


@pytest.mark.parametrize("f", SMOOTH.values(), ids=SMOOTH)
def test_gradients_and_second_derivatives_are_those_of_hips_autograd(f):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3, 4))
    weights, more = rng.normal(size=np.shape(f(np, x))), rng.normal(size=(3, 4))

    def theirs(x):
        return anp.sum(weights * f(anp, x) ** 2)

    def ours(x):
        return lab.sum(weights * lab.square(f(lab, x)))

    close(lab.grad(ours)(x), autograd.grad(theirs)(x), rtol=1e-10)
    close(lab.grad(lambda x: lab.sum(lab.grad(ours)(x) * more))(x),
          autograd.grad(lambda x: anp.sum(autograd.grad(theirs)(x) * more))(x), rtol=1e-9)  # fmt: skip


ZEROS = {
    "none": [1.5, -2.0, 0.5, 3.0], "one": [1.5, 0.0, 0.5, 3.0], "two": [0.0, 2.0, 0.0, 3.0], "last": [1.0, 2.0, 0.0],
    "all": [0.0, 0.0, 0.0], "single": [0.0],
}  # fmt: skip


@pytest.mark.parametrize("x", ZEROS.values(), ids=ZEROS)
@pytest.mark.parametrize("f", [lab.prod, lab.cumprod], ids=["prod", "cumprod"])
def test_products_with_zeros_have_right_derivatives_to_third_order(f, x):
    """HIPS autograd divides by the zeros and gives nan."""
    x = np.array(x)

    def deeper(g, weights):
        return lambda x: lab.sum(lab.grad(g)(x) * weights)

    total = lambda x: lab.sum(f(x) * np.arange(1.0, 1 + (x.size if f is lab.cumprod else 1)))  # noqa: E731
    for order in range(3):
        close(lab.grad(total)(x), numeric_grad(total, x), rtol=1e-6, atol=1e-8)
        total = deeper(total, np.linspace(1.0, 2.0 + order, x.size))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_the_deviation_of_equal_entries_is_zero_and_so_is_its_gradient(dtype):
    """torch says the same; HIPS autograd gives nan."""
    x = np.full((3, 7), 0.1, dtype)
    for axis in (None, 0, 1):
        assert not array(lab.std(x, axis=axis)).any()
        assert not array(lab.grad(lambda x: lab.sum(lab.std(x, axis=axis)))(x)).any()  # noqa: B023
        assert not array(lab.jvp(lambda x: lab.std(x, axis=axis), (x,), (x * x,))[1]).any()  # noqa: B023
        leaf = lab.tensor(x, requires_grad=True)
        lab.std(leaf, axis=axis).sum().backward(create_graph=True)
        leaf.grad.sum().backward()
        assert not array(leaf.grad).any()


def test_a_variance_far_from_zero_keeps_its_digits():
    x = 1e8 + np.array([0.0, 1.0, 2.0, 3.0])
    assert array(lab.var(x)) == 1.25
    assert array(lab.var(np.float32(4096.0) + np.arange(4, dtype=np.float32))) == 1.25
    assert array(lab.var(np.array([250, 252], np.uint8))) == 1.0


def test_a_variance_without_enough_entries_is_nan_without_a_warning():
    assert np.isnan(array(lab.var(np.zeros(0))))
    assert np.isnan(array(lab.std(np.ones(1), ddof=1)))
    assert lab.var(np.zeros((0, 3)), axis=1).shape == (0,)
    assert lab.var(np.ones((2, 3)), axis=(), ddof=0).shape == (2, 3)
    close(lab.var(np.arange(4.0), correction=1), np.var(np.arange(4.0), ddof=1))
    close(np.var(lab.tensor([1.0, 2.0, 4.0]), correction=1), np.var([1.0, 2.0, 4.0], ddof=1))


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (1, 2), None])
def test_a_large_variance_is_that_of_wider_numbers_over_any_axes(axis):
    x = np.random.default_rng(0).normal(2.0, size=(300, 17, 40)).astype(np.float32)
    wide = x.astype(np.float64)
    close(lab.var(x, axis=axis), np.var(wide, axis=axis).astype(np.float32), rtol=1e-5)
    ct = np.random.default_rng(1).normal(size=np.shape(np.var(x, axis=axis))).astype(np.float32)
    _, back = lab.vjp(lambda x: lab.var(x, axis=axis), x)
    _, exact = lab.vjp(lambda x: lab.var(x, axis=axis), wide)
    close(back(ct)[0], array(exact(ct.astype(np.float64))[0]).astype(np.float32), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", ["max", "min", "softmax", "var"])
def test_rows_of_a_large_array_are_as_they_are_one_by_one(name):
    """Large arrays are given to kernels; ties, nan and infinities are then what they are in small ones."""
    x = np.random.default_rng(0).integers(-5, 6, size=(80, 64)).astype(np.float32)
    x[:8, 3] = [np.nan, np.inf, -np.inf, np.nan, np.inf, 0, 0, 0]
    x[4, 5], x[5:7] = np.inf, [[-np.inf], [7.0]]
    ct = np.random.default_rng(1).normal(size=np.shape(array(getattr(lab, name)(x, axis=-1)))).astype(np.float32)

    def value_and_gradient(rows, ct):
        leaf = lab.tensor(rows, requires_grad=True)
        out = getattr(lab, name)(leaf, axis=-1)
        out.backward(ct)
        return array(out), array(leaf.grad)

    with np.errstate(all="ignore"):
        found = value_and_gradient(x, ct)
        for i in range(len(x)):
            for a, b in zip(found, value_and_gradient(x[i : i + 1], ct[i : i + 1]), strict=True):
                close(a[i : i + 1], b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [None, 2, 1, 3, 1.5, 0.5, np.inf, -np.inf, 0])
def test_a_norm_at_zero_has_the_gradient_zero(order):
    """torch says the same; HIPS autograd gives nan for most."""
    for x in (np.zeros(3), np.zeros((2, 3))):
        total = lambda x: lab.sum(lab.norm(x, order, axis=-1))  # noqa: E731
        assert not array(lab.grad(total)(x)).any()
        assert np.isfinite(array(lab.grad(lambda x: lab.sum(lab.grad(total)(x)))(x))).all()  # noqa: B023


def test_a_p_norm_beside_zeros_is_smooth_where_the_others_are():
    for p in (0.5, 1.5, 3):
        found = array(lab.grad(lambda x: lab.norm(x, p))(np.array([0.0, 2.0, -1.0])))  # noqa: B023
        alone = array(lab.grad(lambda x: lab.norm(x, p))(np.array([2.0, -1.0])))  # noqa: B023
        close(found, np.array([0.0, *alone]))


def test_ties_of_a_median_share_equally_as_those_of_max():
    grad = lab.grad(lab.median)
    close(grad(np.array([3.0, 1.0, 2.0, 2.0, 2.0])), np.array([0.0, 0.0, 1 / 3, 1 / 3, 1 / 3]))
    close(grad(np.array([4.0, 1.0, 3.0, 2.0])), np.array([0.0, 0.0, 0.5, 0.5]))
    close(grad(np.array([1.0, 1.0, 3.0, 4.0])), np.array([0.25, 0.25, 0.5, 0.0]))


def test_equal_entries_keep_their_order_in_both_directions():
    x = np.array([2.0, 1.0, 2.0, 1.0])
    close(lab.argsort(x), np.array([1, 3, 0, 2]))
    close(lab.argsort(x, descending=True), np.array([0, 2, 1, 3]))
    values, places = lab.topk(lab.tensor(x, requires_grad=True), 3)
    close(places, np.array([0, 2, 1]))
    (values * np.array([1.0, 2.0, 3.0])).sum().backward()
    assert places.node is None
    close(lab.grad(lambda x: lab.sum(lab.topk(x, 3)[0] * np.array([1.0, 2.0, 3.0])))(x), np.array([1.0, 3.0, 2.0, 0.0]))
    close(lab.grad(lambda x: lab.topk(x, 1, largest=False)[0][0])(x), np.array([0.0, 1.0, 0.0, 0.0]))


def test_largest_entries_without_ties_take_the_whole_gradient_with_them_they_share():
    x = np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 1.0]])
    for rows, expected in ((x[:1], [[0.0, 1.0, 0.0]]), (x, [[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])):
        leaf = lab.tensor(rows, requires_grad=True)
        leaf.max(axis=1).sum().backward()
        close(leaf.grad, np.array(expected))


def test_an_entry_that_is_not_the_largest_gets_nothing_of_an_infinite_gradient():
    for f in (lab.max, lab.median, lambda x: lab.max(x, axis=0)):
        grad = array(lab.grad(lambda x: f(x) * np.inf)(np.array([1.0, 3.0, 3.0, 3.0, 9.0])))  # noqa: B023
        assert not np.isnan(grad).any()
        assert grad[0] == 0.0


def test_nan_is_where_numpy_has_it():
    x = np.array([1.0, np.nan, 0.0])
    for name in ("prod", "var", "std", "median", "cumsum", "cumprod", "sort", "argmax", "argsort", "diff"):
        np.testing.assert_array_equal(array(getattr(lab, name)(x)), getattr(np, name)(x))
    np.testing.assert_array_equal(array(lab.norm(x)), np.linalg.norm(x))


def test_float16_is_multiplied_and_summed_in_float32():
    x = np.array([300.0, 300.0, 0.001, 0.5], np.float16)
    assert np.isfinite(array(lab.prod(x)))
    assert array(lab.cumsum(np.ones(4000, np.float16)))[-1] == 4000.0


def test_empty_arrays_have_numpys_shapes():
    none = np.zeros((0, 3))
    for f in (lambda m: m.prod(none, axis=0), lambda m: m.cumsum(none, axis=0), lambda m: m.cumprod(none, axis=1),
              lambda m: m.sort(none, axis=0), lambda m: m.any(none), lambda m: m.all(none, axis=1),
              lambda m: m.diff(none, axis=0), lambda m: m.flip(none), lambda m: m.roll(none, 1, axis=0),
              lambda m: m.tile(none, 2), lambda m: m.repeat(none, 2, axis=0), lambda m: m.pad(none, 1),
              lambda m: m.diff(np.ones(2), n=3), lambda m: m.tile(np.ones(2), 0), lambda m: m.squeeze(none[None]),
              lambda m: m.array_split(np.ones(2), 3)[2], lambda m: m.trace(none), lambda m: m.triu(none)):  # fmt: skip
        close(f(lab), np.asarray(f(np)))
    for f in (lab.prod, lambda x: lab.sum(lab.cumprod(x)), lambda x: lab.sum(lab.sort(x)), lab.norm):
        assert lab.grad(f)(none).shape == (0, 3)


def test_ufuncs_reduce_and_accumulate():
    x = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    t = lab.tensor(x)
    for f in (np.multiply.reduce, np.logical_and.reduce, np.logical_or.reduce, np.add.accumulate,
              np.multiply.accumulate, lambda t: np.multiply.reduce(t, axis=None),
              lambda t: np.add.accumulate(t, axis=1)):  # fmt: skip
        assert isinstance(f(t), lab.Tensor)
        close(f(t), f(x))


def test_methods_are_those_of_numpy_and_torch():
    x = np.random.default_rng(0).normal(size=(3, 3))
    t = lab.tensor(x)
    for f in (lambda x: x.prod(0), lambda x: x.var(1), lambda x: x.std(), lambda x: x.argmax(1), lambda x: x.any(),
              lambda x: x.cumsum(0), lambda x: x.swapaxes(0, 1), lambda x: x.squeeze(), lambda x: x.ravel(),
              lambda x: x.flatten(), lambda x: x.repeat(2, 0), lambda x: x.take([0, 1], 1), lambda x: x.diagonal(1),
              lambda x: x.trace(), lambda x: x.cumprod(), lambda x: x.all(0), lambda x: x.argsort()):  # fmt: skip
        close(f(t), np.asarray(f(x)))
    values, places = t.topk(2, axis=0)
    assert values.shape == places.shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: np.linalg.norm(lab.tensor(np.ones((2, 2))), 2), "norm of a matrix by its singular values"),
        (lambda: lab.norm(np.ones((2, 2)), "max"), "norm of this order does not exist for matrices"),
        (lambda: lab.norm(2.0, 1), "norm of no axes"),
        (lambda: np.sort(lab.tensor([1.0]), order="x"), "np.sort on a tensor was called in an unsupported way"),
        (lambda: np.var(lab.tensor([1.0]), where=[True]), "np.var on a tensor takes no where"),
        (lambda: np.pad(lab.tensor([1.0]), 1, stat_length=2), "pad cannot be called like this"),
        (lambda: lab.pad([1.0], ((1, 2, 3),)), "pad needs how many entries to put before and after"),
        (lambda: lab.topk([1.0], 1.5), "topk of more entries than there are"),
        (lambda: lab.vstack([]), "vstack needs at least one tensor"),
        (lambda: lab.hstack(3), "hstack needs a sequence of tensors"),
        (lambda: lab.take_along_axis([1.0, 2.0], [0.5]), "take needs integer indices"),
        (lambda: lab.moveaxis(np.ones((2, 3)), (0, 0), (0, 1)), "moveaxis names an axis twice"),
        (lambda: lab.repeat([1.0], [[1.5]]), "repeat needs whole numbers from 0"),
        (lambda: lab.diagonal([[1.0]], 0.5), "diagonal needs a whole number of a diagonal"),
        (lambda: lab.argmax(np.ones((2, 2)), axis=(0, 1)), "argmax works along one axis"),
        (lambda: lab.diff([1.0], axis=None), "diff works along one axis"),
        (lambda: lab.split(np.ones(4), [1.5]), "split needs a number of parts or where to cut"),
        (lambda: lab.cumprod([[1.0]], axis=2), "cumprod over an axis that the array does not have"),
    ],
)  # fmt: skip
def test_misuse_is_explained_in_the_name_that_was_called(call, message):
    with pytest.raises(LabError, match=re.escape(message)) as caught:
        call()
    assert caught.value.given
    assert caught.value.hint


@st.composite
def arrays_with_axes(draw):
    """An array of any shape, empty ones too, and some of its axes in any order and spelling."""
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    some = draw(st.lists(st.integers(0, len(shape) - 1), unique=True)) if shape else []
    axes = tuple(a - len(shape) if draw(st.booleans()) else a for a in some)
    axis = draw(st.sampled_from([None, axes, axes[0] if len(axes) == 1 else axes]))
    return np.random.default_rng(draw(st.integers(0, 99))).normal(size=shape), axis, draw(st.booleans())


@given(arrays_with_axes())
def test_reductions_over_any_axes_are_numpys_and_their_rules_transposes(drawn):
    x, axis, keepdims = drawn
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("prod", "var", "std", "any", "all", "count_nonzero", "sum", "mean"):
            expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
            close(getattr(lab, name)(x, axis=axis, keepdims=keepdims), np.asarray(expected), atol=1e-9)
    length = np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    close(lab.norm(x, axis=axis, keepdims=keepdims), length)
    rng = np.random.default_rng(0)
    t, ct = rng.normal(size=x.shape), rng.normal(size=length.shape)
    for op in (lab.prod, lab.var, lab.std, lab.norm):
        f = lambda x: op(x, axis=axis, keepdims=keepdims)  # noqa: B023, E731
        (back,) = lab.vjp(f, x)[1](ct)
        forward = array(lab.jvp(f, (x,), (t,))[1])
        assert np.sum(array(back) * t) == pytest.approx(np.nansum(forward * ct), abs=1e-9)
