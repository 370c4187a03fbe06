"""What vmap tells its listeners: each operation as one member sees it, and the operations that ran for all instead.

While somebody listens, batching rules are given values that note what is done with them: a level above theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from lab.autograd.interpreter import Interpreter, Tracer
from lab.autograd.numbered import Numbered, Source
from lab.autograd.observe import params_text
from lab.events.bus import bus
from lab.events.catalogue import OpBatched
from lab.ops.primitive import Op


class Noting(Interpreter):
    """Applies each operation below and notes it."""

    word: ClassVar[str] = "vmap"

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    def is_weak(self, tracer: Tracer) -> bool:
        return bool(getattr(tracer.value, "weak", False))

    def apply(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        out = op(*map(self.peeled, args), **params)
        words = params_text(op, {name: value for name, value in params.items() if name != "shape"})
        self.noted.append(f"{op.name}{f'({words})' if words else ''} {'×'.join(map(str, out.shape)) or 'scalar'}")
        return Tracer(self, out)

    def spied(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values, with what is done with them noted from now on."""
        self.noted = []
        return tuple(Tracer(self, v) if hasattr(v, "shape") else v for v in values)

    def peeled(self, value: Any) -> Any:
        """The value below."""
        return value.value if isinstance(value, Tracer) and value.interp is self else value


class Batched(Numbered):
    """The values of one vmap: those with a member axis, and those that all members share."""

    def __init__(self, interp: Interpreter, size: int) -> None:
        super().__init__(interp)
        self.noting, self._size = Noting(), size

    def counts(self, value: Any) -> bool:
        return bool(getattr(value, "shape", ())) or self._mapped(value)

    def emit(self, number: int, value: Any, op: str, parents: tuple[int, ...], source: Source) -> None:
        shape, became, axis = tuple(value.shape), tuple(self.noting.noted) if op else (), -1
        if self._mapped(value):
            axis = value.extra % (len(shape) + 1) if value.extra is not None else 0
        bus.emit_row(
            OpBatched, number, op, parents, shape, self._size, axis, value.dtype, self.interp.level, became, *source
        )

    def _mapped(self, value: Any) -> bool:
        return isinstance(value, Tracer) and value.interp is self.interp
