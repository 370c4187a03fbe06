"""The product over axes, and how reduced axes are made one.

Its rule has no division, so zeros are as good as other numbers, in every order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.ops.primitive import primitive
from lab.ops.reduce import SAMPLES, is_half, narrowed, reduction, spread, sum_
from lab.ops.scans import before, cumprod, is_ordinary, reversed_along
from lab.ops.shape import reshape, transpose
from lab.shapes import normal_axes


def at_end(x: Any, axis: Any, op: str) -> tuple[Any, tuple[int, ...]]:
    """X with the reduced axes at the end and made one, and the order of axes that was needed."""
    axes = normal_axes(axis, x.ndim, op=op)
    rest = tuple(a for a in range(x.ndim) if a not in axes)
    order = (*rest, *axes)
    moved = x if order == tuple(range(x.ndim)) else transpose(x, axes=order)
    size = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    return reshape(moved, shape=(*(x.shape[a] for a in rest), size)), order


def put_back(rows: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> Any:
    """The inverse of `at_end`."""
    moved = reshape(rows, shape=tuple(shape[a] for a in order))
    return (
        moved if order == tuple(range(len(order))) else transpose(moved, axes=tuple(int(a) for a in np.argsort(order)))
    )


@primitive(
    samples=SAMPLES,
    error_samples=[(((3,),), {"axis": 1}, "prod over an axis")],
    precision="wide",
    reference=lambda x, axis=None, keepdims=False: np.multiply.reduce(x, axis=axis, keepdims=keepdims),
    numpy={np.prod: None},
    method=True,
)
def prod(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Product over axes; of no entries it is 1."""
    normal_axes(axis, np.ndim(x), op="prod")
    axes = tuple(axis) if type(axis) is list else axis
    return narrowed(np.prod(x, axis=axes, keepdims=keepdims, dtype=np.float32 if is_half(x) else None), x)


def _others(x: Any, axis: Any) -> Any:
    """For each entry the product of all others: of those before it times of those behind it."""
    rows, order = at_end(x, axis, "prod")
    last = rows.ndim - 1
    if type(rows) is np.ndarray:
        found = _before(rows)
        found *= _before(rows[..., ::-1])[..., ::-1]
        return put_back(found, x.shape, order)
    left = before(cumprod(rows, axis=last), last, 1.0)
    right = reversed_along(before(cumprod(reversed_along(rows, last), axis=last), last, 1.0), last)
    return put_back(left * right, tuple(x.shape), order)


def _before(rows: Any) -> Any:
    """Product of the entries before each, of arrays."""
    out = np.ones(rows.shape, rows.dtype)
    np.multiply.accumulate(rows[..., :-1], axis=-1, out=out[..., 1:])
    return out


@prod.vjp(text="ct * product of the other entries")
def _prod_vjp(ct: Any, out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    if type(out) is np.ndarray and type(x) is np.ndarray and is_ordinary(out):
        return np.multiply(spread(out, x, axis) / x, spread(ct, x, axis))  # a third of the time
    return spread(ct, x, axis) * _others(x, axis)


@prod.jvp
def _prod_jvp(tangents: tuple[Any, ...], _out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    return sum_(tangents[0] * _others(x, axis), axis=axis, keepdims=keepdims)


reduction(prod)
