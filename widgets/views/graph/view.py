"""GraphView: the graph grows as code runs, then the gradient runs back through it, rule by rule.

Every box is an operation or a tensor of a recorded run; every arrow carries the value that went along it, later the
contribution that its rule sent back. Where boxes stand is decided once for the whole recording, so that nothing jumps.
A graph of more than MOST boxes is shown by module (`large.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lab import checks
from lab.errors import ViewError
from lab.events import (
    BackwardStarted,
    Event,
    GradientCleared,
    GradientStored,
    OpRecorded,
    RuleApplied,
    RunStarted,
    ValueSeen,
    ValueWritten,
)
from widgets.asking.panel import Panel, Question
from widgets.fold import Events, Positions, Stretch
from widgets.layout.dag import MAX_NODES
from widgets.pictures.scene import Scene
from widgets.tape.stops import settled
from widgets.tape.tape import LISTENS, Tape
from widgets.view import View
from widgets.views.graph.inspector import inspected
from widgets.views.graph.large import Large
from widgets.views.graph.parts import constants_of, edges_of, frames_of, legend_of, node_of, tokens_of, tones_of
from widgets.views.graph.passes import Passes
from widgets.views.graph.paths import KINDS, Path, path_of
from widgets.views.graph.plan import Planner
from widgets.views.graph.telling import account, caption, sentence, why_empty
from widgets.views.graph.trouble import Trouble
from widgets.views.nothing import shown_by

KEPT = 100_000
"""Nodes that are kept of a recording, about 1 kB each; what comes after is counted in caption and text."""
MOST = 60
"""A graph of more boxes is shown by module."""
MORE = {
    "pin": ("Pin", "Keep this box on the picture when its group is closed"),
    "clear": ("Light all", "No path and no search: nothing fades"),
    "bad": ("First nan", "Light the operation in which nan or infinity began, with its operands"),
    "open": ("Open all", "Open every group, or close all again"),
}
LABELLED_EDGES = 80
"""A picture with more edges shows numbers only on the edges where something moves."""
ROW = 900
"""Pixels for the boxes of a small graph, whose letters would be too small for many a reader with less."""
WENT_ON = "The run went on: pause it, and choose the box again, to ask why its gradient is what it is now."


class GraphView(View[Tape]):
    """The graph that a recording saw, with values and gradients; a click on a node shows everything known of it.

    Args:
        source: a Recording, best one of detail "value" with source lines (`lab.record(detail="value")`).
        direction: "right" or "down".
        limit: at most so many nodes are kept; what is left out is counted in the caption.
        most: a graph of more boxes is shown by module: groups that open where one looks.

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

    def __init__(self, source: Any, *, direction: str = "right", limit: int = KEPT, most: int = MOST) -> None:
        super().__init__(source)
        checks.choice("a graph does not grow this way", direction, ("right", "down"), error=ViewError)
        most = checks.whole("most", most, least=0, hint=f"{MOST} if not given", error=ViewError)
        self.limit = checks.whole("limit", limit, least=0, hint=f"{KEPT:,} if not given", error=ViewError)
        self.most, self.selected = min(most, MAX_NODES), ""
        self.large = Large(direction)
        self._planner = Planner(direction)
        self._newest: tuple[int, Tape] | None = None
        self.trouble = Trouble(self.recording)
        self._panel: Any = None
        self.question = Question(self.recording, names=self.large.names.full)
        self._why: Panel | None = None
        self._buttons: dict[str, Any] = {}
        self._passes: Passes | None = None

    def start(self) -> Tape:
        return Tape()

    def fold(self, state: Tape, event: Event) -> Tape:
        return state.folded(event, self.limit)

    def fold_many(self, state: Tape, stretch: Stretch) -> Tape:
        return state.folded_many(stretch, self.limit)

    def stop_positions(self, events: Events) -> Positions:
        """After each operation or write with its value, and after each step of a backward walk with what it sent."""
        return settled(events, self.stops)

    # --- the picture ---

    def picture(self, state: Tape) -> Scene:
        with self._lock:  # what was placed and drawn is kept, and the pacer draws in a thread of its own
            scene = self._picture(state)
            return scene if self.large.found else self.trouble.told(scene, state)

    def _picture(self, state: Tape) -> Scene:
        end = self._end(state)
        if self._is_large(end):
            if state.entries:
                scene = self.large.scene(state, end, self.selected, self.title)
                if scene.lit:
                    return scene
                path = self.question.path
                steps = [] if path is None else zip((p.node for p in path.places[1:]), path.operands, strict=True)
                lit = self.large.lit_along(steps or self.trouble.steps(state))
                return replace(scene, lit=lit) if lit else scene
            return Scene(caption=self._why_empty(state), title=self.title)
        plan = self._planner.plan(end)
        tones = tones_of(state, plan.largest)
        entries = state.entries.values()
        owed = {target for targets in state.targets.values() for target in targets}
        nodes = frames_of(state, plan)
        nodes += [node_of(e, state, plan, tones, owed) for e in entries]
        nodes += [constant for e in entries for constant in constants_of(e, plan)]
        edges = [edge for e in entries for edge in edges_of(e, state, plan)]
        tokens = tokens_of(edges)
        if len(edges) > LABELLED_EDGES:
            moving = {t.edge for t in tokens}
            edges = [e if e.id in moving else e._replace(label="") for e in edges]
        chosen = self.selected if self.selected in {n.id for n in nodes} else ""
        pinned = frozenset(str(n) for n in self.large.pinned if n in state.entries)
        legend = legend_of(nodes, edges, pinned)
        words = caption(state, any(tones.values())) if state.entries else self._why_empty(state)
        drawn = {n.id for n in nodes} | {e.id for e in edges}
        lit = self._lit(state) or self._lit_of_question(drawn) or (self.trouble.lit(state) & drawn)
        if self.large.found:
            words = self.large.told_hits()
        return Scene(
            tuple(nodes), tuple(edges), tokens, words, self.title, legend, chosen, "diverging", plan.extent,
            lit=lit, pinned=pinned, found=self.large.found,
        )  # fmt: skip

    def _is_large(self, end: Tape) -> bool:
        self.large.grow(end.entries)
        return self.large.n_boxes > self.most

    def _lit(self, state: Tape) -> frozenset[str]:
        """What stands out where every node has its box."""
        path = self.large.path
        if self.large.found:
            return frozenset(str(n) for n in self.large.hits if n in state.entries)
        if not path.kind or not path.box.isdigit():
            return frozenset()
        nodes = path_of(path, state, [int(path.box)])
        there = [e for e in state.entries.values() if e.node in nodes]
        ways = {f"{e.node}.{i}" for e in there for i, p in enumerate(e.parents) if p in nodes}
        return frozenset(str(e.node) for e in there) | ways

    def _lit_of_question(self, drawn: set[str]) -> frozenset[str]:
        """The path that was chosen in the inspector, as far as it is drawn."""
        path = self.question.path
        if path is None:
            return frozenset()
        places = [str(place.node) for place in path.places]
        steps = [f"{place}.{i}" for place, i in zip(places[1:], path.operands, strict=True)]
        return frozenset({*places, *steps, *(f"c{step}" for step in steps)} & drawn)

    def ids_of(self, event: Event, state: Tape, scene: Scene) -> Iterable[str]:
        """The box of the operation with its constants, or the two and the arrow along which it sent something back."""
        nodes = {n for name in ("node", "root", "source") if (n := getattr(event, name, -1)) >= 0}
        if self.large.n_boxes > self.most:
            sent = {(event.source, event.argument)} if isinstance(event, ValueSeen) and event.source >= 0 else set()
            return self.large.boxes_of(nodes) | (self.large.lit_along(sent) if sent else frozenset())
        if isinstance(event, OpRecorded):
            own = {n.id for n in scene.nodes if n.id.startswith(f"c{event.node}.")}
            return {str(event.node), *own, *(name.removeprefix("c") for name in own)}  # their arrows, too
        way = f"{event.source}.{event.argument}" if isinstance(event, ValueSeen) else ""
        return {*map(str, nodes), way}

    def _end(self, state: Tape) -> Tape:
        """The newest state of the recording: it decides where boxes stand, also while an earlier one is shown."""
        n = len(self.recording)
        if self._newest is None or self._newest[0] != n:
            self._newest = n, self.state_at(n)
        newest = self._newest[1]
        return newest if len(newest.entries) >= len(state.entries) else state

    def text(self, state: Tape) -> str:
        if not state.entries:
            return self._why_empty(state)
        with self._lock:
            end = self._end(state)
            told = self.large.text(state, end) if self._is_large(end) else account(state)
            return told if state.bad is None else f"{told}\n{self.trouble.words()}"

    def sentence_at(self, position: int) -> str:
        """What happened last, without writing the account of everything."""
        state = self.state_at(position)
        if not state.entries:
            return self._why_empty(state)
        with self._lock:
            self.large.grow(self._end(state).entries)
        return sentence(state, self.large.names.full)

    def box_at(self, position: int) -> str:
        """What the box is called in which the newest thing happened: "v₄", "v₄ in the box “blocks × 3”"."""
        state = self.state_at(position)
        node = state.now.node
        if node not in state.entries:
            return ""
        with self._lock:
            self.large.grow(self._end(state).entries)
            name = self.large.names.full[node]
            if self.large.n_boxes <= self.most:
                return name
            self.large.drawing(state, self._end(state))
            group = self.large.group(self.large.op_of(self.large.box_of(str(node))))
        return f"{name} in the box “{group.name}”" if group is not None else name

    def _why_empty(self, state: Tape) -> str:
        rec = self.recording
        ended = not rec.live and not self._end(state).entries
        words = why_empty(state, ended=ended, trained=len(rec.positions(RunStarted)) > 0)
        return words + shown_by(rec, "GraphView") * words.startswith("Nothing was recorded:")

    # --- the inspector ---

    def build(self) -> Any:
        """The scene with the inspector beside it, or below it where the scene needs the width."""
        import ipywidgets as ipw

        from widgets.live.buttons import pixels

        self._panel = ipw.HTML()
        self._panel.add_class("lab-inspector")
        for kind, (label, tip) in {**KINDS, **MORE}.items():
            made = ipw.Button(description=label, tooltip=tip, layout=ipw.Layout(width="auto", min_height=pixels(32)))
            made.add_class("lab-button")
            made.on_click(lambda _, kind=kind: self._pressed(kind))
            self._buttons[kind] = made
        for listen, hear in (
            (self.host.on_select, self.select), (self.host.on_fold, self.fold_box), (self.host.on_pin, self.pin),
            (self.host.on_find, self.find),
        ):  # fmt: skip
            listen(hear)
        self._why = Panel(self.question, lambda: self.show(self.position))
        self._passes = Passes(self.show_pass)
        self.shown()
        wrap: dict[str, Any] = {"display": "flex", "flex_flow": "row wrap", "width": "100%"}
        buttons = ipw.Box([*self._buttons.values(), self._passes.widget], layout=ipw.Layout(**wrap))
        graph = ipw.VBox([self.host, buttons], layout=ipw.Layout(flex=f"3 1 {self._least_width()}", min_width="320px"))
        room = ipw.Layout(flex="1 1 260px", min_width="240px", margin="0 0 0 12px")
        beside = ipw.VBox([self._panel, self._why.widget], layout=room)
        return ipw.Box([graph, beside], layout=ipw.Layout(**wrap))

    def _least_width(self) -> str:
        """Of the scene beside the inspector. Few boxes in a row are low: what is known of one has room below."""
        from widgets.live.buttons import pixels

        row = self.large.direction == "right" and not self._is_large(self._end(self.state_at(self.position)))
        return pixels(ROW) if row else "420px"

    def shown(self) -> None:
        if self._panel is None:
            return
        state, chosen = self.state_at(self.position), self.selected
        group = self.large.group(chosen)
        html = inspected(state, chosen, self.recording, self.large.names.full, group)
        if html != self._panel.value:
            self._panel.value = html
        large = self._is_large(self._end(state))
        usable = group is not None or (chosen.isdigit() and int(chosen) in state.entries)
        for kind, button in self._buttons.items():
            bad = state.bad is not None
            on = {"pin": usable and group is None, "clear": self._fades, "open": large, "bad": bad}.get(kind, usable)
            if button.disabled == on:
                button.disabled = not on
            here = {"pin": large, "open": large, "bad": bad}.get(kind, True)  # nothing is closed that could be open
            shown = None if here else "none"
            if button.layout.display != shown:
                button.layout.display = shown
        pinned = chosen.isdigit() and int(chosen) in self.large.pinned
        words = {"pin": "Unpin" if pinned else "Pin", "open": "Close all" if self.large.everything else "Open all"}
        for kind, word in words.items():
            if self._buttons[kind].description != word:
                self._buttons[kind].description = word
        if self._passes is not None:
            self._passes.show(self.large, one_at_a_time=large)
        if self._why is not None:
            if not (self.recording.live and self._following):
                self._ask(state)
            elif self.question.answer is not None and self.question.at != self.position:
                self.question.set_aside(WENT_ON)  # a search takes as long as many a step
            self._why.show()

    @property
    def _fades(self) -> bool:
        return bool(self.large.found or self.large.path.kind or self.trouble.lights)

    def _pressed(self, kind: str) -> None:
        if kind == "clear":
            self.light("", "")
        elif kind == "bad":
            self.light_nonfinite()
        elif kind == "pin":
            self.pin(self.selected)
        elif kind == "open":
            self.open_all(not self.large.everything)
        else:
            self.light(kind, self.selected)

    # --- what a reader does; also to be called from a cell ---

    def select(self, node: str) -> None:
        """Show what is known of a node of the scene, "" for none."""
        node = _box("select", node)
        self.selected = self.large.op_of(node)
        self._ask(self.state_at(self.position))
        self.show(self.position)

    def _ask(self, state: Tape) -> None:
        """Why the gradient of the selected node is what it is; of a node without one nothing is asked."""
        entry = state.entries.get(int(self.selected)) if self.selected.isdigit() else None
        self.question.ask(entry.node if entry is not None and entry.has_gradient else None, self.position)

    def fold_box(self, box: str) -> None:
        """Open the closed group that a box is, or close the open one."""
        box = _box("fold_box", box)
        with self._lock:
            self.large.fold(box)
            self.show(self.position)

    def open_all(self, on: bool = True) -> None:
        """Open every group, also those that come; or, with False, close all."""
        with self._lock:
            self.large.open_all(on)
            self.show(self.position)

    def pin(self, box: str) -> None:
        """Hold on to a node, so that it stays on the picture when its group is closed; or let it go."""
        box = _box("pin", box)
        with self._lock:
            self.large.pin(box)
            self.show(self.position)

    def find(self, text: str) -> None:
        """Light the nodes whose name, operation, module or shape has all these words in it; "" lights all again."""
        checks.text("text", text, hint='for example view.find("matmul")', error=ViewError)
        with self._lock:
            newest = self.state_at(len(self.recording))
            self.large.grow(newest.entries)
            self.large.path = Path("", "")
            self.large.find(text, newest)
            self.show(self.position)

    def light(self, kind: str, box: str) -> None:
        """Light a path of a node or group: "forward", "back" or "came"; "" lights all again."""
        checks.choice("there is no such path", kind, ("", *KINDS), error=ViewError)
        box = _box("light", box)
        with self._lock:
            self.large.find("", Tape())
            self.large.path, self.trouble.lights = Path(kind, box), False
            self.show(self.position)

    def light_nonfinite(self) -> None:
        """Light the operation in which nan or infinity began, with its operands, and show what is known of it."""
        with self._lock:
            self.light("", "")
            self.trouble.lights = True
            self.select(str(self.state_at(len(self.recording)).bad_node))

    def show_pass(self, number: int | None) -> None:
        """Draw pass `number` of several that were recorded one after the other, from 0 on; None: the newest.

        Raises:
            ViewError: the recording has ended and holds no such pass.
        """
        if number is not None:
            number = checks.whole("number", number, least=0, hint="None shows the newest pass", error=ViewError)
        with self._lock:
            self.large.grow(self.state_at(len(self.recording)).entries)
            n = len(self.large.groups.roots)
            if number is not None and not self.recording.live and not 0 <= number < n:
                raise ViewError(
                    "the recording holds no such pass", given=f"pass {number}, {n} recorded",
                    hint="they are counted from 0 in the order in which they ran; None shows the newest",
                )  # fmt: skip
            self.large.chosen = number
            self.show(self.position)


def _box(does: str, box: Any) -> str:
    """The id of a box, as a click gives it."""
    return checks.text("a box", box, hint=f'its id, as view.{does}("3"); a click on it does the same', error=ViewError)
