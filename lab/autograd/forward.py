"""Forward mode: every value carries the tangent of one direction along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from lab.autograd.interpreter import Interpreter, Tracer
from lab.autograd.pushed import Pushed
from lab.autograd.tape import firm
from lab.errors import UnsupportedError
from lab.events.bus import bus
from lab.ops import broadcast_to, cast
from lab.ops.primitive import Op


class Forward(Interpreter):
    """One `jvp`: `Tracer.extra` is the tangent, a value of the level below."""

    word: ClassVar[str] = "jvp"
    differentiates: ClassVar[bool] = True

    pushed: Pushed | None = None
    """The numbers of its values, while somebody listens."""

    def apply(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        mine = [isinstance(a, Tracer) and a.interp is self for a in args]
        primals = tuple(a.value if m else a for a, m in zip(args, mine, strict=True))
        tangents = tuple(a.extra if m else None for a, m in zip(args, mine, strict=True))
        out = op(*primals, **params)
        tangent = tangent_of(op, primals, tangents, out, params)
        if tangent is None:
            return out
        made = Tracer(self, out, tangent)
        if bus.operations and not self.quiet:
            self.pushed = self.pushed or Pushed(self)
            self.pushed.tell(op, args, params, made)
        return made


def tangent_of(op: Op, primals: tuple[Any, ...], tangents: tuple[Any, ...], out: Any, params: dict[str, Any]) -> Any:
    """The tangent of an op's output, None if it is zero.

    An elementwise map is diagonal: its vjp text with the tangent for `ct` is its jvp. A linear op is its own tangent.
    """
    live = [i for i, t in enumerate(tangents) if t is not None]
    if not any(op.rule(i) for i in live) or out.dtype.kind != "f":
        return None
    if op.elementwise:
        primals = tuple(firm(p, out) for p in primals)
        terms = [op.rule(i).general(tangents[i], out, *primals, **params) for i in live if op.rule(i)]  # type: ignore[union-attr]
    elif op.tangent is not None:
        terms = [op.tangent(tangents, out, *primals, **params)]
    elif op.linear == "joint":
        full = [np.zeros(p.shape, p.dtype) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        terms = [op(*full, **params)]
    elif op.linear == "each":
        terms = [op(*(tangents[i] if j == i else p for j, p in enumerate(primals)), **params) for i in live]
    else:
        raise UnsupportedError(
            f"{op.name} has no forward-mode rule", given=repr(op), hint="use grad or vjp, or enter one with @op.jvp"
        )
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    if total.shape != out.shape:
        total = broadcast_to(total, shape=tuple(out.shape))
    return total if total.dtype == out.dtype else cast(total, dtype=out.dtype)
