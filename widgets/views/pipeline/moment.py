"""Which step of a pipeline is shown, and how far it had come: a Moment is cut out of the whole history.

After n finished actions the n earliest of all are shown, in whatever order their events arrived. What the recording
knows of later times gives the scale, the plan, and what other ranks were at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lab.errors import ScheduleError
from lab.parallel.paper.check_schedule import ScheduleReport, Slot
from lab.parallel.paper.measured import measured, on_paper
from lab.parallel.paper.schedules import Action
from widgets.views.pipeline.trace import STEP, Done, Move, Table, Trace, rows, table_by_time

SLOW_MS = 1000.0
"""A step that takes longer is looked at while it runs; of quicker ones the latest complete one."""


class Going(NamedTuple):
    """An action that was under way: since when, in ms of the step."""

    rank: int
    kind: str
    stage: int
    micro: int
    start: float


class Moment(NamedTuple):
    """What is shown: one step up to a time. Times are in ms from the step's begin."""

    number: int
    """Of the step, as the training counts it."""
    done: tuple[Done, ...]
    """What was finished, by end, times in ms."""
    going: tuple[Going, ...]
    last: Done | None
    """What finished last; None once the step is over."""
    moved: Move | None
    """The message that came from it."""
    report: ScheduleReport | None
    """Of the whole step, as soon as it is known."""
    plan: ScheduleReport | None
    """The same order without delays; while the step runs that of an earlier one."""
    n_actions: int
    """Of the whole step; 0 while nobody knows."""
    n_stages: int
    n_ranks: int
    end: float
    """Of the time axis."""
    paced: bool
    in_ticks: bool = False
    """Times are ticks of the schedule, from 0, and not ms."""
    n_cores: int = 0
    """Of all machines that the ranks run on; 0 where they are not known."""
    cut: bool = False
    """The recording ends here, within the step: what was under way runs no more."""

    @property
    def over(self) -> bool:
        """Whether all of the step is shown."""
        return bool(self.n_actions) and len(self.done) == self.n_actions

    def live(self, rank: int) -> list[tuple[float, int]]:
        """When the number of activations that a rank holds changed, and to what."""
        return [(d.end, d.n_live) for d in self.done if d.rank == rank]

    def held(self, stage: int) -> list[int]:
        """The micro-batches whose activations a stage holds."""
        done = {(d.backward, d.micro) for d in self.done if d.stage == stage}
        return sorted(micro for backward, micro in done if not backward and (True, micro) not in done)


