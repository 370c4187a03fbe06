"""GraphView: the graph grows as code runs, then the gradient runs back through it, rule by rule.

Every box is an operation or a tensor of a recorded run; every arrow carries the value that went along it, later the
contribution that its rule sent back. Where boxes stand is decided once for the whole recording, so that nothing jumps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lab.events import BackwardStarted, Event, GradientStored, OpRecorded, RuleApplied, ValueSeen
from widgets.fold import Events, Positions, Stretch
from widgets.layout.dag import MAX_NODES, layered
from widgets.measure import text_width
from widgets.scene import Edge, Node, Scene, Token
from widgets.view import View
from widgets.views import wording
from widgets.views.inspector import inspected
from widgets.views.tape import LISTENS, Entry, Seen, Tape

LABELLED_EDGES = 80
"""A picture with more edges shows numbers only on the edges where something moves."""
TOKENS = 60
"""At most so many tokens move at once."""
MOST_TONE = 0.75
"""The ends of the palette are so dark that every large gradient would look alike."""


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
    stops = (OpRecorded, BackwardStarted, RuleApplied, GradientStored)
    title = "Graph"

    def __init__(self, source: Any, *, direction: str = "right", limit: int = MAX_NODES) -> None:
        super().__init__(source)
        self.direction, self.limit, self.selected = direction, min(limit, MAX_NODES), ""
        self._plan: tuple[object, Plan] | None = None
        self._final: tuple[int, Tape] | None = None
        self._panel: Any = None

    def start(self) -> Tape:
        return Tape()

    def fold(self, state: Tape, event: Event) -> Tape:
        return state.folded(event, self.limit)

    def fold_many(self, state: Tape, stretch: Stretch) -> Tape:
        return state.folded_many(stretch, self.limit)

    def stop_positions(self, events: Events) -> Positions:
        """After each operation with its value, and after each step of a backward walk with what it sent."""
        n = len(events)
        trails = np.zeros(n + 1, dtype=bool)  # a ValueSeen that belongs to the event before it
        seen, where = events.columns(ValueSeen, 0, n), events.positions(ValueSeen)
        where = where[: len(seen["node"])]
        role, node = np.asarray(seen["role"]), np.asarray(seen["node"])
        trails[where[role == "contribution"]] = True
        for kind, field, wanted in ((OpRecorded, "node", "value"), (BackwardStarted, "root", "gradient")):
            own = np.full(n + 1, -1, dtype=np.int64)
            columns = events.columns(kind, 0, n)
            own[events.positions(kind)[: len(columns[field])] + 1] = columns[field]
            mine = (own[where] == node) & (role == wanted)
            trails[where[mine]] = True
        end = np.where(trails, n + 1, np.arange(n + 1))
        end = np.minimum.accumulate(end[::-1])[::-1]  # the first position from here on that does not trail
        every = np.sort(np.concatenate([events.positions(kind) for kind in self.stops]))
        every = every[every < n]
        return end[np.minimum(every + 1, n)]

    # --- the picture ---

    def picture(self, state: Tape) -> Scene:
        plan = self.plan(state)
        tones = _tones(state, plan.largest)
        nodes = [_node(e, state, plan, tones) for e in state.entries.values()]
        edges: list[Edge] = []
        for entry in state.entries.values():
            nodes.extend(_constants(entry, plan))
            edges.extend(_edges(entry, state, plan))
        tokens = _tokens(state, edges)
        calm = len(edges) > LABELLED_EDGES
        moving = {t.edge for t in tokens}
        if calm:
            edges = [e if e.id in moving else e._replace(label="") for e in edges]
        chosen = self.selected if self.selected in plan.nodes and self.selected in {n.id for n in nodes} else ""
        return Scene(
            tuple(nodes), tuple(edges), tokens, self._caption(state), self.title, _legend(nodes, edges), chosen, "diverging",
            plan.extent,
        )  # fmt: skip

    def plan(self, state: Tape) -> Plan:
        """Where everything stands: from the end of a finished recording, from the newest state of a live one."""
        final = self._end_state(state)
        called = wording.names(final.entries)
        ids: list[str] = []
        sizes: list[tuple[float, float]] = []
        edges: list[tuple[str, str, str]] = []
        for entry in final.entries.values():
            ids.append(str(entry.node))
            sizes.append(_size(_lines(entry, final, called)))
            for i, parent in enumerate(entry.parents):
                source = str(parent) if parent in final.entries else f"c{entry.node}.{i}"
                if parent not in final.entries:
                    ids.append(source)
                    sizes.append(_size((wording.clipped(wording.operands(entry, called)[i]),)))
                edges.append((f"{entry.node}.{i}", source, str(entry.node)))
        key = (tuple(ids), tuple(sizes))
        if self._plan is None or self._plan[0] != key:
            self._plan = key, _planned(ids, sizes, edges, called, final, self.direction)
        largest = max((abs(v) for v in _signed(final).values()), default=0.0)
        return self._plan[1]._replace(called=called, largest=largest)

    def _end_state(self, state: Tape) -> Tape:
        n = len(self.recording)
        if self.recording.live and n > self.position:
            n = self.position
        if self._final is None or self._final[0] != n:
            self._final = n, self.state_at(n)
        final = self._final[1]
        return final if len(final.entries) >= len(state.entries) else state

    def _caption(self, state: Tape) -> str:
        n_ops = sum(bool(e.op) for e in state.entries.values())
        if not state.entries:
            return "Nothing was recorded yet: each operation that runs adds a box."
        if state.n_left_out:
            return (
                f"From a run: the first {n_ops:,} of {n_ops + state.n_left_out:,} operations; the rest is counted, not drawn. "
                "Record a smaller piece to see all of it."
            )
        if not state.n_walks:
            point = "each box is an operation that ran, each arrow carries a value to where it was used."
        elif state.now.kind == "finish" or state.now.kind == "stored":
            point = "a gradient is the sum of what came back along all arrows that leave a box."
        else:
            point = "the gradient runs back along the arrows; each rule multiplies what it got and sends it on."
        return f"From a run of {n_ops} operation{'s' * (n_ops != 1)}: {point}"

    def text(self, state: Tape) -> str:
        called = wording.names(state.entries)
        lines = [_sentence(state, called)]
        for entry in state.entries.values():
            what = f"{called[entry.node]} = {wording.expression(entry, called)}" if entry.op else called[entry.node]
            value = wording.short(entry.value)
            gradient = _gradient_words(entry)
            lines.append(f"{what}{f' = {value}' if value else ''}, {gradient}")
        if state.n_left_out:
            lines.append(f"{state.n_left_out:,} more operations are not drawn")
        return "\n".join(lines)

    # --- the inspector ---

    def build(self) -> Any:
        """The scene with the inspector beside it."""
        import ipywidgets as ipw

        self._panel = ipw.HTML(layout=ipw.Layout(flex="1 1 260px", min_width="240px", margin="0 0 0 12px"))
        self._panel.add_class("lab-inspector")
        self.host.layout.flex, self.host.layout.min_width = "3 1 420px", "320px"
        self.host.on_select(self.select)
        self._inspect()
        return ipw.Box([self.host, self._panel], layout=ipw.Layout(display="flex", flex_flow="row wrap", width="100%"))

    def select(self, node: str) -> None:
        """Show what is known of a node of the scene, "" for none."""
        self.selected = node
        self.show(self.position)

    def shown(self) -> None:
        self._inspect()

    def _inspect(self) -> None:
        if self._panel is not None:
            html = inspected(self.state_at(self.position), self.selected, self.recording)
            if html != self._panel.value:
                self._panel.value = html


# --- pieces of the picture, all pure ---


def _size(lines: tuple[str, ...]) -> tuple[float, float]:
    """Of a box that holds these lines; widths in steps of 12, so that a changing digit moves nothing."""
    widest = max(text_width(line, 14.0 if k == 0 else 12.0, bold=k != 1) for k, line in enumerate(lines))
    if len(lines) == 1:
        return max(36.0, 12.0 * math.ceil((widest + 16) / 12)), 28.0
    return max(96.0, 12.0 * math.ceil((widest + 28) / 12)), 66.0


def _lines(entry: Entry, state: Tape, called: Mapping[int, str]) -> tuple[str, str, str]:
    label = f"{called[entry.node]} = {wording.expression(entry, called)}" if entry.op else called[entry.node]
    value = wording.short(entry.value) or f"{wording.shape(entry.shape)} {entry.dtype}"
    return wording.clipped(label), wording.clipped(value), wording.clipped(_gradient_line(entry))


def _gradient_line(entry: Entry) -> str:
    if not entry.has_gradient:
        return ""
    before, new, total = wording.sum_of_walks(entry)
    if total:
        return f"grad {before} + {new} = {total}"
    text = wording.short(entry.gradient).removeprefix(f"{wording.shape(entry.shape)} ") or "done"
    if entry.gradient is not None and entry.gradient.size == 1 and entry.gradient.minimum > 0:
        text = f"+{text}"  # the sign says what the colour says
    return f"grad {'added: ' if entry.accumulated else ''}{text}"


def _gradient_words(entry: Entry) -> str:
    if not entry.has_gradient:
        return "no gradient yet"
    before, new, total = wording.sum_of_walks(entry)
    if total:
        return f"gradient {new}, added to the {before} stored before: {total}"
    words = f"gradient {wording.short(entry.gradient) or 'computed'}"
    return f"{words}, added to what was stored before" if entry.accumulated else words


def _planned(
    ids: list[str],
    sizes: list[tuple[float, float]],
    edges: list[tuple[str, str, str]],
    called: Mapping[int, str],
    final: Tape,
    direction: str,
) -> Plan:
    ids, sizes = ids[:MAX_NODES], sizes[:MAX_NODES]  # constants may exceed what the operations left room for
    index = {name: k for k, name in enumerate(ids)}
    edges = [e for e in edges if e[1] in index and e[2] in index]
    constants = [k for k, name in enumerate(ids) if name.startswith("c")]
    pairs = [(index[s], index[t]) for _, s, t in edges]
    placed = layered(sizes, pairs, direction=direction, light=constants)
    boxes = {name: (*placed.centres[k], *sizes[k]) for name, k in index.items()}
    bends = {e[0]: placed.bends[k] for k, e in enumerate(edges)}
    extent = placed.width, placed.height
    used = {p for entry in final.entries.values() for p in entry.parents}
    return Plan(
        called, boxes, bends, frozenset(n for n, e in final.entries.items() if e.op and n not in used), extent, 0.0
    )


def _signed(state: Tape) -> dict[int, float]:
    """The mean of each gradient that has a sign, that is, whose entries do not differ in it."""
    return {
        n: e.gradient.mean
        for n, e in state.entries.items()
        if e.has_gradient and e.gradient is not None and (e.gradient.minimum >= 0 or e.gradient.maximum <= 0)
    }


def _tones(state: Tape, largest: float) -> dict[int, float]:
    """Signed magnitude in -MOST_TONE..MOST_TONE of each gradient with a sign, against the largest of the recording."""
    scale = MOST_TONE / largest if largest else 0.0
    return {n: max(-MOST_TONE, min(MOST_TONE, v * scale)) for n, v in _signed(state).items()}


def _node(entry: Entry, state: Tape, plan: Plan, tones: Mapping[int, float]) -> Node:
    label, value, gradient = _lines(entry, state, plan.called)
    kind = "leaf" if not entry.op else "output" if entry.node in plan.outputs else "op"
    x, y, width, height = plan.nodes.get(str(entry.node), (0.0, 0.0, 96.0, 66.0))
    aria = f"{label}, {value}, {_gradient_words(entry)}"
    return Node(
        str(entry.node), x, y, width, height, label, value, gradient, kind, _node_state(entry, state),
        tones.get(entry.node), aria,
    )  # fmt: skip


def _node_state(entry: Entry, state: Tape) -> str:
    for seen in (entry.value, entry.gradient):
        if seen is not None and seen.n_nonfinite:
            return "trouble"
    if entry.node == state.now.node and state.now.kind != "finish":
        return "new" if state.now.kind == "op" else "active"
    if entry.has_gradient:
        return "done"
    return "waiting" if state.n_walks and _owed(entry.node, state) else "idle"


def _owed(node: int, state: Tape) -> bool:
    """Whether something has come back to this node already, and more is to come."""
    return any(target == node for targets in state.targets.values() for target in targets)


def _constants(entry: Entry, plan: Plan) -> list[Node]:
    """The operands that are not tracked, as small boxes with their text."""
    made = []
    for i, text in enumerate(wording.operands(entry, plan.called)):
        name = f"c{entry.node}.{i}"
        if name in plan.nodes:
            made.append(Node(name, *plan.nodes[name], wording.clipped(text), kind="constant", aria=f"constant {text}"))
    return made


def _edges(entry: Entry, state: Tape, plan: Plan) -> list[Edge]:
    made = []
    targets = state.targets.get(entry.node)
    for i, parent in enumerate(entry.parents):
        name = f"{entry.node}.{i}"
        if name not in plan.bends:
            continue
        source = str(parent) if parent in state.entries else f"c{entry.node}.{i}"
        here = state.now.node == entry.node
        label, status = "", "idle"
        if here and state.now.kind == "op":
            status, label = "forward", _carried(state.entries.get(parent))
        elif targets is not None and i < len(targets):
            went = targets[i] >= 0
            status = "none" if not went else "backward" if here and state.now.kind == "rule" else "done"
            label = _on_edge(state.contributions.get((entry.node, i))) if went else ""
        made.append(Edge(name, source, str(entry.node), plan.bends[name], label, status))
    return made


def _carried(source: Entry | None) -> str:
    return _on_edge(source.value) if source is not None else ""


def _on_edge(seen: Seen | None) -> str:
    """Short enough for an arrow: a number, or the shape that went along."""
    return "" if seen is None else wording.scalar(seen) or wording.shape(seen.shape)


def _tokens(state: Tape, edges: list[Edge]) -> tuple[Token, ...]:
    """The number stands on the edge itself, so that it is still there when the token has passed."""
    moving = [e for e in edges if e.state in ("forward", "backward")][:TOKENS]
    return tuple(Token(e.id, duration=600.0, backward=e.state == "backward") for e in moving)


def _legend(nodes: list[Node], edges: list[Edge]) -> tuple[tuple[str, str], ...]:
    """Words for the marks that are on the picture, and for no others."""
    words = {
        "leaf": "tensor you made", "op": "operation", "output": "result", "constant": "not tracked", "new": "just computed",
        "active": "here now", "done": "gradient complete", "waiting": "gradient arriving", "trouble": "nan or infinity",
        "forward": "value", "backward": "gradient", "none": "no gradient wanted",
    }  # fmt: skip
    there = {n.kind for n in nodes} | {n.state for n in nodes} | {e.state for e in edges} - {"done", "idle"}
    return tuple((mark, text) for mark, text in words.items() if mark in there)


def _sentence(state: Tape, called: Mapping[int, str]) -> str:
    """What happened last, in one sentence for the label of the player and for screen readers."""
    entry = state.entries.get(state.now.node)
    if not state.now.kind or entry is None:
        return "Backward finished." if state.now.kind == "finish" else "Nothing happened yet."
    name = called[entry.node]
    if state.now.kind == "op":
        value = wording.short(entry.value)
        return f"{name} = {wording.expression(entry, called)}{f' = {value}' if value else ''} was computed."
    if state.now.kind == "start":
        return f"Backward starts at {name}: its gradient is {wording.short(entry.gradient) or 'given'}."
    if state.now.kind == "stored":
        return f"{name}: {_gradient_words(entry)}."
    if state.now.kind == "finish":
        return f"Backward from {name} finished."
    sent = []
    for i, target in enumerate(state.targets.get(entry.node, ())):
        if target >= 0:
            what = wording.short(state.contributions.get((entry.node, i)))
            sent.append(f"{what or 'its part'} to {called.get(target, 'a node that is not drawn')}")
    return f"{name} = {wording.expression(entry, called)} sends {', '.join(sent) or 'nothing'}."
