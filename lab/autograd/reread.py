"""What the rules of a recorded operation had read: enough of a recording to evaluate them again.

Parameters come from a file, perhaps a stranger's: they are data, checked against the op table and the recorded shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lab.autograd.parameters import unpacked
from lab.autograd.recorded import NotKept, Operation, Recorded, dtype_of, ints, remembering, typed, whole
from lab.errors import LabError
from lab.events import OperandKept, ParametersKept, ValueSeen
from lab.ops.primitive import PRIMITIVES, Op
from lab.shapes import Spec


class Rule(NamedTuple):
    """An op with what its rules read when they ran: `record.rule(i).eager(ct, out, *operands, **params)`."""

    record: Op
    out: Any
    operands: tuple[Any, ...]
    params: dict[str, Any]
    shapes: tuple[tuple[int, ...], ...]
    """Of the operands; () where not known."""


class Rules:
    """The rules of a recording's operations, by number of their node."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self._found = remembering(self._rule)

    def __getitem__(self, node: int) -> Rule:
        """The record of an operation with what its rules had read.

        Raises:
            NotKept: some of it is not known.
        """
        return self._found(node)

    def _rule(self, node: int) -> Rule:
        operation = self.recorded.operation(node)
        if operation is None:
            raise NotKept("it was recorded before this recording began")
        record = PRIMITIVES.get(operation.op)
        if record is None:
            raise NotKept(f"this lab has no op of that name: {operation.op[:40]}")
        if record.collective:
            raise NotKept("it met other members, whose part is not in this recording")
        params = self._params(operation, record)
        wanted = [record.rule(i) for i, parent in enumerate(operation.parents) if parent >= 0]
        rules = [rule for rule in wanted if rule is not None]
        words = [
            {rule.reads[0 if record.variadic else i] for rule in rules if rule.reads}
            for i in range(len(operation.parents))
        ]
        needs_out = any(rule.reads_out for rule in rules) or record.tangent is not None
        out = self._value(operation, before=None) if needs_out else None
        operands = [self._operand(operation, i, word, record) for i, word in enumerate(words)]
        shapes = tuple(() if a is None else tuple(a.shape) for a in operands)
        self._check_shape(operation, record, operands, params)
        return Rule(record, out, tuple(operands), params, shapes)

    def _params(self, operation: Operation, record: Op) -> dict[str, Any]:
        kept = self.recorded.kind(ParametersKept)
        rows = kept.rows(operation.node)
        if not rows:
            if record.defaults or record.fixed:
                raise NotKept("its parameters are not in this recording, which is of an older lab")
            return {}
        arrays = self._kept(operation)
        n = len(operation.parents)

        def array(k: int) -> Any:
            if n + k not in arrays:
                raise ValueError("an array among its parameters is not in this recording")
            value, shape, _ = arrays[n + k]
            return whole(value, shape, "an array among its parameters", None)

        try:
            params = unpacked(kept["parameters"][rows[-1]], array)
        except (ValueError, RecursionError) as why:  # what json says of a text that was cut is a ValueError
            raise NotKept(f"its parameters cannot be read: {why}") from None
        if params.keys() != {*record.defaults, *record.fixed}:
            raise NotKept("it has other parameters in this lab than in the recording")
        return params

    def _kept(self, operation: Operation) -> dict[int, tuple[Any, tuple[int, ...], str]]:
        kept = self.recorded.kind(OperandKept)
        return {
            int(kept["argument"][row]): (kept["value"][row], ints(kept["shape"][row]), kept["dtype"][row])
            for row in kept.rows(operation.node)
        }

    def _operand(self, operation: Operation, i: int, words: set[str], record: Op) -> Any:
        """An operand as the rules read it: an array, a Spec, or None for one that none reads."""
        parent, argument = operation.parents[i], record.arguments[0 if record.variadic else i]
        if parent >= 0:
            source = self.recorded.operation(parent)
            if source is None:
                raise NotKept(f"its operand {argument} was computed before this recording began")
            if "value" in words or record.tangent is not None:
                return self._value(source, before=operation.position)
            return Spec(source.shape, dtype_of(source.dtype))
        if not words - {""}:
            return None
        kept = self._kept(operation)
        if i not in kept:
            raise NotKept(f"the constant {argument} is not in this recording: the recording is of an older lab")
        value, shape, dtype = kept[i]
        if "value" not in words:
            return Spec(shape, dtype_of(dtype))
        return typed(whole(value, shape, f"the constant {argument}", None), dtype)

    def _value(self, of: Operation, before: int | None) -> Any:
        """What a node held; of a leaf, which can be written, what it held before a position."""
        seen = self.recorded.kind(ValueSeen)
        rows = [r for r in seen.rows(of.node, 0, None if of.op else before) if seen["role"][r] == "value"]
        if not rows:
            raise NotKept("the value of an operand was not recorded" if before else "its value was not recorded")
        return typed(self.recorded.seen(rows[-1], f"the value of {of.op or of.name or 'a leaf'}", of.shape), of.dtype)

    def _check_shape(self, operation: Operation, record: Op, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Parameters from a file must give what was recorded, before anything is computed with them."""
        if any(a is None for a in operands) or not params:
            return
        try:
            spec = record.shape(*(Spec(tuple(a.shape), a.dtype) for a in operands), **params)
        except (LabError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as why:
            raise NotKept(f"its parameters do not fit its operands: {why}") from None
        if tuple(spec.shape) != operation.shape:
            raise NotKept(f"its parameters give shape {tuple(spec.shape)}, recorded was {operation.shape}")
