"""RetraceView: calls of jitted functions in a row: which graph served each, and why it was traced where none did."""

from __future__ import annotations

from collections.abc import Iterable

from lab.events import CacheHit, Event, Traced
from lab.words import counted
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Mark, Node, Scene
from widgets.tape.wording import clipped
from widgets.view import View
from widgets.views.nothing import nothing_for
from widgets.views.retraces.state import MOST_RUNS, Calls, Made, Stretch, because

WRITE = "with lab.record() as rec: f(x); f(y), with f = lab.jit(...); then RetraceView(rec)"
TOP, ROW, HIGH, BOX, PITCH, WIDE = 34.0, 78.0, 40.0, 208.0, 92.0, 82.0
LETTERS = 7
"""Of the numbers in a box: of longer ones only the first call is named."""
MOST_ROWS = 8
"""Graphs that are drawn."""


class RetraceView(View[Calls]):
    """Calls of jitted functions, from left to right; each graph has a row, with the reason for which it was made.

    Args:
        source: a Recording.

    Example:
        >>> import lab, numpy as np
        >>> f = lab.jit(lab.tanh)
        >>> with lab.record() as rec:
        ...     results = [f(np.ones(n)) for n in (3, 3, 4, 3)]
        >>> view = RetraceView(rec)
        >>> print(view.text_at(len(rec)).splitlines()[1])
        4 calls: 2 hits, 2 traced.
    """

    listens = (Traced, CacheHit)
    title = "Calls of jitted functions"

    def start(self) -> Calls:
        return Calls()

    def fold(self, state: Calls, event: Event) -> Calls:
        return state.folded(event)

    def picture(self, state: Calls) -> Scene:
        if not state.n_calls:
            return Scene(caption=self._why_empty(), title=self.title)
        end = self.state_at(len(self.recording))
        return scene_of(state, min(MOST_ROWS, len(end.graphs)), self.title)

    def text(self, state: Calls) -> str:
        return state.account() if state.n_calls else self._why_empty()

    def ids_of(self, event: Event, state: Calls, scene: Scene) -> Iterable[str]:
        """The row of its graph."""
        rows = [i for i, made in enumerate(state.graphs) if made[:4] == _key(event)]
        return {f"g{state.n_forgotten + rows[-1]}"} if rows else ()

    def _why_empty(self) -> str:
        if self.recording.live:
            return "No jitted function was called yet."
        return nothing_for("RetraceView", "calls of jitted functions", WRITE, self.recording)


def _key(event: Event) -> tuple[str, str, int, int] | None:
    return (event.function, event.file, event.line, event.graph) if isinstance(event, Traced | CacheHit) else None


def scene_of(state: Calls, n_rows: int, title: str) -> Scene:
    """The picture of a moment, with room for so many graphs."""
    shown = {run.made for run in state.runs}
    known = range(state.n_forgotten, state.n_forgotten + len(state.graphs))
    others = [n for n in known if n not in shown]
    rows = sorted(sorted(shown)[-MOST_ROWS:] + others[len(others) - max(0, MOST_ROWS - len(shown)) :])
    y_of = {n: TOP + ROW * (k + 0.5) + 8 for k, n in enumerate(rows)}
    nodes, marks = list[Node](), [Mark("total", "heading", 0, 12, text=state.total())]
    for n, y in y_of.items():
        if n in known:
            made = state.graphs[n - state.n_forgotten]
            nodes.append(_graph(n, made, y))
            marks.append(Mark(f"r{n}", "text", 0, y - 32, text=clipped(_headline(made), 96)))
    nodes += [_cell(k, run, state, y_of[run.made]) for k, run in enumerate(state.runs) if run.made in y_of]
    width = max(BOX + 24 + PITCH * MOST_RUNS, *(text_width(m.text, 13.0) + 8 for m in marks))
    legend = (("new", "traced"), ("done", "hit"), *((("trouble", "good for one call only"),) * _has_lost(state)))
    return Scene(
        tuple(nodes), (), (), _caption(state), title, legend, marks=tuple(marks),
        extent=(width, TOP + ROW * max(n_rows, len(rows)) + 12),
    )  # fmt: skip


def _graph(n: int, made: Made, y: float) -> Node:
    aria = f"{made.label}: {made.size}; {made.reason}"
    label = clipped(made.label, 24, middle=True)
    return Node(f"g{n}", BOX / 2, y, BOX, HIGH, label, made.size, kind="constant", aria=aria)


def _headline(made: Made) -> str:
    return f"traced in call {made.call}, because {because(made)}" if made.call else made.reason


def _cell(k: int, run: Stretch, state: Calls, y: float) -> Node:
    """The calls of a stretch: their numbers, and whether they hit."""
    made = state.of(run)
    n = run.last - run.first + 1
    numbers = f"{run.first:,}" if n == 1 else f"{run.first:,}–{run.last:,}"
    short = numbers if len(numbers) <= LETTERS else f"{run.first:,}–"
    words = counted(n, "hit") if run.hit else "traced"
    mark = "done" if run.hit else "new" if made is not None and made.kept else "trouble"
    aria = f"call {numbers}: {words}, {made.label if made is not None else 'a graph of long ago'}"
    return Node(f"c{k}", BOX + 24 + PITCH * (k + 0.5), y, WIDE, HIGH, short, words, state=mark, aria=aria)


def _has_lost(state: Calls) -> bool:
    return any(not made.kept for made in state.graphs)


def _caption(state: Calls) -> str:
    words = (
        f"{state.total()}. A graph has a row, with why it was traced; calls go from left to right, each in the row of"
        " the graph that it used."
    )
    earlier = state.n_runs - len(state.runs)
    return words + (f" Not drawn: {counted(earlier, 'stretch', 'stretches')} of calls before these." if earlier else "")
