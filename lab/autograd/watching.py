"""Who wants to see each result that the ordinary tape records: anomaly mode, and a trace whose function runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.autograd.observe import remember_line
from lab.autograd.tape import Node
from lab.config import STATE
from lab.ops.primitive import Op


def watched(op: Op, args: Sequence[Any], params: dict[str, Any], node: Node) -> Any:
    """What a trace writes down in place of a result that was made of parameters alone; None where no trace does.

    Nothing that is traced is among its operands, so the op has run and was recorded; but a graph that held the result
    would not see that the parameters have changed. What a traced function makes of leaves of its own is left alone.
    """
    state = STATE.get()
    if state.anomaly:
        remember_line(node)
    trace = state.staging
    if trace is None or not trace.alive or all(p is None or p.id > trace.born for p in node.parents):
        return None
    return trace.apply(op, args, params)
