"""Reading and writing at places that are themselves operands: integers that a program computes, traces or maps.

Two ops carry it: `take` reads slices along an axis, `segment_sum` is its transpose and adds them back. With `batch`
their first axes are aligned, member by member, which is what `take_along_axis` is and what vmap makes of `take`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import DTypeError, ShapeError
from lab.ops.composite import composite
from lab.ops.elementwise import equal, where
from lab.ops.index import add_at, check_written
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, fold, reshape, transpose
from lab.shapes import Spec, broadcast, one_axis

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


def _outside(indices: Any, n: int) -> None:
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
        _outside(indices, x.shape[along])
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
    _outside(segments, n)
    places = np.where(segments < 0, segments + n, segments).astype(np.int64, copy=False)
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
            given=f"{tuple(segments.shape[batch:])} segments, slices {tuple(x.shape[along : along + k])} at axis {axis}",
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
def _segment_batch(
    size: int, mapped: tuple[bool, ...], x: Any, segments: Any, *, n: int, axis: int, batch: int
) -> Any:
    members = [Spec(tuple(v.shape[m:]), np.dtype(v.dtype)) for v, m in zip((x, segments), mapped, strict=True)]
    along = _segmented(*members, axis, batch)
    if mapped == (True, False) and not batch:
        return segment_sum(x, segments, n=n, axis=along + 1)
    x, segments = (v if m else broadcast_to(v, shape=(size, *v.shape))
                   for v, m in zip((x, segments), mapped, strict=True))  # fmt: skip
    return segment_sum(x, segments, n=n, axis=along + 1, batch=batch + 1)


# --- along an axis: an index of its own for each entry --------------------------------------------------------------


def _along(x: Any, indices: Any, axis: Any, op: str) -> tuple[int, tuple[int, ...]]:
    """The axis, and the shape of all indices once the other axes are broadcast."""
    along = one_axis(axis, len(x.shape), op=op)
    if len(indices.shape) != len(x.shape):
        raise ShapeError(
            f"{op} needs as many axes in the indices as in x",
            given=f"indices {tuple(indices.shape)}, x {tuple(x.shape)}",
            hint="reshape the indices; lab.take reads whole slices",
        )
    others = broadcast(*((*v.shape[:along], 1, *v.shape[along + 1 :]) for v in (x, indices)), op=op)
    return along, (*others[:along], indices.shape[along], *others[along + 1 :])


@composite(
    samples=[
        Sample(((3, 4), (3, 2)), {"axis": 1}, kinds=("f", "i4")),
        Sample(((3, 4), (5, 1)), {"axis": 0}, kinds=("f", "i3")),
        Sample(((2, 3), (4,)), {"axis": None}, kinds=("f", "i6")),
    ],
    error_samples=[(((3, 4), (3,)), {"axis": 0}, "take_along_axis needs as many axes")],
    reference=lambda x, indices, axis=-1: np.ravel(x)[indices] if axis is None
    else np.sum(np.moveaxis(np.eye(x.shape[axis])[indices], -1, 0) * np.expand_dims(np.moveaxis(x, axis, 0), axis + 1), 0),
    numpy={np.take_along_axis: None},
)  # fmt: skip
def take_along_axis(x: Any, indices: Any, axis: Any = -1) -> Any:
    """The entries along an axis at indices of their own for each row: what argsort and argmax give."""
    x, indices = _operand(x), _operand(indices)
    if axis is None:
        return take(x, indices)
    along, full = _along(x, indices, axis, "take_along_axis")
    wide = (*full[:along], x.shape[along], *full[along + 1 :])
    x = x if tuple(x.shape) == wide else broadcast_to(x, shape=wide)
    indices = indices if tuple(indices.shape) == full else broadcast_to(indices, shape=full)
    last = len(full) - 1
    if along == last:
        return take(x, indices, axis=last, batch=last)
    order = (*(a for a in range(last + 1) if a != along), along)
    out = take(transpose(x, axes=order), transpose(indices, axes=order), axis=last, batch=last)
    return transpose(out, axes=tuple(int(a) for a in np.argsort(order)))


def _operand(x: Any) -> Any:
    """A list or a number as an array; tensors and arrays as they are."""
    return x if hasattr(x, "ndim") else np.asarray(x)


@primitive(
    linear="joint",
    samples=[
        Sample(((3, 4), (3, 2), (3, 2)), {"axis": 1}, kinds=("f", "i4", "f")),
        Sample(((3, 4), (5, 1), (4,)), {"axis": 0}, kinds=("f", "i3", "f")),
        Sample(((4,), (3,), ()), {"axis": None}, kinds=("f", "i4", "f")),
    ],
    error_samples=[(((3, 4), (3,), ()), {"axis": 0}, "put_along_axis needs as many axes")],
    reference=lambda x, indices, values, axis=-1: _put(x, indices, values, axis),
)
def put_along_axis(x: Any, indices: Any, values: Any, *, axis: Any = -1) -> Any:
    """A copy of x with values written along an axis at indices of their own for each row; the last of several stays."""
    x, indices, values = np.asarray(x), np.asarray(indices), np.asarray(values)
    if axis is None:
        return put_along_axis.forward(x.reshape(-1), indices, values, axis=0).reshape(x.shape)
    along, full = _putting(x, indices, values, axis)
    _outside(indices, x.shape[along])
    out = np.array(x)
    np.put_along_axis(out, np.broadcast_to(indices, full), np.broadcast_to(values, full), along)
    return out


def _putting(x: Any, indices: Any, values: Any, axis: Any) -> tuple[int, tuple[int, ...]]:
    along, full = _along(x, indices, axis, "put_along_axis")
    if np.dtype(indices.dtype).kind not in "iu":
        raise DTypeError("put_along_axis needs integer indices", given=str(indices.dtype), hint="indices.astype(int)")
    if full[:along] + full[along + 1 :] != (*x.shape[:along], *x.shape[along + 1 :]):
        raise ShapeError(
            "put_along_axis writes into the shape of x",
            given=f"indices {tuple(indices.shape)}, x {tuple(x.shape)}",
            hint="but for the axis, indices have the lengths of x, or 1",
        )
    check_written(x, values, full)
    return along, full


def _put(x: Any, indices: Any, values: Any, axis: Any) -> Any:
    """`put_along_axis` entry by entry."""
    out = np.ravel(x).copy() if axis is None else x.copy()
    axis = 0 if axis is None else axis
    full = (*out.shape[:axis], indices.shape[axis], *out.shape[axis + 1 :])
    indices, values = np.broadcast_to(indices, full), np.broadcast_to(values, full)
    for place in np.ndindex(full):
        out[(*place[:axis], indices[place], *place[axis + 1 :])] = values[place]
    return out.reshape(x.shape)


@put_along_axis.vjp(0, text="ct with zeros at the indices")
def _put_vjp_x(ct: Any, _out: Any, _x: Any, indices: Any, _values: Any, *, axis: Any) -> Any:
    return put_along_axis(ct, indices, np.zeros((), ct.dtype), axis=axis)


@put_along_axis.vjp(2, text="the entries of ct at the indices, where no later value was written")
def _put_vjp_values(ct: Any, _out: Any, _x: Any, indices: Any, values_like: Any, *, axis: Any) -> Any:
    found = take_along_axis(ct, indices, axis=axis)
    numbers = np.arange(int(np.prod(found.shape, dtype=np.int64))).reshape(tuple(found.shape))
    slots = put_along_axis(np.zeros(tuple(ct.shape), np.int64), indices, numbers, axis=axis)
    last = equal(take_along_axis(slots, indices, axis=axis), numbers)
    return fold(where(last, found, np.zeros((), ct.dtype)), values_like.shape)


@put_along_axis.shaped
def _put_shape(x: Spec, indices: Spec, values: Spec, *, axis: Any) -> Spec:
    _putting(Spec((x.size,), x.dtype) if axis is None else x, indices, values, 0 if axis is None else axis)
    return x


@put_along_axis.jvp
def _put_jvp(tangents: tuple[Any, ...], _out: Any, x: Any, indices: Any, values: Any, *, axis: Any) -> Any:
    tx, _, tv = tangents
    tx = np.zeros(tuple(x.shape), x.dtype) if tx is None else tx
    return put_along_axis(tx, indices, np.zeros((), values.dtype) if tv is None else tv, axis=axis)


@put_along_axis.batching
def _put_batch(size: int, mapped: tuple[bool, ...], x: Any, indices: Any, values: Any, *, axis: Any) -> Any:
    members = [Spec(tuple(v.shape[m:]), np.dtype(v.dtype)) for v, m in zip((x, indices, values), mapped, strict=True)]
    shape, ndim = members[0].shape, members[0].ndim
    _put_shape(*members, axis=axis)
    if axis is None:
        x, ndim, axis = reshape(x, shape=(size, -1) if mapped[0] else (-1,)), 1, 0
    x = x if mapped[0] else broadcast_to(x, shape=(size, *x.shape))
    indices = indices if mapped[1] else reshape(indices, shape=(1, *indices.shape))
    if mapped[2] and members[2].ndim < ndim:
        values = reshape(values, shape=(size, *(1,) * (ndim - members[2].ndim), *members[2].shape))
    out = put_along_axis(x, indices, values, axis=one_axis(axis, ndim, op="put_along_axis") + 1)
    return reshape(out, shape=(size, *shape)) if tuple(out.shape[1:]) != shape else out
