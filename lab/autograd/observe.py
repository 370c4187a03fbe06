"""What the tape tells its listeners: events built from nodes, only while somebody listens.

The source line is the first frame outside the lab; names of leaves are looked for among that frame's variables, so that
the picture says "x" where the code does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from lab.autograd.tape import AnyNode, Leaf, Node
from lab.config import STATE
from lab.events.bus import Detail, bus
from lab.events.catalogue import LeafUsed, OpRecorded, ValueSeen
from lab.ops.primitive import Op

_HERE = str(Path(__file__).resolve().parents[1])
LARGEST_COPY = 4096
"""Arrays of more entries are described by statistics, never copied."""


def observe_op(op: Op, node: Node, args: tuple[Any, ...], out: Any, level: int = 0) -> None:
    """Emit LeafUsed, OpRecorded and, if asked for, ValueSeen for a node that was just recorded."""
    state = STATE.get()
    if state.anomaly:
        frame = _user_frame()
        node.where = f"{frame.f_code.co_filename}, line {frame.f_lineno}" if frame else ""
    if not bus.operations:
        return
    parents = node.parents
    frame = _user_frame() if bus.sources else None
    for a, parent in zip(args, parents, strict=True):
        if type(parent) is Leaf and parent.generation != bus.generation:
            parent.generation = bus.generation
            bus.emit_row(
                LeafUsed, parent.id, parent.name or _name_of(a, frame), out.shape if a is None else np.shape(a), a.dtype
            )
            if bus.detail:
                emit_value(parent.id, "value", a)
    ids = parent_ids(parents)
    if frame is None:
        bus.emit_row(OpRecorded, node.id, op.name, ids, out.shape, out.dtype, level)
    else:
        words = tuple(_constant(a) if p is None else "" for a, p in zip(args, parents, strict=True))
        bus.emit_row(
            OpRecorded, node.id, op.name, ids, tuple(out.shape), out.dtype, level,
            words, state.module, frame.f_code.co_filename, frame.f_lineno,
        )  # fmt: skip
    if bus.detail:
        emit_value(node.id, "value", out)


def emit_value(node: int, role: str, value: Any, source: int = -1, argument: int = -1) -> None:
    """Emit ValueSeen; values above the plain level are described by the array below, or not at all."""
    array = _array(value)
    if array is None:
        return
    finite = array if array.dtype.kind in "iub" else array[np.isfinite(array)]
    n_bad = array.size - finite.size
    if finite.size:
        wide = finite.astype(np.float64)
        numbers = (
            float(wide.min()),
            float(wide.max()),
            float(wide.mean()),
            float(np.sqrt(np.dot(wide.ravel(), wide.ravel()))),
        )
    else:
        numbers = (float("nan"),) * 4  # type: ignore[assignment]
    keep = bus.detail >= Detail.VALUE and array.size <= LARGEST_COPY
    bus.emit_row(ValueSeen, node, role, source, argument, array.shape, *numbers, n_bad, array.copy() if keep else None)


def _array(value: Any) -> Any:
    while not isinstance(value, np.ndarray):
        if isinstance(value, np.generic | float | int):
            return np.asarray(value)
        value = getattr(value, "value", None)
        if value is None or isinstance(value, tuple):  # nothing there, or the Spec of a traced value
            return None
    return value


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


def _name_of(a: Any, frame: FrameType | None) -> str:
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            for name, value in list(scope.items()):
                if value is a and not name.startswith("_"):
                    return name
        frame = frame.f_back if frame.f_code.co_name in ("<lambda>", "<listcomp>") else None
    return ""


def _constant(a: Any) -> str:
    array = _array(a)
    if array is None:
        return "?"
    if array.ndim == 0:
        return f"{array.item():.6g}" if array.dtype.kind == "f" else str(array.item())
    return f"{array.shape} {array.dtype}".replace(",)", ")")


def parent_ids(parents: tuple[AnyNode | None, ...]) -> tuple[int, ...]:
    """Ids of parents, -1 for an operand that is not tracked."""
    return tuple([-1 if p is None else p.id for p in parents])
