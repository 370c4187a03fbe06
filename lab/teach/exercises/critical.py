"""Exercise of lesson 09: the longest chain of equations that wait for each other, which no number of threads shortens.

There may be several that are as long, so a path is judged by what it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lab.graph.dependencies import Needs, critical_path, followers_of, priorities
from lab.teach.exercise import Case, Check, Exercise, Mutant, Seen, Wrong
from lab.teach.plain import Plain, describe

Path = list[int]

FORK: Case = (((), (0,), (0,), (1, 2)), (1, 5, 2, 1))
FEW_BUT_LONG: Case = (((), (), (1,), (2,), (0, 3)), (9, 1, 2, 3, 1))
NOT_THE_DEAREST: Case = (((), (0,), (0,), (2,), (1, 3)), (2, 4, 3, 3, 1))
NOT_THE_LAST: Case = (((), (), (0,), (2,), (1,)), (1, 1, 6, 5, 2))
NOT_THE_FIRST: Case = (((), (), (1,), (0, 2), (2,)), (2, 3, 4, 1, 5))
APART: Case = (((), (), ()), (2, 7, 3))
CHAIN: Case = (((), (0,), (1,)), (1, 1, 1))


def read(value: Plain) -> Path | None:
    """The numbers that were given; None if it is something else."""
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        return None
    whole = numbers.ndim == 1 and np.array_equal(numbers, np.round(numbers))
    return [int(k) for k in numbers] if whole else None


def is_longest(case: Case, value: Plain) -> Wrong | None:
    """Each equation waits for the one before it, and no chain costs more."""
    needs, costs = case
    path = read(value)
    if path is None:
        return Wrong(f"{_shown(case)}: this is no list of equations.", describe(value), "their numbers, first to last")
    if unknown := [k for k in path if not 0 <= k < len(needs)]:
        return Wrong(f"{_shown(case)}: there is no equation {unknown[0]}.", f"{path}", f"numbers below {len(needs)}")
    for before, k in pairwise(path):
        if before not in needs[k]:
            return Wrong(f"{_shown(case)}: {k} does not wait for {before}.", f"the path {path}",
                         "each equation waits for the one before it in the path")  # fmt: skip
    cost, most = _cost(path, costs), max(priorities(needs, costs))
    if cost < most:
        return Wrong(f"{_shown(case)}: there is a longer chain.", f"{path}, {cost:g} ms", f"a chain of {most:g} ms")
    return None


def _cost(path: Path, costs: Sequence[float]) -> float:
    return sum(costs[k] for k in path)


def _shown(case: Case) -> str:
    needs, costs = case
    return f"For needs={needs}, costs={costs}"


def _sign(shows: Callable[[Needs, Sequence[float], Path], bool]) -> Callable[[Seen], bool]:
    """A sign that has to show in every case."""

    def everywhere(seen: Seen) -> bool:
        paths = [(case, None if a.failure else read(a.value)) for case, a in seen]
        return all(path is not None and shows(case[0], case[1], path) for case, path in paths)

    return everywhere


def _right(needs: Needs, costs: Sequence[float], path: Path) -> bool:
    return is_longest((needs, costs), tuple(path)) is None


def _by_step(needs: Needs, costs: Sequence[float]) -> Path:
    """From the dearest beginning always on to the dearest of those that wait."""
    after = followers_of(needs)
    ahead: Sequence[int] = [k for k, waits in enumerate(needs) if not waits]
    path: Path = []
    while ahead:
        path.append(max(ahead, key=lambda k: costs[k]))
        ahead = after[path[-1]]
    return path


def _to(needs: Needs, costs: Sequence[float], k: int) -> Path:
    """The longest chain that ends with an equation."""
    before = [_to(needs, costs, j) for j in needs[k]]
    return [*max(before, key=lambda path: _cost(path, costs), default=[]), k]


def _from_first(needs: Needs, costs: Sequence[float]) -> Path:
    longest, after = priorities(needs, costs), followers_of(needs)
    path = [0]
    while after[path[-1]]:
        path.append(max(after[path[-1]], key=lambda k: longest[k]))
    return path


def _by_number(needs: Needs, costs: Sequence[float]) -> Path:
    return list(critical_path(needs, [1.0] * len(needs)))


def _most_equations(needs: Needs, costs: Sequence[float], path: Path) -> bool:
    longest = max(priorities(needs, [1.0] * len(needs)))
    chained = all(before in needs[k] for before, k in pairwise(path))
    return len(path) == longest and chained


def _is_cost(seen: Seen) -> bool:
    return all(not a.failure and np.shape(a.value) == () and a.value == max(priorities(*case)) for case, a in seen)


def _answer(needs: Any, costs: Any) -> Path:
    return list(critical_path(needs, costs))


CRITICAL_PATH = Exercise(
    name="critical_path",
    task="Return the numbers of the equations on the costliest chain in which each waits for the one before.",
    stub='''\
def critical_path(needs, costs):
    return list(range(len(needs)))
''',
    arguments=("needs", "costs"),
    results=("path",),
    answer=_answer,
    checks=(
        Check("two ways of different cost", [FORK], is_longest),
        Check("one long equation against many short ones", [FEW_BUT_LONG], is_longest),
        Check("a way that begins with the cheaper step", [NOT_THE_DEAREST], is_longest),
        Check("a path that does not begin or end with the first or last equation", [NOT_THE_LAST, NOT_THE_FIRST],
              is_longest),
        Check("equations apart, and a plain chain", [APART, CHAIN], is_longest),
    ),
    mutants=(
        Mutant("all equations are taken, one after the other", lambda needs, costs: list(range(len(needs))),
               "1 and 2 of the first graph do not wait for each other: only one of them is on the path",
               _sign(lambda needs, costs, path: path == [*range(len(needs))])),
        Mutant("its cost is given, not its equations", lambda needs, costs: max(priorities(needs, costs)),
               "keep with each cost the chain that it belongs to", _is_cost),
        Mutant("the path is told from its end to its beginning", lambda needs, costs: _answer(needs, costs)[::-1],
               "turn the list round", _sign(lambda needs, costs, path: _right(needs, costs, path[::-1]))),
        Mutant("equations are counted from 1", lambda needs, costs: [k + 1 for k in _answer(needs, costs)],
               "the first equation is number 0", _sign(lambda needs, costs, path: _right(
               needs, costs, [k - 1 for k in path]))),
        Mutant("it has the most equations, not the most cost", _by_number,
               "compare chains by the sum of their costs", _sign(_most_equations)),
        Mutant("only the dearest equation is there", lambda needs, costs: [int(np.argmax(costs))],
               "what does it wait for, and what waits for it? All of a chain counts",
               _sign(lambda needs, costs, path: path == [np.argmax(costs)])),
        Mutant("each step goes to the dearest that waits, without looking ahead", _by_step,
               "behind a cheap step a long chain may follow: the whole sum decides"),
        Mutant("the path always ends with the last equation", lambda needs, costs: _to(needs, costs, len(needs) - 1),
               "look for the longest among the chains to all equations"),
        Mutant("the path always begins with the first equation", _from_first,
               "a chain begins with any equation that waits for none"),
        Mutant("the last equation of the path is missing", lambda needs, costs: _answer(needs, costs)[:-1],
               "the equation itself belongs to the chain that ends with it"),
        Mutant("the first equation of the path is missing", lambda needs, costs: _answer(needs, costs)[1:],
               "the equation that waits for none belongs to the chain that it begins"),
    ),
    hints=(
        "equations stand in an order in which they can run: those for which k waits have smaller numbers",
        "the longest chain to k is the longest of those to its needs, and then k",
        "keep a list of chains, one for each k; compare them by sum(costs[i] for i in chain)",
    ),
    show=_shown,
)  # fmt: skip
