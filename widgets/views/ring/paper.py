"""What text-books say a collective costs: bytes that each rank sends, as a share of the buffer, and the steps.

A table of formulas and not a count of hops, so that what a run sent stands beside something that was not taken from it;
a test compares it with the plans as they are counted on paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Formula(NamedTuple):
    """A number that depends on the number of ranks n only."""

    text: str
    of: Callable[[int], float]


class Costs(NamedTuple):
    """Of an algorithm.

    Attributes:
        root: the share of the buffer that the root sends (rank 0, if nobody else was named).
        others: the share that each other rank sends.
        steps: how many steps follow each other.
    """

    root: Formula
    others: Formula
    steps: Formula


_ZERO, _ONE = Formula("0", lambda n: 0.0), Formula("1", lambda n: 1.0)
_LESS_ONE = Formula("n − 1", lambda n: n - 1.0)
_TWICE_LESS_ONE = Formula("2(n − 1)", lambda n: 2.0 * (n - 1))
_ONE_WAY = Formula("(n − 1)/n", lambda n: (n - 1) / n)
_BOTH_WAYS = Formula("2(n − 1)/n", lambda n: 2 * (n - 1) / n)

COSTS: Mapping[tuple[str, str], Costs] = {
    ("all_reduce", "ring"): Costs(_BOTH_WAYS, _BOTH_WAYS, _TWICE_LESS_ONE),
    ("all_reduce", "naive"): Costs(_LESS_ONE, _ONE, _TWICE_LESS_ONE),
    ("reduce", "flat"): Costs(_ZERO, _ONE, _LESS_ONE),
    ("broadcast", "flat"): Costs(_LESS_ONE, _ZERO, _LESS_ONE),
    ("reduce_scatter", "ring"): Costs(_ONE_WAY, _ONE_WAY, _LESS_ONE),
    ("all_gather", "ring"): Costs(_ONE_WAY, _ONE_WAY, _LESS_ONE),
    ("send_recv", "direct"): Costs(_ONE, _ZERO, _ONE),
    ("shift", "direct"): Costs(_ONE, _ONE, _ONE),
}
"""By operation and algorithm, as in `lab.parallel.COLLECTIVES`; for two ranks or more."""


def costs_of(operation: str, algorithm: str) -> tuple[str, Costs] | None:
    """The costs of an algorithm with its name; of one that no text-book knows, those of the best known.

    Example:
        >>> [costs_of("all_reduce", name)[0] for name in ("naive", "my_all_reduce")], costs_of("mine", "mine")
        (['naive', 'ring'], None)
    """
    known = next((name for op, name in COSTS if op == operation), "")
    name = algorithm if (operation, algorithm) in COSTS else known
    return (name, COSTS[operation, name]) if name else None


def share(operation: str, algorithm: str, rank: int, root: int, n: int) -> float | None:
    """How many buffers a rank sends, None where no text-book says; a plan of one's own is compared with the best known.

    Example:
        >>> [share("all_reduce", algorithm, 0, 0, 4) for algorithm in ("ring", "naive", "mine")]
        [1.5, 3.0, 1.5]
    """
    found = costs_of(operation, algorithm)
    if found is None:
        return None
    _, costs = found
    return 0.0 if n < 2 else (costs.root if rank == root else costs.others).of(n)


def sentence(operation: str, algorithm: str, root: int, n: int) -> str:
    """What the text-book says, "" where it says nothing.

    Example:
        >>> sentence("all_reduce", "ring", 0, 4)
        'each rank sends 2(n − 1)/n = 1.5 buffers; 2(n − 1) = 6 steps'
        >>> sentence("broadcast", "flat", 2, 4)
        'rank 2 sends n − 1 = 3 buffers, the others 0; n − 1 = 3 steps'
        >>> sentence("all_reduce", "mine", 0, 4)
        'by ring, each rank sends 2(n − 1)/n = 1.5 buffers; 2(n − 1) = 6 steps'
    """
    found = costs_of(operation, algorithm)
    if found is None or n < 2:
        return ""
    name, costs = found
    by = "" if name == algorithm else f"by {name}, "
    steps = f"{_valued(costs.steps, n)} step{'s' * (costs.steps.of(n) != 1)}"
    if costs.root is costs.others:
        return f"{by}each rank sends {_buffers(costs.root, n)}; {steps}"
    return f"{by}rank {root} sends {_buffers(costs.root, n)}, the others {_valued(costs.others, n)}; {steps}"


def _valued(formula: Formula, n: int) -> str:
    return formula.text if "n" not in formula.text else f"{formula.text} = {formula.of(n):.4g}"


def _buffers(formula: Formula, n: int) -> str:
    return f"{_valued(formula, n)} buffer{'s' * (formula.of(n) != 1)}"
