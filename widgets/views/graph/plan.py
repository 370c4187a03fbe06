"""Where the boxes of a graph stand and how large they are: decided once for a recording, so that nothing jumps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from widgets.layout.dag import MAX_NODES, layered
from widgets.pictures.measure import text_width
from widgets.views.graph import wording
from widgets.views.graph.tape import Entry, Tape
from widgets.views.graph.telling import gradient_line

ROOM = "grad 0.123 + 0.123"
"""Room for a gradient that was there once and is not at the end."""


Lines = tuple[str, str, str]


class Plan(NamedTuple):
    """Where everything stands: what does not change while a recording is played."""

    called: Mapping[int, str]
    nodes: Mapping[str, tuple[float, float, float, float]]
    """x, y, width, height by id of the scene."""
    bends: Mapping[str, tuple[tuple[float, float], ...]]
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
        for entry in final.entries.values():
            for i, parent in enumerate(entry.parents):
                source = str(parent) if parent in final.entries else f"c{entry.node}.{i}"
                if parent not in final.entries:
                    boxes[source] = size((wording.clipped(wording.operands(entry, called)[i]),))
                edges.append((f"{entry.node}.{i}", source, str(entry.node)))
            label, value, gradient = lines(entry, called)
            boxes[str(entry.node)] = size((label, value, gradient or ROOM * entry.cleared))
        key = tuple(boxes.items())
        if self._plan is None or key != self._key:
            self._key, self._plan = key, placed(boxes, edges, self.direction)
        used = {p for entry in final.entries.values() for p in entry.parents}
        outputs = frozenset(n for n, e in final.entries.items() if e.op and n not in used)
        self._final = final
        self._plan = self._plan._replace(called=called, outputs=outputs, largest=final.largest, written={})
        return self._plan


def placed(
    boxes: Mapping[str, tuple[float, float]], edges: list[tuple[str, str, str]], direction: str, gap: float = 84.0
) -> Plan:
    """Where boxes of these sizes stand; edges are (id, source, target)."""
    ids = list(boxes)
    if len(ids) > MAX_NODES:  # constants may exceed what the operations left room for
        ids = sorted(ids, key=lambda name: name.startswith("c"))[:MAX_NODES]
    index = {name: k for k, name in enumerate(ids)}
    edges = [e for e in edges if e[1] in index and e[2] in index]
    constants = [k for k, name in enumerate(ids) if name.startswith("c")]
    pairs = [(index[s], index[t]) for _, s, t in edges]
    gap = 50.0 if direction == "down" else gap  # numbers on arrows are wide and low
    placed = layered([boxes[name] for name in ids], pairs, direction=direction, layer_gap=gap, light=constants)
    stand = {name: (*placed.centres[k], *boxes[name]) for name, k in index.items()}
    bends = {e[0]: placed.bends[k] for k, e in enumerate(edges)}
    return Plan({}, stand, bends, frozenset(), (placed.width, placed.height), 0.0, {})


def size(texts: tuple[str, ...]) -> tuple[float, float]:
    """Of a box that holds these lines; widths in steps of 12, so that a changing digit moves nothing."""
    widest = max(text_width(line, 14.0 if k == 0 else 12.0, bold=k != 1) for k, line in enumerate(texts))
    if len(texts) == 1:
        return max(36.0, 12.0 * math.ceil((widest + 16) / 12)), 28.0
    return max(96.0, 12.0 * math.ceil((widest + 28) / 12)), 66.0


def lines(entry: Entry, called: Mapping[int, str]) -> Lines:
    """The three lines of a box: what it is, its value, its gradient."""
    label = f"{called[entry.node]} = {wording.expression(entry, called)}" if entry.op else called[entry.node]
    value = wording.short(entry.value) or f"{wording.shape(entry.shape)} {entry.dtype}"
    return wording.clipped(label), wording.clipped(value), wording.clipped(gradient_line(entry))


def signed(state: Tape) -> dict[int, float]:
    """The mean of each gradient that has a sign."""
    return {
        n: e.gradient.mean
        for n, e in state.entries.items()
        if e.has_gradient and e.gradient is not None and e.gradient.signed
    }