class History:
    """All that a recording knows of a pipeline, by time and by step; `over`: nothing more will come."""

    def __init__(self, trace: Trace, *, over: bool) -> None:
        self.trace, self.over = trace, over
        self.table, self.moves = table_by_time(trace.actions), trace.moves.array.reshape(-1, len(Move._fields))
        self._steps: dict[int, list[Done]] = {}
        self._reports: dict[int, tuple[ScheduleReport, ScheduleReport | None]] = {}

    def of(self, step: int) -> list[Done]:
        """The actions of a step, by their end."""
        if step not in self._steps:
            self._steps[step] = rows(self.table[self.table[:, STEP] == step])
        return self._steps[step]

    @property
    def steps(self) -> list[int]:
        """Every step of which something is known."""
        return [int(step) for step in np.unique(self.table[:, STEP])]

    def complete(self, step: int) -> bool:
        """Whether every micro-batch went through every stage both ways, and nothing more is to come."""
        done = self.of(step)
        ended = self.over or step in self.trace.names or bool(self.trace.ended)
        if not done or not (ended or step < self.table[:, STEP].max()):
            return False
        n_stages, n_micro = 1 + max(d.stage for d in done), 1 + max(d.micro for d in done)
        return len({(d.backward, d.stage, d.micro) for d in done}) == 2 * n_stages * n_micro

    def latest(self) -> int:
        """The latest complete step, -1 if there is none."""
        return next((step for step in reversed(self.steps) if self.complete(step)), -1)

    def reports(self, step: int) -> tuple[ScheduleReport, ScheduleReport | None]:
        """What was measured of a complete step, and the same order on paper."""
        if step not in self._reports:
            found = measured(
                [Slot(d.rank, Action(d.kind, d.stage, d.micro), d.start / 1e6, d.end / 1e6) for d in self.of(step)]
            )
            try:
                self._reports[step] = found, on_paper(found)
            except ScheduleError:  # a rank ran stages of another: no plan of ours has such an order
                self._reports[step] = found, None
        return self._reports[step]

    def shown(self, n: int, chosen: int | None, follows: bool = False) -> int:
        """The step to look at after n actions, -1 for none; `follows`: the one under way, however quick they are."""
        if chosen is not None:
            return chosen
        if not n or not len(self.table):
            return -1
        current = int(self.table[min(n, len(self.table)) - 1, STEP])
        if follows:
            return current
        latest = self.latest()
        at_end = n >= len(self.table)
        quick = latest >= 0 and self.reports(latest)[0].makespan < SLOW_MS
        return latest if quick and at_end and not self.over else current

    def moment(self, n: int, step: int, told: bool = False) -> Moment:
        """One step after the n earliest actions of all; `told`: that it is over was said by then."""
        every, n = self.of(step), min(n, len(self.table))
        done = every[: int(np.count_nonzero(self.table[:n, STEP] == step))]
        begin = min((d.start for d in every), default=0.0)
        moment = Moment(self.trace.number(step), tuple(_since(d, begin) for d in done), (), None, None, None, None, 0,
                        1 + max((d.stage for d in every), default=0), 1 + max((d.rank for d in every), default=0), 0.0,
                        any(d.paced for d in every), n_cores=self.trace.n_cores)  # fmt: skip
        known = step if self.complete(step) else self.latest()
        if known >= 0:
            report, plan = self.reports(known)
            moment = moment._replace(plan=plan, end=max(report.makespan, plan.makespan if plan else 0.0))
            moment = moment._replace(n_stages=max(moment.n_stages, 1 + max(d.stage for d in self.of(known))))
        if known == step and known >= 0:
            moment = moment._replace(report=report, n_actions=len(every))
        else:
            moment = moment._replace(end=max(moment.end, _room(max((d.end for d in moment.done), default=0.0))))
        if moment.over and (told or n > _last(self.table, step)):
            return moment
        if not done or int(self.table[n - 1, STEP]) != step:  # another step is at work: this one stands still
            return moment
        # A step that was held has times without those holds; its messages came when they came, before the next step.
        last, until = done[-1], min((d.start for d in self.of(step + 1)), default=np.inf)
        going = self._going(every, last.end, begin, n)
        cut = self.over and n == len(self.table)
        return moment._replace(last=_since(last, begin), moved=self._move(last, until), going=going, cut=cut)

    def _move(self, done: Done, until: float) -> Move | None:
        """The message that an action sent, if it came."""
        wanted = (done.backward, done.stage, done.stage + (-1 if done.backward else 1), done.micro)
        time = self.moves[:, Move._fields.index("time")]
        found = (self.moves[:, :4] == np.array(wanted, np.float64)).all(axis=1) & (time >= done.start) & (time <= until)
        if not found.any():
            return None
        backward, src, dst, micro, at, n_bytes = self.moves[int(np.argmax(found))].tolist()
        return Move(bool(backward), int(src), int(dst), int(micro), at, int(n_bytes))

    def _going(self, every: list[Done], now: float, begin: float, n: int) -> tuple[Going, ...]:
        if n < len(self.table):
            return tuple(
                Going(d.rank, d.kind, d.stage, d.micro, (d.start - begin) / 1e6) for d in every if d.start < now < d.end
            )
        known = {(d.kind, d.stage, d.micro) for d in every}  # a rank may be at the next step already
        return tuple(
            Going(rank, a.kind, a.stage, a.micro, max(0.0, (a.start - begin) / 1e6))
            for rank, a in self.trace.running.items()
            if (a.kind, a.stage, a.micro) not in known
        )


def _since(done: Done, begin: float) -> Done:
    return done._replace(start=(done.start - begin) / 1e6, end=(done.end - begin) / 1e6)


def _last(table: Table, step: int) -> int:
    """How many actions were finished when the step's last was."""
    where = np.flatnonzero(table[:, STEP] == step)
    return int(where[-1]) + 1 if len(where) else 0


def _room(time: float) -> float:
    """A scale that moves seldom while a time grows: the next power of 1.5."""
    return float(1.5 ** np.ceil(np.log(max(time, 1e-3)) / np.log(1.5))) if time else 1.0
