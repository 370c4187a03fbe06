"""Exercise of lesson 09: a list scheduler, which never leaves a thread idle while an equation is ready.

Many schedules are right, so one is judged by what it must do; how soon it ends stands in the remark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lab.graph.dependencies import priorities
from lab.teach.exercise import Case, Check, Exercise, Mutant, Seen, Wrong
from lab.teach.exercises import queue_signs as signs
from lab.teach.exercises.queue_signs import Job, Places, read
from lab.teach.lanes import end_of, in_turn
from lab.teach.plain import Plain, describe


def job(needs: Sequence[Sequence[int]], costs: Sequence[float], n_threads: int) -> Case:
    """The arguments of a case: priorities belong to the rest."""
    return needs, costs, priorities(tuple(map(tuple, needs)), costs), n_threads


MIX = job(((), (), (), (2,), (0,), (1, 3), (4, 5)), (3, 3, 1, 4, 2, 2, 1), 2)
JOIN = job(((), (), (0, 1), (0,)), (2, 5, 1, 3), 2)
WAIT = job(((), (), (0,), (1,), (2, 3)), (4, 1, 3, 1, 2), 2)
WIDE = job(((),) * 6, (4, 1, 3, 2, 2, 5), 3)
NINE = job(((), (), (), (), (3,), (3,), (3,), (3,), (0,)), (3, 2, 2, 2, 4, 4, 4, 4, 9), 3)
CHAIN = job(((), (0,), (1,)), (1, 2, 1), 2)
ALONE = job(((), (), (0, 1)), (2, 1, 1), 1)
ASIDE = job(((), (0,), (), (2,)), (4, 1, 2, 1), 3)
ALL = [MIX, JOIN, WAIT, WIDE, NINE, CHAIN, ASIDE, ALONE]


def lawful(case: Case, value: Plain) -> Wrong | None:
    """One equation at a time in each thread, and none before what it waits for has ended."""
    task, places = Job(*case), read(value, len(case[0]))
    if places is None:
        return Wrong(f"{_shown(case)}: this is no schedule.", describe(value)[:200],
                     f"{len(task.needs)} pairs (thread, start), in the order of the equations")  # fmt: skip
    for k, (thread, start) in enumerate(places):
        if not 0 <= thread < task.n_threads:
            return Wrong(f"{_shown(case)}: equation {k} is in thread {thread}.", f"{places}",
                         f"a thread from 0 to {task.n_threads - 1}")  # fmt: skip
        if start < 0:
            return Wrong(f"{_shown(case)}: equation {k} starts at {start:g} ms.", f"{places}", "0 or later")
    for k, j in signs.early(task, places):
        begin, end = places[k][1], signs.stop(task, places, j)
        return Wrong(f"{_shown(case)}: {k} starts at {begin:g} ms, and waits for {j}, which ends at {end:g} ms.",
                     f"{places}", "it starts when all its needs have ended")  # fmt: skip
    for j, k in signs.crowded(task, places):
        return Wrong(f"{_shown(case)}: thread {places[j][0]} runs {j} and {k} at the same time.", f"{places}",
                     "one at a time")  # fmt: skip
    return None


def never_idle(case: Case, value: Plain) -> Wrong | None:
    """No thread waits while an equation is ready."""
    wrong = lawful(case, value)
    if wrong:
        return wrong
    task, places = Job(*case), read(value, len(case[0])) or []
    for k, thread, now in signs.idle(task, places):
        return Wrong(f"{_shown(case)}: at {now:g} ms thread {thread} is idle, though {k} is ready.", f"{places}",
                     f"equation {k} starts at {now:g} ms")  # fmt: skip
    return None


def near_the_best(case: Case, value: Plain) -> Wrong | None:
    """Graham's bound: within 2 - 1/m of what no schedule can be below."""
    wrong = never_idle(case, value)
    if wrong:
        return wrong
    task, places = Job(*case), read(value, len(case[0])) or []
    end, best = end_of(places, task.costs), least(task)
    bound = (2 - 1 / task.n_threads) * best
    return Wrong(f"{_shown(case)}: it ends too late.", f"{end:g} ms", f"{bound:g} ms at most") if end > bound else None


def least(task: Job) -> float:
    """Milliseconds below which no schedule ends: an equal share of the work for each thread, and the critical path.

    Example:
        >>> least(Job(*ALONE))
        4.0
    """
    return max(sum(task.costs) / task.n_threads, *map(float, task.priority))


def how_soon(seen: Seen) -> str:
    """When the first schedule ends, beside that of the critical path first."""
    case, answer = seen[0]
    task, places = Job(*case), read(answer.value, len(case[0])) or []
    end, best = end_of(places, task.costs), end_of(_answer(*case), task.costs)
    if end <= best:
        return f"It ends at {end:g} ms in {_shown(case)}, as soon as with the highest priority first."
    return (f"It is right, and ends at {end:g} ms in {_shown(case)}: {best:g} ms would do, if of what is ready the "
            "equation with the highest priority goes first.")  # fmt: skip


def _shown(case: Case) -> str:
    return f"{case[3]} thread{'s' * (case[3] > 1)} for needs={case[0]}, costs={case[1]}"


