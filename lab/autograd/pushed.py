"""What forward mode tells its listeners: each operation with the tangent that its rule pushed along.

Tracers have no node, so while somebody listens a `Pushed` numbers those of one jvp, and holds them till its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.autograd.interpreter import Interpreter, Tracer
from lab.autograd.observe import constant, emit_value, name_of, params_text, user_frame
from lab.autograd.tape import next_id
from lab.events.bus import bus
from lab.events.catalogue import TangentPushed
from lab.ops.primitive import Op


class Pushed:
    """The numbers of the values of one jvp."""

    def __init__(self, interp: Interpreter) -> None:
        self._interp = interp
        self._numbers: dict[int, tuple[int, Tracer]] = {}  # with the tracer: its id is its own while it lives

    def tell(self, op: Op, args: Sequence[Any], params: dict[str, Any], made: Tracer) -> None:
        """Emit TangentPushed for an operation, and before it for inputs that were not met yet."""
        frame = user_frame() if bus.sources else None
        mine = [isinstance(a, Tracer) and a.interp is self._interp for a in args]
        parents = tuple(self._number(a, frame) if m else -1 for a, m in zip(args, mine, strict=True))
        words = tuple("" if m else constant(a) for a, m in zip(args, mine, strict=True)) if bus.sources else ()
        line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
        self._emit(made, op.name, parents, "", words, params_text(op, params) if bus.sources else "", *line)

    def _number(self, tracer: Tracer, frame: Any) -> int:
        if id(tracer) not in self._numbers:
            self._emit(tracer, "", (), name_of(tracer, frame), (), "", "", 0)
        return self._numbers[id(tracer)][0]

    def _emit(self, tracer: Tracer, op: str, parents: tuple[int, ...], *rest: Any) -> None:
        number = next_id()
        self._numbers[id(tracer)] = number, tracer
        shape, dtype = tuple(tracer.shape), tracer.dtype
        bus.emit_row(TangentPushed, number, op, parents, shape, dtype, self._interp.level, *rest)
        if bus.detail:
            emit_value(number, "value", tracer.value)
            emit_value(number, "tangent", tracer.extra)
