"""What a transform tells its listeners: its operations by numbers of their own, with their operands and source lines.

Tracers have no node, so while somebody listens a `Numbered` numbers the values of one transform, and holds them till
its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lab.autograd.interpreter import Interpreter
from lab.autograd.observe import constant, name_of, params_text, user_frame
from lab.autograd.tape import next_id
from lab.events.bus import bus
from lab.ops.primitive import Op


class Source(NamedTuple):
    """The last fields of an event of one operation; empty unless sources are recorded."""

    name: str = ""
    constants: tuple[str, ...] = ()
    params: str = ""
    file: str = ""
    line: int = 0


class Numbered:
    """The numbers of the values of one transform. Subclasses say which have one, and define `emit`."""

    def __init__(self, interp: Interpreter) -> None:
        self.interp = interp
        self._numbers: dict[int, tuple[int, Any]] = {}  # with the value: its id is its own while it lives

    def counts(self, value: Any) -> bool:
        """Whether a value has a number: if not, it is a constant here."""
        raise TypeError(f"{type(self).__name__} does not say which values have a number")

    def emit(self, number: int, value: Any, op: str, parents: tuple[int, ...], source: Source) -> None:
        """Tell of a value, of an input with `op` ""."""
        raise TypeError(f"{type(self).__name__} does not say what it tells")

    def tell(self, op: Op, args: Sequence[Any], params: dict[str, Any], made: Any) -> None:
        """Tell of an operation, and before it of inputs that were not met yet."""
        frame = user_frame() if bus.sources else None
        known = [self.counts(a) for a in args]
        parents = tuple(self._number(a, frame) if k else -1 for a, k in zip(args, known, strict=True))
        if not bus.sources:
            self._emit(made, op.name, parents, Source())
            return
        words = tuple("" if k else constant(a) for a, k in zip(args, known, strict=True))
        line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
        self._emit(made, op.name, parents, Source("", words, params_text(op, params), *line))

    def _number(self, value: Any, frame: Any) -> int:
        if id(value) not in self._numbers:
            self._emit(value, "", (), Source(name_of(value, frame)))
        return self._numbers[id(value)][0]

    def _emit(self, value: Any, op: str, parents: tuple[int, ...], source: Source) -> None:
        number = next_id()
        self._numbers[id(value)] = number, value
        self.emit(number, value, op, parents, source)
