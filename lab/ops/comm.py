"""Collectives as ops: they meet the other members of a named axis (`members.py`), and differentiate.

The rule of each one is the collective that sends cotangents back the other way, so in a rank's program all ranks go
backward together, too. The rules of the batch axis say in a few lines what a run on ranks must give, bit for bit: sums
are added in the order of members.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import UnsupportedError
from lab.ops.blocks import cut, cut_shape, front_to, require_root, swapped
from lab.ops.comparisons import where
from lab.ops.index import getitem
from lab.ops.members import axis_size, met
from lab.ops.pairing import axis_index, rows_of, spec_of
from lab.ops.primitive import primitive
from lab.ops.reduce import max_, min_
from lab.ops.rows import add_rows, require_reduction
from lab.ops.shape import reshape
from lab.shapes import Spec, one_axis


def _reduced(rows: Any, op: str) -> Any:
    if op in {"max", "min"}:
        return (max_ if op == "max" else min_)(rows, axis=0)
    total = add_rows(rows)
    return total / rows.shape[0] if op == "mean" else total


def _require_linear(word: str, op: str) -> None:
    if op in {"max", "min"}:
        raise UnsupportedError(
            f"{word} has no derivative with op={op!r}",
            given="several members may have the largest or the smallest entry, and none knows of the others' ties",
            hint=f"lab.{op}(lab.all_gather(x, axis_name=...), axis=0) has one: ties share it",
        )


# --- all_reduce -------------------------------------------------------------------------------------------------------


@primitive(linear="each", collective="same")
def all_reduce(x: Any, *, axis_name: str = "", op: str = "sum") -> Any:
    """The sum of x over all members of the axis, or its mean, max or min; every member gets it.

    On a batch axis sums are added in the order of members. A max or a min has no derivative.
    """
    require_reduction("all_reduce", op, x)
    return met("all_reduce", axis_name).all_reduce(x, op)


# Every member's output depends on this member's input, so what comes back is the sum of all members' cotangents.
# For a loss that is itself replicated this counts it once per member, as in JAX.
@all_reduce.vjp(text="all_reduce(ct)")
def _all_reduce_vjp(ct: Any, _out: Any, _x: Any, *, axis_name: str, op: str) -> Any:
    _require_linear("all_reduce", op)
    return all_reduce(ct, axis_name=axis_name, op=op)


@all_reduce.jvp
def _all_reduce_jvp(tangents: tuple[Any, ...], _out: Any, _x: Any, *, axis_name: str, op: str) -> Any:
    _require_linear("all_reduce", op)
    return all_reduce(tangents[0], axis_name=axis_name, op=op)


@all_reduce.shaped
def _all_reduce_shape(x: Any, *, axis_name: str, op: str) -> Spec:
    require_reduction("all_reduce", op, x)
    return spec_of(x)


@all_reduce.batching
def _all_reduce_batch(size: int, mapped: tuple[bool, ...], x: Any, *, axis_name: str, op: str) -> Any:
    require_reduction("all_reduce", op, x)
    return _reduced(rows_of(size, mapped, x), op)


# --- all_gather -------------------------------------------------------------------------------------------------------


@primitive(linear="each", collective="same")
def all_gather(x: Any, *, axis: int = 0, axis_name: str = "", tiled: bool = False) -> Any:
    """The x of all members, in their order, stacked along a new axis; tiled: joined along one that x has."""
    stacked = met("all_gather", axis_name).all_gather(x)
    return front_to(stacked, _place("all_gather", x, axis, tiled), tiled)


def _place(word: str, x: Any, axis: int, tiled: bool) -> int:
    return one_axis(axis, np.ndim(x) + (not tiled), op=word)


@all_gather.vjp(text="reduce_scatter(ct)")
def _all_gather_vjp(ct: Any, _out: Any, x_like: Any, *, axis: int, axis_name: str, tiled: bool) -> Any:
    back = reduce_scatter(ct, axis=axis, axis_name=axis_name)
    return back if tiled else reshape(back, shape=tuple(x_like.shape))


@all_gather.shaped
def _all_gather_shape(x: Any, *, axis: int, axis_name: str, tiled: bool) -> Spec:
    x, size = spec_of(x), axis_size(axis_name)
    at = one_axis(axis, x.ndim + (not tiled), op="all_gather")
    shape = (*x.shape[:at], x.shape[at] * size, *x.shape[at + 1 :]) if tiled else (*x.shape[:at], size, *x.shape[at:])
    return Spec(shape, x.dtype)


@all_gather.batching
def _all_gather_batch(
    size: int, mapped: tuple[bool, ...], x: Any, *, axis: int, axis_name: str, tiled: bool
) -> Any:
    rows = rows_of(size, mapped, x)
    return front_to(rows, one_axis(axis, rows.ndim - tiled, op="all_gather"), tiled)


# --- reduce_scatter ---------------------------------------------------------------------------------------------------


@primitive(linear="each", collective="own")
def reduce_scatter(x: Any, *, axis: int = 0, axis_name: str = "", op: str = "sum") -> Any:
    """What all_reduce gives, cut along an axis: each member gets a block of it, in the order of members."""
    require_reduction("reduce_scatter", op, x)
    members, (x, at) = met("reduce_scatter", axis_name), _cut_first("reduce_scatter", x, axis, axis_name)
    return np.moveaxis(members.reduce_scatter(x, op), 0, at)


def _cut_first(word: str, x: Any, axis: int, axis_name: str) -> tuple[Any, int]:
    """The operand with the axis that is cut in front, and where that was."""
    at, _ = cut_shape(word, np.shape(x), axis, axis_size(axis_name))
    return np.ascontiguousarray(np.moveaxis(x, at, 0)), at


@reduce_scatter.vjp(text="all_gather(ct)")
def _reduce_scatter_vjp(ct: Any, _out: Any, _x: Any, *, axis: int, axis_name: str, op: str) -> Any:
    _require_linear("reduce_scatter", op)
    back = all_gather(ct, axis=axis, axis_name=axis_name, tiled=True)
    return back / axis_size(axis_name) if op == "mean" else back


@reduce_scatter.jvp
def _reduce_scatter_jvp(tangents: tuple[Any, ...], _out: Any, _x: Any, *, axis: int, axis_name: str, op: str) -> Any:
    _require_linear("reduce_scatter", op)
    return reduce_scatter(tangents[0], axis=axis, axis_name=axis_name, op=op)


@reduce_scatter.shaped
def _reduce_scatter_shape(x: Any, *, axis: int, axis_name: str, op: str) -> Spec:
    require_reduction("reduce_scatter", op, x)
    x = spec_of(x)
    return Spec(cut_shape("reduce_scatter", x.shape, axis, axis_size(axis_name))[1], x.dtype)


@reduce_scatter.batching
def _reduce_scatter_batch(
    size: int, mapped: tuple[bool, ...], x: Any, *, axis: int, axis_name: str, op: str
) -> Any:
    require_reduction("reduce_scatter", op, x)
    return cut("reduce_scatter", _reduced(rows_of(size, mapped, x), op), axis, size)


# --- those that only move ---------------------------------------------------------------------------------------------


@primitive(linear="each", collective="same")
def broadcast(x: Any, *, root: int = 0, axis_name: str = "") -> Any:
    """What member `root` has as x; every member gets it."""
    members = met("broadcast", axis_name)
    return members.broadcast(x, require_root("broadcast", root, axis_size(axis_name)))


# What all members lose goes to the root; an all-reduce carries it, of which the others forget what they get.
@broadcast.vjp(text="all_reduce(ct) at the root, 0 elsewhere")
def _broadcast_vjp(ct: Any, _out: Any, _x: Any, *, root: int, axis_name: str) -> Any:
    total, here = all_reduce(ct, axis_name=axis_name), axis_index(axis_name)
    return where(here == root % axis_size(axis_name), total, np.zeros((), ct.dtype))


@broadcast.shaped
def _broadcast_shape(x: Any, *, root: int, axis_name: str) -> Spec:
    require_root("broadcast", root, axis_size(axis_name))
    return spec_of(x)


@broadcast.batching
def _broadcast_batch(size: int, mapped: tuple[bool, ...], x: Any, *, root: int, axis_name: str) -> Any:
    return getitem(rows_of(size, mapped, x), index=require_root("broadcast", root, size))


@primitive(linear="each", collective="own")
def all_to_all(x: Any, *, axis: int = 0, axis_name: str = "") -> Any:
    """Block r of an axis goes to member r; what comes from member r is block r of the result: a transposition."""
    members, (x, at) = met("all_to_all", axis_name), _cut_first("all_to_all", x, axis, axis_name)
    return np.moveaxis(members.all_to_all(x), 0, at)


@all_to_all.vjp(text="all_to_all(ct)")
def _all_to_all_vjp(ct: Any, _out: Any, _x: Any, *, axis: int, axis_name: str) -> Any:
    return all_to_all(ct, axis=axis, axis_name=axis_name)


@all_to_all.shaped
def _all_to_all_shape(x: Any, *, axis: int, axis_name: str) -> Spec:
    spec = spec_of(x)
    cut_shape("all_to_all", spec.shape, axis, axis_size(axis_name))
    return spec


@all_to_all.batching
def _all_to_all_batch(size: int, mapped: tuple[bool, ...], x: Any, *, axis: int, axis_name: str) -> Any:
    return swapped("all_to_all", rows_of(size, mapped, x), axis, size)
