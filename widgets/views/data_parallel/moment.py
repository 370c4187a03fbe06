"""Which step of data-parallel training is shown, and how far all replicas are in it.

A phase is shown when every rank that is still there has reached it; only at the newest state of a recording is seen who
is ahead and who is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from lab.events import RankFinished, RankLost, RankStarted, ReplicaAdvanced
from widgets.fold import Events, Positions, Stretch, merged
from widgets.views.data_parallel.replicas import (
    CODES,
    PHASES,
    Moved,
    Pair,
    Replica,
    Replicas,
    codes_of,
    launches,
    step_of,
)


class Moment(NamedTuple):
    """What is shown.

    Attributes:
        step: as the training counts it, -1 before the first.
        phase: index in PHASES that all have reached, -1 if some have not begun the step.
        replicas: by rank; who has not begun the step is missing.
        crew: all ranks.
        lost: ranks that died, with the reason.
        failed: ranks whose program raised, with the reason; if one was lost, all others.
        now: what each rank has received so far.
        links: who sends chunks to whom.
        stopped: ranks that were ended because of another.
    """

    step: int
    phase: int
    replicas: Mapping[int, Replica]
    crew: tuple[int, ...]
    lost: Mapping[int, str]
    failed: Mapping[int, str]
    now: Mapping[int, Moved]
    links: frozenset[Pair]
    stopped: frozenset[int] = frozenset()

    @property
    def here(self) -> tuple[int, ...]:
        """The ranks that are not gone."""
        return tuple(rank for rank in self.crew if rank not in self.lost)

    @property
    def late(self) -> tuple[int, ...]:
        """The ranks that others have to wait for: behind the one that is furthest."""
        reached = {rank: self.replicas[rank].phase if rank in self.replicas else -1 for rank in self.here}
        return tuple(rank for rank, phase in reached.items() if phase < max(reached.values(), default=-1))

    def moved(self, rank: int) -> Moved | None:
        """What a rank received in the all-reduce of this step; None before it began, or where no chunk was recorded."""
        at = self.replicas.get(rank)
        if at is None or at.phase < 1 or not self.links:
            return None
        until = self.now.get(rank, Moved()) if at.phase == 1 else at.after
        return Moved(until.n_hops - at.before.n_hops, until.n_bytes - at.before.n_bytes)


def moment_of(state: Replicas, end: Replicas) -> Moment:
    """What is shown of a state.

    Args:
        end: the state of the whole recording: it knows all ranks, and how far those came that were lost.
    """
    if end.generation != state.generation:
        end = state
    crew, newest = end.crew, (state.at, state.moved) == (end.at, end.moved)
    gone = {rank: end.at.get(rank, -1) for rank in crew if rank in end.lost or rank in end.ended}
    keys = sorted(state.steps, reverse=True)
    key, phase = next(
        ((key, phase) for key in keys if (phase := _phase(state, key, crew, gone)) >= 0), (keys[0] if keys else -1, -1)
    )
    if newest and keys and keys[0] != key and any(replica.phase for replica in state.steps[keys[0]].values()):
        key, phase = keys[0], -1  # somebody has computed a gradient of it already: who has not is worth seeing
    replicas = state.steps.get(key, {})
    shown = dict(replicas) if newest or phase < 0 else {rank: at.until(phase) for rank, at in replicas.items()}
    failed = {rank: reason for rank, (how, reason) in state.ended.items() if how == "failed" and rank not in state.lost}
    stopped = frozenset(rank for rank, (how, _) in state.ended.items() if how == "stopped") - state.lost.keys()
    return Moment(step_of(key) if keys else -1, phase, shown, crew, state.lost, failed, state.moved, end.links, stopped)


def _phase(state: Replicas, key: int, crew: tuple[int, ...], gone: Mapping[int, int]) -> int:
    """The phase of a step that all have reached who ever did."""
    replicas = state.steps[key]
    for phase in reversed(range(len(PHASES))):
        awaited = [rank for rank in crew if gone.get(rank, CODES * CODES) >= key * len(PHASES) + phase]
        if awaited and all(rank in replicas and replicas[rank].phase >= phase for rank in awaited):
            return phase
    return -1


def stops_of(events: Events) -> Positions:
    """A stop for each phase of each step, where the last rank reaches it; for each loss; and for what came last."""
    whole = Stretch(events, 0, len(events))
    parts = [_stops(stretch) for stretch in launches(whole)]
    ended = np.flatnonzero(np.asarray(whole.columns(RankFinished)["state"]) != "finished")
    return merged(*parts, whole.positions(RankLost), whole.positions(RankFinished)[ended[-1:]]) + 1


def _stops(stretch: Stretch) -> Positions:
    rows = stretch.columns(ReplicaAdvanced)
    codes, ranks, positions = codes_of(rows, {}), np.asarray(rows["rank"]), np.asarray(rows["position"])
    if not len(codes):
        return np.empty(0, np.int64)
    every, which, n_there = np.unique(codes, return_inverse=True, return_counts=True)
    last = np.zeros(len(every), np.int64)
    np.maximum.at(last, which, positions)
    lost, ended = stretch.columns(RankLost)["lost_rank"].tolist(), stretch.columns(RankFinished)["rank"].tolist()
    worlds = stretch.columns(RankStarted)["world_size"].tolist()
    awaited = np.full(len(every), max([*worlds, 1 + int(ranks.max()), *(1 + rank for rank in (*lost, *ended))]))
    for rank in {*lost, *ended}:
        mine = codes[ranks == rank]
        awaited -= every > (mine.max() if len(mine) else -1)
    stops: Positions = merged(last[(n_there >= awaited) & (awaited > 0)], positions[-1:])
    return stops
