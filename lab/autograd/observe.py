"""What the tape tells its listeners: events built from nodes, only while somebody listens.

The source line is the first frame outside the lab; names of leaves are looked for among that frame's variables, so that
the picture says "x" where the code does.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from math import hypot, isfinite, sqrt
from pathlib import Path
from time import perf_counter_ns
from types import FrameType
from typing import Any

import numpy as np

from lab.autograd.parameters import packed
from lab.autograd.tape import AnyNode, Leaf, Node
from lab.config import STATE
from lab.events.bus import Detail, bus
from lab.events.catalogue import LeafUsed, OperandKept, OpRecorded, ParametersKept, RuleApplied, ValueSeen
from lab.events.cells import cell_of
from lab.events.event import ORIGIN
from lab.ops.primitive import Op
from lab.shapes import Spec

_OURS = (str(Path(__file__).resolve().parents[1]) + os.sep, "<formula ")
"""How names of files of the lab's own code begin; rules made from formulas have no file."""
LARGEST_COPY = 4096
"""Arrays of more entries are described by statistics, never copied."""

LONGEST = 40
"""Characters of one parameter of an operation."""
FEW = 32
_NOTHING = (float("nan"),) * 4

EVERY = 255
"""The queue's length is looked at once in so many (a power of two, less one) rows that were appended directly."""

_append: Callable[[Any], None] = bus.append  # plain tuples: a Row costs 200 ns more
_now, _origin = perf_counter_ns, ORIGIN.get


def observe_unary(node: Node, parent: AnyNode, x: Any, out: Any) -> None:
    """`observe_op` for one operand: appends the row itself while nobody wants sources or values."""
    if not bus.plain:
        observe_op(node.op, node, (x,), out)
        return
    number = node.id
    if parent.generation < bus.generation:
        _tell_leaf(parent, x, None)
    _append((OpRecorded, _now(), _origin(), (number, node.op.name, (parent.id,), out.shape, out.dtype, 0)))
    if not number & EVERY:
        bus.relieve()


def observe_binary(node: Node, x: Any, y: Any, out: Any) -> None:
    """`observe_op` for two operands."""
    if not bus.plain:
        observe_op(node.op, node, (x, y), out)
        return
    number = node.id
    a, b = node.parents
    id_a = id_b = -1
    if a is not None:
        id_a = a.id
        if a.generation < bus.generation:
            _tell_leaf(a, x, None)
    if b is not None:
        id_b = b.id
        if b.generation < bus.generation:
            _tell_leaf(b, y, None)
    _append((OpRecorded, _now(), _origin(), (number, node.op.name, (id_a, id_b), out.shape, out.dtype, 0)))
    if not number & EVERY:
        bus.relieve()


def observe_op(op: Op, node: Node, args: tuple[Any, ...], out: Any, level: int = 0) -> None:
    """Emit LeafUsed, OpRecorded and, if asked for, ValueSeen for a node that was just recorded.

    Only called while somebody listens to operations. The general way; the two above are its fast twins.
    """
    ids = []
    frame = user_frame() if bus.sources else None
    for i, parent in enumerate(node.parents):
        if parent is None:
            ids.append(-1)
            continue
        ids.append(parent.id)
        if parent.generation < bus.generation:
            _tell_leaf(parent, args[i], frame)
    if not bus.sources:
        bus.emit_row(OpRecorded, node.id, op.name, tuple(ids), out.shape, out.dtype, level)
    else:
        words = tuple(constant(a) if p is None else "" for a, p in zip(args, node.parents, strict=True))
        line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
        where = STATE.get().module, *line
        extra = words, *where, params_text(op, node.params)
        bus.emit_row(OpRecorded, node.id, op.name, tuple(ids), tuple(out.shape), out.dtype, level, *extra)
    if bus.detail:
        emit_value(node.id, "value", out)
        if bus.detail >= Detail.VALUE:
            _keep_for_rules(node)
    if bus.gates:
        bus.hold("op", node.id, op.name, STATE.get().module, array_of(out))


def hold_node(node: Node, ct: Any) -> None:
    """Where a gate holds the walk: the rules of `node` have run on `ct`, and all that they sent is told."""
    bus.hold("node", node.id, node.op.name, "", array_of(ct))


def _keep_for_rules(node: Node) -> None:
    """Emit what the rules of a node read and no node holds: constants and parameters."""
    n_operands, saved = len(node.parents), tuple(node.saved or ())
    for i, (parent, operand) in enumerate(zip(node.parents, saved[1:], strict=False)):
        if parent is None and operand is not None:
            _keep_operand(node, i, operand)
    if node.params:
        text, arrays = packed(node.params)
        bus.emit_row(ParametersKept, node.id, text)
        for k, array in enumerate(arrays):
            _keep_operand(node, n_operands + k, array)


def _keep_operand(node: Node, number: int, operand: Any) -> None:
    array = None if isinstance(operand, Spec) else array_of(operand)
    like = operand if array is None or hasattr(operand, "shape") else array
    value = array.copy() if array is not None and array.size <= LARGEST_COPY else None
    bus.emit_row(OperandKept, node.id, number, tuple(like.shape), like.dtype, value)


def _tell_leaf(leaf: AnyNode, a: Any, frame: FrameType | None) -> None:
    assert isinstance(leaf, Leaf)  # a Node is of every generation
    leaf.generation = bus.generation
    bus.emit_row(LeafUsed, leaf.id, leaf.name or name_of(a, frame), tuple(a.shape), a.dtype)
    if bus.detail:
        emit_value(leaf.id, "value", a)


