"""What became of the ranks of a training, in time: who ran when, who was struck, lost and replaced, what was kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from lab.events import (
    Event,
    RankFinished,
    RankLost,
    RankStarted,
    SnapshotWritten,
    StateKept,
    StepFinished,
    TrainingResumed,
    WorkerHandled,
)
from widgets.fold import Stretch
from widgets.views.series import Series

RARE = (RankStarted, RankFinished, RankLost, TrainingResumed, WorkerHandled, SnapshotWritten)
"""Told a few times in a run; the others in each step."""


class Loss(NamedTuple):
    """One loss of a rank, and how it was outlived; times in seconds since the story began.

    Attributes:
        rank: the lost one.
        struck: when somebody killed or stopped its worker by hand, -1 where nobody did.
        known: when the loss was told.
        resumed: when the training went on, -1 while it has not.
        step: the step of the state from which it did.
        last: the last step that had been told before.
        source: of that state.
    """

    rank: int
    struck: float
    known: float
    resumed: float = -1.0
    step: int = -1
    last: int = -1
    source: str = ""

    @property
    def repeated(self) -> tuple[int, int]:
        """First and last of the steps that were told already and done again; the first is larger if none was."""
        return self.step + 1, self.last


class Span(NamedTuple):
    """A rank that ran on a worker, from when to when; `stop` is -1 while it runs."""

    rank: int
    start: float
    stop: float
    generation: int


@dataclass(frozen=True, slots=True)
class Story:
    """The state of a RecoveryView.

    Attributes:
        begin_ns: when it began, -1 before.
        now: seconds since then, of the last event.
        times, steps, losses: of each finished step.
        kept_times, kept_ranks: of each state that a rank kept.
        rare: all other events.
    """

    begin_ns: int = -1
    now: float = 0.0
    times: Series = field(default_factory=Series)
    steps: Series = field(default_factory=Series)
    losses: Series = field(default_factory=Series)
    kept_times: Series = field(default_factory=Series)
    kept_ranks: Series = field(default_factory=Series)
    rare: tuple[Event, ...] = ()

    def folded(self, event: Event) -> Story:
        """With one more event."""
        story = Story(begin_ns=event.time_ns) if self.begin_ns < 0 else self
        at = story.seconds(event)
        story = replace(story, now=max(story.now, at))
        if isinstance(event, StepFinished):
            return replace(story, times=story.times.appended(at), steps=story.steps.appended(event.step),
                           losses=story.losses.appended(event.loss))  # fmt: skip
        if isinstance(event, StateKept):
            return replace(story, kept_times=story.kept_times.appended(at),
                           kept_ranks=story.kept_ranks.appended(event.rank))  # fmt: skip
        return replace(story, rare=(*story.rare, event))

    def folded_many(self, stretch: Stretch) -> Story:
        """With a stretch of events; the many are taken by columns."""
        steps, kept = stretch.columns(StepFinished), stretch.columns(StateKept)
        rare = tuple(stretch.of(RARE))
        first = [*rare[:1], *([stretch.events[int(steps["position"][0])]] if len(steps["step"]) else []),
                 *([stretch.events[int(kept["position"][0])]] if len(kept["step"]) else [])]  # fmt: skip
        if not first:
            return self
        begin = self.begin_ns if self.begin_ns >= 0 else min(first, key=lambda e: e.seq).time_ns
        step_times, kept_times = ((np.asarray(rows["time_ns"]) - begin) / 1e9 for rows in (steps, kept))
        story = replace(
            self, begin_ns=begin, rare=(*self.rare, *rare),
            times=self.times.extended(step_times), steps=self.steps.extended(steps["step"]),
            losses=self.losses.extended(steps["loss"]), kept_times=self.kept_times.extended(kept_times),
            kept_ranks=self.kept_ranks.extended(kept["rank"]),
        )  # fmt: skip
        ends = [*map(story.seconds, rare), *step_times[-1:], *kept_times[-1:]]
        later = [*ends, *step_times, *kept_times]
        return replace(story, now=max(self.now, float(np.max(later, initial=0.0))))

    def seconds(self, event: Event) -> float:
        """When it was, since the story began."""
        return (event.time_ns - self.begin_ns) / 1e9

    def spans(self) -> list[Span]:
        """Who ran when."""
        spans: list[Span] = []

        def end(rank: int, at: float) -> None:
            for i, span in enumerate(spans):
                if span.rank == rank and span.stop < 0:
                    spans[i] = span._replace(stop=at)

        for event in self.rare:
            if isinstance(event, RankStarted):
                end(event.rank, self.seconds(event))
                spans.append(Span(event.rank, self.seconds(event), -1.0, event.generation))
            elif isinstance(event, RankFinished):
                end(event.rank, self.seconds(event))
            elif isinstance(event, RankLost):
                end(event.lost_rank, self.seconds(event))
        return spans

    def blows(self) -> Iterator[tuple[WorkerHandled, int]]:
        """What was done by hand, with the rank that it met, -1 for none."""
        holds: dict[str, int] = {}
        for event in self.rare:
            if isinstance(event, RankStarted):
                holds = {worker: rank for worker, rank in holds.items() if rank != event.rank}
                holds[event.worker] = event.rank
            elif isinstance(event, WorkerHandled):
                yield event, holds.get(event.worker, -1)

    def outlived(self) -> list[Loss]:
        """All losses, in order."""
        found: list[Loss] = []
        struck = {rank: self.seconds(event) for event, rank in self.blows() if event.action in ("killed", "stopped")}
        for event in self.rare:
            at = self.seconds(event)
            if isinstance(event, RankLost):
                blow = struck.get(event.lost_rank, -1.0)
                found.append(Loss(event.lost_rank, blow if blow <= at else -1.0, at))
            elif isinstance(event, TrainingResumed) and found and found[-1].resumed < 0:
                is_after = self.times.array > found[-1].known
                first = float(self.times.array[is_after].min(initial=at))  # it is told a little after that step
                found[-1] = found[-1]._replace(
                    resumed=first, step=event.step, source=event.source,
                    last=int(self.steps.array[~is_after].max(initial=0)),
                )  # fmt: skip
        return found
