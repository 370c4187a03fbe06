"""Indexing with indices that are known: reading entries, its transpose, adding into zeros, and writing entries.

An index that is itself computed (traced, or mapped by vmap) is in `positions.py`, by the ops of `picking.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import DTypeError, ShapeError
from lab.ops.comparisons import where
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, fold, reshape
from lab.shapes import Spec


def is_basic(index: Any) -> bool:
    """Whether an index is made of integers, slices, None and Ellipsis only, so that it selects a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        isinstance(p, int | np.integer | slice | None | type(Ellipsis)) and not isinstance(p, bool) for p in parts
    )


def _positions(shape: tuple[int, ...], index: Any) -> Any:
    """For each selected entry its number in the flattened array."""
    return _select(np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape), index)


def _select(x: Any, index: Any) -> Any:
    try:
        return x[index]
    except IndexError as why:
        raise ShapeError(
            "an index does not fit the array", given=f"{str(index)[:60]} into shape {x.shape}", hint=str(why)
        ) from None


@primitive(
    linear="each",
    samples=[
        Sample(((4, 3),), {"index": index})
        for index in [
            1,
            (slice(None, None, 2), -1),
            (slice(None, None, -1), slice(2, None, -2)),
            (..., None),
            ([0, 0, 2],),
            (np.array([[True, False, True]] * 4),),
            ([0, 3], slice(None), None),
        ]
    ],
    error_samples=[(((4, 3),), {"index": 7}, "an index does not fit the array")],
    reference=lambda x, index: np.ravel(x)[_positions(x.shape, index)],
)
def getitem(x: Any, *, index: Any = ...) -> Any:
    """The entries that an index selects: integers, slices, None, Ellipsis, integer or boolean arrays."""
    return _select(np.asarray(x), index)


@getitem.vjp(text="ct added into zeros at the index")
def _getitem_vjp(ct: Any, _out: Any, x_like: Any, *, index: Any) -> Any:
    return scatter_add(ct, index=index, shape=x_like.shape)


@getitem.batching
def _getitem_batch(size: int, _mapped: tuple[bool, ...], x: Any, *, index: Any) -> Any:
    return getitem(reshape(x, shape=(size, -1)), index=(slice(None), _positions(x.shape[1:], index)))


@primitive(
    linear="each",
    samples=[Sample(((3,),), {"index": 1, "shape": (4, 3)}), Sample(((3,),), {"index": ([0, 0, 2],), "shape": (4,)})],
    reference=lambda x, index, shape: np.bincount(
        np.ravel(_positions(shape, index)),
        np.ravel(np.broadcast_to(x, _positions(shape, index).shape)),
        int(np.prod(shape)),
    ).reshape(shape),
)
def scatter_add(x: Any, *, index: Any = ..., shape: Any = ()) -> Any:
    """Zeros of `shape` with x added at an index; entries selected twice receive both."""
    x = np.asarray(x)
    out = np.zeros(shape, x.dtype)
    if is_basic(index):
        out[index] = x
        return out
    rows = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if _is_whole(rows):  # a table of rows: its positions are few, and quickly made
        rows = np.asarray(rows)
        _select(np.broadcast_to(0, out.shape[:1]), rows)
        rows, x = np.where(rows < 0, rows + len(out), rows), np.broadcast_to(x, (*rows.shape, *out.shape[1:]))
        width = out[:1].size
        places = rows.astype(np.int64, copy=False).reshape(-1, 1) * width + np.arange(width)
    elif x.size * 8 < out.size and x.dtype.char != "e":
        np.add.at(out, index, x)  # better slow than with the numbers of all entries
        return out
    else:
        places = _positions(out.shape, index)
        x = np.broadcast_to(x, places.shape)
    add_at(out.reshape(-1), places.reshape(-1), x.reshape(-1))
    return out


def _getitem_rule(ct: Any, _out: Any, x_like: Any, *, index: Any) -> Any:
    """The rule of getitem on arrays: its op's forward, without the way there."""
    return scatter_add.forward(ct, index=index, shape=x_like.shape)


getitem.rules[0].eager = _getitem_rule  # type: ignore[union-attr]


def _is_whole(index: Any) -> bool:
    """Whether it is an array or a list of integers, so that it selects whole rows."""
    return isinstance(index, np.ndarray | list) and np.asarray(index).dtype.kind in "iu"


def add_at(flat: Any, positions: Any, values: Any) -> None:
    """Add values into a vector, one after the other; float16 is summed in float32.

    Along one axis NumPy's `add.at` is four times as fast as along several.
    """
    if flat.dtype.char == "e":
        wide = flat.astype(np.float32)
        np.add.at(wide, positions, values.astype(np.float32))
        flat[...] = wide
    else:
        np.add.at(flat, positions, values)


@scatter_add.vjp(text="the entries of ct at the index")
def _scatter_vjp(ct: Any, _out: Any, _x: Any, *, index: Any, shape: Any) -> Any:
    return getitem(ct, index=index)


