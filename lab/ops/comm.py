"""Collectives as ops: they meet the other members of a named axis, whatever the axis is made of.

Inside `vmap(axis_name=...)` the members are the entries of the batch axis: the oracle for every rank program.
"""

from __future__ import annotations

from typing import Any

from lab.errors import TransformError
from lab.ops.primitive import primitive
from lab.ops.reduce import sum_
from lab.shapes import Spec


@primitive(linear="each", collective=True)
def all_reduce(x: Any, *, axis_name: str = "") -> Any:
    """The sum of x over all members of the axis; every member gets it."""
    raise TransformError(
        "all_reduce needs the other members of an axis",
        given=f"axis_name {axis_name!r}, which no enclosing vmap has",
        hint='call the function under lab.vmap(f, axis_name="...")',
    )


# Every member's output depends on this member's input, so what comes back is the sum of all members' cotangents.
# For a loss that is itself replicated this counts it once per member, as in JAX.
@all_reduce.vjp(text="all_reduce(ct)")
def _all_reduce_vjp(ct: Any, _out: Any, _x: Any, *, axis_name: str) -> Any:
    return all_reduce(ct, axis_name=axis_name)


@all_reduce.shaped
def _all_reduce_shape(x: Spec, *, axis_name: str) -> Spec:
    return x


@all_reduce.batching
def _all_reduce_batch(size: int, mapped: tuple[bool, ...], x: Any, *, axis_name: str) -> Any:
    return sum_(x, axis=0) if mapped[0] else x * size
