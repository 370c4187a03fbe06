"""Entries in order: sort, argsort, topk. Equal entries keep their order; a gradient follows its entry."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError
from lab.ops.along import put_along_axis, take_along_axis
from lab.ops.composite import composite
from lab.ops.index import getitem
from lab.ops.primitive import PRIMITIVES, Op, primitive
from lab.ops.sample import Sample
from lab.ops.shape import reshape
from lab.shapes import Spec, one_axis

SAMPLES = [Sample(((5,),)), Sample(((4, 3),), {"axis": 0}), Sample(((2, 3),), {"axis": None, "descending": True})]


def _operand(x: Any, axis: Any, op: str) -> tuple[Any, int]:
    x = np.asarray(x)
    return (x.reshape(-1), 0) if axis is None else (x, one_axis(axis, x.ndim, op=op))


def _of_numpy(name: str) -> Any:
    """NumPy's call: any kind of sort gives what the stable one does."""

    def call(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
        return PRIMITIVES[name](a, axis=axis)

    return call


def _ordered(op: Op) -> None:
    """The shape and batching rules of what has the shape of x."""

    @op.shaped
    def shape(x: Spec, *, axis: Any, descending: bool) -> Spec:
        if axis is not None:
            one_axis(axis, x.ndim, op=op.name)
        return Spec((x.size,) if axis is None else x.shape, np.dtype(np.intp) if op.name == "argsort" else x.dtype)

    @op.batching
    def batch(size: int, _mapped: tuple[bool, ...], x: Any, *, axis: Any, descending: bool) -> Any:
        if axis is None:
            return op(reshape(x, shape=(size, -1)), axis=1, descending=descending)
        return op(x, axis=one_axis(axis, x.ndim - 1, op=op.name) + 1, descending=descending)


@primitive(
    samples=SAMPLES,
    error_samples=[(((3,),), {"axis": 1}, "argsort over an axis")],
    reference=lambda x, axis=-1, descending=False: np.apply_along_axis(
        lambda row: sorted(range(len(row)), key=lambda i: -row[i] if descending else row[i]),
        axis or 0, np.ravel(x) if axis is None else x),
    numpy={np.argsort: _of_numpy("argsort")},
    method=True,
)  # fmt: skip
def argsort(x: Any, *, axis: Any = -1, descending: bool = False) -> Any:
    """Where the smallest entry along an axis is, the next, and so on; equal entries in their order, nan last."""
    x, axis = _operand(x, axis, "argsort")
    if not descending:
        return _order(x, axis)
    return x.shape[axis] - 1 - np.flip(_order(np.flip(x, axis), axis), axis)  # keeps the order of equals


def _order(x: Any, axis: int) -> Any:
    """A stable argsort; of floats that all differ any sort is one, and NumPy has one that takes a third of the time."""
    if x.dtype.kind == "f":
        order = np.argsort(x, axis=axis)
        found = np.moveaxis(np.take_along_axis(x, order, axis), axis, -1)
        if not (found[..., 1:] == found[..., :-1]).any() and not np.isnan(found[..., -1:]).any():
            return order
    return np.argsort(x, axis=axis, kind="stable")


@primitive(
    samples=SAMPLES,
    error_samples=[(((3,),), {"axis": 1}, "sort over an axis")],
    reference=lambda x, axis=-1, descending=False: np.apply_along_axis(
        lambda row: sorted(row, reverse=descending), axis or 0, np.ravel(x) if axis is None else x),
    numpy={np.sort: _of_numpy("sort")},
)  # fmt: skip
def sort(x: Any, *, axis: Any = -1, descending: bool = False) -> Any:
    """The entries along an axis from the smallest to the largest; without an axis of the flattened array."""
    x, axis = _operand(x, axis, "sort")
    out = np.sort(x, axis=axis)
    return np.flip(out, axis) if descending else out


@sort.vjp(text="ct back to where each entry came from")
def _sort_vjp(ct: Any, _out: Any, x: Any, *, axis: Any, descending: bool) -> Any:
    order = argsort(x, axis=axis, descending=descending)
    found = put_along_axis(np.zeros(tuple(ct.shape), ct.dtype), order, ct, axis=0 if axis is None else axis)
    return reshape(found, shape=tuple(x.shape)) if axis is None else found


@sort.jvp
def _sort_jvp(tangents: tuple[Any, ...], _out: Any, x: Any, *, axis: Any, descending: bool) -> Any:
    return take_along_axis(tangents[0], argsort(x, axis=axis, descending=descending), axis=axis)


for _op in (argsort, sort):
    _ordered(_op)


def _top(x: Any, k: int, axis: int = -1, largest: bool = True) -> tuple[Any, Any]:
    """`topk` in NumPy."""
    order = np.argsort(-x if largest else x, axis=axis, kind="stable").take(range(k), axis=axis)
    return np.take_along_axis(x, order, axis), order


@composite(
    samples=[Sample(((5,),), {"k": 2}), Sample(((4, 3),), {"k": 3, "axis": 0, "largest": False})],
    error_samples=[(((3,),), {"k": 4}, "topk of more entries"), (((3,),), {"k": 1, "axis": 1}, "topk over an axis")],
    reference=_top,
    method=True,
)
def topk(x: Any, k: Any = 1, axis: int = -1, largest: bool = True) -> tuple[Any, Any]:
    """The k largest entries along an axis, the largest first, and where they are; of equal ones the first come."""
    x = x if hasattr(x, "ndim") else np.asarray(x)
    along = one_axis(axis, x.ndim, op="topk")
    if not isinstance(k, int | np.integer) or not 0 <= k <= x.shape[along]:
        raise ArgumentError(
            "topk of more entries than there are", given=f"k={k!r}, an axis of length {x.shape[along]}",
            hint="k is a whole number from 0 to the length of the axis",
        )  # fmt: skip
    order = argsort(x, axis=along, descending=bool(largest))
    indices = getitem(order, index=(*(slice(None),) * along, slice(0, k)))
    return take_along_axis(x, indices, axis=along), indices
