"""A step that ranks are held in, drawn by ticks: each action is as wide as any other, a column is what ran at once.

How long an action took says little where somebody looks between two of them, and the first ones of a run wait for
compilers; what each rank does while others rest is the point there. The times are shown once the step is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.parallel.paper.check_schedule import check_schedule, needs
from lab.parallel.paper.schedules import Action
from widgets.views.pipeline.moment import Moment
from widgets.views.pipeline.trace import Done

ROOM = 4
"""The axis grows by so many columns, where nobody knows yet how many there will be."""


def in_ticks(moment: Moment) -> Moment:
    """The moment with ticks for times: a tick begins for an action when its rank is free and what it needs is done."""
    placed = placed_in_ticks(moment.done, moment.n_stages)
    last = next((d for d in placed if moment.last is not None and _key(d) == _key(moment.last)), None)
    now = max((d.end for d in placed), default=0.0)
    end = ROOM * (now // ROOM + 1)
    if (known := moment.report or moment.plan) is not None:  # of an earlier step, as long as this one is not over
        chunks = max(1, moment.n_stages // known.n_ranks)
        whole = check_schedule(known.order, known.n_ranks, known.n_micro, chunks_per_rank=chunks, forward=1, backward=1)
        end = max(now, whole.makespan)
    return moment._replace(done=placed, going=(), last=last, plan=None, end=end, in_ticks=True)


def placed_in_ticks(done: Sequence[Done], n_stages: int) -> tuple[Done, ...]:
    """Actions with ticks for times, in their order."""
    ends: dict[Action, float] = {}
    free: dict[int, float] = {}
    made = []
    for d in done:
        action = Action(d.kind, d.stage, d.micro)
        start = max([free.get(d.rank, 0.0), *(ends.get(need, 0.0) for need in needs(action, n_stages))])
        free[d.rank] = ends[action] = start + 1
        made.append(d._replace(start=start, end=start + 1))
    return tuple(made)


def _key(done: Done) -> Action:
    return Action(done.kind, done.stage, done.micro)
