"""Norms of vectors and matrices. Where a norm has a tip, at zero, its gradient is taken as 0, the shortest there is."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError, UnsupportedError
from lab.ops.arithmetic import absolute, power
from lab.ops.comparisons import equal, where
from lab.ops.composite import composite
from lab.ops.counts import count_nonzero
from lab.ops.primitive import primitive
from lab.ops.reduce import SAMPLES, max_, min_, narrowed, reduction, spread, sum_, total
from lab.ops.sample import Sample
from lab.ops.shape import cast, reshape
from lab.shapes import normal_axes


def shortest(ct: Any, out: Any) -> Any:
    """The quotient, 0 where out is 0: of all slopes at the tip of a cone the shortest."""
    if type(ct) is np.ndarray and type(out) is np.ndarray:
        return np.divide(ct, out, out=np.zeros(out.shape, ct.dtype), where=out != 0)
    flat = equal(out, np.zeros((), out.dtype))
    return where(flat, np.zeros((), out.dtype), ct / where(flat, np.ones((), out.dtype), out))


@primitive(
    samples=SAMPLES[:4],
    error_samples=[(((3,),), {"axis": 1}, "vector_norm over an axis")],
    precision="wide",
    reference=lambda x, axis=None, keepdims=False: np.sqrt(np.sum(np.abs(x) ** 2, axis=axis, keepdims=keepdims)),
)
def vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """How long vectors are: the root of the sum of squares over axes; its gradient at 0 is 0."""
    x = np.asarray(x)
    normal_axes(axis, x.ndim, op="vector_norm")
    wide = x.astype(np.result_type(x, np.float32) if x.dtype.kind == "f" else np.float64, copy=False)
    return narrowed(np.sqrt(total(wide * wide, axis, keepdims)), x)


@vector_norm.vjp(text="ct * x / out, 0 where out is 0")
def _vector_norm_vjp(ct: Any, out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    return spread(shortest(ct, out), x, axis) * x


@vector_norm.jvp
def _vector_norm_jvp(tangents: tuple[Any, ...], out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    return shortest(sum_(x * tangents[0], axis=axis, keepdims=keepdims), out)


reduction(vector_norm)


@composite(
    samples=[
        Sample(((3,),)), Sample(((2, 3),), {"ord": 1, "axis": -1}),
        Sample(((2, 3),), {"ord": 3, "axis": 0, "keepdims": True}),
        Sample(((3, 2),), {"ord": np.inf}),
    ],
    error_samples=[
        (((2, 3),), {"axis": 2}, "norm over an axis"),
        (((2, 3),), {"ord": 2}, "norm of a matrix by its singular values"),
        (((2, 2, 2),), {"ord": 1}, "norm of more than two axes"),
        (((3,),), {"ord": "fro"}, "norm of this order"),
    ],
    reference=lambda x, ord=None, axis=None, keepdims=False: np.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims),
    numpy={np.linalg.norm: None},
    method=True,
)  # fmt: skip
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """How long vectors or matrices are, without `ord` the root of the sum of squares; its gradient at 0 is 0."""
    x = _floating(x)
    axes = normal_axes(axis, x.ndim, op="norm")
    if ord is None:
        return vector_norm(x, axis=axes, keepdims=keepdims)
    if len(axes) > 2 or not axes:
        raise ShapeError(
            "norm of more than two axes" if axes else "norm of no axes", given=f"ord={ord!r}, shape {tuple(x.shape)}",
            hint="axis=-1 takes vectors, axis=(-2, -1) matrices; without ord any axes",
        )  # fmt: skip
    if len(axes) == 1:
        return _of_vectors(x, ord, axes, keepdims)
    return _of_matrices(x, ord, _pair(axis, x.ndim), keepdims)


def _floating(x: Any) -> Any:
    x = x if hasattr(x, "ndim") else np.asarray(x)
    return x if np.dtype(x.dtype).kind == "f" else cast(x, dtype="float64")


def _pair(axis: Any, ndim: int) -> tuple[int, int]:
    """Rows and columns, in the order given."""
    rows, columns = (0, 1) if axis is None else (a % ndim for a in axis)
    return rows, columns


def _rooted(whole: Any, p: float) -> Any:
    """The p-th root, and at 0 a slope of 0."""
    flat = equal(whole, 0)
    root = power(where(flat, np.ones((), whole.dtype), whole), np.asarray(1.0 / p, whole.dtype))
    return where(flat, np.zeros((), whole.dtype), root)


def _of_vectors(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord == 2:
        return vector_norm(x, axis=axes, keepdims=keepdims)
    if isinstance(ord, str) or not isinstance(ord, int | float | np.number) or np.isnan(float(ord)):
        raise ArgumentError("norm of this order does not exist for vectors", given=f"ord={ord!r}", hint="a number")
    if ord == 0:
        return cast(count_nonzero(x, axis=axes, keepdims=keepdims), dtype=x.dtype)
    size, ord = absolute(x), float(ord)
    if np.isinf(ord):
        return (max_ if ord > 0 else min_)(size, axis=axes, keepdims=keepdims)
    if ord == 1:
        return sum_(size, axis=axes, keepdims=keepdims)
    p = np.asarray(ord, x.dtype)
    if ord > 2:
        return _rooted(sum_(power(size, p), axis=axes, keepdims=keepdims), ord)
    flat = equal(size, 0)  # there the first or the second slope of size ** p is infinite
    powers = power(where(flat, np.ones((), x.dtype), size), p)
    none = np.asarray(0.0 if ord > 0 else np.inf, x.dtype)
    total = sum_(where(flat, none, powers), axis=axes, keepdims=keepdims)
    return _rooted(total, ord) if ord > 0 else power(total, np.asarray(1.0 / ord, x.dtype))


def _of_matrices(x: Any, ord: Any, pair: tuple[int, int], keepdims: bool) -> Any:
    rows, columns = pair
    if ord == "fro":
        return vector_norm(x, axis=pair, keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        raise UnsupportedError(
            "norm of a matrix by its singular values is not among the operations", given=f"ord={ord!r}",
            hint="ord='fro', 1 or inf; or axis=-1 for the rows as vectors",
        )  # fmt: skip
    if isinstance(ord, str) or ord not in (1, -1, np.inf, -np.inf):
        raise ArgumentError(
            "norm of this order does not exist for matrices", given=f"ord={ord!r}", hint="'fro', 1, -1, inf or -inf"
        )
    along, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = sum_(absolute(x), axis=along, keepdims=True)
    out = (max_ if ord > 0 else min_)(sums, axis=other, keepdims=True)
    shape = tuple(d for a, d in enumerate(out.shape) if keepdims or a not in pair)
    return out if tuple(out.shape) == shape else reshape(out, shape=shape)
