"""What text-books say a collective costs: bytes that each rank sends, as a share of the buffer, and the steps.

A table of formulas and not a count of hops, so that what a run sent stands beside something that was not taken from it;
a test compares it with the plans as they are counted on paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lab.parallel.paper import textbook


class Formula(NamedTuple):
    """A number that depends on the number of ranks n only."""

    text: str
    of: Callable[[int], float]


class Costs(NamedTuple):
    """Of an algorithm.

    Attributes:
        root: the share of the buffer that the root sends (rank 0, if nobody else was named).
        others: the share that each other rank sends; None where they differ.
        steps: how many steps follow each other.
        halves: whether that is so for powers of two only; of other numbers of ranks some come in and out first.
    """

    root: Formula
    others: Formula | None
    steps: Formula
    halves: bool = False


def _levels(n: int) -> float:
    return float((n - 1).bit_length())


_ZERO, _ONE, _TWO = Formula("0", lambda n: 0.0), Formula("1", lambda n: 1.0), Formula("2", lambda n: 2.0)
_LESS_ONE = Formula("n − 1", lambda n: n - 1.0)
_TWICE_LESS_ONE = Formula("2(n − 1)", lambda n: 2.0 * (n - 1))
_ONE_WAY = Formula("(n − 1)/n", lambda n: (n - 1) / n)
_BOTH_WAYS = Formula("2(n − 1)/n", lambda n: 2 * (n - 1) / n)
_PART = Formula("1/n", lambda n: 1 / n)
_DEPTH = Formula("⌈log₂ n⌉", _levels)
_TWICE_DEPTH = Formula("2⌈log₂ n⌉", lambda n: 2 * _levels(n))
_IN_PAIRS = Formula("n − 1 (n odd: n)", lambda n: n - 1.0 + n % 2)
_FOUR_EACH = Formula("4n + n − 2", lambda n: 5.0 * n - 2)

COSTS: Mapping[tuple[str, str], Costs] = {
    ("all_reduce", "ring"): Costs(_BOTH_WAYS, _BOTH_WAYS, _TWICE_LESS_ONE),
    ("all_reduce", "naive"): Costs(_LESS_ONE, _ONE, _TWICE_LESS_ONE),
    ("all_reduce", "tree"): Costs(_DEPTH, None, _TWICE_DEPTH),
    ("all_reduce", "halving"): Costs(_BOTH_WAYS, _BOTH_WAYS, _TWICE_DEPTH, halves=True),
    ("all_reduce", "doubling"): Costs(_DEPTH, _DEPTH, _DEPTH, halves=True),
    ("all_reduce", "direct"): Costs(_BOTH_WAYS, _BOTH_WAYS, _TWO),
    ("reduce", "flat"): Costs(_ZERO, _ONE, _LESS_ONE),
    ("reduce", "tree"): Costs(_ZERO, _ONE, _DEPTH),
    ("broadcast", "flat"): Costs(_LESS_ONE, _ZERO, _LESS_ONE),
    ("broadcast", "tree"): Costs(_DEPTH, None, _DEPTH),
    ("broadcast", "pipelined"): Costs(_ONE, None, _FOUR_EACH),
    ("reduce_scatter", "ring"): Costs(_ONE_WAY, _ONE_WAY, _LESS_ONE),
    ("reduce_scatter", "halving"): Costs(_ONE_WAY, _ONE_WAY, _DEPTH, halves=True),
    ("reduce_scatter", "direct"): Costs(_ONE_WAY, _ONE_WAY, _ONE),
    ("all_gather", "ring"): Costs(_ONE_WAY, _ONE_WAY, _LESS_ONE),
    ("all_gather", "bruck"): Costs(_ONE_WAY, _ONE_WAY, _DEPTH),
    ("all_gather", "direct"): Costs(_ONE_WAY, _ONE_WAY, _ONE),
    ("gather", "flat"): Costs(_ZERO, _PART, _LESS_ONE),
    ("gather", "tree"): Costs(_ZERO, None, _DEPTH),
    ("scatter", "flat"): Costs(_ONE_WAY, _ZERO, _LESS_ONE),
    ("scatter", "tree"): Costs(_ONE_WAY, None, _DEPTH),
    ("all_to_all", "direct"): Costs(_ONE_WAY, _ONE_WAY, _IN_PAIRS),
    ("send_recv", "direct"): Costs(_ONE, _ZERO, _ONE),
    ("shift", "direct"): Costs(_ONE, _ONE, _ONE),
}
"""By operation and algorithm, as in `lab.parallel.COLLECTIVES`, of each operation the best known first; for two ranks
or more. Of those that are not here the shares depend on how the buffer is cut."""


def costs_of(operation: str, algorithm: str, n: int = 2) -> tuple[str, Costs] | None:
    """The costs of an algorithm with its name; of one that no text-book knows, those of the best known.

    Args:
        n: ranks; some formulas are for powers of two.

    Example:
        >>> [costs_of("all_reduce", name)[0] for name in ("naive", "my_all_reduce")], costs_of("mine", "mine")
        (['naive', 'ring'], None)
        >>> [costs_of("all_reduce", "halving", n)[0] for n in (4, 5)]
        ['halving', 'ring']
    """
    known = next((name for op, name in COSTS if op == operation), "")
    mine = COSTS.get((operation, algorithm))
    name = algorithm if mine is not None and not (mine.halves and n & (n - 1)) else known
    return (name, COSTS[operation, name]) if name else None


def steps(operation: str, algorithm: str, n: int) -> int:
    """How many steps follow each other, 0 where no text-book says.

    Example:
        >>> steps("all_reduce", "halving", 8), steps("all_reduce", "mine", 8)
        (6, 0)
    """
    costs = textbook.COSTS.get((operation, algorithm))
    return costs.steps(n) if costs is not None and n > 1 else 0


def share(operation: str, algorithm: str, rank: int, root: int, n: int) -> float | None:
    """How many buffers a rank sends, None where no text-book says; a plan of one's own is compared with the best known.

    Example:
        >>> [share("all_reduce", algorithm, 0, 0, 4) for algorithm in ("ring", "naive", "mine")]
        [1.5, 3.0, 1.5]
    """
    if (known := textbook.COSTS.get((operation, algorithm))) is not None:
        return float(known.sent((rank - root) % n, n)) if n > 1 else 0.0
    found = costs_of(operation, algorithm, n)
    if found is None:
        return None
    formula = found[1].root if rank == root else found[1].others
    return None if formula is None else 0.0 if n < 2 else formula.of(n)


def sentence(operation: str, algorithm: str, root: int, n: int) -> str:
    """What the text-book says, "" where it says nothing.

    Example:
        >>> sentence("all_reduce", "ring", 0, 4)
        'each rank sends 2(n − 1)/n = 1.5 buffers; 2(n − 1) = 6 steps'
        >>> sentence("broadcast", "flat", 2, 4)
        'rank 2 sends n − 1 = 3 buffers, the others 0; n − 1 = 3 steps'
        >>> sentence("broadcast", "tree", 0, 4)
        'rank 0 sends ⌈log₂ n⌉ = 2 buffers; ⌈log₂ n⌉ = 2 steps'
        >>> sentence("all_reduce", "mine", 0, 4)
        'by ring, each rank sends 2(n − 1)/n = 1.5 buffers; 2(n − 1) = 6 steps'
        >>> sentence("all_reduce", "double_tree", 0, 4)
        'ranks send 1 to 2 buffers; 11 steps'
    """
    found = costs_of(operation, algorithm, n)
    if n > 1 and (operation, algorithm) in textbook.COSTS and (found is None or found[0] != algorithm):
        return _counted(operation, algorithm, n)
    if found is None or n < 2:
        return ""
    name, costs = found
    by = "" if name == algorithm else f"by {name}, "
    then = f"{_valued(costs.steps, n)} step{'s' * (costs.steps.of(n) != 1)}"
    if costs.root is costs.others:
        return f"{by}each rank sends {_buffers(costs.root, n)}; {then}"
    others = f", the others {_valued(costs.others, n)}" if costs.others is not None else ""
    return f"{by}rank {root} sends {_buffers(costs.root, n)}{others}; {then}"


def _counted(operation: str, algorithm: str, n: int) -> str:
    """What it comes to on n ranks, where no short formula says what each of them sends."""
    sent = [share(operation, algorithm, rank, 0, n) or 0.0 for rank in range(n)]
    least, most = min(sent), max(sent)
    buffers = f"{most:.4g} buffer{'s' * (most != 1)}"
    who = f"each rank sends {buffers}" if least == most else f"ranks send {least:.4g} to {buffers}"
    n_steps = steps(operation, algorithm, n)
    return f"{who}; {n_steps} step{'s' * (n_steps != 1)}"


def _valued(formula: Formula, n: int) -> str:
    return formula.text if "n" not in formula.text else f"{formula.text} = {formula.of(n):.4g}"


def _buffers(formula: Formula, n: int) -> str:
    return f"{_valued(formula, n)} buffer{'s' * (formula.of(n) != 1)}"
