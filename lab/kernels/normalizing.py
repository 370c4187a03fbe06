"""Layer normalisation, row by row, and its three gradients in one go over the rows.

A row stays in the cache while it is passed over several times, so nothing is kept between forward and backward.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.ahead import ask_for_row
from lab.kernels.arguments import Matrix, OutMatrix, OutVector, Vector
from lab.kernels.kernel import SUMMING, helper, kernel
from lab.kernels.losses import BLOCK, sum_of

ROWS = 64
"""Rows whose sums are taken in the array's own dtype before they go on in float64."""

# The helpers take rows as arrays of their own and count from 0, as those of `losses.py` do, and why.


@helper(fastmath=SUMMING)
def sum_of_squares(x: NDArray[Any], middle: Any) -> Any:
    """Sum of (x - middle) ** 2, in the dtype of x."""
    part = x.dtype.type(0)
    for j in range(x.size):
        part += (x[j] - middle) * (x[j] - middle)
    return part


@helper(fastmath=SUMMING)
def sum_of_products(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """Sum of x * y, in the dtype of x."""
    part = x.dtype.type(0)
    for j in range(x.size):
        part += x[j] * y[j]
    return part


@helper(fastmath=SUMMING)
def sums_of_row(x: NDArray[Any], scale: NDArray[Any], ct: NDArray[Any], middle: Any) -> tuple[Any, Any, Any]:
    """Sums of (x - middle) ** 2, of c = ct * scale and of c * (x - middle), in the dtype of x."""
    squares, flat, lean = x.dtype.type(0), x.dtype.type(0), x.dtype.type(0)
    for j in range(x.size):
        distance, c = x[j] - middle, ct[j] * scale[j]
        squares += distance * distance
        flat += c
        lean += c * distance
    return squares, flat, lean


@helper()
def write_even(
    x: NDArray[Any], scale: NDArray[Any], shift: NDArray[Any], out: NDArray[Any], middle: Any, inverse: Any
) -> None:
    """Write a normalised row."""
    for j in range(x.size):
        out[j] = (x[j] - middle) * inverse * scale[j] + shift[j]


@helper()
def write_slope(
    x: NDArray[Any], scale: NDArray[Any], ct: NDArray[Any], out: NDArray[Any], parts: NDArray[Any], middle: Any,
    inverse: Any, mean: Any, along: Any,
) -> None:  # fmt: skip
    """Write the gradient of a row, and add to `parts` what it has for that of the scale and that of the shift."""
    of_scale, of_shift = parts[0], parts[1]
    for j in range(x.size):
        distance, c = x[j] - middle, ct[j]
        out[j] = inverse * (c * scale[j] - mean - distance * along)
        of_scale[j] += c * distance * inverse
        of_shift[j] += c


@helper()
def add_even(x: NDArray[Any], ct: NDArray[Any], parts: NDArray[Any], middle: Any, inverse: Any) -> None:
    """Only the latter."""
    of_scale, of_shift = parts[0], parts[1]
    for j in range(x.size):
        of_scale[j] += ct[j] * (x[j] - middle) * inverse
        of_shift[j] += ct[j]


@helper()
def add(x: NDArray[Any], out: NDArray[Any]) -> None:
    """Add x."""
    for j in range(x.size):
        out[j] += x[j]


@helper()
def mean_of(row: NDArray[Any]) -> Any:
    """Mean of a row that is not empty."""
    total = 0.0
    for start in range(0, row.size, BLOCK):
        total += sum_of(row[start : min(start + BLOCK, row.size)])
    return row.dtype.type(total / row.size)


@helper()
def moments(row: NDArray[Any], epsilon: float) -> tuple[Any, Any]:
    """Mean, and 1 / sqrt(variance + epsilon), of a row that is not empty."""
    middle, total = mean_of(row), 0.0
    for start in range(0, row.size, BLOCK):
        total += sum_of_squares(row[start : min(start + BLOCK, row.size)], middle)
    return middle, row.dtype.type(1.0 / np.sqrt(total / row.size + epsilon))


@helper()
def slope_of_row(
    x: NDArray[Any], scale: NDArray[Any], ct: NDArray[Any], out: NDArray[Any], parts: NDArray[Any], epsilon: float
) -> None:
    """What `layer_norm_gradients` does with a row."""
    n, middle = x.size, mean_of(x)
    squares, flat, lean = 0.0, 0.0, 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        found = sums_of_row(x[start:stop], scale[start:stop], ct[start:stop], middle)
        squares, flat, lean = squares + found[0], flat + found[1], lean + found[2]
    inverse = x.dtype.type(1.0 / np.sqrt(squares / n + epsilon))
    along = x.dtype.type(lean / n) * inverse * inverse
    write_slope(x, scale, ct, out, parts, middle, inverse, x.dtype.type(flat / n), along)


def _moments(x: NDArray[Any], epsilon: float) -> tuple[Any, Any]:
    """The same of all rows, in NumPy."""
    middle = x.mean(axis=1, keepdims=True, dtype=np.float64).astype(x.dtype)
    variance = np.square(x - middle).mean(axis=1, keepdims=True, dtype=np.float64)
    return middle, (1.0 / np.sqrt(variance + epsilon)).astype(x.dtype)


def norm_twin(
    x: NDArray[Any], scale: NDArray[Any], shift: NDArray[Any], out: NDArray[Any], epsilon: float
) -> None:
    """`layer_norm` in NumPy."""
    with np.errstate(all="ignore"):
        middle, inverse = _moments(x, epsilon)
        out[:] = (x - middle) * inverse * scale + shift


def norm_gradients_twin(
    x: NDArray[Any], scale: NDArray[Any], ct: NDArray[Any], out: NDArray[Any], out_scale: NDArray[Any],
    out_shift: NDArray[Any], epsilon: float,
) -> None:  # fmt: skip
    """`layer_norm_gradients` in NumPy."""
    with np.errstate(all="ignore"):
        middle, inverse = _moments(x, epsilon)
        out_scale[:] = (ct * (x - middle) * inverse).sum(axis=0, dtype=np.float64)
        out_shift[:] = ct.sum(axis=0, dtype=np.float64)
        if out.size:
            flat = (ct * scale).mean(axis=1, keepdims=True, dtype=np.float64).astype(x.dtype)
            lean = (ct * scale * (x - middle)).mean(axis=1, keepdims=True, dtype=np.float64).astype(x.dtype)
            out[:] = inverse * (ct * scale - flat - (x - middle) * (lean * inverse * inverse))


def _norm_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x = rng.standard_normal((size, 6)).astype(dtype)
    return x, *rng.standard_normal((2, 6)).astype(dtype), np.zeros_like(x), 1e-5


def _norm_gradients_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x, scale, shift, out, epsilon = _norm_sample(rng, dtype, size)
    return x, scale, rng.standard_normal(x.shape).astype(dtype), out, np.zeros_like(scale), shift, epsilon


@kernel(twin=norm_twin, sample=_norm_sample, ulps=16)
def layer_norm(x: Matrix, scale: Vector, shift: Vector, out: OutMatrix, epsilon: float) -> None:
    """Write (x - mean) / sqrt(variance + epsilon) * scale + shift of each row to `out` (Ba et al., arXiv:1607.06450).

    Shapes:
        x, out: (m, n) with n >= 1; scale, shift: (n,).

    Example:
        >>> out = np.zeros((1, 2))
        >>> layer_norm(np.array([[1.0, 3.0]]), np.ones(2), np.ones(2), out, 0.0)
        >>> out
        array([[0., 2.]])
    """
    m, n = x.shape
    if scale.size != n or shift.size != n or out.shape != x.shape:
        raise ShapeError("layer_norm needs a scale and a shift for each column")
    for i in range(m):
        middle, inverse = moments(x[i], epsilon)
        write_even(x[i], scale, shift, out[i], middle, inverse)


@kernel(twin=norm_gradients_twin, sample=_norm_gradients_sample, ulps=64)
def layer_norm_gradients(
    x: Matrix, scale: Vector, ct: Matrix, out: OutMatrix, out_scale: OutVector, out_shift: OutVector, epsilon: float
) -> None:
    """Write the gradients with respect to x, scale and shift.

    That of x is what is left of ct * scale without its mean and its part along x, divided by the deviation; those of
    scale and shift are sums over the rows, of ct times the normalised row and of ct.

    Shapes:
        x, ct: (m, n) with n >= 1; scale, out_scale, out_shift: (n,); out: (m, n), or (0, n) where nobody wants it.

    Example:
        >>> out, out_scale, out_shift = np.ones((1, 2)), np.zeros(2), np.zeros(2)
        >>> layer_norm_gradients(
        ...     np.array([[1.0, 3.0]]), np.ones(2), np.array([[1.0, 2.0]]), out, out_scale, out_shift, 0.0
        ... )
        >>> out, out_scale, out_shift
        (array([[0., 0.]]), array([-1.,  2.]), array([1., 2.]))
    """
    m, n = x.shape
    wanted = out.shape[0] > 0
    fits = scale.size == n and out_scale.size == n and out_shift.size == n and out.shape[1] == n
    if not fits or ct.shape != x.shape or (wanted and out.shape != x.shape):
        raise ShapeError("layer_norm_gradients needs a ct for each entry, and a scale and sums for each column")
    totals = np.zeros((2, n), np.float64)  # of many rows: float32 would lose digits
    parts = np.empty((2, n), x.dtype)
    for first in range(0, m, ROWS):
        parts[:] = 0
        for i in range(first, min(first + ROWS, m)):
            if wanted:
                slope_of_row(x[i], scale, ct[i], out[i], parts, epsilon)
            else:
                middle, inverse = moments(x[i], epsilon)
                add_even(x[i], ct[i], parts, middle, inverse)
            ask_for_row(x, i + 1)
            ask_for_row(ct, i + 1)
        for k in range(2):
            add(parts[k], totals[k])
    for j in range(n):
        out_scale[j] = totals[0, j]
        out_shift[j] = totals[1, j]
