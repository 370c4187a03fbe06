"""Exercises of lesson 11: which examples a rank takes, and the mean over all of them from the means of the ranks.

A cut is judged by what it does: which of the ranks has the example more is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.teach.exercise import Case, Check, Exercise, Mutant, Wrong
from lab.teach.plain import Plain

Cut = Callable[[int, int, int], Any]
BATCHES = ((64, 4), (30, 4), (3, 4), (7, 2), (5, 1))
"""(n_examples, world_size); the lesson's first, then one that does not divide, and one with a rank left over."""


def list_shards(shard: Cut, n_examples: int, world_size: int) -> Plain:
    """What the learner's function gives to each rank.

    Example:
        >>> list_shards(lambda n, rank, world_size: (0, n), 3, 2)
        ((0, 3), (0, 3))
    """
    return tuple(shard(n_examples, rank, world_size) for rank in range(world_size))


def covers(case: Case, value: Plain) -> Wrong | None:
    """Every example is on one rank, in order."""
    shards = _pairs(value)
    if shards is None:
        return Wrong(f"{_on(case)}: this is no start and stop.", str(value)[:200], "two whole numbers for each rank",
                     "return start, stop")  # fmt: skip
    end = 0
    for rank, (start, stop) in enumerate(shards):
        if start != end or stop < start:
            return Wrong(f"{_on(case)}: rank {rank} has a wrong beginning or end.", f"{start} to {stop}",
                         f"it begins at {end}, where the ranks before it end")  # fmt: skip
        end = stop
    if end != case[0]:
        return Wrong(f"{_on(case)}: not every example is on one rank.", f"the last rank ends at {end}", str(case[0]))
    return None


def is_even(case: Case, value: Plain) -> Wrong | None:
    """No rank has two examples more than another."""
    wrong, shards = covers(case, value), _pairs(value)
    if wrong or shards is None:
        return wrong
    sizes = [stop - start for start, stop in shards]
    if max(sizes) - min(sizes) <= 1:
        return None
    return Wrong(f"{_on(case)}: the work is not even.", f"examples of the ranks: {', '.join(map(str, sizes))}",
                 "at most one example more than another", "all wait for the rank with most examples")  # fmt: skip


def _pairs(value: Plain) -> list[tuple[int, int]] | None:
    found = list[tuple[int, int]]()
    for pair in value if isinstance(value, tuple | list) else ():
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            return None
        numbers = [np.asarray(n) for n in pair]  # NumPy's whole numbers are right, too
        if any(n.ndim or n.dtype.kind not in "iuf" or not np.isfinite(n) or n != np.round(n) for n in numbers):
            return None
        found.append((int(numbers[0]), int(numbers[1])))
    return found or None


def _on(case: Case) -> str:
    return f"{case[0]} examples on {case[1]} rank{'s' * (case[1] > 1)}"


def _cut(
    n: int, rank: int, world_size: int, *, moved: bool = True, first: int = 0, past: int = 0, length: bool = False
) -> tuple[int, int]:
    """The cut of `np.array_split`, with a switch for each way to get it wrong."""
    size, rest = divmod(n, world_size)
    rank -= first
    start = rank * size + (min(rank, rest) if moved else 0)
    stop = start + size + (rank < rest) - past
    return start, stop - start if length else stop


def _wrong(**switches: Any) -> Cut:
    return lambda n, rank, world_size: _cut(n, rank, world_size, **switches)


