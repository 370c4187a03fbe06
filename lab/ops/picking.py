"""Reading and writing at places that are themselves operands: integers that a program computes, traces or maps.

Two ops carry it: `take` reads slices along an axis, `segment_sum` is its transpose and adds them back. With `batch`
their first axes are aligned, member by member, which is what `take_along_axis` is and what vmap makes of `take`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab import kernels
from lab.errors import DTypeError, ShapeError
from lab.ops.index import add_at
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, reshape, transpose
from lab.shapes import Spec, one_axis

# B aligned axes, N the axis that is indexed, K the axes of the indices, R the rest.


def _checked(x: Any, indices: Any, axis: Any, batch: int, op: str) -> int:
    """The axis, non-negative, of operands that fit."""
    if np.dtype(indices.dtype).kind not in "iu":
        raise DTypeError(f"{op} needs integer indices", given=str(indices.dtype), hint="indices.astype(int)")
    along = one_axis(axis, len(x.shape), op=op)
    if along < batch or tuple(x.shape[:batch]) != tuple(indices.shape[:batch]):
        raise ShapeError(
            f"{op} aligns the first axes of its operands",
            given=f"batch={batch}, axis={axis} of {tuple(x.shape)} at {tuple(indices.shape)}",
            hint="the aligned axes are equal in both, and axis is behind them",
        )
    return along


def refuse_outside(indices: Any, n: int) -> None:
    """Refuse indices that an axis of length n does not have.

    Raises:
        ShapeError: so it is.
    """
    if indices.size and (indices.min() < -n or indices.max() >= n):
        raise ShapeError(
            "an index does not fit the array",
            given=f"indices {indices.min()} to {indices.max()}, an axis of length {n}",
            hint=f"indices are 0 to {n - 1}, or -1 from the end" if n else "an empty axis has no entries",
        )


def _grid(indices: Any, batch: int) -> tuple[Any, ...]:
    """The index of arrays (B.., N, R..) that reads (B.., K.., R..)."""
    shape = indices.shape
    members = [np.arange(shape[b]).reshape((1,) * b + (-1,) + (1,) * (len(shape) - b - 1)) for b in range(batch)]
    return (*members, indices)


@primitive(
    linear="each",
    samples=[
        Sample(((3, 4), (2, 2)), {"axis": 1}, kinds=("f", "i4")),
        Sample(((4,), ()), kinds=("f", "i4")),
        Sample(((2, 3, 4), (2, 5)), {"axis": -1, "batch": 1}, kinds=("f", "i4")),
    ],
    error_samples=[
        (((3,), (2,)), {"axis": 0}, "take needs integer indices"),
        (((3,), (2,)), {"axis": 1}, "take needs integer indices"),
    ],
    reference=lambda x, indices, axis=None, batch=0: np.stack([np.take(*pair, axis=1) for pair in zip(x, indices)])  # noqa: B905
    if batch else np.moveaxis(np.moveaxis(x, axis, 0)[indices], range(indices.ndim), range(1, 1 + indices.ndim))
    if axis else np.ravel(x)[indices],
    numpy={np.take: None},
    method=True,
)  # fmt: skip
def take(x: Any, indices: Any, *, axis: Any = None, batch: int = 0) -> Any:
    """The slices along an axis at given indices; without an axis the entries of the flattened array."""
    x, indices = np.asarray(x), np.asarray(indices)
    if axis is None:
        x, axis = x.reshape(-1), 0
    along = _checked(x, indices, axis, batch, "take")
    try:
        if not batch:
            return np.take(x, indices, axis=along)
        picked = np.moveaxis(x, along, batch)[_grid(indices, batch)]
    except IndexError:
        refuse_outside(indices, x.shape[along])
        raise
    k = indices.ndim - batch
    return np.moveaxis(picked, range(batch, batch + k), range(along, along + k))


@take.vjp(0, text="ct added into zeros at the indices")
def _take_vjp(ct: Any, _out: Any, x_like: Any, indices: Any, *, axis: Any, batch: int) -> Any:
    if axis is None:
        return reshape(segment_sum(ct, indices, n=x_like.size, axis=0), shape=x_like.shape)
    along = one_axis(axis, x_like.ndim, op="take")
    return segment_sum(ct, indices, n=x_like.shape[along], axis=along, batch=batch)


@take.shaped
def _take_shape(x: Spec, indices: Spec, *, axis: Any, batch: int) -> Spec:
    if axis is None:
        x, axis = Spec((x.size,), x.dtype), 0
    along = _checked(x, indices, axis, batch, "take")
    return Spec((*x.shape[:along], *indices.shape[batch:], *x.shape[along + 1 :]), x.dtype)


@take.batching
def _take_batch(size: int, mapped: tuple[bool, ...], x: Any, indices: Any, *, axis: Any, batch: int) -> Any:
    if axis is None:
        x, axis = reshape(x, shape=(size, -1) if mapped[0] else (-1,)), 0
    along = one_axis(axis, x.ndim - mapped[0], op="take")
    if mapped == (True, False) and not batch:
        return take(x, indices, axis=along + 1)
    if mapped == (False, True) and not batch:
        return _to_front(take(x, indices, axis=along), along)
    x, indices = (v if m else broadcast_to(v, shape=(size, *v.shape))
                  for v, m in zip((x, indices), mapped, strict=True))  # fmt: skip
    return take(x, indices, axis=along + 1, batch=batch + 1)


def _to_front(x: Any, axis: int) -> Any:
    return x if not axis else transpose(x, axes=(axis, *(a for a in range(x.ndim) if a != axis)))


@primitive(
    linear="each",
    samples=[
        Sample(((3, 4), (4,)), {"n": 5, "axis": 1}, kinds=("f", "i3")),
        Sample(((), ()), {"n": 3}, kinds=("f", "i3")),
        Sample(((2, 3, 5), (2, 5)), {"n": 4, "axis": -1, "batch": 1}, kinds=("f", "i4")),
    ],
    error_samples=[(((3,), (3,)), {"n": 2}, "segment_sum needs integer indices")],
    reference=lambda x, segments, n, axis=0, batch=0: np.einsum("b...k,bkn->b...n", x, np.eye(n)[segments])
    if batch else np.einsum("...k,kn->...n", x, np.eye(n)[segments]) if x.ndim else x * np.eye(n)[segments],
)  # fmt: skip
def segment_sum(x: Any, segments: Any, *, n: int = 1, axis: int = 0, batch: int = 0) -> Any:
    """Zeros of length n along an axis, with each slice of x added at the number of its segment."""
    x, segments = np.asarray(x), np.asarray(segments)
    along = _segmented(x, segments, axis, batch)
    k = segments.ndim - batch
    rows = np.moveaxis(x, range(along, along + k), range(batch, batch + k))  # (B.., K.., R..)
    shape = (*segments.shape[:batch], n, *rows.shape[batch + k :])
    width = int(np.prod(shape[batch + 1 :], dtype=np.int64))
    refuse_outside(segments, n)
    places = np.where(segments < 0, segments + n, segments).astype(np.int64, copy=False)
    if not batch and width > 1 and x.dtype.char in kernels.FLOAT_CHARS:
        out = np.zeros(shape, x.dtype)
        kernels.add_rows(rows.reshape(-1, width), places.reshape(-1), out.reshape(n, width))
        return np.moveaxis(out, 0, along)
    members = np.arange(int(np.prod(shape[:batch], dtype=np.int64))).reshape((*segments.shape[:batch], *(1,) * k))
    places = (members * n + places).reshape(-1, 1) * width + np.arange(width)
    out = np.zeros(shape, x.dtype)
    add_at(out.reshape(-1), places.reshape(-1), rows.reshape(-1))
    return np.moveaxis(out, batch, along)


def _segmented(x: Any, segments: Any, axis: int, batch: int) -> int:
    """The axis, non-negative, of operands that fit; it counts in the result, where one axis stands for K."""
    k = len(segments.shape) - batch
    along = _checked(Spec((*x.shape[: len(x.shape) - k], 1), x.dtype), segments, axis, batch, "segment_sum")
    if tuple(x.shape[along : along + k]) != tuple(segments.shape[batch:]):
        raise ShapeError(
            "segment_sum needs a segment for each slice",
            given=f"segments {tuple(segments.shape)}, x {tuple(x.shape)}, axis={axis}",
            hint="segments has the lengths of the axes that are summed",
        )
    return along


@segment_sum.vjp(0, text="the slices of ct at the segments")
def _segment_vjp(ct: Any, _out: Any, _x: Any, segments: Any, *, n: int, axis: int, batch: int) -> Any:
    return take(ct, segments, axis=axis, batch=batch)


@segment_sum.shaped
def _segment_shape(x: Spec, segments: Spec, *, n: int, axis: int, batch: int) -> Spec:
    along = _segmented(x, segments, axis, batch)
    return Spec((*x.shape[:along], n, *x.shape[along + segments.ndim - batch :]), x.dtype)


@segment_sum.batching
def _segment_batch(size: int, mapped: tuple[bool, ...], x: Any, segments: Any, *, n: int, axis: int, batch: int) -> Any:
    members = [Spec(tuple(v.shape[m:]), np.dtype(v.dtype)) for v, m in zip((x, segments), mapped, strict=True)]
    along = _segmented(members[0], members[1], axis, batch)
    if mapped == (True, False) and not batch:
        return segment_sum(x, segments, n=n, axis=along + 1)
    x, segments = (v if m else broadcast_to(v, shape=(size, *v.shape))
                   for v, m in zip((x, segments), mapped, strict=True))  # fmt: skip
    return segment_sum(x, segments, n=n, axis=along + 1, batch=batch + 1)


def operand(x: Any) -> Any:
    """A list or a number as an array; tensors and arrays as they are."""
    return x if hasattr(x, "ndim") else np.asarray(x)
