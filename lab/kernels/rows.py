"""What is done to a matrix row by row: layer normalisation with its gradients, and rows added up by their numbers.

A row stays in the cache while it is passed over several times, so nothing is kept between forward and backward.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.arguments import Labels, Matrix, OutMatrix, OutVector, Vector
from lab.kernels.kernel import SUMMING, helper, kernel
from lab.kernels.losses import BLOCK, sum_of

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
def sum_of_centred(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any], middle: Any) -> Any:
    """Sum of x * y * (z - middle), in the dtype of x."""
    part = x.dtype.type(0)
    for j in range(x.size):
        part += x[j] * y[j] * (z[j] - middle)
    return part


@helper()
def moments(row: NDArray[Any], epsilon: float) -> tuple[Any, Any]:
    """Mean, and 1 / sqrt(variance + epsilon), of a row that is not empty."""
    total = 0.0
    for start in range(0, row.size, BLOCK):
        total += sum_of(row[start : min(start + BLOCK, row.size)])
    middle = row.dtype.type(total / row.size)
    total = 0.0
    for start in range(0, row.size, BLOCK):
        total += sum_of_squares(row[start : min(start + BLOCK, row.size)], middle)
    return middle, row.dtype.type(1.0 / np.sqrt(total / row.size + epsilon))


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


def norm_gradient_twin(
    x: NDArray[Any], scale: NDArray[Any], ct: NDArray[Any], out: NDArray[Any], epsilon: float
) -> None:
    """`layer_norm_gradient` in NumPy."""
    with np.errstate(all="ignore"):
        middle, inverse = _moments(x, epsilon)
        flat = (ct * scale).mean(axis=1, keepdims=True, dtype=np.float64).astype(x.dtype)
        lean = (ct * scale * (x - middle)).mean(axis=1, keepdims=True, dtype=np.float64).astype(x.dtype)
        out[:] = inverse * (ct * scale - flat - (x - middle) * (lean * inverse * inverse))


def norm_scale_gradient_twin(x: NDArray[Any], ct: NDArray[Any], out: NDArray[Any], epsilon: float) -> None:
    """`layer_norm_scale_gradient` in NumPy."""
    with np.errstate(all="ignore"):
        middle, inverse = _moments(x, epsilon)
        out += (ct * (x - middle) * inverse).sum(axis=0, dtype=np.float64).astype(x.dtype)


def _norm_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x = rng.standard_normal((size, 6)).astype(dtype)
    return x, *rng.standard_normal((2, 6)).astype(dtype), np.zeros_like(x), 1e-5


def _norm_gradient_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x, scale, _, out, epsilon = _norm_sample(rng, dtype, size)
    return x, scale, rng.standard_normal((size, 6)).astype(dtype), out, epsilon


def _norm_scale_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x, scale, ct, _, epsilon = _norm_gradient_sample(rng, dtype, size)
    return x, ct, np.zeros_like(scale), epsilon


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
        for j in range(n):
            out[i, j] = (x[i, j] - middle) * inverse * scale[j] + shift[j]


@kernel(twin=norm_gradient_twin, sample=_norm_gradient_sample, ulps=64)
def layer_norm_gradient(x: Matrix, scale: Vector, ct: Matrix, out: OutMatrix, epsilon: float) -> None:
    """Write the gradient with respect to x to `out`: what is left of ct * scale without its mean and its part along x.

    Shapes:
        x, ct, out: (m, n) with n >= 1; scale: (n,).

    Example:
        >>> out = np.ones((1, 2))
        >>> layer_norm_gradient(np.array([[1.0, 3.0]]), np.ones(2), np.ones((1, 2)), out, 0.0)
        >>> out
        array([[0., 0.]])
    """
    m, n = x.shape
    if scale.size != n or ct.shape != x.shape or out.shape != x.shape:
        raise ShapeError("layer_norm_gradient needs a ct for each entry and a scale for each column")
    for i in range(m):
        middle, inverse = moments(x[i], epsilon)
        flat, lean = 0.0, 0.0
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            flat += sum_of_products(ct[i, start:stop], scale[start:stop])
            lean += sum_of_centred(ct[i, start:stop], scale[start:stop], x[i, start:stop], middle)
        mean = x.dtype.type(flat / n)
        along = x.dtype.type(lean / n) * inverse * inverse
        for j in range(n):
            out[i, j] = inverse * (ct[i, j] * scale[j] - mean - (x[i, j] - middle) * along)


@kernel(twin=norm_scale_gradient_twin, sample=_norm_scale_sample, ulps=64)
def layer_norm_scale_gradient(x: Matrix, ct: Matrix, out: OutVector, epsilon: float) -> None:
    """Add the gradient with respect to the scale to `out`: the sum over rows of ct * (x - mean) / sqrt(variance + e).

    Shapes:
        x, ct: (m, n) with n >= 1; out: (n,).

    Example:
        >>> out = np.zeros(2)
        >>> layer_norm_scale_gradient(np.array([[1.0, 3.0]]), np.ones((1, 2)), out, 0.0)
        >>> out
        array([-1.,  1.])
    """
    m, n = x.shape
    if out.size != n or ct.shape != x.shape:
        raise ShapeError("layer_norm_scale_gradient needs a ct for each entry and an out for each column")
    total = np.zeros(n, np.float64)  # of many rows: float32 would lose digits
    part = np.zeros(n, x.dtype)
    for first in range(0, m, 64):
        for j in range(n):
            part[j] = 0
        for i in range(first, min(first + 64, m)):
            middle, inverse = moments(x[i], epsilon)
            for j in range(n):
                part[j] += ct[i, j] * (x[i, j] - middle) * inverse
        for j in range(n):
            total[j] += part[j]
    for j in range(n):
        out[j] += x.dtype.type(total[j])


def add_rows_twin(rows: NDArray[Any], places: NDArray[Any], out: NDArray[Any]) -> None:
    """`add_rows` in NumPy."""
    with np.errstate(all="ignore"):
        np.add.at(out, places, rows)


def _add_rows_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    return rng.standard_normal((size, 3)).astype(dtype), rng.integers(0, 5, size), np.zeros((5, 3), dtype)


@kernel(twin=add_rows_twin, sample=_add_rows_sample)
def add_rows(rows: Matrix, places: Labels, out: OutMatrix) -> None:
    """Add each row to the row of `out` that its place names, one after the other.

    Shapes:
        rows: (m, w); places: (m,) from 0 to n - 1; out: (n, w).

    Example:
        >>> out = np.zeros((2, 1))
        >>> add_rows(np.array([[1.0], [2.0], [4.0]]), np.array([1, 0, 1]), out)
        >>> out
        array([[2.],
               [5.]])
    """
    m, width = rows.shape
    if places.size != m or out.shape[1] != width:
        raise ShapeError("add_rows needs a place for each row, and rows of one length")
    n = out.shape[0]
    for i in range(m):
        place = places[i]
        if place < 0 or place >= n:
            raise ShapeError("add_rows needs places inside of out")
        source, target = rows[i], out[place]
        for j in range(width):
            target[j] += source[j]
