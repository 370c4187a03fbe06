"""Collectives that go from member to member: what one has comes to another; and which member it is that asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.ops.blocks import require_pairs
from lab.ops.comparisons import where
from lab.ops.index import getitem
from lab.ops.members import Pairs, axis_size, met
from lab.ops.primitive import primitive
from lab.ops.shape import broadcast_to
from lab.shapes import Spec


def spec_of(x: Any) -> Spec:
    """Shape and dtype of an operand, which may be a number."""
    if isinstance(x, Spec):
        return x
    array = x if hasattr(x, "dtype") else np.asarray(x)
    return Spec(tuple(array.shape), array.dtype)


def rows_of(size: int, mapped: tuple[bool, ...], x: Any) -> Any:
    """What each member has, as rows: of what all share a row for each, too, or sums would round in another way."""
    return x if mapped[0] else broadcast_to(x, shape=(size, *spec_of(x).shape))


@primitive(linear="each", collective="own")
def permute(x: Any, *, pairs: Any = (), axis_name: str = "") -> Any:
    """For each (from, to) of `pairs` the x of one member goes to another; who gets none has zeros."""
    return met("permute", axis_name).permute(x, require_pairs(pairs, axis_size(axis_name)))


@permute.vjp(text="permute(ct), back")
def _permute_vjp(ct: Any, _out: Any, _x: Any, *, pairs: Any, axis_name: str) -> Any:
    return permute(ct, pairs=tuple((dst, src) for src, dst in pairs), axis_name=axis_name)


@permute.shaped
def _permute_shape(x: Any, *, pairs: Any, axis_name: str) -> Spec:
    require_pairs(pairs, axis_size(axis_name))
    return spec_of(x)


@permute.batching
def _permute_batch(size: int, mapped: tuple[bool, ...], x: Any, *, pairs: Any, axis_name: str) -> Any:
    sources = {dst: src for src, dst in require_pairs(pairs, size)}
    rows = rows_of(size, mapped, x)
    moved = getitem(rows, index=np.array([sources.get(dst, 0) for dst in range(size)]))
    if len(sources) == size:
        return moved
    gets = np.array([dst in sources for dst in range(size)]).reshape(size, *(1,) * (rows.ndim - 1))
    return where(gets, moved, np.zeros((), rows.dtype))


@primitive(linear="each", collective="own")
def shift(x: Any, *, by: int = 1, axis_name: str = "") -> Any:
    """The x of the member `by` places before, around the circle: with 1 everybody gives to the next."""
    return met("shift", axis_name).permute(x, circle(by, axis_size(axis_name)))


def circle(by: int, size: int) -> Pairs:
    """The pairs of a shift.

    Example:
        >>> circle(1, 3), circle(-1, 3)
        (((0, 1), (1, 2), (2, 0)), ((0, 2), (1, 0), (2, 1)))
    """
    return tuple((src, (src + by) % size) for src in range(size))


@shift.vjp(text="shift(ct), back")
def _shift_vjp(ct: Any, _out: Any, _x: Any, *, by: int, axis_name: str) -> Any:
    return shift(ct, by=-by, axis_name=axis_name)


@shift.shaped
def _shift_shape(x: Any, *, by: int, axis_name: str) -> Spec:
    axis_size(axis_name)
    return spec_of(x)


@shift.batching
def _shift_batch(size: int, mapped: tuple[bool, ...], x: Any, *, by: int, axis_name: str) -> Any:
    return getitem(rows_of(size, mapped, x), index=np.arange(-by, size - by) % size)


@primitive(collective="own")
def member_index(x: Any, *, axis_name: str = "") -> Any:
    """The number of the member along the axis, from 0, as a whole number of x's dtype; x itself is not read."""
    return np.asarray(met("axis_index", axis_name).index, spec_of(x).dtype)


@member_index.shaped
def _member_index_shape(x: Any, *, axis_name: str) -> Spec:
    axis_size(axis_name)
    return Spec((), spec_of(x).dtype)


@member_index.batching
def _member_index_batch(size: int, _mapped: tuple[bool, ...], x: Any, *, axis_name: str) -> Any:
    return np.arange(size, dtype=spec_of(x).dtype)


_NONE = np.zeros((), np.int64)


def axis_index(axis_name: str) -> Any:
    """Which member of the axis this is, from 0: a value, for members run the same code.

    Raises:
        TransformError: no enclosing vmap has this axis, and no rank has bound it.

    Example:
        >>> import lab
        >>> lab.vmap(lambda x: x + lab.axis_index("i"), axis_name="i")(lab.tensor([0.5, 0.5]))
        tensor([0.5, 1.5])
    """
    return member_index(_NONE, axis_name=axis_name)
