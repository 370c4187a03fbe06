"""What forward mode tells its listeners: each operation with the tangent that its rule pushed along."""

from __future__ import annotations

from typing import Any

from lab.autograd.interpreter import Tracer
from lab.autograd.numbered import Numbered, Source
from lab.autograd.observe import emit_value
from lab.events.bus import bus
from lab.events.catalogue import TangentPushed


class Pushed(Numbered):
    """The values of one jvp that carry a tangent."""

    def counts(self, value: Any) -> bool:
        return isinstance(value, Tracer) and value.interp is self.interp

    def emit(self, number: int, value: Any, op: str, parents: tuple[int, ...], source: Source) -> None:
        shape, dtype = tuple(value.shape), value.dtype
        bus.emit_row(TangentPushed, number, op, parents, shape, dtype, self.interp.level, *source)
        if bus.detail:
            emit_value(number, "value", value.value)
            emit_value(number, "tangent", value.extra)
