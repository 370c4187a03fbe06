"""DualView: forward mode. Each box has a value and, beside it, the tangent: how fast it changes along one direction.

Both are computed in the same pass, operation by operation; nothing is kept for a way back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lab.events import Event, TangentPushed, ValueSeen
from widgets.fold import Events, Positions
from widgets.pictures.scene import Edge, Node, Scene, Token
from widgets.view import View
from widgets.views.dual.duals import Duals
from widgets.views.graph import wording
from widgets.views.graph.plan import Plan, placed, size
from widgets.views.graph.tape import Entry
from widgets.views.nothing import nothing_for

WRITE = "with lab.record() as rec: lab.jvp(f, (x,), (1.0,)); then DualView(rec)"
PAIRS = 140.0
"""Room between layers, for a pair of numbers on an arrow."""
LEGEND = {"leaf": "input", "op": "operation", "output": "result", "constant": "carries no tangent"}


class DualView(View[Duals]):
    """Value and tangent through a function, as `lab.jvp` pushed them; of several jvps the newest is drawn.

    Args:
        source: a Recording, best one of detail "value" with source lines.
        direction: "right" or "down".

    Example:
        >>> import lab
        >>> def f(x, y): return x * y + x
        >>> with lab.record() as rec:
        ...     out = lab.jvp(f, (2.0, 3.0), (1.0, 0.0))
        >>> print(DualView(rec).sentence_at(len(rec)))
        v₂ = v₁ + x, 8.0, tangent 4.0.
    """

    listens = (TangentPushed, ValueSeen)
    stops = (TangentPushed,)
    title = "Forward mode"

    def __init__(self, source: Any, *, direction: str = "right") -> None:
        super().__init__(source)
        self.direction = direction
        self._planned: tuple[tuple[int, ...], int, Plan] | None = None

    def start(self) -> Duals:
        return Duals()

    def fold(self, state: Duals, event: Event) -> Duals:
        return state.folded(event)

    def stop_positions(self, events: Events) -> Positions:
        """After each value with its tangent."""
        n = len(events)
        where, seen = events.positions(TangentPushed), events.positions(ValueSeen)
        nodes, about = events.columns(TangentPushed, 0, n)["node"], events.columns(ValueSeen, 0, n)["node"]
        where = where[: len(nodes)]
        node_at = np.full(n + 3, -1, np.int64)
        node_at[seen[: len(about)]] = about
        stops: Positions = where + 1
        for k in (1, 2):
            stops = stops + ((stops == where + k) & (node_at[where + k] == nodes))
        return stops

    # --- the picture ---

    def picture(self, state: Duals) -> Scene:
        if not state.entries:
            return Scene(caption=self._why_empty(), title=self.title)
        with self._lock:
            plan = self._plan(state)
        entries = state.entries.values()
        nodes = [node for e in entries for node in _nodes(e, state, plan)]
        edges = [edge for e in entries for edge in _edges(e, state, plan)]
        tokens = tuple(Token(e.id, duration=600.0) for e in edges if e.state == "forward")
        kinds = {node.kind for node in nodes}
        legend = tuple((kind, words) for kind, words in LEGEND.items() if kind in kinds)
        return Scene(tuple(nodes), tuple(edges), tokens, _caption(state), self.title, legend, extent=plan.extent)

    def text(self, state: Duals) -> str:
        return state.account() if state.entries else self._why_empty()

    def ids_of(self, event: Event, state: Duals, scene: Scene) -> Iterable[str]:
        """The box of a value, with its constants."""
        node = getattr(event, "node", -1)
        return [n.id for n in scene.nodes if n.id == str(node) or n.id.startswith(f"c{node}.")]

    def _plan(self, state: Duals) -> Plan:
        """Where the boxes of a jvp stand, decided for the whole of it, so that nothing jumps."""
        key = state.level, len(self.recording)
        if self._planned is None or self._planned[0] != key:
            rows = self.recording.columns(TangentPushed)
            of_it = np.flatnonzero(np.asarray(rows["level"]) == state.level)
            after = of_it[-1] + 1
            end = int(rows["position"][after]) if after < len(rows["level"]) else len(self.recording)
            self._planned = key, end, _planned(self.state_at(end), self.direction)
        return self._planned[2]

    def _why_empty(self) -> str:
        if self.recording.live or len(self.recording.positions(TangentPushed)):
            return "No jvp yet: each operation that it runs adds a box with value and tangent."
        return nothing_for("DualView", "forward mode", WRITE, self.recording)


def _planned(end: Duals, direction: str) -> Plan:
    called = wording.names(end.entries)
    boxes: dict[str, tuple[float, float]] = {}
    edges = []
    for entry in end.entries.values():
        for i, (parent, text) in enumerate(zip(entry.parents, wording.operands(entry, called), strict=True)):
            source = str(parent) if parent in end.entries else f"c{entry.node}.{i}"
            if parent not in end.entries:
                boxes[source] = size((wording.clipped(text),))
            edges.append((f"{entry.node}.{i}", source, str(entry.node)))
        boxes[str(entry.node)] = size(end.lines(entry, called))
    used = {p for entry in end.entries.values() for p in entry.parents}
    outputs = frozenset(n for n, e in end.entries.items() if e.op and n not in used)
    return placed(boxes, edges, direction, PAIRS)._replace(called=called, outputs=outputs)


def _nodes(entry: Entry, state: Duals, plan: Plan) -> list[Node]:
    """The box of a value, and those of its constants."""
    lines = state.lines(entry, plan.called)
    kind = "leaf" if not entry.op else "output" if entry.node in plan.outputs else "op"
    name, status = str(entry.node), "new" if entry.node == state.newest else "idle"
    made = [Node(name, *plan.nodes[name], *lines, kind, status, aria=", ".join(lines))] if name in plan.nodes else []
    for i, text in enumerate(wording.operands(entry, plan.called)):
        name = f"c{entry.node}.{i}"
        if name in plan.nodes:
            words = wording.clipped(text)
            made.append(Node(name, *plan.nodes[name], words, kind="constant", aria=f"{words}, carries no tangent"))
    return made


def _edges(entry: Entry, state: Duals, plan: Plan) -> list[Edge]:
    """The arrows into a box; into the newest the operand and its tangent go, as a pair."""
    made = []
    for i, parent in enumerate(entry.parents):
        name, operand = f"{entry.node}.{i}", state.entries.get(parent)
        if name in plan.bends:
            here = entry.node == state.newest
            label = _pair(operand) if here and operand is not None else ""
            source = str(parent) if operand is not None else f"c{entry.node}.{i}"
            made.append(Edge(name, source, str(entry.node), plan.bends[name], label, "forward" if here else "idle"))
    return made


def _pair(operand: Entry) -> str:
    pair = wording.scalar(operand.value), wording.scalar(operand.gradient)
    return f"({', '.join(pair)})" if all(pair) else wording.shape(operand.shape)


def _caption(state: Duals) -> str:
    several = f" This is the newest of {state.n_jvps} jvps." if state.n_jvps > 1 else ""
    more = f" {state.n_left_out:,} more operations are not drawn." if state.n_left_out else ""
    return (
        "Forward mode: an operation computes its value and, by its rule, the tangent beside it, in one pass."
        f" On an arrow the pair (value, tangent).{several}{more}"
    )
