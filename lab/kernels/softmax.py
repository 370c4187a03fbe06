"""Softmax of each row, and the way back through it; a row stays in the cache while it is passed over."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.arguments import Matrix, OutMatrix
from lab.kernels.kernel import SUMMING, helper, kernel
from lab.kernels.losses import BLOCK, largest_of, sum_of, write_exp
from lab.kernels.normalizing import sum_of_products
from lab.kernels.scalars import exp


@helper(fastmath=SUMMING)
def write_any_exp(x: NDArray[Any], out: NDArray[Any]) -> Any:
    """Write exp(x) to `out`, whatever x is; returns their sum in the dtype of x: two loops, as in `write_exp`."""
    for j in range(x.size):
        out[j] = exp(x[j])
    return sum_of(out)


@helper()
def divide_by(out: NDArray[Any], total: Any) -> None:
    """Divide every entry."""
    for j in range(out.size):
        out[j] /= total


@helper()
def write_left(out: NDArray[Any], ct: NDArray[Any], slope: NDArray[Any], along: Any) -> None:
    """Write out * (ct - along)."""
    for j in range(out.size):
        slope[j] = out[j] * (ct[j] - along)


def softmax_twin(x: NDArray[Any], out: NDArray[Any]) -> None:
    """`softmax` in NumPy."""
    with np.errstate(all="ignore"):
        top = x.max(axis=1, keepdims=True)
        np.exp(x - np.where(np.isfinite(top), top, x.dtype.type(0)), out=out)
        out /= out.sum(axis=1, keepdims=True, dtype=np.float64).astype(x.dtype)


def softmax_gradient_twin(out: NDArray[Any], ct: NDArray[Any], slope: NDArray[Any]) -> None:
    """`softmax_gradient` in NumPy."""
    with np.errstate(all="ignore"):
        slope[:] = out * (ct - (out * ct).sum(axis=1, keepdims=True, dtype=np.float64).astype(out.dtype))


def _sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    return (rng.standard_normal((size, 6)) * 5).astype(dtype), np.zeros((size, 6), dtype)


def _gradient_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x, slope = _sample(rng, dtype, size)
    return np.exp(x - 9), rng.standard_normal(x.shape).astype(dtype), slope


@kernel(twin=softmax_twin, sample=_sample)
def softmax(x: Matrix, out: OutMatrix) -> None:
    """Write exp(x), divided by its sum over the row, to `out`, without overflow.

    Shapes:
        x, out: (m, n) with n >= 1.

    Example:
        >>> out = np.zeros((1, 2))
        >>> softmax(np.array([[1000.0, 1000.0]]), out)
        >>> out
        array([[0.5, 0.5]])
    """
    m, n = x.shape
    if out.shape != x.shape:
        raise ShapeError("softmax needs an out for each entry")
    for i in range(m):
        top, total = largest_of(x[i]), 0.0
        for start in range(0, n, BLOCK):
            row, to = x[i, start : min(start + BLOCK, n)], out[i, start : min(start + BLOCK, n)]
            total += write_exp(row, to, top) if np.isfinite(top) else write_any_exp(row, to)
        divide_by(out[i], x.dtype.type(total))


@kernel(twin=softmax_gradient_twin, sample=_gradient_sample, ulps=16)
def softmax_gradient(out: Matrix, ct: Matrix, slope: OutMatrix) -> None:
    """Write out * (ct - sum of out * ct) of each row to `slope`.

    Shapes:
        out, ct, slope: (m, n).

    Example:
        >>> slope = np.zeros((1, 2))
        >>> softmax_gradient(np.array([[0.5, 0.5]]), np.array([[1.0, 3.0]]), slope)
        >>> slope
        array([[-0.5,  0.5]])
    """
    m, n = out.shape
    if ct.shape != out.shape or slope.shape != out.shape:
        raise ShapeError("softmax_gradient needs a ct and a slope for each entry")
    for i in range(m):
        along = 0.0
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            along += sum_of_products(out[i, start:stop], ct[i, start:stop])
        write_left(out[i], ct[i], slope[i], out.dtype.type(along))