def remember_line(node: Node) -> None:
    """Keep the source line of a node, for anomaly mode."""
    frame = user_frame()
    node.where = ""
    if frame:
        file = frame.f_code.co_filename
        node.where = f"{cell_of(file) or file}, line {frame.f_lineno}"


def emit_value(node: int, role: str, value: Any, source: int = -1, argument: int = -1) -> None:
    """Emit ValueSeen; values above the plain level are described by the array below, or not at all."""
    array = array_of(value)
    if array is None:
        return
    numbers = statistics(array)
    keep = bus.detail >= Detail.VALUE and array.size <= LARGEST_COPY
    bus.emit_row(ValueSeen, node, role, source, argument, array.shape, *numbers, array.copy() if keep else None)


def statistics(array: Any) -> tuple[float, float, float, float, int]:
    """(minimum, maximum, mean, norm) of the finite entries in float64, and how many are not finite.

    A handful of entries is faster in Python than in NumPy, whose every call costs more than they do.

    Example:
        >>> import numpy as np
        >>> statistics(np.array([3.0, np.inf, -4.0]))
        (-4.0, 3.0, -0.5, 5.0, 1)
    """
    size = array.size
    if not size:
        return (*_NOTHING[:3], 0.0, 0)  # the norm of no entries is 0; they have no mean
    if size <= FEW:
        values = [float(v) for v in array.ravel().tolist() if isfinite(v)]
        if not values:
            return (*_NOTHING, size)
        return min(values), max(values), sum(values) / len(values), hypot(*values), size - len(values)
    wide = array.astype(np.float64).ravel()
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is what is being looked for
        total = float(np.add.reduce(wide))
        if not isfinite(total):
            wide = wide[np.isfinite(wide)]
            if not wide.size:
                return (*_NOTHING, size)
            total = float(np.add.reduce(wide))
        square = float(wide.dot(wide))
    low, high = float(np.minimum.reduce(wide)), float(np.maximum.reduce(wide))
    largest = 1.0 if isfinite(square) else max(-low, high)
    if largest != 1.0:  # entries above 1e154
        wide = wide / largest
        square = float(wide.dot(wide))
    return low, high, total / wide.size, largest * sqrt(square), size - wide.size


def array_of(value: Any) -> Any:
    """The array below all levels, None where there is none (a traced value)."""
    while not isinstance(value, np.ndarray):
        if isinstance(value, np.generic | float | int):
            return np.asarray(value)
        value = getattr(value, "value", None)
        if value is None or isinstance(value, tuple):  # nothing there, or the Spec of a traced value
            return None
    return value


def user_frame() -> FrameType | None:
    """The frame outside the lab from which this came; None where there is none."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    # A run's thread starts in threading.py: where all code above is the lab's own, there is no user's line to show.
    return None if frame is None or frame.f_code.co_filename == threading.__file__ else frame


def name_of(a: Any, frame: FrameType | None) -> str:
    """The variable of that frame which holds a tensor, "" if none does."""
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            for name, value in list(scope.items()):
                if value is a and not name.startswith("_"):
                    return name
        frame = frame.f_back if frame.f_code.co_name in ("<lambda>", "<listcomp>") else None
    return ""


def constant(a: Any) -> str:
    """An operand that is not tracked, in a few letters: the number, or shape and dtype."""
    array = array_of(a)
    if array is None:
        return "?"
    if array.ndim == 0:
        return f"{array.item():.6g}" if array.dtype.kind == "f" else str(array.item())
    return f"{array.shape} {array.dtype}".replace(",)", ")")


def params_text(op: Op, params: dict[str, Any]) -> str:
    """The parameters of an operation as a picture shows them: those that are not the defaults, an index in brackets.

    Example:
        >>> from lab.ops import PRIMITIVES
        >>> params_text(PRIMITIVES["sum"], {"axis": 0, "keepdims": False})
        'axis=0'
        >>> params_text(PRIMITIVES["getitem"], {"index": (slice(1, None), ..., None, np.array([0, 2]))})
        '[1:, ..., None, int64 (2)]'
    """
    if op.name == "getitem":
        index = params["index"]
        return f"[{', '.join(map(_param, index)) if isinstance(index, tuple) else _param(index)}]"
    changed = {n: v for n, v in params.items() if n in op.defaults and v is not op.defaults[n]}
    return ", ".join(f"{n}={_param(v)}" for n, v in changed.items() if str(v) != str(op.defaults[n]))


def _param(value: Any) -> str:
    if isinstance(value, slice):
        parts = ["" if p is None else str(p) for p in (value.start, value.stop, value.step)]
        return ":".join(parts if parts[2] else parts[:2])
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}".replace(",)", ")") if value.ndim else str(value)
    text = "..." if value is ... else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def parent_ids(parents: tuple[AnyNode | None, ...]) -> tuple[int, ...]:
    """Ids of parents, -1 for an operand that is not tracked."""
    return tuple([-1 if p is None else p.id for p in parents])


def observe_rule(node: Node, level: int) -> None:
    """Emit RuleApplied for a node whose rules just ran."""
    op, parents, number = node.op, node.parents, node.id
    if not op.complete:
        targets = tuple([-1 if op.rule(i) is None else p for i, p in enumerate(parent_ids(parents))])
    elif len(parents) == 2:
        a, b = parents
        targets = (-1 if a is None else a.id, -1 if b is None else b.id)
    else:
        targets = parent_ids(parents)
    _append((RuleApplied, _now(), _origin(), (number, op.name, targets, level)))
    if not number & EVERY:
        bus.relieve()
