"""GraphView: the graph grows as code runs, then the gradient runs back through it, rule by rule.

Every box is an operation or a tensor of a recorded run; every arrow carries the value that went along it, later the
contribution that its rule sent back. Where boxes stand is decided once for the whole recording, so that nothing jumps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.events import (
    BackwardStarted,
    Event,
    GradientCleared,
    GradientStored,
    LeafUsed,
    OpRecorded,
    RuleApplied,
    StepFinished,
    ValueSeen,
    ValueWritten,
)
from widgets.asking.panel import Panel, Question
from widgets.fold import Events, Positions, Stretch, merged
from widgets.layout.dag import MAX_NODES
from widgets.pictures.scene import Scene
from widgets.view import View
from widgets.views.graph import wording
from widgets.views.graph.inspector import inspected
from widgets.views.graph.parts import constants_of, edges_of, legend_of, node_of, tokens_of, tones_of
from widgets.views.graph.plan import Planner
from widgets.views.graph.tape import LISTENS, Tape
from widgets.views.graph.telling import account, caption, sentence, why_empty

LABELLED_EDGES = 80
"""A picture with more edges shows numbers only on the edges where something moves."""

WENT_ON = "The run went on: pause it, and choose the box again, to ask why its gradient is what it is now."


class GraphView(View[Tape]):
    """The graph that a recording saw, with values and gradients; a click on a node shows everything known of it.

    Args:
        source: a Recording, best one of detail "value" with source lines (`lab.record(detail="value")`).
        direction: "right" or "down".
        limit: at most so many nodes are kept; what is left out is counted in the caption.

    Example:
        >>> import lab
        >>> x, y = lab.tensor(2.0, requires_grad=True, name="x"), lab.tensor(3.0, requires_grad=True, name="y")
        >>> with lab.record(detail="value") as rec:
        ...     (x * y + x).backward()
        >>> print(GraphView(rec).text_at(len(rec)).splitlines()[1])
        x = 2.0, gradient 4.0
    """

    listens = LISTENS
    stops = (OpRecorded, BackwardStarted, RuleApplied, GradientStored, ValueWritten, GradientCleared)
    title = "Graph"

    def __init__(self, source: Any, *, direction: str = "right", limit: int = MAX_NODES) -> None:
        super().__init__(source)
        self.limit, self.selected = min(limit, MAX_NODES), ""
        self._planner = Planner(direction)
        self._newest: tuple[int, Tape] | None = None
        self._panel: Any = None
        self.question = Question(self.recording)
        self._why: Panel | None = None

    def start(self) -> Tape:
        return Tape()

    def fold(self, state: Tape, event: Event) -> Tape:
        return state.folded(event, self.limit)

    def fold_many(self, state: Tape, stretch: Stretch) -> Tape:
        return state.folded_many(stretch, self.limit)

    def stop_positions(self, events: Events) -> Positions:
        """After each operation or write with its value, and after each step of a backward walk with what it sent."""
        n = len(events)
        trails = np.zeros(n + 1, dtype=bool)  # a ValueSeen that belongs to the event before it
        seen, where = events.columns(ValueSeen, 0, n), events.positions(ValueSeen)
        where = where[: len(seen["node"])]
        role, node = np.asarray(seen["role"]), np.asarray(seen["node"])
        trails[where[role == "contribution"]] = True
        belongs = (OpRecorded, "node", "value"), (ValueWritten, "node", "value"), (BackwardStarted, "root", "gradient")
        for kind, field, wanted in belongs:
            own = np.full(n + 1, -1, dtype=np.int64)
            columns = events.columns(kind, 0, n)
            own[events.positions(kind)[: len(columns[field])] + 1] = columns[field]
            mine = (own[where] == node) & (role == wanted)
            trails[where[mine]] = True
        end = np.where(trails, n + 1, np.arange(n + 1))
        end = np.minimum.accumulate(end[::-1])[::-1]  # the first position from here on that does not trail
        every = merged(*(_of_known(events, kind) for kind in self.stops))
        stops: Positions = end[every[every < n] + 1]
        return stops

    # --- the picture ---

    def picture(self, state: Tape) -> Scene:
        plan = self._planner.plan(self._end(state))
        tones = tones_of(state, plan.largest)
        entries = state.entries.values()
        owed = {target for targets in state.targets.values() for target in targets}
        nodes = [node_of(e, state, plan, tones, owed) for e in entries]
        nodes += [constant for e in entries for constant in constants_of(e, plan)]
        edges = [edge for e in entries for edge in edges_of(e, state, plan)]
        tokens = tokens_of(edges)
        if len(edges) > LABELLED_EDGES:
            moving = {t.edge for t in tokens}
            edges = [e if e.id in moving else e._replace(label="") for e in edges]
        chosen = self.selected if self.selected in {n.id for n in nodes} else ""
        legend = legend_of(nodes, edges)
        words = caption(state, any(tones.values())) if state.entries else self._why_empty(state)
        return Scene(
            tuple(nodes), tuple(edges), tokens, words, self.title, legend, chosen, "diverging", plan.extent,
            lit=self._lit({n.id for n in nodes} | {e.id for e in edges}),
        )  # fmt: skip

    def _lit(self, drawn: set[str]) -> frozenset[str]:
        """The path that was chosen in the inspector, as far as it is drawn."""
        path = self.question.path
        if path is None:
            return frozenset()
        places = [str(place.node) for place in path.places]
        steps = [f"{place}.{i}" for place, i in zip(places[1:], path.operands, strict=True)]
        return frozenset({*places, *steps} & drawn)

    def _end(self, state: Tape) -> Tape:
        """The newest state of the recording: it decides where boxes stand, also while an earlier one is shown."""
        n = len(self.recording)
        if self._newest is None or self._newest[0] != n:
            self._newest = n, self.state_at(n)
        newest = self._newest[1]
        return newest if len(newest.entries) >= len(state.entries) else state

    def text(self, state: Tape) -> str:
        return account(state) if state.entries else self._why_empty(state)

    def sentence_at(self, position: int) -> str:
        """What happened last, without writing the account of everything."""
        state = self.state_at(position)
        return sentence(state, wording.names(state.entries)) if state.entries else self._why_empty(state)

    def _why_empty(self, state: Tape) -> str:
        rec = self.recording
        ended = not rec.live and not self._end(state).entries
        return why_empty(state, ended=ended, trained=len(rec.positions(StepFinished)) > 0)

    # --- the inspector ---

    def build(self) -> Any:
        """The scene with the inspector beside it."""
        import ipywidgets as ipw

        self._panel = ipw.HTML()
        self._panel.add_class("lab-inspector")
        self.host.layout.flex, self.host.layout.min_width = "3 1 420px", "320px"
        self.host.on_select(self.select)
        self._why = Panel(self.question, lambda: self.show(self.position))
        self.shown()
        room = ipw.Layout(flex="1 1 260px", min_width="240px", margin="0 0 0 12px")
        beside = ipw.VBox([self._panel, self._why.widget], layout=room)
        return ipw.Box([self.host, beside], layout=ipw.Layout(display="flex", flex_flow="row wrap", width="100%"))

    def select(self, node: str) -> None:
        """Show what is known of a node of the scene, "" for none."""
        self.selected = node
        self._ask(self.state_at(self.position))
        self.show(self.position)

    def _ask(self, state: Tape) -> None:
        """Why the gradient of the selected node is what it is; of a node without one nothing is asked."""
        entry = state.entries.get(int(self.selected)) if self.selected.isdigit() else None
        self.question.ask(entry.node if entry is not None and entry.has_gradient else None, self.position)

    def shown(self) -> None:
        if self._panel is not None:
            html = inspected(self.state_at(self.position), self.selected, self.recording)
            if html != self._panel.value:
                self._panel.value = html
        if self._why is not None:
            if not (self.recording.live and self._following):
                self._ask(self.state_at(self.position))
            elif self.question.answer is not None and self.question.at != self.position:
                self.question.set_aside(WENT_ON)  # a search takes as long as many a step
            self._why.show()


def _of_known(events: Events, kind: type[Event]) -> Positions:
    """Where the events of a kind stand, without what happened to leaves before their first use: they have no box."""
    where = events.positions(kind)
    if kind not in (ValueWritten, GradientCleared) or not len(where):
        return where
    used = dict(zip(events.columns(LeafUsed)["node"].tolist(), events.positions(LeafUsed).tolist(), strict=False))
    nodes = events.columns(kind)["node"].tolist()
    known = [p for p, node in zip(where.tolist(), nodes, strict=False) if used.get(node, p) < p]
    return np.asarray(known, dtype=np.int64)
