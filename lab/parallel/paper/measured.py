"""What a pipeline did, in the terms of the schedule checker: measured spans give the report that a schedule gives.

So the measured bubble and the one on paper are one formula, and the paper can be fed with the order and times of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from lab.errors import ScheduleError
from lab.parallel.paper.check_schedule import ScheduleReport, Slot, proved
from lab.parallel.paper.schedules import table_from


def measured(slots: Sequence[Slot]) -> ScheduleReport:
    """The report of one step from the spans of its actions, by rank in the order in which they began.

    Args:
        slots: every action of the step once, times in any unit; the earliest start counts as 0.

    Raises:
        ScheduleError: no spans.

    Example:
        >>> from lab.parallel import check_schedule
        >>> report = measured(check_schedule("1f1b", 2, 3).slots)
        >>> report.makespan, report.bubble, report.peak_live
        (12.0, 0.25, (2, 1))
    """
    if not slots:
        raise ScheduleError("nothing was measured", given="no spans", hint="one step of a pipeline has at least two")
    begin = min(slot.start for slot in slots)
    moved = sorted(
        (s._replace(start=s.start - begin, stop=s.stop - begin) for s in slots), key=lambda s: (s.start, s.rank)
    )
    n_ranks, n_micro = 1 + max(s.rank for s in moved), 1 + max(s.action.micro for s in moved)
    order = tuple(tuple(s.action for s in moved if s.rank == rank) for rank in range(n_ranks))
    n_stages = 1 + max(s.action.stage for s in moved)
    makespan = max(s.stop for s in moved)
    room, busy = n_ranks * makespan, sum(s.stop - s.start for s in moved)
    return ScheduleReport(
        n_ranks,
        n_micro,
        order,
        tuple(moved),
        peak_live=tuple(_peak(slots, rank) for rank in range(n_ranks)),
        makespan=makespan,
        bubble=(room - busy) / room if room else 0.0,
        ideal_bubble=(n_ranks - 1) / (max(1, n_stages // n_ranks) * n_micro + n_ranks - 1),
    )


def _peak(slots: Sequence[Slot], rank: int) -> int:
    """An activation is held from the end of its forward to the end of its backward."""
    ends = sorted((s.stop, 1 if s.action.kind == "F" else -1) for s in slots if s.rank == rank)
    return max(accumulate(change for _, change in ends), default=0)


def on_paper(report: ScheduleReport) -> ScheduleReport:
    """The same order without delays: every action lasts as long as those of its kind did on average, messages nothing.

    Raises:
        ScheduleError: the order is no whole step, so that some action would wait for ever or is missing.

    Example:
        >>> from lab.parallel import check_schedule
        >>> late = [Slot(s.rank, s.action, 1.5 * s.start, 1.5 * s.start + s.stop - s.start)
        ...         for s in check_schedule("gpipe", 2, 2).slots]
        >>> measured(late).makespan, on_paper(measured(late)).makespan
        (12.5, 9.0)
    """
    lasts = {kind: [s.stop - s.start for s in report.slots if s.action.kind == kind] for kind in "FB"}
    n_stages = 1 + max(s.action.stage for s in report.slots)
    mean = {kind: sum(times) / len(times) if times else 0.0 for kind, times in lasts.items()}
    n_chunks = max(1, n_stages // report.n_ranks)
    return proved(table_from(report.order), report.n_ranks, report.n_micro, n_chunks, mean["F"], mean["B"])
