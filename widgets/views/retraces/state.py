"""What a recording says of calls of jitted functions: the graphs, why each was traced, and the calls in their order."""

from __future__ import annotations

from typing import NamedTuple

from lab.events import CacheHit, Event, Traced
from lab.words import counted
from widgets.pictures.theme import short

MOST_RUNS = 8
"""Stretches of calls of one graph that are drawn, the newest."""
MOST_GRAPHS = 40
"""Graphs that are kept: of a function that is traced in every call there is no end."""
EARLIER = "traced before this recording, or long ago"


class Made(NamedTuple):
    """A graph of a function."""

    function: str
    file: str
    line: int
    graph: int
    reason: str = EARLIER
    n_equations: int = -1
    elapsed_ms: float = 0.0
    call: int = 0
    """That traced it; 0 where it is not known."""

    @property
    def kept(self) -> bool:
        """Whether it serves later calls."""
        return self.graph > 0

    @property
    def label(self) -> str:
        """What it is called."""
        return f"{self.function}, graph {self.graph}" if self.kept else f"{self.function}, not kept"

    @property
    def size(self) -> str:
        """Equations, and what they took."""
        if self.n_equations < 0:
            return ""
        return f"{counted(self.n_equations, 'equation')}, {short(self.elapsed_ms)} ms"


class Stretch(NamedTuple):
    """Calls one after the other that a graph served: the one that traced it, or hits."""

    made: int
    """Number of the graph, counted over the whole recording."""
    first: int
    last: int
    hit: bool


class Calls(NamedTuple):
    """All calls so far.

    Attributes:
        graphs: the newest, oldest first.
        n_forgotten: graphs before those.
        runs: the newest stretches.
        n_calls, n_hits: of all.
        n_runs: stretches, also those that are no longer kept.
    """

    graphs: tuple[Made, ...] = ()
    n_forgotten: int = 0
    runs: tuple[Stretch, ...] = ()
    n_calls: int = 0
    n_hits: int = 0
    n_runs: int = 0

    def folded(self, event: Event) -> Calls:
        """After one more call."""
        if isinstance(event, Traced):
            row = Made(event.function, event.file, event.line, event.graph, event.reason, event.n_equations,
                       event.elapsed_ms, self.n_calls + 1)  # fmt: skip
            return self._with(row)._called(self.n_forgotten + len(self.graphs), hit=False)
        assert isinstance(event, CacheHit)
        key = event.function, event.file, event.line, event.graph
        at = next((i for i in reversed(range(len(self.graphs))) if self.graphs[i][:4] == key), -1)
        if at < 0:
            return self._with(Made(*key))._called(self.n_forgotten + len(self.graphs), hit=True)
        return self._called(self.n_forgotten + at, hit=True)

    def _with(self, row: Made) -> Calls:
        graphs = (*self.graphs, row)
        over = max(0, len(graphs) - MOST_GRAPHS)
        return self._replace(graphs=graphs[over:], n_forgotten=self.n_forgotten + over)

    def _called(self, made: int, *, hit: bool) -> Calls:
        n = self.n_calls + 1
        newest = self.runs[-1] if self.runs else None
        if newest is not None and hit and newest.hit and newest.made == made:
            runs, n_runs = (*self.runs[:-1], newest._replace(last=n)), self.n_runs
        else:
            runs, n_runs = (*self.runs, Stretch(made, n, n, hit))[-MOST_RUNS:], self.n_runs + 1
        return self._replace(runs=runs, n_calls=n, n_hits=self.n_hits + hit, n_runs=n_runs)

    def of(self, run: Stretch) -> Made | None:
        """The graph of a stretch, if it is kept still."""
        at = run.made - self.n_forgotten
        return self.graphs[at] if at >= 0 else None

    # --- in words ---

    @property
    def n_misses(self) -> int:
        """Calls that traced."""
        return self.n_calls - self.n_hits

    def total(self) -> str:
        """How many hits and misses."""
        return f"{counted(self.n_calls, 'call')}: {counted(self.n_hits, 'hit')}, {self.n_misses} traced"

    def account(self) -> str:
        """What came last, then how many, then each graph."""
        made = self.of(self.runs[-1])
        assert made is not None
        if self.runs[-1].hit:
            last = f"Call {self.n_calls} of {made.function}: hit, graph {made.graph} is used again."
        else:
            kept = "" if made.kept else "; the graph is good for this call only"
            last = f"Call {self.n_calls} of {made.function}: traced, because {because(made)}; {made.size}{kept}."
        older = [f"{counted(self.n_forgotten, 'graph')} before those"] if self.n_forgotten else []
        return "\n".join([last, f"{self.total()}.", *map(_line, self.graphs), *older])


def because(made: Made) -> str:
    """The reason, to stand behind "because"."""
    return f"it is {made.reason}" if made.reason == "the first call" else made.reason


def _line(made: Made) -> str:
    call = f"call {made.call}, " if made.call else ""
    size = f": {made.size}" if made.size else ""
    return f"{made.label} ({call}{made.reason}){size}"
