"""What text-books say a collective costs: steps, the buffers that each rank sends, and those over the busiest link.

Formulas and not a count of hops, so that what a plan does stands beside something that was not taken from it; a test
compares them for worlds of 2 to 64. A buffer counts as one, cut where it divides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lab.parallel.paper.collectives.double_tree import PIECES, two_trees
from lab.parallel.paper.collectives.halving import power_below
from lab.parallel.paper.collectives.hierarchical import group_size_for


class Costs(NamedTuple):
    """Of an algorithm on n ranks, two or more; the root is rank 0."""

    steps: Callable[[int], int]
    sent: Callable[[int, int], float]
    """`sent(rank, n)` in buffers."""
    link: Callable[[int], float]
    """Buffers over the link that carries most."""


def _levels(n: int) -> int:
    return (n - 1).bit_length()


def _extra(rank: int, n: int) -> int:
    """1 if a rank has a partner beyond the largest power of two."""
    return int(rank + power_below(n) < n)


def _folds(n: int) -> int:
    """Steps that only such partners need."""
    return 2 * (power_below(n) < n)


def _within(rank: int, n: int, sent: float) -> float:
    """What a rank sends in an all-reduce of which the ranks beyond the power of two are no part: they send once."""
    return 1.0 if rank >= power_below(n) else sent + _extra(rank, n)


def _below(rank: int, n: int) -> list[int]:
    """How far the children of a rank are away in a binomial tree."""
    return [1 << k for k in range(_levels(n)) if rank % (2 << k) == 0 and rank + (1 << k) < n]


def _widest(n: int) -> float:
    """The largest share that goes over one link of a tree that gathers."""
    far = 1 << (_levels(n) - 1)
    return max(n - far, far // 2) / n


def _double_tree_steps(n: int) -> int:
    depth = _levels(n)
    return min(PIECES * depth, 2 * n) - 1 + 2 * depth


def _double_tree_sent(rank: int, n: int) -> float:
    return sum(len(tree.children[rank]) + (tree.parent[rank] != rank) for tree in two_trees(n)) / 2


def _double_tree_link(n: int) -> float:
    ups = [(rank, above) for tree in two_trees(n) for rank, above in enumerate(tree.parent) if rank != above]
    return max(Counter(ups + [(above, rank) for rank, above in ups]).values()) / 2


def _group_steps(n: int) -> int:
    size = group_size_for(n)
    return 2 * (size - 1) + 2 * (n // size - 1)


def _group_link(n: int) -> float:
    size = group_size_for(n)
    return max(2 * (size - 1) / size, 2 * (n // size - 1) / n)


COSTS: Mapping[tuple[str, str], Costs] = {
    ("all_reduce", "naive"): Costs(lambda n: 2 * (n - 1), lambda r, n: 1 if r else n - 1, lambda n: 1),
    ("all_reduce", "ring"): Costs(lambda n: 2 * (n - 1), lambda r, n: 2 * (n - 1) / n, lambda n: 2 * (n - 1) / n),
    ("all_reduce", "tree"): Costs(lambda n: 2 * _levels(n), lambda r, n: (r > 0) + len(_below(r, n)), lambda n: 1),
    ("all_reduce", "double_tree"): Costs(_double_tree_steps, _double_tree_sent, _double_tree_link),
    ("all_reduce", "doubling"): Costs(
        lambda n: power_below(n).bit_length() - 1 + _folds(n),
        lambda r, n: _within(r, n, power_below(n).bit_length() - 1),
        lambda n: 1,
    ),
    ("all_reduce", "halving"): Costs(
        lambda n: 2 * (power_below(n).bit_length() - 1) + _folds(n),
        lambda r, n: _within(r, n, 2 * (1 - 1 / power_below(n))),
        lambda n: 1,
    ),
    ("all_reduce", "hierarchical"): Costs(_group_steps, lambda r, n: 2 * (n - 1) / n, _group_link),
    ("all_reduce", "direct"): Costs(lambda n: 2, lambda r, n: 2 * (n - 1) / n, lambda n: 2 / n),
    ("reduce", "flat"): Costs(lambda n: n - 1, lambda r, n: int(r > 0), lambda n: 1),
    ("reduce", "tree"): Costs(_levels, lambda r, n: int(r > 0), lambda n: 1),
    ("broadcast", "flat"): Costs(lambda n: n - 1, lambda r, n: 0 if r else n - 1, lambda n: 1),
    ("broadcast", "tree"): Costs(_levels, lambda r, n: len(_below(r, n)), lambda n: 1),
    ("broadcast", "pipelined"): Costs(lambda n: 4 * n + n - 2, lambda r, n: int(r < n - 1), lambda n: 1),
    ("reduce_scatter", "ring"): Costs(lambda n: n - 1, lambda r, n: (n - 1) / n, lambda n: (n - 1) / n),
    ("reduce_scatter", "halving"): Costs(
        lambda n: power_below(n).bit_length() - 1 + _folds(n),
        lambda r, n: 1 if r >= power_below(n) else (n - 1) / n,
        lambda n: 1 if _folds(n) else 1 / 2,
    ),
    ("reduce_scatter", "direct"): Costs(lambda n: 1, lambda r, n: (n - 1) / n, lambda n: 1 / n),
    ("all_gather", "ring"): Costs(lambda n: n - 1, lambda r, n: (n - 1) / n, lambda n: (n - 1) / n),
    ("all_gather", "bruck"): Costs(
        _levels, lambda r, n: (n - 1) / n, lambda n: max(min(1 << k, n - (1 << k)) for k in range(_levels(n))) / n
    ),
    ("all_gather", "direct"): Costs(lambda n: 1, lambda r, n: (n - 1) / n, lambda n: 1 / n),
    ("gather", "flat"): Costs(lambda n: n - 1, lambda r, n: (r > 0) / n, lambda n: 1 / n),
    ("gather", "tree"): Costs(_levels, lambda r, n: (min(r + (r & -r), n) - r) / n, _widest),
    ("scatter", "flat"): Costs(lambda n: n - 1, lambda r, n: 0 if r else (n - 1) / n, lambda n: 1 / n),
    ("scatter", "tree"): Costs(
        _levels, lambda r, n: sum(min(r + 2 * far, n) - r - far for far in _below(r, n)) / n, _widest
    ),
    ("all_to_all", "direct"): Costs(lambda n: n - 1 + n % 2, lambda r, n: (n - 1) / n, lambda n: 1 / n),
    ("barrier", "dissemination"): Costs(_levels, lambda r, n: _levels(n), lambda n: 1),
    ("send_recv", "direct"): Costs(lambda n: 1, lambda r, n: int(r == 0), lambda n: 1),
    ("shift", "direct"): Costs(lambda n: 1, lambda r, n: 1, lambda n: 1),
}
"""By operation and algorithm, as in `COLLECTIVES`, cut into `chunks_of` the plan."""
