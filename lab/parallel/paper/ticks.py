"""A schedule cut into ticks: what runs at the same time when each action lasts as long as any other.

In a tick every rank whose next action has what it needs does that one action; the others rest. So a tick is a column of
the picture of a pipeline, and where a rank rests in it one sees the bubble.
"""

from __future__ import annotations

from lab.parallel.paper.check_schedule import check_schedule
from lab.parallel.paper.schedules import Action, Table

Tick = tuple[Action | None, ...]
"""What each rank does in it, None for one that rests."""


def ticks_of(table: Table, n_micro: int, *, chunks_per_rank: int = 1) -> tuple[Tick, ...]:
    """The ticks of a schedule. What an action needs is done in ticks before its own, never in the same.

    Args:
        table: the order of every rank.
        n_micro: micro-batches that have examples; actions of later ones are left out, as a pipeline does.

    Raises:
        ScheduleError: the schedule does not work.

    Example:
        >>> from lab.parallel.paper.schedules import table_of
        >>> for tick in ticks_of(table_of("1f1b", 2, 2), 2):
        ...     print(*(action or "-" for action in tick))
        0F0 -
        0F1 1F0
        - 1B0
        0B0 1F1
        - 1B1
        0B1 -
    """
    order = tuple(tuple(action for action in row if action.micro < n_micro) for row in table)
    report = check_schedule(order, len(table), n_micro, chunks_per_rank=chunks_per_rank, forward=1, backward=1)
    ticks: list[list[Action | None]] = [[None] * len(table) for _ in range(int(report.makespan))]
    for slot in report.slots:
        ticks[int(slot.start)][slot.rank] = slot.action
    return tuple(map(tuple, ticks))
