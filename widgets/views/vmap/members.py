"""What a recording says of vmap up to a point: the operations of the newest vmap, each for one member and for all.

An `Entry` of the tape serves for a value of a vmap, too: its shape is that which one member has.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from lab.events import Event, OpBatched
from lab.words import counted
from widgets.tape import wording
from widgets.tape.tape import Entry

MOST = 24
"""Values of one vmap that are kept and drawn."""


class Row(NamedTuple):
    """A value inside a vmap."""

    entry: Entry
    axis: int
    """Where the members lie: 0; of an input where they lay in what was given; -1: it is shared by all."""
    became: tuple[str, ...]

    def shape_of_all(self, size: int) -> tuple[int, ...]:
        """The shape with the axis of the members, which is in front."""
        return self.entry.shape if self.axis < 0 else (size, *self.entry.shape)

    @property
    def story(self) -> str:
        """How the axis of the members came in."""
        if self.entry.op:
            return ", ".join(self.became) or "gone: it is the same for all"
        if self.axis < 0:
            return "shared by all members"
        return f"axis {self.axis} is mapped{', brought to the front' if self.axis else ''}"


class Members(NamedTuple):
    """The newest vmap: one inside another is newer than that.

    Attributes:
        level: its number; -1 before the first.
        n_vmaps: how many had begun.
        size: how many members it has.
        rows: by node, in order. Never changed.
        newest: the node that came last.
        n_left_out: operations beyond MOST.
    """

    level: int = -1
    n_vmaps: int = 0
    size: int = 0
    rows: Mapping[int, Row] = MappingProxyType({})
    newest: int = -1
    n_left_out: int = 0

    def folded(self, event: Event) -> Members:
        """These members after one more event."""
        if not isinstance(event, OpBatched) or event.level < self.level:  # of a vmap around the one that is shown
            return self
        if event.level > self.level:
            return Members(event.level, self.n_vmaps + 1, event.size).folded(event)
        if len(self.rows) >= MOST:
            return self._replace(n_left_out=self.n_left_out + bool(event.op))
        entry = Entry(
            event.node, event.op, event.name, event.parents, event.shape, event.dtype, event.constants, "",
            event.file, event.line, params=event.params,
        )  # fmt: skip
        rows = {**self.rows, event.node: Row(entry, event.axis, event.became)}
        return self._replace(rows=rows, newest=event.node)

    # --- in words ---

    @property
    def called(self) -> dict[int, str]:
        """What each value is called."""
        return wording.names({node: row.entry for node, row in self.rows.items()})

    def label(self, row: Row, called: Mapping[int, str]) -> str:
        """The value by name, of an operation with what was computed."""
        name = called[row.entry.node]
        return f"{name} = {wording.expression(row.entry, called)}" if row.entry.op else name

    def account(self) -> str:
        """What came last, then a line for each value."""
        called = self.called
        lines = {
            node: f"{self.label(row, called)}: one {wording.shape(row.entry.shape)},"
            f" all {wording.shape(row.shape_of_all(self.size))}; {row.story}"
            for node, row in self.rows.items()
        }
        more = [f"{self.n_left_out:,} more operations are not drawn"] if self.n_left_out else []
        return "\n".join([f"{counted(self.size, 'member')}. {lines[self.newest]}.", *lines.values(), *more])
