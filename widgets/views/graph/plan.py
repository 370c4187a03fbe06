"""Where the boxes of a graph stand and how large they are: decided once for a recording, so that nothing jumps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from widgets.tape import wording
from widgets.tape.boxes import Lines, size
from widgets.tape.tape import Entry, Tape
from widgets.views.graph.bands import Bands, banded
from widgets.views.graph.telling import gradient_line

LETTERS = 30
"""Of a line of a box."""
ROOM = "grad 0.123 + 0.123"
"""Room for a gradient that was there once and is not at the end."""


class Plan(NamedTuple):
    """Where everything stands: what does not change while a recording is played."""

    called: Mapping[int, str]
    nodes: Mapping[str, tuple[float, float, float, float]]
    """x, y, width, height by id of the scene."""
    bends: Mapping[str, tuple[tuple[float, float], ...]]
    frames: Mapping[int, tuple[float, float, float, float]]
    """Around what a backward walk computed, by the root of the walk."""
    outputs: frozenset[int]
    """Results that no operation used."""
    extent: tuple[float, float]
    """Width and height of the whole."""
    largest: float
    """Of all gradients with a sign, so that a colour means the same at every stop."""
    written: dict[int, tuple[Entry, Lines]]
    """The lines of each box as last written: from stop to stop few change."""

    def lines(self, entry: Entry) -> Lines:
        """The lines of a box, written once for each state of its entry."""
        known = self.written.get(entry.node)
        if known is None or known[0] is not entry:
            known = self.written[entry.node] = entry, lines(entry, self.called)
        return known[1]


class Planner:
    """Makes the Plan of a Tape, and makes it anew only when a box came or changed its size.

    Args:
        direction: "right" or "down".
    """

    def __init__(self, direction: str) -> None:
        self.direction = direction
        self._key: object = None
        self._plan: Plan | None = None
        self._final: Tape | None = None

    def plan(self, final: Tape) -> Plan:
        """The plan for all that stands on `final`."""
        if self._plan is not None and final is self._final:
            return self._plan
        called = wording.names(final.entries)
        boxes: dict[str, tuple[float, float]] = {}
        edges: list[tuple[str, str, str]] = []
        band: dict[str, int] = {}
        for entry in final.entries.values():
            for i, parent in enumerate(entry.parents):
                known = final.entries.get(parent)
                near = known is not None and known.within == entry.within
                source = str(parent) if near else f"c{entry.node}.{i}"  # from another band: its name stands there
                if not near:
                    boxes[source] = size((wording.clipped(wording.operands(entry, called)[i]),))
                    band[source] = entry.within
                edges.append((f"{entry.node}.{i}", source, str(entry.node)))
            label, value, gradient = lines(entry, called)
            band[str(entry.node)] = entry.within
            boxes[str(entry.node)] = size((label, value, gradient or ROOM * entry.cleared))
        key = tuple(boxes.items()), tuple(band.values())
        if self._plan is None or key != self._key:
            self._key, self._plan = key, _standing(banded(boxes, edges, band, self.direction))
        used = {p for entry in final.entries.values() for p in entry.parents}
        outputs = frozenset(n for n, e in final.entries.items() if e.op and n not in used)
        self._final = final
        self._plan = self._plan._replace(called=called, outputs=outputs, largest=final.largest, written={})
        return self._plan


def _standing(bands: Bands) -> Plan:
    places = bands.places
    return Plan({}, places.nodes, places.bends, bands.frames, frozenset(), places.extent, 0.0, {})


def lines(entry: Entry, called: Mapping[int, str]) -> Lines:
    """The three lines of a box: what it is, its value, its gradient."""
    label = wording.clipped(wording.fitted(entry, called, lambda text: len(text) <= LETTERS))
    return label, *lines_below(entry)


def lines_below(entry: Entry) -> tuple[str, str]:
    """The second and the third line of a box: its value, its gradient."""
    value = wording.short(entry.value) or f"{wording.shape(entry.shape)} {entry.dtype}"
    return wording.clipped(value), wording.clipped(gradient_line(entry))


def signed(state: Tape) -> dict[int, float]:
    """The mean of each gradient that has a sign."""
    return {
        n: e.gradient.mean
        for n, e in state.entries.items()
        if e.has_gradient and e.gradient is not None and e.gradient.signed
    }
