"""Replicas of data-parallel training as they told it: for the latest steps what each rank took, found, got and holds.

Ranks come in any order, and one may be ahead of the others, so a step is kept until much later ones have come.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.events import ChunkMoved, Event, RankFinished, RankLost, RankStarted, ReplicaAdvanced
from widgets.fold import Stretch

PHASES = ("shard", "gradient", "reduced", "updated")
KEPT = 64
"""Steps that are kept: the latest; no rank is so far ahead of another."""
_ROUND = 2**40
"""Steps of one round of counting: a run that was set back counts again, and each rank is in its round."""
CODES = _ROUND * len(PHASES)

Ints = npt.NDArray[np.int64]
Pair = tuple[int, int]


class Moved(NamedTuple):
    """What a rank has received in chunks."""

    n_hops: int = 0
    n_bytes: int = 0


class Replica(NamedTuple):
    """One rank in one step; what it has not reached yet is nan or 0."""

    start: int
    stop: int
    n_global: int
    phase: int
    """Index in PHASES that it reached."""
    loss: float = math.nan
    contributed: float = math.nan
    """Norm of its own gradient, weighted as it enters the sum."""
    total: float = math.nan
    """Norm of the sum."""
    parameters: float = math.nan
    checksum: int = 0
    ms: tuple[float, ...] = ()
    """By phase."""
    before: Moved = Moved()
    """What it had received when its gradient was done."""
    after: Moved = Moved()
    """When the sum was."""

    def until(self, phase: int) -> Replica:
        """As it was when it reached that phase."""
        if phase >= self.phase:
            return self
        cut = self._replace(phase=phase, ms=self.ms[: phase + 1], parameters=math.nan, checksum=0)
        if phase < 2:
            cut = cut._replace(total=math.nan, after=Moved())
        return cut if phase else cut._replace(loss=math.nan, contributed=math.nan, before=Moved())


def _empty() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Replicas:
    """The state of a DataParallelView.

    Attributes:
        steps: by key (ascending with time, see `step_of`) and rank; the latest KEPT.
        at: for each rank the key and phase that it reached last, as one number (`code_of`).
        moved: what each rank has received since the launch began.
        links: who sent chunks to whom.
        world_size: of the launch, 0 where nobody told.
        generation: of the launch, -1 where nobody told.
        lost: ranks that died, with the reason.
        ended: how the program of each rank ended: state and reason.
    """

    steps: Mapping[int, Mapping[int, Replica]] = field(default_factory=_empty)
    at: Mapping[int, int] = field(default_factory=_empty)
    moved: Mapping[int, Moved] = field(default_factory=_empty)
    links: frozenset[Pair] = frozenset()
    world_size: int = 0
    generation: int = -1
    lost: Mapping[int, str] = field(default_factory=_empty)
    ended: Mapping[int, tuple[str, str]] = field(default_factory=_empty)

    @property
    def crew(self) -> tuple[int, ...]:
        """All ranks that are known of."""
        known = self.at.keys() | self.lost.keys() | self.ended.keys()
        return tuple(range(max(self.world_size, 1 + max(known, default=-1))))

    def folded(self, event: Event) -> Replicas:
        """With one more event; another launch begins anew."""
        if isinstance(event, RankStarted):
            if event.generation == self.generation:
                return self
            return Replicas(world_size=event.world_size, generation=event.generation)
        if isinstance(event, RankLost):
            return replace(self, lost=MappingProxyType({**self.lost, event.lost_rank: event.reason}))
        if isinstance(event, RankFinished):
            return replace(self, ended=MappingProxyType({**self.ended, event.rank: (event.state, event.reason)}))
        if isinstance(event, ChunkMoved):
            had = self.moved.get(event.dst, Moved())
            now = Moved(had.n_hops + 1, had.n_bytes + event.n_bytes)
            moved = MappingProxyType({**self.moved, event.dst: now})
            return replace(self, moved=moved, links=self.links | {(event.src, event.dst)})
        if not isinstance(event, ReplicaAdvanced):
            return self
        order = event.step * len(PHASES) + PHASES.index(event.phase)
        last = self.at.get(event.rank, -1)
        code = last // CODES * CODES + order + CODES * (order <= last % CODES) if last >= 0 else order
        return self._advanced([(code, event, self.moved.get(event.rank, Moved()))], {event.rank: code})

    def _advanced(self, rows: list[tuple[int, ReplicaAdvanced, Moved]], at: Mapping[int, int]) -> Replicas:
        """With rows of what ranks told, each with its code and what the rank had received by then."""
        steps: dict[int, dict[int, Replica]] = {}
        for code, event, moved in rows:
            key = code // len(PHASES)
            if key not in steps:
                steps[key] = dict(self.steps.get(key, {}))
            steps[key][event.rank] = _after(steps[key].get(event.rank), event, moved)
        every = {**self.steps, **{key: MappingProxyType(ranks) for key, ranks in steps.items()}}
        kept = {key: every[key] for key in sorted(every)[-KEPT:]}
        return replace(self, steps=MappingProxyType(kept), at=MappingProxyType({**self.at, **at}))

    def folded_many(self, stretch: Stretch) -> Replicas:
        """With a stretch of events: of the steps that would be forgotten again only the counting is done."""
        state = self
        for event in stretch.of((RankStarted,)):
            if isinstance(event, RankStarted) and event.generation != state.generation:
                state = Replicas(world_size=event.world_size, generation=event.generation)
                begins = int(stretch.positions(RankStarted)[_nth(stretch, event.generation)])
                stretch = stretch._replace(start=begins + 1)
        rows, hops = stretch.columns(ReplicaAdvanced), Hops(stretch, state.moved)
        codes = codes_of(rows, state.at)
        if len(codes):
            keys = codes // len(PHASES)
            newest = sorted(set(np.unique(keys).tolist()) | set(state.steps))[-KEPT:]
            kept = np.flatnonzero(keys >= newest[0])
            ranks, positions = np.asarray(rows["rank"]), np.asarray(rows["position"])
            told = ((int(codes[i]), int(positions[i]), stretch.events[int(positions[i])]) for i in kept)
            ready = [
                (code, event, hops.before(event.rank, position))
                for code, position, event in told
                if isinstance(event, ReplicaAdvanced)
            ]
            last = {int(rank): int(codes[np.flatnonzero(ranks == rank)[-1]]) for rank in np.unique(ranks)}
            state = state._advanced(ready, last)
        if hops.links:
            state = replace(state, moved=MappingProxyType(hops.all()), links=state.links | hops.links)
        for event in stretch.of((RankLost, RankFinished)):
            state = state.folded(event)
        return state


def step_of(key: int) -> int:
    """The step that a key stands for, as the training counts it."""
    return key % _ROUND


def _after(old: Replica | None, event: ReplicaAdvanced, moved: Moved) -> Replica:
    phase = PHASES.index(event.phase)
    ms = (*(old.ms if old else ()), *[math.nan] * (phase - len(old.ms if old else ())), event.elapsed_ms)
    made = old or Replica(event.start, event.stop, event.n_global, phase)
    made = made._replace(phase=phase, ms=ms, loss=event.loss)
    if phase == 1:
        return made._replace(contributed=event.norm, before=moved)
    if phase == 2:
        return made._replace(total=event.norm, after=moved)
    return made if phase == 0 else made._replace(parameters=event.norm, checksum=event.checksum)


def codes_of(rows: Mapping[str, Any], at: Mapping[int, int]) -> Ints:
    """For each row one number that grows with round, step and phase of its rank.

    Args:
        at: the last number of each rank before these rows.
    """
    phase = np.asarray(rows["phase"])
    order: Ints = np.asarray(rows["step"], np.int64) * len(PHASES)
    for i, name in enumerate(PHASES):
        order = order + i * (phase == name)
    ranks, codes = np.asarray(rows["rank"]), order.copy()
    for rank in np.unique(ranks):
        mine = np.flatnonzero(ranks == rank)
        last = at.get(int(rank), -1)
        first = last // CODES if last >= 0 else 0
        again = np.diff(order[mine], prepend=last % CODES if last >= 0 else -1) <= 0
        codes[mine] += (first + np.cumsum(again)) * CODES
    return codes


class Hops:
    """The chunks of a stretch, counted for each rank that received them."""

    def __init__(self, stretch: Stretch, before: Mapping[int, Moved]) -> None:
        rows = stretch.columns(ChunkMoved)
        dst, src = np.asarray(rows["dst"]), np.asarray(rows["src"])
        self._before = before
        self._positions = {int(rank): np.asarray(rows["position"])[dst == rank] for rank in np.unique(dst)}
        self._bytes = {
            rank: np.concatenate([[0], np.cumsum(np.asarray(rows["n_bytes"])[dst == rank])]) for rank in self._positions
        }
        pairs = np.unique(np.stack([src, dst], 1), axis=0).tolist() if len(dst) else []
        self.links = frozenset((int(a), int(b)) for a, b in pairs)

    def before(self, rank: int, position: int) -> Moved:
        """What a rank had received before a position."""
        had = self._before.get(rank, Moved())
        if rank not in self._positions:
            return had
        n = int(np.searchsorted(self._positions[rank], position))
        return Moved(had.n_hops + n, had.n_bytes + int(self._bytes[rank][n]))

    def all(self) -> dict[int, Moved]:
        """What each rank has received at the end."""
        return {**self._before, **{rank: self.before(rank, 2**62) for rank in self._positions}}


def _nth(stretch: Stretch, generation: int) -> int:
    """The first row of a launch among those of RankStarted."""
    return int(np.flatnonzero(np.asarray(stretch.columns(RankStarted)["generation"]) == generation)[0])


def launches(stretch: Stretch) -> Iterator[Stretch]:
    """The stretch cut where another launch begins."""
    rows = stretch.columns(RankStarted)
    begins = np.diff(np.asarray(rows["generation"]), prepend=-1) != 0
    bounds = [stretch.start, *np.asarray(rows["position"])[begins].tolist(), stretch.stop]
    for start, stop in pairwise(bounds):
        yield stretch._replace(start=start, stop=stop)
