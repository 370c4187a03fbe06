"""Threads of lesson 09: on paper, where a list of equations is worked off and drawn, and real ones with a clock.

A schedule says of each equation, by its number, in which thread it runs and when it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, sleep
from typing import NamedTuple

from lab.data.prefetch import Prefetch

LETTERS = "abcdefghijklmnopqrstuvwxyz"
"""Of the equations in a picture; behind the last they begin again."""


class Place(NamedTuple):
    """Where and when an equation runs."""

    thread: int
    start: float


def in_turn(
    needs: Sequence[Sequence[int]],
    costs: Sequence[float],
    n_threads: int,
    *,
    first: Callable[[int], float] = float,
) -> list[Place]:
    """The schedule of threads that, whenever one is free, take of what is ready the one that comes first.

    Args:
        needs: for each equation those for which it waits.
        costs: of each, more than 0.
        first: the equation for which this is least goes first; the lowest number, if not given.

    Example:
        >>> [tuple(place) for place in in_turn(((), (), (1,)), (3, 1, 2), 2)]
        [(0, 0), (1, 0), (1, 1)]
    """
    free: list[float] = [0] * n_threads
    stops: dict[int, float] = {}
    places: dict[int, Place] = {}
    while len(places) < len(needs):
        thread = free.index(now := min(free))
        done = {k for k, stop in stops.items() if stop <= now}
        ready = [k for k in range(len(needs)) if k not in places and done.issuperset(needs[k])]
        if ready:
            k = min(ready, key=first)
            places[k] = Place(thread, now)
            free[thread] = stops[k] = now + costs[k]
        else:  # until something ends, nothing more can be ready
            free[thread] = min(stop for stop in stops.values() if stop > now)
    return [places[k] for k in range(len(needs))]


def end_of(places: Sequence[Sequence[float]], costs: Sequence[float]) -> float:
    """When the last equation ends.

    Example:
        >>> end_of([(0, 0), (1, 0), (1, 1)], (3, 1, 2))
        3
    """
    return max(start + cost for (_, start), cost in zip(places, costs, strict=True))


class Drawn:
    """A schedule in whole milliseconds as lines of letters: a line for each thread, a dot where it waits.

    Args:
        places: thread and start of each equation.
        costs: of each.

    Example:
        >>> Drawn([(0, 0), (1, 0), (1, 2)], (4, 1, 1))
        thread 0  aaaa  4 ms
        thread 1  b.c.
    """

    def __init__(self, places: Sequence[Sequence[float]], costs: Sequence[float]) -> None:
        self.end = end_of(places, costs)
        self.threads = {int(thread): ["."] * int(self.end) for thread, _ in sorted(map(tuple, places))}
        for k, (thread, start) in enumerate(places):
            line, stop = self.threads[int(thread)], int(start + costs[k])
            line[int(start) : stop] = LETTERS[k % len(LETTERS)] * (stop - int(start))

    def __repr__(self) -> str:
        lines = [f"thread {thread}  {''.join(line)}" for thread, line in self.threads.items()]
        return "\n".join([f"{lines[0]}  {self.end:g} ms", *lines[1:]])


# --- the same with a clock -------------------------------------------------------------------------------------------


class Twice(NamedTuple):
    """Seconds that a task takes twice, and those of handing over one that does nothing."""

    in_a_row: float
    in_two_threads: float
    hand_over: float


def twice(task: Callable[[int], object], repeats: int = 9) -> Twice:
    """Do `task(0)` and `task(1)`, in a row and then the second in another thread, which is there already.

    Args:
        repeats: the shortest of so many turns is taken, as other programs only add to it.

    Example:
        >>> twice(lambda i: None, repeats=3).hand_over > 0
        True
    """
    with ThreadPoolExecutor(1) as pool:

        def beside() -> None:
            other = pool.submit(task, 1)
            task(0)
            other.result()

        ways = (lambda: (task(0), task(1)), beside, lambda: pool.submit(int).result())
        beside()  # starts the thread
        turns = [[_seconds(way) for way in ways] for _ in range(repeats)]
    return Twice(*map(min, zip(*turns, strict=True)))


def _seconds(run: Callable[[], object]) -> float:
    began = perf_counter()
    run()
    return perf_counter() - began


def paced(loads_ms: Sequence[float], depth: int, *, preprocess_ms: float, compute_ms: float) -> float:
    """Milliseconds of a step of `lab.data.Prefetch`, where each stage only waits, as for a disk or a device.

    Args:
        loads_ms: how long each batch loads.

    Example:
        >>> paced([1, 1], 0, preprocess_ms=1, compute_ms=1) > 3
        True
    """

    def loaded() -> Iterator[float]:
        for load in loads_ms:
            sleep(load / 1e3)
            yield load

    began = perf_counter()
    for _ in Prefetch(loaded(), depth, lambda load: sleep(preprocess_ms / 1e3)):
        sleep(compute_ms / 1e3)
    return 1e3 * (perf_counter() - began) / len(loads_ms)
