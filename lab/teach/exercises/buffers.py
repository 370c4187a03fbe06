"""Exercise of lesson 08: places in memory for values of one size, so that no two share a place while both are needed.

Many plans are right, so each is judged by itself: who lies on whom, and how many places it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.teach.exercise import Case, Check, Exercise, Mutant, Seen, Wrong
from lab.teach.plain import Plain, describe
from lab.words import counted

Life = tuple[int, int]
"""Numbers of the equation that makes a value and of the last that reads it."""


def fewest(lives: Sequence[Life]) -> int:
    """How many values are needed at once, at most: no plan has fewer places, and the greedy one has not more.

    Example:
        >>> fewest([(0, 1), (1, 3), (2, 3)])
        2
    """
    return max((sum(made <= k <= last for made, last in lives) for k, _ in lives), default=0)


def _over(last: int, made: int) -> bool:
    return last < made


def chosen(
    lives: Sequence[Life], *, free: Callable[[int, int], bool] = _over, only: slice = slice(None)
) -> list[int]:
    """The first place that is free, else a new one; with switches for some ways to get it wrong.

    Example:
        >>> chosen([(0, 1), (1, 3), (2, 3)])
        [0, 1, 0]
    """
    until: list[int] = []
    places = []
    for made, last in lives:
        found = next((p for p in range(len(until))[only] if free(until[p], made)), len(until))
        until[found : found + 1] = [last]
        places.append(found)
    return places


def _never_taken_again(lives: Sequence[Life]) -> list[int]:
    """The answer, but a place that was taken over counts as free as soon as its first value is."""
    until: list[int] = []
    places = []
    for made, last in lives:
        found = next((p for p, end in enumerate(until) if end < made), len(until))
        if found == len(until):
            until.append(last)
        places.append(found)
    return places


def _judge(case: Case, value: Plain) -> Wrong | None:
    (lives,) = case
    places = value.tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value
    if not isinstance(places, tuple | list) or len(places) != len(lives) or not all(_whole(p) for p in places):
        return Wrong(f"{_shown(case)}: this is no place for each value.", describe(value),
                     f"a list of {len(lives)} whole numbers",
                     "return a list: the place of each value, in their order")  # fmt: skip
    for i, (made, _) in enumerate(lives):
        for j in range(i):
            if places[i] == places[j] and made <= lives[j][1]:
                return Wrong(f"{_shown(case)}: value {i} is written over value {j}.",
                             f"both in place {places[i]}, in equation {made}",
                             f"value {j} is read until equation {lives[j][1]}, that one included")  # fmt: skip
    n, best = len(set(places)), fewest(lives)
    if n > best:
        return Wrong(f"{_shown(case)}: fewer places would do.", f"{n} in use", f"{best}")
    return None


def _whole(x: Any) -> bool:
    return isinstance(x, int | float | np.integer | np.floating) and x == int(x)


def _shown(case: Case) -> str:
    (lives,) = case
    rows = ", ".join(f"({made}, {last})" for made, last in lives[:8])
    return f"For {counted(len(lives), 'value')}: {rows}{', ...' if len(lives) > 8 else ''}"


def _is_a_count(seen: Seen) -> bool:
    return all(type(answer.value) is int and answer.value == fewest(case[0]) for case, answer in seen)


def _each_its_own(seen: Seen) -> bool:
    return all(
        isinstance(answer.value, tuple) and len(answer.value) == len(case[0]) == len(set(map(str, answer.value)))
        for case, answer in seen
    )


def _drawn(seed: int, n: int) -> tuple[Life, ...]:
    rng = np.random.default_rng(seed)
    return tuple((k, k + int(rng.integers(0, 6))) for k in range(n))


SIX = ((0, 2), (1, 4), (2, 3), (3, 4), (4, 5), (5, 6))
"""The six values of the lesson."""

PLACES = Exercise(
    name="places",
    task="Return a place for each value: none is written over while it is needed, and places are as few as can be.",
    stub='''\
def places(lives):
    chosen = []
    for made, last in lives:
        chosen.append(len(chosen))
    return chosen
''',
    arguments=("lives",),
    results=("places",),
    answer=chosen,
    show=_shown,
    checks=(
        Check("values one after the other, and two in turn",
              [(((0, 1), (2, 3), (4, 5)),), (((0, 1), (1, 2), (2, 3), (3, 4)),)], _judge),
        Check("the six of the lesson", [(SIX,)], _judge),
        Check("one that is needed to the end", [(((0, 9), (1, 2), (2, 4), (3, 4), (5, 8), (6, 7), (8, 9), (9, 9)),)],
              _judge),
        Check("lives at random, and none", [(_drawn(0, 12),), (_drawn(1, 30),), (_drawn(2, 60),), ((),)], _judge),
    ),
    mutants=(
        Mutant("every value has a place of its own", lambda lives: list(range(len(lives))),
               "keep for each place until when it is taken, and look for one that is free", _each_its_own),
        Mutant("all values share one place", lambda lives: [0] * len(lives),
               "a place is free when the value in it has been read for the last time"),
        Mutant("two places take turns", lambda lives: [k % 2 for k in range(len(lives))],
               "look at the lives: how many values are needed at the same time?"),
        Mutant("a result is written over what it is made of", lambda lives: chosen(
               lives, free=lambda last, made: last <= made),
               "the equation that makes the new value still reads the old one: free is a place with last < made"),
        Mutant("a place is free one equation too late", lambda lives: chosen(
               lives, free=lambda last, made: last < made - 1),
               "a place whose value was read for the last time in equation 3 is free in equation 4"),
        Mutant("only the newest place is looked at", lambda lives: chosen(lives, only=slice(-1, None)),
               "any of the places may be free: look at all"),
        Mutant("only the first place is looked at", lambda lives: chosen(lives, only=slice(1)),
               "any of the places may be free: look at all"),
        Mutant("a place that was taken again counts as free", _never_taken_again,
               "who takes a free place takes it until its own last: note that, too"),
        Mutant("it is the number of places", fewest,
               "return a list: the place of each value, in their order", _is_a_count),
    ),
    hints=(
        "a list until: for each place the number of the equation that reads it last",
        "for each value the first place with until < made; if there is none, a new one: append last",
    ),
)  # fmt: skip
