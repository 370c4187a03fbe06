"""Reverse mode above the plain level: a tape of its own for each `grad`, over whatever values are below.

The rules are the same ones, applied in ops to the values of the level below; so a gradient can be taken of anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from lab.autograd.backward import Walk, end_walk, run_general
from lab.autograd.interpreter import Interpreter, Tracer
from lab.autograd.observe import observe_op, remember_line
from lab.autograd.tape import Leaf, Node, record
from lab.config import STATE
from lab.events.bus import bus
from lab.ops.primitive import Op


class Reverse(Interpreter):
    """The tape of one `grad` or `vjp`."""

    word: ClassVar[str] = "grad"
    differentiates: ClassVar[bool] = True

    def leaf(self, value: Any) -> Tracer:
        """An input of the differentiated function."""
        return Tracer(self, value, Leaf())

    def apply(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        mine = [isinstance(a, Tracer) and a.interp is self for a in args]
        lower = tuple([a.value if m else a for a, m in zip(args, mine, strict=True)])
        out = op(*lower, **params)
        state = STATE.get()
        if state.frozen >= self.level or out.dtype.kind != "f":
            return out
        parents = tuple(
            [a.extra if m and op.rule(i) else None for i, (a, m) in enumerate(zip(args, mine, strict=True))]
        )
        if parents.count(None) == len(parents):
            return out
        node = record(op, parents, lower, out, params)
        self.noted(node, lower, out)
        if state.anomaly:
            remember_line(node)
        if bus.operations and not self.quiet:
            observe_op(op, node, lower, out, self.level)
        return Tracer(self, out, node)

    def noted(self, node: Node, operands: Sequence[Any], out: Any) -> None:
        """Told of every node; for who wants to know more of it than its rules read (`check_grads`)."""

    def gradients(self, out: Any, ct: Any, leaves: Sequence[Tracer], *, keep: bool = False) -> list[Any]:
        """The cotangent of each leaf, None where `out` does not depend on it.

        Args:
            out: what the function returned (a value of this level, or one that depends on nothing of it).
            ct: its cotangent, a value of the level below.
            keep: leave the tape as it is, to be walked again.
        """
        if not (isinstance(out, Tracer) and out.interp is self):
            return [None] * len(leaves)
        walk = Walk(out.extra)
        if self.quiet:
            grads = run_general(walk, {out.extra.id: ct}, keep=keep, level=self.level, quiet=True)
            return [grads.get(leaf.extra.id) for leaf in leaves]
        try:
            grads = run_general(walk, {out.extra.id: ct}, keep=keep, level=self.level)
        except BaseException as why:
            end_walk(walk, self.level, why)
            raise
        end_walk(walk, self.level)
        return [grads.get(leaf.extra.id) for leaf in leaves]