@scatter_add.shaped
def _scatter_shape(x: Spec, *, index: Any, shape: Any) -> Spec:
    return Spec(tuple(shape), x.dtype)


@scatter_add.batching
def _scatter_batch(size: int, _mapped: tuple[bool, ...], x: Any, *, index: Any, shape: Any) -> Any:
    n = int(np.prod(shape, dtype=np.int64))
    return reshape(
        scatter_add(x, index=(slice(None), _positions(tuple(shape), index)), shape=(size, n)), shape=(size, *shape)
    )


def _written(x: Any, values: Any, index: Any) -> Any:
    """`setitem` entry by entry."""
    flat, places = np.ravel(x).tolist(), _positions(x.shape, index)
    for place, value in zip(np.ravel(places), np.ravel(np.broadcast_to(values, places.shape)), strict=True):
        flat[place] = value
    return np.reshape(np.asarray(flat, x.dtype), x.shape)


@primitive(
    linear="joint",
    samples=[
        Sample(((4, 3), (3,)), {"index": slice(1, 3)}),
        Sample(((4, 3), (3, 3)), {"index": ([0, 0, 2],)}),
        Sample(((4, 3), ()), {"index": (np.array([[True, False, True]] * 4),)}),
    ],
    error_samples=[
        (((4, 3), (2,)), {"index": 1}, "values do not fit where they are written"),
        (((4, 3), ()), {"index": 4}, "an index does not fit the array"),
    ],
    reference=_written,
)
def setitem(x: Any, values: Any, *, index: Any = ...) -> Any:
    """A copy of x with values written at an index; where it selects an entry twice the last one stays."""
    check_written(x, values, np.shape(_select(np.broadcast_to(0, np.shape(x)), index)))
    out = np.array(x)
    out[index] = values
    return out


def check_written(x: Any, values: Any, wanted: tuple[int, ...], word: str = "written") -> None:
    """Refuse values that do not broadcast to the selected entries, or whose kind of numbers x cannot hold.

    Raises:
        ShapeError, DTypeError: so it is.
    """
    shape = tuple(np.shape(values))
    fits = len(shape) <= len(wanted) and all(a in (1, b) for a, b in zip(shape[::-1], wanted[::-1], strict=False))
    if not fits:
        raise ShapeError(
            f"values do not fit where they are {word}",
            given=f"{shape} into {wanted} of {tuple(np.shape(x))}",
            hint="values broadcast to what x[index] has",
        )
    source, target, order = np.result_type(values.dtype), x.dtype, "biuf"
    if order.index(source.kind) > max(order.index(target.kind), target.kind in "iu" and 2):
        raise DTypeError(
            f"{source} values do not fit into {target}",
            given=f"values of {source} {word} into {target}",
            hint="make x with dtype=float, or convert first: values.astype(int)",
        )


def _last(shape: tuple[int, ...], index: Any) -> Any:
    """For each entry that an index selects, whether no later one is in the same place; None if none is."""
    if is_basic(index):
        return None
    positions = _positions(shape, index)
    numbers = np.arange(positions.size).reshape(positions.shape)
    slots = np.zeros(int(np.prod(shape, dtype=np.int64)), np.int64)
    slots[positions.reshape(-1)] = numbers.reshape(-1)
    last = slots[positions] == numbers
    return None if last.all() else last


@setitem.vjp(0, text="ct with zeros at the index")
def _setitem_vjp_x(ct: Any, _out: Any, _x: Any, values_like: Any, *, index: Any) -> Any:
    return setitem(ct, np.zeros((), values_like.dtype), index=index)


@setitem.vjp(1, text="the entries of ct at the index, where no later value was written")
def _setitem_vjp_values(ct: Any, _out: Any, x_like: Any, values_like: Any, *, index: Any) -> Any:
    found, last = getitem(ct, index=index), _last(x_like.shape, index)
    return fold(found if last is None else where(last, found, np.zeros((), ct.dtype)), values_like.shape)


@setitem.shaped
def _setitem_shape(x: Spec, values: Spec, *, index: Any) -> Spec:
    check_written(x, values, np.shape(_select(np.broadcast_to(0, x.shape), index)))
    return Spec(x.shape, x.dtype)


@setitem.batching
def _setitem_batch(size: int, mapped: tuple[bool, ...], x: Any, values: Any, *, index: Any) -> Any:
    shape = tuple(x.shape[1:]) if mapped[0] else tuple(x.shape)
    places = _positions(shape, index)
    member = Spec(tuple(values.shape[mapped[1] :]), np.dtype(values.dtype))
    check_written(Spec(shape, np.dtype(x.dtype)), member, places.shape)
    if mapped[1]:
        values = reshape(values, shape=(size, *(1,) * (places.ndim - member.ndim), *member.shape))
    full = x if mapped[0] else broadcast_to(x, shape=(size, *shape))
    out = setitem(reshape(full, shape=(size, -1)), values, index=(slice(None), places))
    return reshape(out, shape=(size, *shape))
