"""Reductions of rows and the ways back: the variance of each row, and what its entries or its extremes get back.

A row stays in the cache while it is passed over several times, where NumPy would write an array for each step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.arguments import Matrix, OutMatrix, OutVector, Vector
from lab.kernels.kernel import SUMMING, helper, kernel
from lab.kernels.losses import BLOCK, sum_of
from lab.kernels.normalizing import sum_of_squares


@helper(fastmath=SUMMING)
def sum_of_distances(x: NDArray[Any], middle: Any) -> Any:
    """Sum of x - middle, in the dtype of x."""
    part = x.dtype.type(0)
    for j in range(x.size):
        part += x[j] - middle
    return part


@helper()
def middle_of(row: NDArray[Any]) -> tuple[Any, float]:
    """The mean in the dtype of the row, and what rounding lost of it: the mean of the row's distances from it."""
    total, rest = 0.0, 0.0
    for start in range(0, row.size, BLOCK):
        total += sum_of(row[start : min(start + BLOCK, row.size)])
    middle = row.dtype.type(total / row.size)
    for start in range(0, row.size, BLOCK):
        rest += sum_of_distances(row[start : min(start + BLOCK, row.size)], middle)
    return middle, rest / row.size


@helper()
def write_scaled(x: NDArray[Any], out: NDArray[Any], middle: Any, lost: Any, factor: Any) -> None:
    """Write (x - mean) * factor."""
    for j in range(x.size):
        out[j] = ((x[j] - middle) - lost) * factor


@helper()
def count_of(x: NDArray[Any], value: Any) -> int:
    """How many entries are equal to it."""
    n = 0
    for j in range(x.size):
        n += 1 if x[j] == value else 0
    return n


@helper()
def write_where(x: NDArray[Any], out: NDArray[Any], value: Any, share: Any) -> None:
    """Write the share where x is the value, 0 elsewhere."""
    for j in range(x.size):
        out[j] = share if x[j] == value else x.dtype.type(0)


def _middles(x: NDArray[Any]) -> tuple[Any, Any]:
    """`middle_of` of all rows, in NumPy."""
    middle = x.mean(axis=1, keepdims=True, dtype=np.float64).astype(x.dtype)
    return middle, (x - middle).mean(axis=1, keepdims=True, dtype=np.float64)


def variances_twin(x: NDArray[Any], out: NDArray[Any], divisor: float) -> None:
    """`row_variances` in NumPy."""
    with np.errstate(all="ignore"):
        middle, lost = _middles(x)
        squares = np.square(x - middle).sum(axis=1, dtype=np.float64)
        out[:] = (squares - x.shape[1] * np.square(lost[:, 0])) / divisor


def deviations_twin(x: NDArray[Any], factors: NDArray[Any], out: NDArray[Any]) -> None:
    """`row_deviations` in NumPy."""
    with np.errstate(all="ignore"):
        middle, lost = _middles(x)
        out[:] = ((x - middle) - lost.astype(x.dtype)) * factors[:, None]


def extremes_twin(x: NDArray[Any], extremes: NDArray[Any], ct: NDArray[Any], out: NDArray[Any]) -> None:
    """`row_extremes_gradient` in NumPy."""
    with np.errstate(all="ignore"):
        hit = x == extremes[:, None]
        share = ct / np.maximum(hit.sum(axis=1), 1).astype(x.dtype)
        out[:] = np.where(hit, share[:, None], x.dtype.type(0))


def _variances_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    return rng.standard_normal((size, 6)).astype(dtype), np.zeros(size, dtype), 5.0


def _deviations_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x = rng.standard_normal((size, 6)).astype(dtype)
    return x, rng.standard_normal(size).astype(dtype), np.zeros_like(x)


def _extremes_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x = rng.integers(0, 4, (size, 6)).astype(dtype)  # with ties
    return x, x.max(axis=1), rng.standard_normal(size).astype(dtype), np.zeros_like(x)


@kernel(twin=variances_twin, sample=_variances_sample, ulps=16)
def row_variances(x: Matrix, out: OutVector, divisor: float) -> None:
    """Write the sum of the squared distances from its mean of each row, divided, to `out`.

    Two passes, with the correction of Chan, Golub and LeVeque (1983) for what rounding left of the mean.

    Shapes:
        x: (m, n) with n >= 1; out: (m,).

    Example:
        >>> out = np.zeros(1)
        >>> row_variances(np.array([[1.0, 3.0]]), out, 2.0)
        >>> out
        array([1.])
    """
    m, n = x.shape
    if out.size != m:
        raise ShapeError("row_variances needs a place in out for each row")
    for i in range(m):
        row = x[i]
        middle, lost = middle_of(row)
        total = 0.0
        for start in range(0, n, BLOCK):
            total += sum_of_squares(row[start : min(start + BLOCK, n)], middle)
        out[i] = (total - n * lost * lost) / divisor


@kernel(twin=deviations_twin, sample=_deviations_sample, ulps=16)
def row_deviations(x: Matrix, factors: Vector, out: OutMatrix) -> None:
    """Write the distances from its mean of each row, times its factor, to `out`.

    Shapes:
        x, out: (m, n) with n >= 1; factors: (m,).

    Example:
        >>> out = np.zeros((1, 2))
        >>> row_deviations(np.array([[1.0, 3.0]]), np.array([10.0]), out)
        >>> out
        array([[-10.,  10.]])
    """
    m = x.shape[0]
    if factors.size != m or out.shape != x.shape:
        raise ShapeError("row_deviations needs a factor for each row and an out for each entry")
    for i in range(m):
        middle, lost = middle_of(x[i])
        write_scaled(x[i], out[i], middle, x.dtype.type(lost), factors[i])


@kernel(twin=extremes_twin, sample=_extremes_sample)
def row_extremes_gradient(x: Matrix, extremes: Vector, ct: Vector, out: OutMatrix) -> None:
    """Write the ct of each row to its entries that are its extreme, in equal shares, and 0 to the others.

    Shapes:
        x, out: (m, n); extremes, ct: (m,). A row whose extreme is nan gets 0 everywhere.

    Example:
        >>> out = np.zeros((1, 3))
        >>> row_extremes_gradient(np.array([[1.0, 5.0, 5.0]]), np.array([5.0]), np.ones(1), out)
        >>> out
        array([[0. , 0.5, 0.5]])
    """
    m = x.shape[0]
    if extremes.size != m or ct.size != m or out.shape != x.shape:
        raise ShapeError("row_extremes_gradient needs an extreme and a ct for each row and an out for each entry")
    for i in range(m):
        n = max(count_of(x[i], extremes[i]), 1)
        write_where(x[i], out[i], extremes[i], ct[i] / x.dtype.type(n))
