"""Recordings of pipelines: real ones of ranks that are threads, and ones written by hand with known times."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np

from lab.data import Batch
from lab.events import (
    ActionFinished,
    ActionStarted,
    ActivationMoved,
    Bus,
    Event,
    RankFinished,
    RankStarted,
    Recording,
    StepFinished,
    record,
)
from lab.events.event import Origin, values_of
from lab.nn import Tanh, cross_entropy, mlp
from lab.parallel import Comm, run_ranks
from lab.parallel.paper.check_schedule import Slot, check_schedule, needs
from lab.parallel.paper.schedules import Action, table_of
from lab.parallel.pipeline.pacing import Paced, device_for
from lab.parallel.pipeline.pipeline_rank import PipelineRank
from lab.parallel.pipeline.stages import split

MS = 1_000_000
Told = tuple[int, int, Event]
"""Time, rank, event."""


def delayed(
    schedule: str, n_ranks: int, n_micro: int, seed: int, *, chunks: int = 1, message: float = 0.6
) -> list[Slot]:
    """The actions of a schedule with times in ms that vary, and messages that take a while."""
    rng = random.Random(seed)
    table = table_of(schedule, n_ranks, n_micro, chunks_per_rank=chunks)
    done: dict[Action, float] = {}
    at, free, slots = [0] * n_ranks, [0.0] * n_ranks, []
    while any(at[r] < len(table[r]) for r in range(n_ranks)):
        for rank in range(n_ranks):
            while at[rank] < len(table[rank]):
                action = table[rank][at[rank]]
                before = needs(action, n_ranks * chunks)
                if any(n not in done for n in before):
                    break
                ready = max([free[rank], *(done[n] + message * (n.stage != action.stage) for n in before)])
                start = ready + 0.05
                stop = start + (4.0 if action.kind == "F" else 8.0) * rng.uniform(0.85, 1.25)
                free[rank] = done[action] = stop
                slots.append(Slot(rank, action, start, stop))
                at[rank] += 1
    return slots


def told(slots: Iterable[Slot], begin: float, *, paced: bool = False, n_stages: int = 0) -> list[Told]:
    """The events of one step, by time."""
    rows: list[Told] = []
    live: dict[int, int] = {}
    for slot in sorted(slots, key=lambda s: s.stop):
        a, start, stop = slot.action, round((begin + slot.start) * MS), round((begin + slot.stop) * MS)
        live[slot.rank] = live.get(slot.rank, 0) + (1 if a.kind == "F" else -1)
        rows.append((start, slot.rank, ActionStarted(a.kind, a.stage, a.micro, paced)))
        rows.append((stop, slot.rank, ActionFinished(a.kind, a.stage, a.micro, paced, start, stop, live[slot.rank])))
        there = a.stage + (1 if a.kind == "F" else -1)
        if 0 <= there < n_stages:
            came = stop + MS // 2
            rows.append((came, there, ActivationMoved(a.kind, a.stage, there, a.micro, 8192)))
    return sorted(rows, key=lambda row: row[0])


def recorded_by_ranks(rows: Iterable[Told], run: str = "digits") -> Recording:
    """A Recording of events with the origins and times of ranks, in this order."""
    bus, rec = Bus(), Recording(run="*")
    bus.attach(rec)
    for time, rank, event in rows:
        bus.append((type(event), time, Origin(rank, run), values_of(event)))
    bus.detach(rec)
    return rec


def pipeline(
    schedule: str = "1f1b",
    n_ranks: int = 4,
    n_micro: int = 8,
    *,
    n_steps: int = 2,
    batches: bool = False,
    paced: bool = False,
    ends: bool = True,
    chunks: int = 1,
) -> Recording:
    """A training of some steps; `batches`: each rank's events of a step come together, as over a network."""
    rows: list[Told] = [(0, rank, RankStarted(1, n_ranks, "", 100 + rank)) for rank in range(n_ranks)]
    begin = 1.0
    for step in range(1, n_steps + 1):
        if paced:
            slots = list(
                check_schedule(schedule, n_ranks, n_micro, chunks_per_rank=chunks, forward=50, backward=100).slots
            )
        else:
            slots = delayed(schedule, n_ranks, n_micro, seed=step, chunks=chunks)
        mine = told(slots, begin, paced=paced, n_stages=n_ranks * chunks)
        begin += max(s.stop for s in slots) + 2
        mine.append((round(begin * MS), 0, StepFinished(step, 0, 2.3 / step, 64, 50.0)))
        rows += sorted(mine, key=lambda row: row[1]) if batches else mine
    if ends:
        rows += [(round(begin * MS), rank, RankFinished(1, "finished", begin, "")) for rank in range(n_ranks)]
    return recorded_by_ranks(rows)


def ran(
    order: str, n_stages: int, n_micro: int, *, n_steps: int = 1, n_ranks: int = 0, paced: Paced | None = None
) -> Recording:
    """What a real pipeline of a small network told: its ranks are threads, messages go through sockets."""
    n_ranks = n_ranks or n_stages
    stages = split(mlp(*[6] * n_stages, 3, activation=Tanh, rng=0), n_stages)
    table = check_schedule(order, n_ranks, n_micro, chunks_per_rank=n_stages // n_ranks).order
    rng = np.random.default_rng(0)
    batch = Batch(rng.normal(size=(4 * n_micro, 6)).astype(np.float32), rng.integers(0, 3, 4 * n_micro))

    def program(comm: Comm) -> None:
        rank = PipelineRank(comm, stages, cross_entropy, table, n_micro, device_for(comm, paced))
        for _ in range(n_steps):
            rank.step(batch)

    with record() as rec:
        run_ranks(program, world_size=n_ranks)
    return rec
