"""What is wrong with a schedule of threads, and the signs of known mistakes: what shows in every case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lab.teach.exercise import Seen
from lab.teach.plain import Plain

Places = list[tuple[int, float]]
"""Thread and start of each equation."""


class Job(NamedTuple):
    """What has to be scheduled."""

    needs: Sequence[Sequence[int]]
    costs: Sequence[float]
    priority: Sequence[float]
    n_threads: int


def read(value: Plain, n: int) -> Places | None:
    """The places that were given for n equations; None if it is something else."""
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        return None
    if numbers.shape != (n, 2) or not np.isfinite(numbers).all():
        return None
    if not np.array_equal(numbers[:, 0], np.round(numbers[:, 0])):
        return None
    return [(int(thread), float(start)) for thread, start in numbers]


def stop(job: Job, places: Places, k: int) -> float:
    """When an equation ends."""
    return places[k][1] + job.costs[k]


def early(job: Job, places: Places) -> Iterator[tuple[int, int]]:
    """Each equation that begins before one ends for which it waits, with that one."""
    for k, waits in enumerate(job.needs):
        yield from ((k, j) for j in waits if places[k][1] < stop(job, places, j))


def crowded(job: Job, places: Places) -> Iterator[tuple[int, int]]:
    """Pairs of equations that are at the same time in the same thread."""
    order = sorted(range(len(places)), key=lambda k: places[k])
    for j, k in pairwise(order):
        if places[j][0] == places[k][0] and places[k][1] < stop(job, places, j):
            yield j, k


def idle(job: Job, places: Places) -> Iterator[tuple[int, int, float]]:
    """Each equation that is ready while a thread is idle, with the thread and the time at which that begins."""
    times = sorted({0.0, *(stop(job, places, k) for k in range(len(places)))})
    for now in times:
        busy = {places[k][0] for k in range(len(places)) if places[k][1] <= now < stop(job, places, k)}
        free = [thread for thread in range(job.n_threads) if thread not in busy]
        for k, waits in enumerate(job.needs):
            if free and places[k][1] > now and all(stop(job, places, j) <= now for j in waits):
                yield k, free[0], now


def lawful(job: Job, places: Places) -> bool:
    """It can be done as it is written, in the threads that there are."""
    there = all(0 <= thread < job.n_threads and start >= 0 for thread, start in places)
    return there and not any(early(job, places)) and not any(crowded(job, places))


def wrong(job: Job, places: Places) -> bool:
    """It breaks a rule."""
    return not lawful(job, places) or any(idle(job, places))


Shows = Callable[[Job, Places], bool]
Sign = Callable[[Seen], bool]


def unlawful(job: Job, places: Places) -> bool:
    """It cannot be done as it is written."""
    return not lawful(job, places)


def sign(shows: Shows, where: Shows = wrong) -> Sign:
    """A sign that shows in every case where the schedule is wrong, and in one at least."""

    @wraps(shows)
    def everywhere(seen: Seen) -> bool:
        all_places = [(Job(*case), None if a.failure else read(a.value, len(case[0]))) for case, a in seen]
        if any(places is None for _, places in all_places):
            return False
        failed = [(job, places) for job, places in all_places if places is not None and where(job, places)]
        return bool(failed) and all(shows(job, places) for job, places in failed)

    return everywhere


@sign
def one_thread(job: Job, places: Places) -> bool:
    """All equations are in one."""
    return len({thread for thread, _ in places}) == 1 and not any(crowded(job, places))


@sign
def swapped(job: Job, places: Places) -> bool:
    """It is right with both turned round."""
    return lawful(job, [(int(start), float(thread)) for thread, start in places])


@sign
def from_one(job: Job, places: Places) -> bool:
    """It is right with each thread one less."""
    return min(places)[0] == 1 and lawful(job, [(thread - 1, start) for thread, start in places])


@sign
def ends(job: Job, places: Places) -> bool:
    """It is right with each start sooner by the cost."""
    started = [(thread, start - cost) for (thread, start), cost in zip(places, job.costs, strict=True)]
    return lawful(job, started) and not any(idle(job, started))


@sign
def busy(job: Job, places: Places) -> bool:
    """Two are in a thread at once, and yet all is waited for."""
    return any(crowded(job, places)) and not any(early(job, places))


@sign
def waits_for_none(job: Job, places: Places) -> bool:
    """It is right if nothing needs anything."""
    free = job._replace(needs=[()] * len(job.needs))
    return any(early(job, places)) and not wrong(free, places)


@partial(sign, where=unlawful)
def waits_for_one(job: Job, places: Places) -> bool:
    """Whatever begins too early waited for another of its needs."""
    found = {*early(job, places)}
    late = {k for k, _ in found}
    return all(any((k, j) not in found for j in job.needs[k]) for k in late) and not any(crowded(job, places))


@sign
def rounds(job: Job, places: Places) -> bool:
    """Whoever begins later than another begins after its end."""
    starts = sorted({start for _, start in places})
    ended = {now: max(stop(job, places, k) for k, (_, start) in enumerate(places) if start < now) for now in starts[1:]}
    return lawful(job, places) and all(now >= end for now, end in ended.items())


@sign
def bound(job: Job, places: Places) -> bool:
    """The thread follows from the number."""
    return lawful(job, places) and all(thread == k % job.n_threads for k, (thread, _) in enumerate(places))


@sign
def held_up(job: Job, places: Places) -> bool:
    """No equation begins before one with a smaller number."""
    starts = [start for _, start in places]
    return lawful(job, places) and starts == sorted(starts)


@sign
def holds(job: Job, places: Places) -> bool:
    """Each equation begins when its thread is free and its needs have ended, but the threads were given out before."""
    free = [0.0] * job.n_threads
    for k, (thread, start) in enumerate(places):
        ready = max((stop(job, places, j) for j in job.needs[k]), default=0.0)
        if start != max(free[thread], ready):
            return False
        free[thread] = stop(job, places, k)
    return lawful(job, places)
