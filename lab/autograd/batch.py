"""Batching: every value may carry an extra axis in front, which the mapped function does not see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from lab.autograd.batched import Batched
from lab.autograd.interpreter import Interpreter, Tracer
from lab.errors import ConcretizationError, LabError
from lab.events.bus import bus
from lab.ops import concatenate, expand_dims, getitem
from lab.ops.primitive import Op
from lab.shapes import Spec


class Batch(Interpreter):
    """One `vmap`: the batch axis of a tracer's value is axis 0; collectives over `axis_name` meet along it.

    `Tracer.extra` of an input is where the axis was in what was given.
    """

    word: ClassVar[str] = "vmap"

    told: Batched | None = None
    """What it tells, while somebody listens."""

    def __init__(self, size: int, axis_name: str = "") -> None:
        super().__init__()
        self.size, self.axis_name = size, axis_name

    def shape_of(self, tracer: Tracer) -> tuple[int, ...]:
        return tuple(tracer.value.shape[1:])

    def concrete(self, tracer: Tracer) -> Any:
        raise ConcretizationError(
            "the value of a mapped variable was asked for inside vmap",
            given=f"shape {tracer.shape}, {self.size} values at once",
            hint="lab.where or lab.cond instead of if, lab.while_loop instead of while; or a loop instead of vmap",
        )

    def apply(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        mapped = tuple(isinstance(a, Tracer) and a.interp is self for a in args)
        values = tuple(a.value if m else a for a, m in zip(args, mapped, strict=True))
        if not bus.operations or self.quiet:
            return self._made(op, self._run(op, args, mapped, values, params), params)
        self.told = told = self.told or Batched(self, self.size)
        out = told.noting.peeled(self._run(op, args, mapped, told.noting.spied(values), params))
        made = self._made(op, out, params)
        told.tell(op, args, params, made)
        return made

    def _run(
        self, op: Op, args: Sequence[Any], mapped: tuple[bool, ...], values: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """What the op becomes one level below."""
        if op.collective and params["axis_name"] != self.axis_name:
            return op(*values, **self._beside(op, args, params))  # it meets others: our members go along
        if op.batch is None:
            return loop_and_stack(op, self.size, mapped, values, params)
        try:
            return op.batch(self.size, mapped, *values, **params)
        except LabError:
            op.shape(*(self._member(a) for a in args), **params)  # says it with the shapes that the function sees
            raise

    def _made(self, op: Op, out: Any, params: dict[str, Any]) -> Any:
        """With our axis; a collective along it may give all members the same: that is not mapped."""
        return out if op.collective == "same" and params["axis_name"] == self.axis_name else Tracer(self, out)

    def _beside(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a collective along another axis; an axis counted from the front stands behind ours."""
        if "axis" not in params:
            return params
        op.shape(*(self._member(a) for a in args), **params)  # refuses an axis that a member does not have
        return {**params, "axis": params["axis"] + (params["axis"] >= 0)}

    def _member(self, a: Any) -> Any:
        return Spec(tuple(a.shape), a.dtype) if hasattr(a, "shape") else a


def loop_and_stack(op: Op, size: int, mapped: tuple[bool, ...], values: Sequence[Any], params: dict[str, Any]) -> Any:
    """The rule of last resort: one call for each member. A test lists the ops that still use it."""
    rows = [
        op(*(getitem(v, index=i) if m else v for v, m in zip(values, mapped, strict=True)), **params)
        for i in range(size)
    ]
    return concatenate(*(expand_dims(row, axis=0) for row in rows), axis=0)
