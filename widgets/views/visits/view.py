"""VisitsView: why backward goes in topological order: each box says how often either walk came by.

Without the order a value that is used twice is walked twice, and so is everything before it: the visits double from
step to step, and the gradient is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lab.events import Event, LeafUsed, NodeVisited, OpRecorded
from lab.words import counted
from widgets.fold import Stretch
from widgets.pictures.scene import Edge, Node, Scene, Token
from widgets.tape import wording
from widgets.tape.boxes import Lines, Places, standing
from widgets.tape.tape import Entry, Tape
from widgets.view import View
from widgets.views.nothing import nothing_for
from widgets.views.visits.counts import ORDERS, Counts

WRITE = (
    "x = lab.tensor(1.0, requires_grad=True); with lab.record() as rec: y = x * x; lab.count_visits(y);"
    ' lab.count_visits(y, "path"); then VisitsView(rec)'
)
GAP = 60.0


class VisitsView(View[Counts]):
    """The graph that `lab.count_visits` walked, with the visits of each node by either order.

    Args:
        source: a Recording of the operations and of both walks.
        direction: "right" or "down".

    Example:
        >>> import lab
        >>> x = lab.tensor(1.0, requires_grad=True, name="x")
        >>> with lab.record() as rec:
        ...     y = x * x
        ...     y = y * y
        ...     _ = lab.count_visits(y), lab.count_visits(y, "path")
        >>> print(VisitsView(rec).text_at(len(rec)))
        Visit 7, path by path: x. In order: 3 visits of 3 nodes. Path by path: 7 visits of 3 nodes.
        x: in order 1, path by path 4
        v₁ = x * x: in order 1, path by path 2
        v₂ = v₁ * v₁: in order 1, path by path 1
    """

    listens = (LeafUsed, OpRecorded, NodeVisited)
    stops = (NodeVisited,)
    title = "Visits"

    def __init__(self, source: Any, *, direction: str = "right") -> None:
        super().__init__(source)
        self.direction = direction
        self._placed: tuple[Tape, Places] | None = None

    def start(self) -> Counts:
        return Counts(Tape())

    def fold(self, state: Counts, event: Event) -> Counts:
        return state.folded(event)

    def fold_many(self, state: Counts, stretch: Stretch) -> Counts:
        return state.folded_many(stretch)

    # --- the picture ---

    def picture(self, state: Counts) -> Scene:
        if state.now is None:
            return Scene(caption=self._why_empty(), title=self.title)
        entries, called = state.tape.entries, wording.names(state.tape.entries)
        with self._lock:
            places = self._places()
        largest = self.state_at(len(self.recording)).largest  # a colour means the same at every stop
        used = {p for e in entries.values() for p in e.parents}
        nodes = [_node(e, state, called, places, largest, last=e.node not in used) for e in entries.values()]
        nodes += [constant for e in entries.values() for constant in _constants(e, called, places)]
        edges = [edge for e in entries.values() for edge in _edges(e, state, places)]
        tokens = tuple(Token(e.id, duration=300.0, backward=True) for e in edges if e.state == "backward")
        words = {"active": "visited now", "backward": "contribution on its way"}
        there = {n.state for n in nodes} | {e.state for e in edges}
        legend = tuple((mark, text) for mark, text in words.items() if mark in there)
        return Scene(tuple(nodes), tuple(edges), tokens, _caption(state), self.title, legend, extent=places.extent)

    def text(self, state: Counts) -> str:
        if state.now is None:
            return self._why_empty()
        called = wording.names(state.tape.entries)
        here = called.get(state.now.node, "a node that is not drawn")
        told = [f"Visit {state.now.number:,}, {ORDERS.get(state.now.order, state.now.order)}: {here}. {_totals(state)}"]
        for entry in state.tape.entries.values():
            visits = ", ".join(f"{words} {state.of(order).get(entry.node, 0):,}" for order, words in ORDERS.items())
            told.append(f"{_label(entry, called)}: {visits}")
        return "\n".join(told)

    def ids_of(self, event: Event, state: Counts, scene: Scene) -> Iterable[str]:
        """The box that was visited, and the arrow along which the walk came."""
        return {str(getattr(event, "node", -1)), f"{getattr(event, 'source', -1)}.{getattr(event, 'argument', -1)}"}

    def _places(self) -> Places:
        """Where the boxes stand, decided for the whole recording."""
        end = self.state_at(len(self.recording))
        if self._placed is None or self._placed[0] is not end.tape:
            every = wording.names(end.tape.entries)
            self._placed = end.tape, standing(
                end.tape.entries, every, lambda e: _lines(e, end, every), self.direction, GAP
            )  # fmt: skip
        return self._placed[1]

    def _why_empty(self) -> str:
        if self.recording.live or len(self.recording.positions(NodeVisited)):
            return "No walk yet: lab.count_visits makes one."
        return nothing_for("VisitsView", "walks whose visits are counted", WRITE, self.recording)


def _label(entry: Entry, called: Mapping[int, str]) -> str:
    return wording.formula(entry, called)


def _lines(entry: Entry, state: Counts, called: Mapping[int, str]) -> Lines:
    counts = (f"{words} {state.of(order).get(entry.node, 0):,}×" for order, words in ORDERS.items())
    return wording.clipped(_label(entry, called)), *counts  # type: ignore[return-value]  # two orders


def _node(
    entry: Entry, state: Counts, called: Mapping[int, str], places: Places, largest: int, *, last: bool
) -> Node:  # fmt: skip
    lines, kind = _lines(entry, state, called), "leaf" if not entry.op else "output" if last else "op"
    here = state.now is not None and state.now.node == entry.node
    tone = max(state.of(order).get(entry.node, 0) for order in ORDERS) / largest or None
    name = str(entry.node)
    where = places.nodes.get(name, (0.0, 0.0, 96.0, 66.0))
    return Node(name, *where, *lines, kind, "active" if here else "idle", tone, ", ".join(lines))


def _constants(entry: Entry, called: Mapping[int, str], places: Places) -> list[Node]:
    texts = enumerate(wording.operands(entry, called))
    made = [(f"c{entry.node}.{i}", wording.clipped(text)) for i, text in texts]
    there = [(name, text) for name, text in made if name in places.nodes]
    return [Node(name, *places.nodes[name], text, kind="constant", aria=f"constant {text}") for name, text in there]


def _edges(entry: Entry, state: Counts, places: Places) -> list[Edge]:
    now, made = state.now, []
    for i, parent in enumerate(entry.parents):
        name = f"{entry.node}.{i}"
        if name in places.bends:
            here = now is not None and (now.source, now.argument) == (entry.node, i)
            source = str(parent) if parent in state.tape.entries else f"c{entry.node}.{i}"
            made.append(Edge(name, source, str(entry.node), places.bends[name], "", "backward" if here else "idle"))
    return made


def _totals(state: Counts) -> str:
    walks = [(words, state.total(order), state.of(order)) for order, words in ORDERS.items() if state.of(order)]
    told = (f"{w.capitalize()}: {counted(n, 'visit')} of {counted(len(nodes), 'node')}." for w, n, nodes in walks)
    return " ".join(told)


def _caption(state: Counts) -> str:
    more = f" {state.tape.n_left_out:,} more operations are not drawn." if state.tape.n_left_out else ""
    return (
        f"{_totals(state)} In order a node waits until all that comes back to it is summed, and sends it on once;"
        f" path by path every contribution goes on by itself. A visited box has a colour, the yellower, the more"
        f" visits.{more}"
    )
