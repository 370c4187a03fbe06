"""The sum over members of an axis in a settled order, so that a run on ranks can give the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.ops.moving import swapaxes
from lab.ops.primitive import primitive
from lab.ops.reduce import spread
from lab.ops.sample import Sample
from lab.shapes import Spec
from lab.words import one_of, shown

REDUCTIONS = ("sum", "mean", "max", "min")
"""What may be made of what all members have."""

_FEW = 64
"""So many rows are added one by one, which takes no memory; of more a running sum is taken, in one call."""


def require_reduction(word: str, op: object, x: Any) -> None:
    """Refuse what is no reduction, or none of such a dtype.

    Raises:
        ArgumentError: there is no such reduction.
        DTypeError: the dtype has none.

    Example:
        >>> require_reduction("all_reduce", "mean", np.arange(3))
        Traceback (most recent call last):
        lab.errors.DTypeError: all_reduce has no mean of whole numbers
        given: op='mean' of int64
        hint:  x.astype(float), or op="sum"
    """
    if not (isinstance(op, str) and op in REDUCTIONS):
        raise ArgumentError(f"{word} has no such op", given=f"op={shown(op)}", hint=one_of(op, REDUCTIONS))
    dtype = x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
    given = f"op={op!r} of {dtype}"
    if op == "mean" and dtype.kind != "f":
        raise DTypeError(f"{word} has no mean of whole numbers", given=given, hint='x.astype(float), or op="sum"')
    if op == "sum" and dtype.kind == "b":
        raise DTypeError(f"{word} adds no truths", given=given, hint='x.astype(int) counts; op="max" is "any"')


@primitive(
    linear="each",
    samples=[Sample(((3, 2),)), Sample(((4,),)), Sample(((2, 3, 2),)), Sample(((70, 2),))],
    error_samples=[(((),), {}, "add_rows needs a first axis")],
    reference=lambda x: np.sum(x, axis=0),
)
def add_rows(x: Any) -> Any:
    """The sum along the first axis, added from the first row to the last in the rows' own dtype.

    `sum` adds in whatever order is fast; this is the order in which ranks add by the plan "naive".
    """
    x = np.asarray(x)
    _require_rows(x.ndim)
    if len(x) > _FEW:
        return np.add.accumulate(x, axis=0, dtype=x.dtype)[-1].copy()
    total = np.array(x[0]) if len(x) else np.zeros(x.shape[1:], x.dtype)
    for row in x[1:]:
        np.add(total, row, out=total)
    return total


def _require_rows(ndim: int) -> None:
    if not ndim:
        raise ShapeError("add_rows needs a first axis", given="shape ()", hint="x[None] has one")


@add_rows.vjp(text="ct for every row")
def _add_rows_vjp(ct: Any, _out: Any, x_like: Any) -> Any:
    return spread(ct, x_like, 0)


@add_rows.shaped
def _add_rows_shape(x: Spec) -> Spec:
    _require_rows(x.ndim)
    return Spec(x.shape[1:], x.dtype)


@add_rows.batching
def _add_rows_batch(_size: int, _mapped: tuple[bool, ...], x: Any) -> Any:
    _require_rows(x.ndim - 1)
    return add_rows(swapaxes(x, 0, 1))
