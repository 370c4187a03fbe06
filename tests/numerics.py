"""How tests compare numbers, and the second opinion on every derivative: differences."""

import numpy as np

import lab

STEP = 1e-3


def array(x):
    """The numbers in a tensor, an array or a number."""
    return np.asarray(x.numpy() if isinstance(x, lab.Tensor) else x)


def close(found, expected, rtol=1e-9, atol=1e-12):
    """Equal shape and equal numbers to a tolerance."""
    found, expected = array(found), array(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def slope(f, xs, directions):
    """Derivative of f along directions by a five-point difference, whose error is of the fourth power of the step."""
    def at(h):
        return array(f(*(x + h * d for x, d in zip(xs, directions, strict=True)))).astype(np.float64)

    return (8 * (at(STEP) - at(-STEP)) - (at(2 * STEP) - at(-2 * STEP))) / (12 * STEP)


def numeric_grad(f, x):
    """Gradient of a function of one array that returns one number, entry by entry."""
    x = np.asarray(x, np.float64)
    units = np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([slope(f, (x,), (unit,)).reshape(()) for unit in units]).reshape(x.shape)
