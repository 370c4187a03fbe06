"""Prove a schedule on paper: every micro-batch once each way, nobody waits for ever, and what it costs.

The clock is exact: an action starts when its rank is free and what it needs is done, so the result does not depend on
the order in which the checker looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from lab.checks import number
from lab.errors import ScheduleError
from lab.parallel.paper.schedules import KINDS, Action, Schedule, Table, format_table, sizes_of, table_from, table_of
from lab.words import counted, shown

MOST_TIME = 1e12
"""Of one action, in any unit: sums of so many stay exact enough to be compared."""


class Slot(NamedTuple):
    """An action with its time."""

    rank: int
    action: Action
    start: float
    stop: float


@dataclass(frozen=True, slots=True)
class ScheduleReport:
    """What a right schedule costs.

    Attributes:
        n_ranks: ranks of the pipeline.
        n_micro: micro-batches.
        order: the actions of each rank.
        slots: every action with its time, by start and then by rank.
        peak_live: for each rank, how many activations it holds at most: forwards whose backward is still to come.
        makespan: when the last action ends.
        bubble: share of all ranks' time in which they wait, 0 to 1.
        ideal_bubble: (p - 1) / (v m + p - 1) for p ranks of v stages and m micro-batches (arXiv:1811.06965,
            arXiv:2104.04473).
    """

    n_ranks: int
    n_micro: int
    order: Table
    slots: tuple[Slot, ...]
    peak_live: tuple[int, ...]
    makespan: float
    bubble: float
    ideal_bubble: float

    def __str__(self) -> str:
        live = ", ".join(map(str, self.peak_live))
        return (f"{format_table(self.order)}\nmakespan {self.makespan:g}, bubble {self.bubble:.1%} "
                f"(text book {self.ideal_bubble:.1%}), live activations {live}")  # fmt: skip


def check_schedule(
    order: Schedule | str | Table,
    n_ranks: int,
    n_micro: int,
    *,
    chunks_per_rank: int = 1,
    forward: float = 1.0,
    backward: float = 2.0,
) -> ScheduleReport:
    """See whether a schedule works for one pipeline, and what it costs.

    Args:
        order: a schedule, its name, or the order of every rank (`parse_table` reads one from text).
        forward: time of a forward through one stage, in any unit.
        backward: time of a backward.

    Raises:
        ScheduleError: no such schedule, a size that is none, a time that is not positive, a function that raises by
            itself, an action on the wrong rank, twice or missing, or two actions that wait for each other.

    Example:
        >>> print(check_schedule("1f1b", 2, 3))
        F0 F1 B0 F2 B1 B2
        F0 B0 F1 B1 F2 B2
        makespan 12, bubble 25.0% (text book 25.0%), live activations 2, 1
    """
    forward, backward = _time("forward", forward), _time("backward", backward)
    n_ranks, n_micro, chunks_per_rank = sizes_of(n_ranks, n_micro, chunks_per_rank)
    if isinstance(order, tuple | list):
        table = table_from(order)
    else:
        table = table_of(order, n_ranks, n_micro, chunks_per_rank=chunks_per_rank)
    return proved(table, n_ranks, n_micro, chunks_per_rank, forward, backward)


def _time(name: str, value: object) -> float:
    hint = f"in any unit: {name}={1 if name == 'forward' else 2} is usual"
    time = number(name, value, hint=hint, error=ScheduleError)
    if not 0 < time <= MOST_TIME:
        raise ScheduleError(f"the time of a {name} is above 0 and at most {MOST_TIME:g}",
                            given=f"{name}={shown(value)}", hint=hint)  # fmt: skip
    return time


def proved(
    table: Table, n_ranks: int, n_micro: int, chunks_per_rank: int, forward: float, backward: float
) -> ScheduleReport:
    """`check_schedule` for an order and sizes that have been looked at; times may also be 0, as they may be measured.

    Raises:
        ScheduleError: an action on the wrong rank, twice or missing, or two actions that wait for each other.
    """
    if len(table) != n_ranks:
        given = f"{counted(len(table), 'line')}, {counted(n_ranks, 'rank')}"
        raise ScheduleError("the schedule is for another number of ranks", given=given,
                            hint='one line a rank; "-" for a rank that rests')  # fmt: skip
    n_stages = n_ranks * chunks_per_rank
    for rank, actions in enumerate(table):
        _refuse_foreign(rank, actions, n_ranks, n_stages, n_micro)
        _refuse_uneven(rank, actions, n_ranks, n_stages, n_micro)
    slots = _timed(table, n_stages, {"F": forward, "B": backward})
    makespan = max(slot.stop for slot in slots)
    room = n_ranks * makespan
    busy = n_stages * n_micro * (forward + backward)
    return ScheduleReport(
        n_ranks,
        n_micro,
        table,
        tuple(sorted(slots, key=lambda slot: (slot.start, slot.rank))),
        peak_live=tuple(max(accumulate(1 if a.kind == "F" else -1 for a in actions)) for actions in table),
        makespan=makespan,
        bubble=(room - busy) / room if room else 0.0,
        ideal_bubble=(n_ranks - 1) / (chunks_per_rank * n_micro + n_ranks - 1),
    )


def needs(action: Action, n_stages: int) -> tuple[Action, ...]:
    """What has to be done before an action: activations come from the left, gradients from the right.

    Example:
        >>> [str(a) for a in needs(Action("B", 1, 0), n_stages=4)]
        ['1F0', '2B0']
    """
    kind, stage, micro = action
    if kind == "F":
        return (Action("F", stage - 1, micro),) if stage else ()
    own = Action("F", stage, micro)
    return (own, Action("B", stage + 1, micro)) if stage + 1 < n_stages else (own,)


def _refuse_foreign(rank: int, actions: Sequence[Action], n_ranks: int, n_stages: int, n_micro: int) -> None:
    for at, (kind, stage, micro) in enumerate(actions):
        where = f"rank {rank}, action {at}"
        if not (micro in range(n_micro) and stage in range(n_stages)):
            raise ScheduleError(f"{where}: {KINDS[kind]} of micro-batch {micro} on stage {stage}, which does not exist",
                                given=f"{n_micro} micro-batches, {n_stages} stages",
                                hint="both are counted from 0")  # fmt: skip
        if stage % n_ranks != rank:
            raise ScheduleError(f"{where}: stage {stage} lives on rank {stage % n_ranks}", given=str(actions[at]),
                                hint="a rank runs its own stages only: yield Action(kind, rank, m)")  # fmt: skip


def _refuse_uneven(rank: int, actions: Sequence[Action], n_ranks: int, n_stages: int, n_micro: int) -> None:
    times = Counter(actions)
    for stage in range(rank, n_stages, n_ranks):
        for kind, word in KINDS.items():
            for micro in range(n_micro):
                n_times = times[Action(kind, stage, micro)]
                if n_times != 1:
                    often = "never" if n_times == 0 else "twice" if n_times == 2 else f"{n_times} times"
                    raise ScheduleError(f"rank {rank}: runs the {word} of micro-batch {micro} {often}, expected once",
                                        given=" ".join(map(str, actions)) or "no action",
                                        hint="every micro-batch goes through every stage once each way")  # fmt: skip


def _timed(table: Table, n_stages: int, cost: dict[str, float]) -> list[Slot]:
    """Every action as early as its rank and its needs allow."""
    done: dict[Action, float] = {}
    at, free = [0] * len(table), [0.0] * len(table)
    slots: list[Slot] = []
    moved = True
    while moved:
        moved = False
        for rank, actions in enumerate(table):
            while at[rank] < len(actions) and all(n in done for n in needs(actions[at[rank]], n_stages)):
                action = actions[at[rank]]
                start = max([free[rank], *(done[need] for need in needs(action, n_stages))])
                free[rank] = done[action] = start + cost[action.kind]
                slots.append(Slot(rank, action, start, free[rank]))
                at[rank] += 1
                moved = True
    waiting = {rank: actions[at[rank]] for rank, actions in enumerate(table) if at[rank] < len(actions)}
    if waiting:
        raise _deadlock(waiting, done, n_stages, len(table))
    return slots


def _deadlock(waiting: dict[int, Action], done: dict[Action, float], n_stages: int, n_ranks: int) -> ScheduleError:
    """Follow who waits for whom around to the first rank met twice, and name its action and the one it waits behind."""

    def missing(rank: int) -> Action:
        return next(need for need in needs(waiting[rank], n_stages) if need not in done)

    rank, seen = min(waiting), set[int]()
    while rank not in seen:
        seen.add(rank)
        rank = missing(rank).stage % n_ranks
    other = missing(rank).stage % n_ranks
    mine = f"rank {rank} waits at {waiting[rank]} for {missing(rank)}"
    if other == rank:
        return ScheduleError("the schedule cannot make progress", given=f"{mine}, which comes later on the same rank",
                             hint="a backward was placed before the forward that it needs")  # fmt: skip
    return ScheduleError("the schedule cannot make progress",
                         given=f"{mine}, rank {other} waits at {waiting[other]} for {missing(other)}",
                         hint="one of the two ranks has to do another action first")  # fmt: skip