def _rounded_up(n: int, rank: int, world_size: int) -> tuple[int, int]:
    size = -(-n // world_size)
    return min(rank * size, n), min((rank + 1) * size, n)


SHARD = Exercise(
    name="shard",
    task="Return start and stop (not included) of the examples of a rank: each example once, as evenly as can be.",
    stub='''\
def shard(n_examples, rank, world_size):
    size = n_examples // world_size
    return rank * size, (rank + 1) * size
''',
    arguments=("n_examples", "world_size"),
    results=("start and stop of every rank",),
    answer=_cut,
    call=list_shards,
    checks=(
        Check("every example is on one rank", BATCHES, covers),
        Check("no rank has two examples more than another", BATCHES, is_even),
    ),
    mutants=(
        Mutant("the rest is left out", lambda n, r, w: (r * (n // w), (r + 1) * (n // w)),
               "30 examples on 4 ranks: 7 each are 28. Who takes the others?"),
        Mutant("the last rank takes all of the rest",
               lambda n, r, w: (r * (n // w), n if r == w - 1 else (r + 1) * (n // w)),
               "hand the rest out one by one: the first `rest` ranks take one more"),
        Mutant("sizes are rounded up, and the last ranks go short", _rounded_up,
               "divmod gives a size and a rest: only `rest` ranks take one more"),
        Mutant("ranks take one more, but those behind them do not begin later", _wrong(moved=False),
               "who begins behind ranks with one more begins as much later: min(rank, rest)"),
        Mutant("stop is the last example, not the one behind it", _wrong(past=1),
               "as in a slice, stop is not included"),
        Mutant("the number of examples is given instead of where they end", _wrong(length=True),
               "the second number says where to stop"),
        Mutant("ranks are counted from 1", _wrong(first=1), "the first rank is rank 0"),
        Mutant("every rank takes the whole batch", lambda n, r, w: (0, n), "four ranks shall share the work"),
    ),
    hints=(
        "take a pencil: 30 examples on 4 ranks are 8, 8, 7 and 7",
        "size, rest = divmod(n_examples, world_size): the first `rest` ranks take one more",
        "a rank begins at rank * size + min(rank, rest)",
    ),
    show=_on,
)  # fmt: skip


def _mean(values: Sequence[float], counts: Sequence[int]) -> float:
    return sum(v * c for v, c in zip(values, counts, strict=True) if c) / sum(counts)


def _some(values: Sequence[float], counts: Sequence[int]) -> list[float]:
    return [v for v, c in zip(values, counts, strict=True) if c]


NAN = float("nan")
WEIGHTED_MEAN = Exercise(
    name="weighted_mean",
    task="Return the mean over all examples, from the mean of each rank and its number of examples.",
    stub='''\
def weighted_mean(means, counts):
    return sum(means) / len(means)
''',
    arguments=("means", "counts"),
    results=("mean",),
    answer=_mean,
    checks=(
        Check("ranks with equally many", [([1.0, 5.0], [4, 4])]),
        Check("ranks with unequally many", [([1.0, 5.0], [3, 1]), ([2.0, 2.0, 7.0, 1.0], [8, 8, 7, 7])]),
        Check("one rank alone", [([3.0], [5])]),
        Check("a rank without examples, whose mean is no number", [([1.0, 5.0, NAN], [1, 1, 0])]),
    ),
    mutants=(
        Mutant("every rank counts alike", lambda m, c: sum(m) / len(m),
               "an example of a small shard shall not weigh more than one of a large one"),
        Mutant("every rank that has examples counts alike", lambda m, c: sum(_some(m, c)) / len(_some(m, c)),
               "an example of a small shard shall not weigh more than one of a large one"),
        Mutant("a rank without examples makes the whole no number",
               lambda m, c: sum(v * k for v, k in zip(m, c, strict=True)) / sum(c),
               "0 times nan is nan: leave out a rank with nothing"),
        Mutant("the sum is given, not the mean", lambda m, c: _mean(m, c) * sum(c),
               "how many examples are there on all ranks?"),
        Mutant("the sum over examples is divided by the ranks", lambda m, c: _mean(m, c) * sum(c) / len(c),
               "divide by the number of examples"),
        Mutant("the weights stand in the other order", lambda m, c: _mean(m, c[::-1]),
               "counts[0] belongs to means[0]"),
        Mutant("the largest shard decides", lambda m, c: m[c.index(max(c))], "the others have examples, too"),
        Mutant("a mean is divided by its number of examples",
               lambda m, c: sum(v / k for v, k in zip(m, c, strict=True) if k) / len(_some(m, c)),
               "a mean times its number is the sum of its examples: what then?"),
        Mutant("the sum of the means is divided by all examples", lambda m, c: sum(_some(m, c)) / sum(c),
               "a mean of 3 examples stands for three of them"),
    ),
    hints=(
        "from a mean and a number of examples, which sum can you tell?",
        "add mean * count of the ranks, and divide by all counts",
        "a rank with count 0 is left out: for m, c in zip(means, counts) if c",
    ),
)  # fmt: skip
