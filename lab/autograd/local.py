"""Local derivatives: how each entry of an op's result changes with one entry of an operand, by the op's own rules.

One column of the Jacobian at a time, in the dtype of the run, so that it is the rule that ran, kinks, ties and all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lab.autograd.forward import tangent_of
from lab.autograd.recorded import NotKept, dtype_of
from lab.autograd.reread import Rule, Rules
from lab.errors import LabError

MOST_ROWS = 1024
"""A rule without a forward twin is asked once for each entry of its result, up to so many."""
MOST_ENTRIES = 1024
"""A whole Jacobian is built up to this size: enough to be looked at."""
Array = np.ndarray[Any, np.dtype[Any]]


class Local:
    """The Jacobian of one recorded operation, column by column.

    Args:
        rule: the op and what its rules had read.
        ct: the cotangent of its result; only its shape and dtype count.
    """

    def __init__(self, rule: Rule, ct: Array) -> None:
        self.rule, self.ct = rule, ct
        self._made: dict[int, Any] = {}
        record = rule.record
        self.exact = record.elementwise or bool(record.linear)
        """Whether its sums do not cancel more than their terms tell."""

    def column(self, argument: int, entry: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """(entries of the result, derivative of each) by entry `entry` of an operand of that shape, all flat.

        Raises:
            NotKept: the rule cannot be asked.

        Example:
            >>> from lab.ops import PRIMITIVES
            >>> x, y = np.array([2.0, 3.0]), np.array(5.0)
            >>> rule = Rule(PRIMITIVES["multiply"], None, (x, y), {}, ((2,), ()))
            >>> at, by = Local(rule, np.ones(2)).column(1, 0, ())
            >>> at.tolist(), by.tolist()
            ([0, 1], [2.0, 3.0])
        """
        try:
            with np.errstate(all="ignore"):
                if self.rule.record.elementwise:
                    return self._diagonal(argument, entry, shape)
                return self._dense(argument, entry, shape)
        except (LabError, ArithmeticError, AttributeError, IndexError, TypeError, ValueError) as why:
            first = str(why).partition("\n")[0]
            raise NotKept(f"its rule cannot be evaluated again: {first}") from None

    def whole(self, argument: int, shape: tuple[int, ...]) -> Array:
        """The Jacobian by an operand of that shape: a row for each entry of the result, a column for each of its own.

        Raises:
            NotKept: the rule cannot be asked, or it has more than MOST_ENTRIES entries.

        Example:
            >>> from lab.ops import PRIMITIVES
            >>> rule = Rule(PRIMITIVES["multiply"], None, (np.array([2.0, 3.0]), np.array(5.0)), {}, ((2,), ()))
            >>> Local(rule, np.ones(2)).whole(0, (2,)).tolist()
            [[5.0, 0.0], [0.0, 5.0]]
        """
        size = math.prod(shape)
        if self.ct.size * size > MOST_ENTRIES:
            raise NotKept(f"it has {self.ct.size * size:,} entries and is never built: the rule gives its product")
        jacobian = np.zeros((self.ct.size, size), self.ct.dtype)
        for entry in range(size):
            at, slopes = self.column(argument, entry, shape)
            jacobian[at, entry] = slopes
        return jacobian

    def _diagonal(self, argument: int, entry: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
        if argument not in self._made:
            slopes = self._pulled(np.ones(self.ct.shape, self.ct.dtype), argument)
            slopes = np.broadcast_to(slopes, self.ct.shape).reshape(-1)
            size = int(np.prod(shape, dtype=np.int64))
            came_from = np.broadcast_to(np.arange(size).reshape(shape), self.ct.shape).reshape(-1)
            order = np.argsort(came_from, kind="stable")
            self._made[argument] = slopes, order, came_from[order]
        slopes, order, came_from = self._made[argument]
        first, last = np.searchsorted(came_from, (entry, entry + 1))
        at = order[first:last]
        return at, slopes[at]

    def _pulled(self, ct: Any, argument: int) -> Any:
        """What the rule of an edge makes of a cotangent."""
        record = self.rule.record
        rule = record.rule(argument)
        if rule is None:
            raise NotKept("this lab has no rule for that operand")
        extra = {"argument": argument} if record.variadic else {}
        read = rule.reads or ("",)
        words = read * len(self.rule.operands) if record.variadic else read
        operands = [None if not word else a for a, word in zip(self.rule.operands, words, strict=False)]
        return rule.eager(ct, self.rule.out, *operands, **extra, **self.rule.params)

    def _dense(self, argument: int, entry: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
        record = self.rule.record
        if record.linear or record.tangent is not None:
            slopes = self._pushed(argument, entry, shape)
        else:
            slopes = self._rows(argument, shape)[:, entry]
        at = np.flatnonzero(slopes)
        return at, slopes[at]

    def _pushed(self, argument: int, entry: int, shape: tuple[int, ...]) -> Array:
        """The column, by the tangent of a single entry."""
        record, operands = self.rule.record, self.rule.operands
        tangent = np.zeros(shape, operands[argument].dtype)
        tangent.reshape(-1)[entry] = 1
        tangents = tuple(tangent if i == argument else None for i in range(len(operands)))
        out = self.ct if self.rule.out is None else self.rule.out
        slopes = tangent_of(record, operands, tangents, out, self.rule.params)
        if slopes is None or np.shape(slopes) != self.ct.shape:
            raise NotKept("its rule gives another shape than was recorded")
        return np.asarray(slopes).reshape(-1)

    def _rows(self, argument: int, shape: tuple[int, ...]) -> Array:
        """The whole Jacobian, by the cotangent of each entry: for ops that have a vjp only."""
        if argument not in self._made:
            if self.ct.size > MOST_ROWS:
                raise NotKept(f"it has no forward rule, and {self.ct.size:,} entries to ask for one by one")
            rows = np.empty((self.ct.size, int(np.prod(shape, dtype=np.int64))))
            for k in range(self.ct.size):
                ct = np.zeros(self.ct.shape, self.ct.dtype)
                ct.reshape(-1)[k] = 1
                rows[k] = np.asarray(self._pulled(ct, argument)).reshape(-1)
            self._made[argument] = rows
        return self._made[argument]  # type: ignore[no-any-return]


def local_jacobian(rules: Rules, node: int, argument: int) -> Array:
    """The Jacobian of a recorded operation by one operand, from the rule and the values of that run.

    Shapes:
        result: (entries of the operation's result, entries of the operand), in the dtype of the result.

    Raises:
        NotKept: its values are not in the recording, or it has more than MOST_ENTRIES entries.

    Example:
        >>> import lab
        >>> from lab.autograd.recorded import Recorded
        >>> x = lab.tensor([2.0, 3.0], requires_grad=True, name="x")
        >>> with lab.record() as rec:
        ...     y = x * x
        >>> local_jacobian(Rules(Recorded(rec)), y.node.id, 0).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    operation = rules.recorded.operation(node)
    parent = None if operation is None else rules.recorded.operation(operation.parents[argument])
    if operation is None or parent is None:
        raise NotKept("it was recorded before this recording began")
    ct = np.zeros(operation.shape, dtype_of(operation.dtype))
    return Local(rules[node], ct).whole(argument, parent.shape)
