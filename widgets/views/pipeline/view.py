"""PipelineView: micro-batches go through the stages; what each rank did when, over what its order would ideally take.

Above, activations move right and gradients left; below, for each rank, the measured spans over those of the plan and
the activations that it holds. One optimiser step at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lab.events import ActionFinished, ActionStarted, ActivationMoved, Event, RankFinished, StepFinished
from widgets.fold import Events, Positions, Stretch, merged
from widgets.pictures.scene import SPANS, Edge, Node, Scene
from widgets.view import View
from widgets.views.pipeline.columns import in_ticks
from widgets.views.pipeline.moment import History, Moment
from widgets.views.pipeline.parts import board_of, marks_of, spans_of, stages_of, ways_of
from widgets.views.pipeline.telling import account, caption, why_empty
from widgets.views.pipeline.trace import LISTENS, STEP, Trace

MOST_STOPS = 1000
"""A player stops at each action of so many; of a longer recording at each end of a step, and at each action of one."""
LATEST = "latest"
"""In the list of steps; not None, which a list takes for nothing chosen, and shows as a blank."""
LISTED = 200
"""So many steps are offered to choose from."""

LEGEND = {
    "forward_span": "forward (F)", "backward_span": "backward (B)", "forward": "activation", "backward": "gradient",
    "active": "runs now", "waiting": "waits", "done": "finished",
    "stopped": "was at work when the recording ended",
}  # fmt: skip
OF_BARS = {"active": "the bar that finished last", "waiting": "a bar that is not finished"}
"""What a state means on a bar; LEGEND says it of a stage."""


class PipelineView(View[Trace]):
    """One optimiser step of a pipeline: stages and what moves between them, spans of all ranks, plan, live activations.

    Args:
        source: a Run, or a Recording with ActionFinished events.
        step: the step to show, by its number; None is the latest complete one, and while playing the one that runs.

    Attributes:
        follows: whether None is the step under way, drawn by ticks, as of a run that is held within one.

    Example:
        >>> import lab
        >>> from lab.events import ActionFinished, bus
        >>> with lab.record() as rec:
        ...     bus.emit(ActionFinished("F", 0, 0, False, 0, 4_000_000, 1))
        >>> PipelineView(rec).sentence_at(1)
        'Stage 0 finished the forward of micro-batch 0.'
    """

    listens = LISTENS
    stops = (ActionFinished,)
    title = "Pipeline"

    def __init__(self, source: Any, *, step: int | None = None) -> None:
        super().__init__(source)
        self.step, self.follows = step, False
        self._newest: tuple[tuple[int, bool], History] | None = None
        self._choice: Any = None

    def start(self) -> Trace:
        return Trace()

    def fold(self, state: Trace, event: Event) -> Trace:
        return state.folded((event,))

    def fold_many(self, state: Trace, stretch: Stretch) -> Trace:
        return state.folded(stretch.of(LISTENS))

    def history(self) -> History:
        """All that the recording knows by now."""
        over = not self.recording.live  # asked before: what came before the end is in the state
        n = len(self.recording)
        if self._newest is None or self._newest[0] != (n, over):
            self._newest = (n, over), History(self.state_at(n), over=over)
        return self._newest[1]

    def moment(self, state: Trace) -> Moment | None:
        """What is shown of a state; None if there is nothing."""
        history = self.history()
        chosen = None if self.step is None else _step_of(history, self.step)
        shown = history.shown(state.n, chosen, self.follows)
        if shown < 0 or not history.of(shown):
            return None
        silent = history.over and not (history.trace.names or history.trace.ended)  # no event will tell a step's end
        moment = history.moment(state.n, shown, silent or shown in state.names or bool(state.ended))
        return in_ticks(moment) if self.follows and self.step is None else moment

    def picture(self, state: Trace) -> Scene:
        moment = self.moment(state)
        if moment is None:
            return Scene(caption=self._why_empty(state), title=self.title)
        board = board_of(moment)
        edges, tokens = ways_of(moment, board)
        nodes = [*stages_of(moment, board), *spans_of(moment, board)]
        legend = _legend(nodes, edges)
        words = caption(moment)
        return Scene(tuple(nodes), tuple(edges), tokens, words, self.title, legend, extent=board.extent,
                     marks=tuple(marks_of(moment, board)))  # fmt: skip

    def ids_of(self, event: Event, state: Trace, scene: Scene) -> Iterable[str]:
        """The bar of an action and its stage, as long as its step is shown; the way of what moved."""
        if isinstance(event, ActivationMoved):
            way = f"{'b' if event.kind == 'B' else 'f'}{min(event.src_stage, event.dst_stage)}"
            return {way, f"s{event.src_stage}", f"s{event.dst_stage}"}
        if isinstance(event, (ActionStarted, ActionFinished)):
            bar = f"{event.stage}{event.kind}{event.micro}"
            return {bar, f"s{event.stage}"} if self._is_shown(event, state) else ()
        moment = self.moment(state)
        return {f"s{done.stage}" for done in moment.done if done.rank == event.rank} if moment is not None else ()

    def _is_shown(self, event: ActionStarted | ActionFinished, state: Trace) -> bool:
        """Whether the action is of the step that is shown: each step does each action once."""
        history, done = self.history(), self.recording.columns(ActionFinished)
        names = "kind", "stage", "micro"
        same = np.logical_and.reduce([np.asarray(done[name]) == getattr(event, name) for name in names])
        place = self.spot.place if self.spot is not None else len(self.recording)
        n_before = int((done["position"][same] < place).sum())
        chosen = None if self.step is None else _step_of(history, self.step)
        shown = history.shown(state.n, chosen)
        return shown >= 0 and sorted(history.steps)[n_before : n_before + 1] == [shown]

    def text(self, state: Trace) -> str:
        moment = self.moment(state)
        return self._why_empty(state) if moment is None else account(moment)

    def _why_empty(self, state: Trace) -> str:
        return why_empty(state, self.recording, self.step)

    def stop_positions(self, events: Events) -> Positions:
        """After each action, in order of time, and at each step's end."""
        history, where = self.history(), events.positions(ActionFinished)
        where = where[: len(history.table)]
        step = history.table[: len(where), STEP]
        ends = np.append(step[1:] != step[:-1], True) if len(step) else np.empty(0, bool)
        told = events.positions(StepFinished if history.trace.names else RankFinished)
        n = np.searchsorted(where, told)  # actions finished by then
        told = told[(n > 0) & ends[n - 1]] if len(ends) else told[:0]
        told = told if history.trace.names else told[-1:]
        wanted = np.ones(len(where), dtype=bool)
        if self.step is not None:
            wanted = step == _step_of(history, self.step)
            told = told[wanted[np.searchsorted(where, told) - 1]]
        elif len(where) > MOST_STOPS:
            wanted = ends | (step == history.latest())
        return merged(where[wanted], told) + 1

    # --- controls ---

    def build(self) -> Any:
        """The picture with a list of steps above it."""
        import ipywidgets as ipw

        from widgets.live.buttons import ringed

        choice = ipw.Dropdown(description="Step", options=[(LATEST, LATEST)], tooltip="Step that is shown")
        self._choice = ringed(choice)
        self._choice.observe(self._choose, "value")
        box = ipw.VBox([self._choice, self.host])
        self.shown()
        return box

    def _choose(self, change: Mapping[str, Any]) -> None:
        step = None if change["new"] in (None, LATEST) else change["new"]
        if change["new"] is not None and step != self.step:
            self.step = step
            self.show(self.position)

    def shown(self) -> None:
        if self._choice is None:
            return
        history = self.history()
        numbers = list(dict.fromkeys(history.trace.number(step) for step in history.steps))[-LISTED:]
        if self.step is not None and self.step not in numbers:
            numbers.insert(0, self.step)
        options = ((LATEST, LATEST), *((str(n), n) for n in numbers))
        chosen = LATEST if self.step is None else self.step  # before: new options choose the first
        if tuple(self._choice.options) != options:
            self._choice.options = options
        if self._choice.value != chosen:
            self._choice.value = chosen


def _legend(nodes: Sequence[Node], edges: Sequence[Edge]) -> tuple[tuple[str, str], ...]:
    """The marks that are there, in words; a state is not the same of a stage and of a bar."""
    there = {n.kind for n in nodes} | {n.state for n in nodes if n.kind not in SPANS} | {e.state for e in edges}
    bars = {n.state: n.kind for n in nodes if n.kind in SPANS}
    made = [(mark, words) for mark, words in LEGEND.items() if mark in there]
    return (*made, *((f"{bars[state]}:{state}", words) for state, words in OF_BARS.items() if state in bars))


def _step_of(history: History, number: int) -> int:
    """The latest step of that number, -1 if there is none."""
    return next((step for step in reversed(history.steps) if history.trace.number(step) == number), -1)
