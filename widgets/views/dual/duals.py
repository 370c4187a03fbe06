"""What a recording says of forward mode up to a point: the values of the newest jvp, each with its tangent.

An `Entry` of the tape serves for a dual number, too: its tangent stands where a gradient would.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from lab.events import Event, TangentPushed, ValueSeen
from widgets.tape import wording
from widgets.tape.tape import Entry, seen_of

MOST = 60
"""Values of one jvp that are kept and drawn."""


class Duals(NamedTuple):
    """The newest jvp: one inside another is newer than that.

    Attributes:
        level: its number; -1 before the first.
        n_jvps: how many had begun.
        entries: value and tangent by node, in order. Never changed.
        newest: the node that came last.
        n_left_out: operations beyond MOST.
    """

    level: int = -1
    n_jvps: int = 0
    entries: Mapping[int, Entry] = MappingProxyType({})
    newest: int = -1
    n_left_out: int = 0

    def folded(self, event: Event) -> Duals:
        """These duals after one more event."""
        if isinstance(event, TangentPushed):
            return self._pushed(event)
        if isinstance(event, ValueSeen) and event.node in self.entries and event.role in ("value", "tangent"):
            entry, seen = self.entries[event.node], seen_of(event)
            entry = entry._replace(value=seen) if event.role == "value" else entry._replace(gradient=seen)
            return self._replace(entries={**self.entries, event.node: entry})
        return self

    def _pushed(self, event: TangentPushed) -> Duals:
        if event.level < self.level:  # of a jvp around the one that is shown
            return self
        if event.level > self.level:
            return Duals(event.level, self.n_jvps + 1)._pushed(event)
        if len(self.entries) >= MOST:
            return self._replace(n_left_out=self.n_left_out + bool(event.op))
        entry = Entry(
            event.node, event.op, event.name, event.parents, event.shape, event.dtype, event.constants, "",
            event.file, event.line, params=event.params,
        )  # fmt: skip
        return self._replace(entries={**self.entries, event.node: entry}, newest=event.node)

    # --- in words ---

    def lines(self, entry: Entry, called: Mapping[int, str]) -> tuple[str, str, str]:
        """The lines of a box: what it is, its value, its tangent."""
        label = wording.formula(entry, called)
        value = wording.short(entry.value) or f"{wording.shape(entry.shape)} {entry.dtype}"
        tangent = f"tangent {wording.short(entry.gradient)}".rstrip()
        return wording.clipped(label), wording.clipped(value), wording.clipped(tangent)

    def account(self) -> str:
        """What came last, then a line for each value."""
        called = wording.names(self.entries)
        told = [f"{', '.join(self.lines(self.entries[self.newest], called))}."] if self.newest in self.entries else []
        for entry in self.entries.values():
            label, value, _ = self.lines(entry, called)
            parts = [_pushed_by(entry, called), wording.short(entry.gradient)]
            told.append(f"{label} = {value}, tangent {' = '.join(filter(None, parts))}".rstrip())
        more = [f"{self.n_left_out:,} more operations are not drawn"] if self.n_left_out else []
        return "\n".join([*told, *more])


def _pushed_by(entry: Entry, called: Mapping[int, str]) -> str:
    """How the tangent was made, "dx * y + dy * x": an elementwise operation reads its rules of backward forwards."""
    known = wording.record(entry.op) if entry.op else None
    if known is None or not known.elementwise:
        return ""
    names = dict(zip(known.arguments, wording.operands(entry, called), strict=False)) | {"out": called[entry.node]}
    return " + ".join(
        wording.filled(known.rule_text(i), names | {"ct": f"d{called[p]}"})
        for i, p in enumerate(entry.parents)
        if p in called and known.rule(i) is not None
    )
