"""ScheduleView: a graph in threads: which equation ran when, what it waited for, and the longest chain of waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lab.events import EquationRan, Event, GraphRunBegun, GraphRunFinished, ScheduleMeasured
from lab.words import counted
from widgets.fold import Events, Positions
from widgets.layout.lanes import Lanes
from widgets.pictures.scene import Scene
from widgets.view import View
from widgets.views.nothing import nothing_for
from widgets.views.schedule.moment import GraphRun, Runs
from widgets.views.schedule.parts import MOST_BARS, arrows_of, bars_of, lines_of, marks_of
from widgets.views.words import milliseconds

LATEST = "latest"
WRITE = "ScheduleView(lab.measure_schedule(f, x))"


class ScheduleView(View[Runs]):
    """Runs of a graph as a Gantt of the threads that were at work, one run at a time.

    A bar that is clicked shows what it waited for and what waited for it.

    Args:
        source: what `lab.measure_schedule` returned, or a Recording with EquationRan events.
        run: the run to show, by its number from 1 on; None is the latest.

    Attributes:
        focus: number of the equation whose arrows are drawn; None: along the critical path.

    Example:
        >>> import lab, numpy as np
        >>> found = lab.measure_schedule(lambda x: (x @ x) + (x.T @ x), np.ones((64, 64)), repeats=1)
        >>> ScheduleView(found).sentence_at(3)
        'Thread 0 finished matmul: b:f64[64,64] = matmul(a, a).'
    """

    listens = (GraphRunBegun, EquationRan, GraphRunFinished)
    stops = (EquationRan, GraphRunFinished)
    title = "Schedule"
    opens_at_end = True

    def __init__(self, source: Any, *, run: int | None = None) -> None:
        super().__init__(source)
        self.run = run
        self.focus: int | None = None
        self._choice: Any = None

    def start(self) -> Runs:
        return Runs()

    def fold(self, state: Runs, event: Event) -> Runs:
        return state.with_event(event)

    def chosen(self, state: Runs) -> GraphRun | None:
        """The run that is shown."""
        if not state.runs:
            return None
        return state.runs[-1 if self.run is None else min(self.run, len(state.runs)) - 1]

    def picture(self, state: Runs) -> Scene:
        run = self.chosen(state)
        if run is None:
            return Scene(caption=self._why_empty(), title=self.title)
        board = Lanes(run.begun.n_threads, self._elapsed_ms(state, run))
        path = run.account.path if run.finished is not None else ()
        focus = self.focus if self.focus is not None or run.finished is not None or not run.ran else run.ran[-1].number
        bars = bars_of(run, path, board)
        there = {bar.id for bar in bars}
        edges = [e for e in arrows_of(run, path, focus, board) if {e.source, e.target} <= there]
        legend = [("forward_span", "an equation"), *([("forward_span:active", "on the critical path")] if path else [])]
        if any(e.state == "forward" for e in edges):
            legend.append(("forward", "was waited for"))
        selected = f"e{focus}" if f"e{focus}" in there else ""
        return Scene(tuple(bars), tuple(edges), (), _caption(run, focus), self.title, tuple(legend), selected,
                     extent=board.extent, marks=tuple(marks_of(run, lines_of(run), board)))  # fmt: skip

    def _elapsed_ms(self, state: Runs, run: GraphRun) -> float:
        """How long it took: its end is known to the recording, so that bars stay where they are while others come."""
        known = self.recording.columns(GraphRunFinished)["elapsed_ns"]
        number = next(i for i, one in enumerate(state.runs) if one is run)
        if number < len(known):
            return float(known[number]) / 1e6
        return max((e.stop_ns for e in run.ran), default=0) / 1e6

    def ids_of(self, event: Event, state: Runs, scene: Scene) -> Iterable[str]:
        return (f"e{event.number}",) if isinstance(event, EquationRan) else ()

    def text(self, state: Runs) -> str:
        run = self.chosen(state)
        return self._why_empty() if run is None else "\n".join([_sentence(run), *_account(run), *self._measured()])

    def _measured(self) -> list[str]:
        """What was measured of all executors, once it was."""
        if self.recording.live:
            return []
        rows = self.recording.columns(ScheduleMeasured)
        columns = (rows[name].tolist() for name in ("executor", "n_threads", "run_ms", "speed_up"))
        return [
            f"{executor}, {counted(n, 'thread')}: {milliseconds(run_ms)} a run in silence, {speed_up:.2f} times as fast"
            " as interpreted"
            for executor, n, run_ms, speed_up in zip(*columns, strict=True)
        ]

    def stop_positions(self, events: Events) -> Positions:
        """After each equation, and at the end; of a run that was chosen, within that."""
        every, begins = super().stop_positions(events), events.positions(GraphRunBegun)
        if self.run is None or self.run > len(begins):
            return every
        end = begins[self.run] if self.run < len(begins) else len(events)
        within: Positions = every[(every > begins[self.run - 1]) & (every <= end)]
        return within

    def _why_empty(self) -> str:
        if self.recording.live:
            return "No run of a graph was told yet: each of its equations will be a bar."
        return nothing_for("ScheduleView", "a graph in threads", WRITE, self.recording)

    # --- controls ---

    def build(self) -> Any:
        """The picture with a list of runs above it."""
        import ipywidgets as ipw

        from widgets.live.buttons import ringed

        choice = ipw.Dropdown(description="Run", options=[(LATEST, LATEST)], tooltip="Run that is shown")
        self._choice = ringed(choice)
        self._choice.observe(self._choose, "value")
        self.host.on_select(self.select)
        box = ipw.VBox([self._choice, self.host])
        self.shown()
        return box

    def select(self, node: str) -> None:
        """Draw the arrows of a bar, by its id; "" goes back to those of the critical path."""
        self.focus = int(node[1:]) if node[1:].isdigit() else None
        self.show(self.position)

    def _choose(self, change: Mapping[str, Any]) -> None:
        run = None if change["new"] in (None, LATEST) else change["new"]
        if change["new"] is not None and run != self.run:
            self.run, self.focus = run, None
            self.show(self.position)

    def shown(self) -> None:
        if self._choice is None:
            return
        runs = self.state_at(self.position).runs
        options = ((LATEST, LATEST), *((f"{i} {run.name}", i) for i, run in enumerate(runs, 1)))
        chosen = LATEST if self.run is None or self.run > len(runs) else self.run
        if tuple(self._choice.options) != options:
            self._choice.options = options
        if self._choice.value != chosen:
            self._choice.value = chosen


def _sentence(run: GraphRun) -> str:
    """What happened last."""
    if run.finished is not None:
        return f"{lines_of(run)[0]}.".replace(run.name, run.name[:1].upper() + run.name[1:], 1)
    if not run.ran:
        return f"A run began: {run.name}, {counted(run.begun.n_equations, 'equation')}."
    last = run.ran[-1]
    return f"Thread {last.lane} finished {last.op}: {last.text}."


def _account(run: GraphRun) -> list[str]:
    """The run in words: its critical path, then what each thread did."""
    lines = lines_of(run)[1:]
    by_number = {e.number: e for e in run.ran}
    if run.finished is not None:
        lines.append(f"critical path: {' → '.join(f'{k} {by_number[k].op}' for k in run.account.path)}")
    for lane in range(run.begun.n_threads):
        mine = sorted((e for e in run.ran if e.lane == lane), key=lambda e: e.start_ns)
        told = ", ".join(f"{e.number} {e.op} {milliseconds((e.stop_ns - e.start_ns) / 1e6)}" for e in mine[:MOST_BARS])
        lines.append(f"thread {lane}: {told or 'nothing'}")
    return lines


def _caption(run: GraphRun, focus: int | None) -> str:
    by_number = {e.number: e for e in run.ran}
    words = "Each bar is an equation of the graph, in the thread that ran it; where a thread has none it waited."
    if focus in by_number:
        assert focus is not None
        words += f" Arrows: what equation {focus} ({by_number[focus].op}) waited for, and what waited for it."
    elif run.finished is not None:
        words += " Arrows follow the critical path, the longest chain of equations that wait for each other."
    if len(run.ran) > MOST_BARS:
        words += f" The longest {MOST_BARS} of {len(run.ran):,} equations are drawn."
    return words
