"""Reading and writing along an axis with an index of its own for each row: what argsort and argmax give."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import DTypeError, ShapeError
from lab.ops.comparisons import equal, where
from lab.ops.composite import composite
from lab.ops.index import check_written
from lab.ops.picking import operand, refuse_outside, take
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, fold, reshape, transpose
from lab.shapes import Spec, broadcast, one_axis


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
    reference=lambda x, indices, axis=-1: np.take_along_axis(x, indices, axis),
    numpy={np.take_along_axis: None},
)  # fmt: skip
def take_along_axis(x: Any, indices: Any, axis: Any = -1) -> Any:
    """The entries along an axis at indices of their own for each row: what argsort and argmax give."""
    x, indices = operand(x), operand(indices)
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


def _put(x: Any, indices: Any, values: Any, axis: Any = -1) -> Any:
    """`put_along_axis` entry by entry."""
    out = np.ravel(x).copy() if axis is None else x.copy()
    axis = 0 if axis is None else axis
    full = (*out.shape[:axis], indices.shape[axis], *out.shape[axis + 1 :])
    indices, values = np.broadcast_to(indices, full), np.broadcast_to(values, full)
    for place in np.ndindex(full):
        out[(*place[:axis], indices[place], *place[axis + 1 :])] = values[place]
    return out.reshape(x.shape)


@primitive(
    linear="joint",
    samples=[
        Sample(((3, 4), (3, 2), (3, 2)), {"axis": 1}, kinds=("f", "i4", "f")),
        Sample(((3, 4), (5, 1), (4,)), {"axis": 0}, kinds=("f", "i3", "f")),
        Sample(((4,), (3,), ()), {"axis": None}, kinds=("f", "i4", "f")),
    ],
    error_samples=[(((3, 4), (3,), ()), {"axis": 0}, "put_along_axis needs as many axes")],
    reference=_put,
)
def put_along_axis(x: Any, indices: Any, values: Any, *, axis: Any = -1) -> Any:
    """A copy of x with values written along an axis at indices of their own for each row; the last of several stays."""
    x, indices, values = np.asarray(x), np.asarray(indices), np.asarray(values)
    if axis is None:
        return put_along_axis.forward(x.reshape(-1), indices, values, axis=0).reshape(x.shape)
    along, full = _putting(x, indices, values, axis)
    refuse_outside(indices, x.shape[along])
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


@put_along_axis.vjp(0, text="ct with zeros at the indices")
def _put_vjp_x(ct: Any, _out: Any, _x: Any, indices: Any, values_like: Any, *, axis: Any) -> Any:
    return put_along_axis(ct, indices, np.zeros((), values_like.dtype), axis=axis)


@put_along_axis.vjp(2, text="the entries of ct at the indices, where no later value was written")
def _put_vjp_values(ct: Any, _out: Any, x_like: Any, indices: Any, values_like: Any, *, axis: Any) -> Any:
    found = take_along_axis(ct, indices, axis=axis)
    numbers = np.arange(int(np.prod(found.shape, dtype=np.int64))).reshape(tuple(found.shape))
    slots = put_along_axis(np.zeros(x_like.shape, np.int64), indices, numbers, axis=axis)
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
