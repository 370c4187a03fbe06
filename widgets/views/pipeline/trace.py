"""What a pipeline's ranks did, action by action: the state of a PipelineView, and one step cut out of it.

Ranks send their events in batches, so the order in which they arrive is not the order in which things happened: the
state keeps what arrived, and `table_by_time` puts it in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lab.events import ActionFinished, ActionStarted, ActivationMoved, Event, RankFinished, RankStarted, StepFinished
from widgets.views.series import Series

LISTENS = (RankStarted, RankFinished, ActionStarted, ActionFinished, ActivationMoved, StepFinished)


class Done(NamedTuple):
    """An action that is finished; times in ns of the launcher's clock."""

    step: int
    """Counted from 0 over the whole recording."""
    rank: int
    backward: bool
    stage: int
    micro: int
    start: float
    end: float
    n_live: int
    paced: bool

    @property
    def kind(self) -> str:
        """As in the events."""
        return "B" if self.backward else "F"

    @property
    def name(self) -> str:
        """As on its bar: "F3"."""
        return f"{self.kind}{self.micro}"


class Move(NamedTuple):
    """A message that came from one stage to the next."""

    backward: bool
    src: int
    dst: int
    micro: int
    time: float
    n_bytes: int


class Running(NamedTuple):
    """An action that began and is not finished."""

    kind: str
    stage: int
    micro: int
    start: int
    paced: bool


class Counter(NamedTuple):
    """In which step a rank is: the first thing that it does twice opens the next."""

    step: int = -1
    seen: frozenset[tuple[str, int, int]] | None = None
    """What it did in this step; None: whatever comes opens one."""

    def next(self, what: tuple[str, int, int]) -> Counter:
        """After one more thing."""
        if self.seen is None or what in self.seen:
            return Counter(self.step + 1, frozenset((what,)))
        return Counter(self.step, self.seen | {what})


WIDE = len(Done._fields)


@dataclass(frozen=True, slots=True)
class Trace:
    """The state of a PipelineView.

    Attributes:
        actions: rows of `Done`, in order of arrival.
        moves: rows of `Move`, in order of arrival.
        running: what each rank is at.
        counters: in which step each rank is.
        base: the first step of this launch; generation: its number.
        names: the number of each finished step as the training counts it.
        ended: ranks whose program ended.
        cores: of each machine on which ranks of this launch run, by its address; 0 where nobody said.
    """

    actions: Series = field(default_factory=Series)
    moves: Series = field(default_factory=Series)
    running: Mapping[int, Running] = field(default_factory=lambda: MappingProxyType({}))
    counters: Mapping[int, Counter] = field(default_factory=lambda: MappingProxyType({}))
    base: int = 0
    generation: int = -1
    names: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    ended: frozenset[int] = frozenset()
    cores: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def n_cores(self) -> int:
        """Cores of all machines together; 0 where they are not known of each."""
        return sum(self.cores.values()) if all(self.cores.values()) else 0

    @property
    def n(self) -> int:
        """Actions that are finished."""
        return len(self.actions) // WIDE

    def folded(self, events: Iterable[Event]) -> Trace:
        """With more events."""
        draft = _Draft(self)
        for event in events:
            draft.take(event)
        return draft.trace()

    def number(self, step: int) -> int:
        """The number of a step, as the training counts it; from 1 within the launch where it did not say."""
        return self.names.get(step, step - self.base + 1)


Table = npt.NDArray[np.float64]
"""Rows of `Done`, one field a column."""
STEP, END = Done._fields.index("step"), Done._fields.index("end")


def table_by_time(column: Series) -> Table:
    """A flat column of the state as rows, by their end."""
    table = column.array.reshape(-1, WIDE)
    return table[np.argsort(table[:, END], kind="stable")]


def rows(table: Table) -> list[Done]:
    """The rows of a table as values.

    Example:
        >>> [done.name for done in rows(np.array([[0.0, 1, 1, 1, 3, 0, 9, 0, 0]]))]
        ['B3']
    """
    return [
        Done(int(r[0]), int(r[1]), bool(r[2]), int(r[3]), int(r[4]), r[5], r[6], int(r[7]), bool(r[8]))
        for r in table.tolist()
    ]


class _Draft:
    """A Trace while events are taken: what may change."""

    def __init__(self, old: Trace) -> None:
        self.old = old
        self.actions: list[float] = []
        self.moves: list[float] = []
        self.running, self.counters, self.names = dict(old.running), dict(old.counters), dict(old.names)
        self.base, self.generation, self.ended, self.cores = old.base, old.generation, old.ended, old.cores

    def take(self, event: Event) -> None:
        """One more event."""
        match event:
            case ActionFinished():
                self._finished(event)
            case ActionStarted():
                self.running[event.rank] = Running(event.kind, event.stage, event.micro, event.time_ns, event.paced)
            case ActivationMoved():
                self.moves += [event.kind == "B", event.src_stage, event.dst_stage, event.micro, event.time_ns,
                               event.n_bytes]  # fmt: skip
            case StepFinished() if event.rank in self.counters:  # a rank tells it after its own actions
                self.names[self.counters[event.rank].step] = event.step
            case RankStarted():
                self._started(event)
            case RankFinished():
                self.running.pop(event.rank, None)
                self.ended = self.ended | {event.rank}

    def _finished(self, event: ActionFinished) -> None:
        old = self.counters.get(event.rank, Counter(self.base - 1))
        self.counters[event.rank] = now = old.next((event.kind, event.stage, event.micro))
        self.running.pop(event.rank, None)
        self.actions += [now.step, event.rank, event.kind == "B", event.stage, event.micro, event.start_ns,
                         event.end_ns, event.n_live, event.paced]  # fmt: skip

    def _started(self, event: RankStarted) -> None:
        """Ranks of another launch: their steps come after all that were."""
        if event.generation != self.generation:
            self.base = 1 + max((c.step for c in self.counters.values()), default=-1)
            self.generation, self.counters, self.running, self.ended = event.generation, {}, {}, frozenset()
            self.cores = {}
        self.cores = {**self.cores, event.worker.rpartition(":")[0]: event.n_cores}

    def trace(self) -> Trace:
        """What it has become."""
        return replace(
            self.old, actions=_longer(self.old.actions, self.actions), moves=_longer(self.old.moves, self.moves),
            running=MappingProxyType(self.running), counters=MappingProxyType(self.counters), base=self.base,
            generation=self.generation, names=MappingProxyType(self.names), ended=self.ended, cores=self.cores,
        )  # fmt: skip


def _longer(column: Series, more: list[float]) -> Series:
    return column.extended(more) if more else column
