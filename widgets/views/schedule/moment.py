"""The runs of a graph that a recording tells of, as a ScheduleView folds them, and one of them at a moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from lab.events import EquationRan, Event, GraphRunBegun, GraphRunFinished
from lab.experiments.schedule import Account, account_of
from lab.words import counted


class GraphRun(NamedTuple):
    """One run, as far as it has been told."""

    begun: GraphRunBegun
    ran: tuple[EquationRan, ...] = ()
    finished: GraphRunFinished | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.begun.executor}, {counted(self.begun.n_threads, 'thread')}"

    @property
    def account(self) -> Account:
        """Its work and its critical path."""
        return account_of(self.ran)

    @property
    def utilisation(self) -> float:
        """The part of all threads' time that was spent in equations; of a run that is over."""
        assert self.finished is not None
        return self.finished.busy_ns / max(1, self.begun.n_threads * self.finished.elapsed_ns)


@dataclass(frozen=True, slots=True)
class Runs:
    """All runs so far; the last may still be told."""

    runs: tuple[GraphRun, ...] = ()

    def with_event(self, event: Event) -> Runs:
        """One more event."""
        match event:
            case GraphRunBegun():
                return Runs((*self.runs, GraphRun(event)))
            case EquationRan() if self.runs:
                last = self.runs[-1]
                return self._last(last._replace(ran=(*last.ran, event)))
            case GraphRunFinished() if self.runs:
                return self._last(self.runs[-1]._replace(finished=event))
        return self

    def _last(self, run: GraphRun) -> Runs:
        return replace(self, runs=(*self.runs[:-1], run))
