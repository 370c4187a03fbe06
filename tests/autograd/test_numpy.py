"""NumPy's functions on a tensor: right, or refused by name; never an array that has lost its gradient."""

import numpy as np
import pytest

import lab
from lab.errors import UnsupportedError
from lab.ops import PRIMITIVES
from tests.numerics import close


def leaf():
    return lab.tensor([0.5, 1.5], requires_grad=True)


@pytest.mark.parametrize("name", [n for n in PRIMITIVES if isinstance(getattr(np, n, None), np.ufunc)])
def test_a_ufunc_that_the_lab_knows_works_on_tensors(name):
    op, ufunc = PRIMITIVES[name], getattr(np, name)
    xs = [leaf() for _ in range(ufunc.nin)] if name != "matmul" else [leaf(), leaf()]
    with np.errstate(invalid="ignore"):  # arcsin(1.5), arccosh(0.5)
        found = ufunc(*xs)
        assert isinstance(found, lab.Tensor)
        close(found, ufunc(*(x.numpy() for x in xs)))
    assert found.requires_grad == any(op.rules)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda t: np.float64(2) * t, [1.0, 3.0]),
        (lambda t: t * np.float64(2), [1.0, 3.0]),
        (lambda t: np.float32(2) - t, [1.5, 0.5]),
        (lambda t: np.array([2.0, 4.0]) * t, [1.0, 6.0]),
        (lambda t: t * np.array([2.0, 4.0]), [1.0, 6.0]),
        (lambda t: np.array([2.0, 4.0]) / t, [4.0, 4.0 / 1.5]),
        (lambda t: np.array([2.0, 4.0]) ** t, [2.0**0.5, 8.0]),
        (lambda t: np.array(2.0) + t, [2.5, 3.5]),
        (lambda t: np.ones((2, 2)) @ t, [2.0, 2.0]),
        (lambda t: t @ np.ones((2, 2)), [2.0, 2.0]),
        (lambda t: np.sum(t), 2.0),
        (lambda t: np.mean(t, axis=0), 1.0),
        (lambda t: np.max(t), 1.5),
        (lambda t: np.min(t, keepdims=True), [0.5]),
        (lambda t: np.add.reduce(t), 2.0),
        (lambda t: np.maximum.reduce(t, axis=0), 1.5),
        (lambda t: np.add.reduce(t, axis=None), 2.0),
        (lambda t: np.reshape(t, (2, 1)), [[0.5], [1.5]]),
        (lambda t: np.transpose(t), [0.5, 1.5]),
        (lambda t: np.concatenate([t, np.zeros(1)]), [0.5, 1.5, 0.0]),
        (lambda t: np.stack([t, t]), [[0.5, 1.5], [0.5, 1.5]]),
        (lambda t: np.where([True, False], t, 0.0), [0.5, 0.0]),
        (lambda t: np.expand_dims(t, 0), [[0.5, 1.5]]),
        (lambda t: np.broadcast_to(t, (2, 2)), [[0.5, 1.5], [0.5, 1.5]]),
        (lambda t: np.dot(t, t), 2.5),
        (lambda t: np.dot(t, 2.0), [1.0, 3.0]),
        (lambda t: np.exp(t) - lab.exp(t), [0.0, 0.0]),
    ],
)
def test_numpy_expressions_of_tensors_are_tensors_with_a_gradient(call, expected):
    x = leaf()
    found = call(x)
    assert isinstance(found, lab.Tensor)
    assert found.requires_grad
    close(found, expected, atol=1e-15)
    close(lab.jit(call)(x), expected, atol=1e-15)
    close(lab.vmap(call)(lab.stack([x, x]))[1], expected, atol=1e-15)
    (found * 1.0).backward(np.ones(found.shape))
    assert x.grad is not None


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda t: np.add(t, 1, out=np.zeros(2)), "out"),
        (lambda t: np.add(t, 1, where=np.array([True, False])), "where"),
        (lambda t: np.add(np.ones(2), 1, out=t), "out"),
        (lambda t: np.exp(t, dtype="float32"), "dtype"),
        (lambda t: np.maximum.accumulate(t), "np.maximum.accumulate"),
        (lambda t: np.add.outer(t, t), "np.add.outer"),
        (lambda t: np.subtract.reduce(t), "np.subtract.reduce"),
        (lambda t: np.add.reduce(t, out=np.zeros(())), "np.add.reduce"),
        (lambda t: np.add.at(np.zeros(2), [0, 1], t), "np.add.at"),
        (lambda t: np.nextafter(t, t), "np.nextafter"),
        (lambda t: np.spacing(t), "np.spacing"),
        (lambda t: np.fft.fft(t), "np.fft.fft"),
        (lambda t: np.linalg.cond(t), "np.linalg.cond"),
        (lambda t: np.linalg.pinv(t), "np.linalg.pinv"),
        (lambda t: np.unique(t), "np.unique"),
        (lambda t: np.allclose(t, t), "np.allclose"),
        (lambda t: np.nancumsum(t), "np.nancumsum"),
        (lambda t: np.sum(t, where=np.array([True, False])), "np.sum"),
        (lambda t: np.sum(t, dtype="float32"), "np.sum"),
        (lambda t: np.mean(t, out=np.zeros(())), "np.mean"),
        (lambda t: np.concatenate([t, t], dtype="float32"), "np.concatenate"),
        (lambda t: np.reshape(t, (2, 1), order="F"), "np.reshape"),
        (lambda t: np.asarray(t), "a tensor that requires a gradient is not made an array"),
        (lambda t: np.array([t[0], 1.0]), "a tensor that requires a gradient is not made an array"),
        (lambda t: np.ones(2).__setitem__(slice(None), t), "a tensor that requires a gradient"),
        (lambda t: np.testing.assert_array_equal(t, np.ones(2)), "is not made an array"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(call, word):
    with pytest.raises(UnsupportedError) as caught:
        call(leaf())
    assert word in caught.value.problem
    assert caught.value.hint
    assert caught.value.given


def test_in_place_addition_of_an_array_to_a_tensor_and_of_a_tensor_to_an_array():
    t = lab.tensor([1.0, 2.0])
    t += np.ones(2)
    assert isinstance(t, lab.Tensor)
    close(t, [2.0, 3.0])
    a = np.ones(2)
    with pytest.raises(UnsupportedError, match=r"np\.add on a tensor takes no out"):
        a += leaf()


def test_an_untracked_tensor_becomes_an_array_that_shares_nothing():
    t = lab.tensor([1.0, 2.0])
    made = np.asarray(t)
    made[0] = 9.0
    close(t, [1.0, 2.0])
    assert np.array(t, dtype="float32").dtype == np.float32
    assert np.float64(lab.tensor(2.0)) == 2.0
    close(np.linspace(0.0, lab.tensor(1.0).item(), 3), [0.0, 0.5, 1.0])
    with pytest.raises(ValueError, match="copy"):
        np.array(t, dtype="float32", copy=False)
    assert not np.array(t, copy=False).flags.writeable


def test_a_traced_value_is_never_made_an_array():
    for transform in (lab.grad, lab.jit, lab.vmap):
        with pytest.raises(UnsupportedError, match="is not made an array in silence"):
            transform(lambda x: np.asarray(x).sum())(np.ones((2,)))


def test_numpy_functions_inside_transforms_differentiate():
    def f(x):
        return np.sum(np.sin(x) * np.exp(x) + np.where(x > 0, x, 0.0))

    x = np.array([0.5, -1.0])
    expected = np.exp(x) * (np.sin(x) + np.cos(x)) + (x > 0)
    close(lab.grad(f)(x), expected)
    close(lab.jit(lab.grad(f))(x), expected)


def test_shape_functions_answer_without_touching_values():
    t = lab.tensor(np.zeros((2, 3)), requires_grad=True)
    assert (np.shape(t), np.ndim(t), np.size(t), np.result_type(t, np.float32)) == ((2, 3), 2, 6, np.float64)
