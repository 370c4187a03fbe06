"""Indices that hold tensors, also traced and mapped ones, and copies with entries replaced or added to.

One tensor of integers among slices is a `take`; any other mix becomes the numbers of the selected entries in the
flattened array, computed by ops, in the order of axes that NumPy gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ConcretizationError, DTypeError, ShapeError, UnsupportedError
from lab.ops.along import put_along_axis
from lab.ops.arithmetic import add, multiply
from lab.ops.composite import composite
from lab.ops.index import check_written, getitem, scatter_add, setitem
from lab.ops.picking import segment_sum, take
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, cast, reshape
from lab.shapes import Spec


@primitive(
    samples=[Sample(((2, 3),), {"n": 5}, kinds=("i5",))],
    error_samples=[(((3,),), {"n": 2}, "an index is made of integers")],
    reference=lambda i, n: np.arange(n)[i],
)
def wrap_index(i: Any, *, n: int = 1) -> Any:
    """Indices of an axis of length n counted from the front, -1 as n - 1; one outside is refused."""
    i = _whole(np.asarray(i))
    if i.size and (i.min() < -n or i.max() >= n):
        raise ShapeError(
            "an index does not fit the array",
            given=f"indices {i.min()} to {i.max()}, an axis of length {n}",
            hint=f"indices are 0 to {n - 1}, or -1 from the end" if n else "an empty axis has no entries",
        )
    return np.where(i < 0, i + n, i).astype(np.int64, copy=False)


@wrap_index.shaped
def _wrap_shape(i: Spec, *, n: int) -> Spec:
    return Spec(_whole(i).shape, np.dtype(np.int64))


@wrap_index.batching
def _wrap_batch(_size: int, _mapped: tuple[bool, ...], i: Any, *, n: int) -> Any:
    return wrap_index(i, n=n)


def _whole(i: Any) -> Any:
    if np.dtype(i.dtype).kind not in "iu":
        raise DTypeError("an index is made of integers", given=f"an index of {i.dtype}", hint="index.astype(int)")
    return i


# --- what an index consists of ---------------------------------------------------------------------------------------


def is_tensor(part: Any) -> bool:
    """Whether a part of an index is a tensor: this room knows it by what it has, not by its class."""
    return hasattr(part, "dtype") and not isinstance(part, np.ndarray | np.generic)


def _inside(x: Any) -> bool:
    """Whether it is a value of a transform."""
    return hasattr(x, "interp")


def settled(index: Any, x: Any) -> tuple[Any, bool]:
    """An index with the tensors in it made arrays, and whether all could be.

    Those stay tensors that are computed inside a transform, or stand beside an x that is: a graph must read them again.

    Raises:
        ConcretizationError: a mask whose entries are not known.
    """
    parts = index if isinstance(index, tuple) else (index,)
    plain = [_settled(p, x) if is_tensor(p) else p for p in parts]
    found = tuple(plain) if isinstance(index, tuple) else plain[0]
    return found, not any(map(is_tensor, plain))


def _settled(part: Any, x: Any) -> Any:
    if np.dtype(part.dtype).kind != "b":
        return part if _inside(part) or _inside(x) else part.value
    if _inside(part):
        raise ConcretizationError(
            "how many entries a mask selects is not known inside a transform",
            given=f"a mask {tuple(part.shape)} in {part.interp.word} as an index",
            hint="lab.where(mask, x, 0.0) keeps the shape; or make the mask outside",
        )
    return part.value


def _expanded(index: Any, ndim: int) -> list[Any]:
    """A part for each axis, and None for new ones: no Ellipsis, no masks.

    Raises:
        ShapeError: more parts than axes.
    """
    parts: list[Any] = []
    for p in index if isinstance(index, tuple) else (index,):
        array = np.asarray(p) if isinstance(p, list | np.ndarray | bool | np.bool_) else p
        if isinstance(array, np.ndarray) and array.dtype == bool:
            if not array.ndim:
                raise UnsupportedError(
                    "True and False do not index beside a traced index", given=repr(p), hint="None makes a new axis"
                )
            parts += array.nonzero()
        else:
            parts.append(array)
    rest = ndim - sum(p is not None and p is not Ellipsis for p in parts)
    where = next((k for k, p in enumerate(parts) if p is Ellipsis), len(parts))
    if rest < 0 or sum(p is Ellipsis for p in parts) > 1:
        raise ShapeError(
            "an index does not fit the array",
            given=f"{len(parts)} parts, an array of {ndim} axes",
            hint="one part for each axis, and ... once",
        )
    return [*parts[:where], *[slice(None)] * rest, *parts[where + 1 :]]


def _is_slice(part: Any) -> bool:
    return part is None or isinstance(part, slice)


def select(x: Any, index: Any) -> Any:
    """x[index] with tensors in the index."""
    plain, known = settled(index, x)
    if known:
        return getitem(x, index=plain)
    parts = _expanded(plain, x.ndim)
    picked = [k for k, p in enumerate(parts) if not _is_slice(p)]
    if len(picked) == 1:
        (k,) = picked
        others = (*parts[:k], slice(None), *parts[k + 1 :])
        whole = all(isinstance(p, slice) and p == slice(None) for p in others)
        return take(x if whole else getitem(x, index=others), _whole(parts[k]), axis=k)
    return take(reshape(x, shape=(-1,)), _positions(tuple(x.shape), parts), axis=0)


def _positions(shape: tuple[int, ...], parts: list[Any]) -> Any:
    """The number of each selected entry in the flattened array, an integer tensor in the shape of the selection."""
    strides = [int(np.prod(shape[a + 1 :], dtype=np.int64)) for a in range(len(shape))]
    at_zero = tuple(np.zeros(tuple(p.shape), np.int64) if is_tensor(p) else p for p in parts)
    numbers = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    for a, p in enumerate(q for q in parts if q is not None):
        if is_tensor(p) and not shape[a]:
            wrap_index(np.zeros(1, np.int64), n=0)
    try:
        total: Any = numbers[at_zero]
    except IndexError as why:
        raise ShapeError("an index does not fit the array", given=f"into shape {shape}", hint=str(why)) from None
    picked = [k for k, p in enumerate(parts) if not _is_slice(p)]
    together = picked == list(range(picked[0], picked[-1] + 1))  # else NumPy puts their axes first
    ndim = len(np.broadcast_shapes(*(np.shape(at_zero[k]) for k in picked)))
    behind = total.ndim - ndim - (picked[0] if together else 0)
    axis = 0
    for p in parts:
        if is_tensor(p):
            steps = multiply(wrap_index(_whole(p), n=shape[axis]), strides[axis])
            total = add(total, reshape(steps, shape=(*p.shape, *(1,) * behind)))
        axis += p is not None
    return total


# --- copies with entries replaced or added to ------------------------------------------------------------------------


def _wide(values: Any, positions: Any) -> Any:
    """Values for each of the positions, in one row."""
    shape = tuple(positions.shape)
    return reshape(values if tuple(values.shape) == shape else broadcast_to(values, shape=shape), shape=(-1,))


def _prepared(x: Any, values: Any, index: Any, word: str) -> tuple[Any, Any, Any, Any]:
    """Operands that have a shape, the index if it is known, else the positions."""
    x, values = (v if hasattr(v, "ndim") else np.asarray(v) for v in (x, values))
    plain, known = settled(index, x)
    if known:
        return x, values, plain, None
    positions = _positions(tuple(x.shape), _expanded(plain, x.ndim))
    check_written(x, values, tuple(positions.shape), word)
    return x, values, None, positions


def _added(x: Any, values: Any, index: Any) -> Any:
    """`index_add` in NumPy."""
    out = np.array(x)
    np.add.at(out, index, values)
    return out


@composite(
    samples=[
        Sample(((4, 3), (3,)), {"index": 1}),
        Sample(((4, 3), (2, 2)), {"index": (slice(None, None, 2), [2, 0])}),
    ],
    error_samples=[(((4, 3), (2,)), {"index": 1}, "values do not fit where they are written")],
    reference=setitem.reference or _added,
)
def index_update(x: Any, values: Any, index: Any = ...) -> Any:
    """A copy of x with values at an index: `x[index] = values` with gradients to both; the last of several stays.

    The index holds what x[index] takes, tensors included. (JAX writes x.at[index].set(values), torch index_put.)
    """
    x, values, plain, positions = _prepared(x, values, index, "written")
    if positions is None:
        return setitem(x, values, index=plain)
    out = put_along_axis(reshape(x, shape=(-1,)), reshape(positions, shape=(-1,)), _wide(values, positions), axis=0)
    return reshape(out, shape=tuple(x.shape))


@composite(
    samples=[
        Sample(((4, 3), (3,)), {"index": (slice(1, 3),)}),
        Sample(((4,), (3,)), {"index": ([0, 0, -1],)}),
    ],
    error_samples=[(((4, 3), (2,)), {"index": 1}, "values do not fit where they are added")],
    reference=_added,
)
def index_add(x: Any, values: Any, index: Any = ...) -> Any:
    """A copy of x with values added at an index; an entry that it selects twice receives both (`np.add.at`)."""
    x, values, plain, positions = _prepared(x, values, index, "added")
    shape, dtype = tuple(x.shape), x.dtype
    if positions is None:
        wanted = np.broadcast_to(0, shape)
        try:
            selected = wanted[plain].shape
        except IndexError as why:
            raise ShapeError("an index does not fit the array", given=f"into shape {shape}", hint=str(why)) from None
        check_written(x, values, selected, "added")
        values = values if tuple(values.shape) == selected else broadcast_to(values, shape=selected)
        values = values if values.dtype == dtype else cast(values, dtype=dtype)
        return add(x, scatter_add(values, index=plain, shape=shape))
    values = values if values.dtype == dtype else cast(values, dtype=dtype)
    size = int(np.prod(shape, dtype=np.int64))
    return add(x, reshape(segment_sum(_wide(values, positions), reshape(positions, shape=(-1,)), n=size), shape=shape))