def _answer(needs: Any, costs: Any, priority: Any, n_threads: int) -> Any:
    return in_turn(needs, costs, n_threads, first=lambda k: -priority[k])


def _with(change: Callable[[int, int, float, float], tuple[Any, ...]]) -> Callable[..., Any]:
    """The answer with something else for each equation, of its number, thread, start and cost."""

    def changed(needs: Any, costs: Any, priority: Any, n: int) -> Any:
        places = _answer(needs, costs, priority, n)
        return [change(k, place.thread, place.start, costs[k]) for k, place in enumerate(places)]

    return changed


def _one_after_the_other(needs: Any, costs: Any, priority: Any, n: int) -> Places:
    return [(0, sum(costs[:k])) for k in range(len(needs))]


def _in_rounds(needs: Any, costs: Any, priority: Any, n: int) -> Places:
    """So many as there are threads begin together; the next round begins when the longest has ended."""
    places: dict[int, tuple[int, float]] = {}
    now = 0.0
    while len(places) < len(needs):
        ready = [k for k in range(len(needs)) if k not in places and all(j in places for j in needs[k])][:n]
        places |= {k: (thread, now) for thread, k in enumerate(ready)}
        now += max(costs[k] for k in ready)
    return [places[k] for k in range(len(needs))]


def _placed(
    thread_of: Callable[[int, list[float]], int],
    begin: Callable[[float, float, float], float],
    waits_for: Callable[[Sequence[int]], Sequence[int]] = lambda waits: waits,
) -> Callable[..., Places]:
    """Equations by number: `begin(free, ready, latest)` says when, from its thread, its needs and the one before."""

    def placed(needs: Any, costs: Any, priority: Any, n: int) -> Places:
        free, places, latest = [0.0] * n, list[tuple[int, float]](), 0.0
        for k, waits in enumerate(needs):
            thread = thread_of(k, free)
            ready = max((places[j][1] + costs[j] for j in waits_for(waits)), default=0.0)
            latest = begin(free[thread], ready, latest)
            places.append((thread, latest))
            free[thread] = latest + costs[k]
        return places

    return placed


def _soonest(k: int, free: list[float]) -> int:
    return free.index(min(free))


def _late(free: float, ready: float, latest: float) -> float:
    return max(free, ready)


LIST_SCHEDULE = Exercise(
    name="list_schedule",
    task="Return (thread, start) of each equation: no thread idle while one is ready, highest priority first.",
    stub='''\
def list_schedule(needs, costs, priority, n_threads):
    places, now = [], 0
    for k in range(len(needs)):
        places.append((0, now))
        now += costs[k]
    return places
''',
    arguments=("needs", "costs", "priority", "n_threads"),
    results=("thread and start of each equation",),
    answer=_answer,
    checks=(
        Check("each equation waits for all its needs, and a thread runs one at a time", ALL, lawful),
        Check("no thread is idle while an equation is ready", ALL, never_idle),
        Check("it ends within 2 - 1/m of the best", ALL, near_the_best),
    ),
    mutants=(
        Mutant("one thread does it all", _one_after_the_other,
               "when is each thread free? The one that is free first takes the next", signs.one_thread),
        Mutant("thread and start have changed places", _with(lambda k, thread, start, cost: (start, thread)),
               "the thread stands first: (thread, start)", signs.swapped),
        Mutant("threads are counted from 1", _with(lambda k, thread, start, cost: (thread + 1, start)),
               "the first thread is number 0", signs.from_one),
        Mutant("the end is given in place of the start", _with(lambda k, thread, start, cost: (thread, start + cost)),
               "a place is (thread, start)", signs.ends),
        Mutant("a thread is taken that is still busy", _with(lambda k, thread, start, cost: (0, start)),
               "a thread is free when the equation that it runs has ended", signs.busy),
        Mutant("an equation with two needs waits for one of them only",
               _placed(_soonest, _late, lambda waits: waits[:1]),
               "all of its needs must have ended: the latest decides", signs.waits_for_one),
        Mutant("nothing is waited for", _placed(_soonest, lambda free, ready, latest: free),
               "ready is an equation when all that it needs have ended", signs.waits_for_none),
        Mutant("threads begin together, in rounds", _in_rounds,
               "who is done first takes the next at once, and does not wait for the others", signs.rounds),
        Mutant("each equation has its thread by its number", _placed(
               lambda k, free: k % len(free), _late),
               "whichever thread is free takes the next: none is bound to a number", signs.bound),
        Mutant("an equation takes the thread that is free first, and holds it while it waits",
               _placed(_soonest, _late),
               "do not give a thread to an equation that is not ready yet: another one may be", signs.holds),
        Mutant("equations begin in the order of their numbers, and one that is not ready holds up the others",
               _placed(_soonest, max),
               "look through all that have not begun: another one may be ready", signs.held_up),
    ),
    hints=(
        "keep when each thread is free; the one that is free first looks for an equation that is ready at that time",
        "ready at `now` is what has not begun, and whose needs all have ended by then; of these take max by priority",
        "if nothing is ready: the thread is free again at the next time at which an equation ends",
    ),
    show=_shown,
    remark=how_soon,
)  # fmt: skip
