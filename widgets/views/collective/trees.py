"""Which trees the hops of a collective make, found from the hops alone, and the layout that suits them.

Each piece of the buffer has its own ways. Where they join all ranks without a circle they are a tree; pieces that take
the same ways share one. A double binary tree so has two, a ring as many as it has chunks or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lab.events import ChunkMoved
from widgets.layout.tree import depth
from widgets.views.collective.state import Piece

LAYOUTS = ("auto", "ring", "tree", "matrix")
MOST_IN_TREES = 16
"""Ranks whose trees are drawn if nobody asks for them: more are not legible."""
MOST_WAYS = 2
"""So many arrows for each rank can be told apart."""


class Tree(NamedTuple):
    """A tree of ranks.

    Attributes:
        parents: of each rank, -1 of the root.
        pieces: numbers of those that go along it.
    """

    parents: tuple[int, ...]
    pieces: tuple[int, ...]


def trees_of(hops: Sequence[ChunkMoved], n: int, pieces: Sequence[Piece]) -> tuple[Tree, ...]:
    """The trees along which the pieces moved, by their first piece; none if those of a piece make no tree of all ranks.

    Example:
        >>> ways = (0, 1, 0), (0, 3, 2), (1, 2, 0)
        >>> hops = [ChunkMoved(0, step, src, dst, 0, 4, True, 8) for step, src, dst in ways]
        >>> trees_of(hops, 4, [Piece(0, 4, "x")])
        (Tree(parents=(-1, 0, 0, 2), pieces=(0,)),)
        >>> trees_of([*hops, ChunkMoved(0, 2, 3, 1, 0, 4, False, 8)], 4, [Piece(0, 4, "x")])  # a circle
        ()
    """
    if n < 2:
        return ()
    found: dict[frozenset[frozenset[int]], list[int]] = {}
    for k, piece in enumerate(pieces):
        joined = frozenset(frozenset((hop.src, hop.dst)) for hop in _with(hops, piece))
        found.setdefault(joined, []).append(k)
    trees = [_tree(joined, _with(hops, pieces[own[0]]), n, own) for joined, own in found.items()]
    whole = [tree for tree in trees if tree is not None]
    return tuple(whole) if len(whole) == len(trees) else ()


def _with(hops: Sequence[ChunkMoved], piece: Piece) -> list[ChunkMoved]:
    return [hop for hop in hops if hop.start <= piece.start and piece.stop <= hop.stop]


def _tree(joined: frozenset[frozenset[int]], hops: list[ChunkMoved], n: int, pieces: list[int]) -> Tree | None:
    """The tree of some pairs, seen from its root; None if they make none of all ranks."""
    if len(joined) != n - 1:
        return None
    parents, reached = [-1] * n, [root_of(hops, n)]
    for rank in reached:  # grows while it is walked through
        for pair in sorted(map(sorted, joined)):
            if rank in pair:
                other = pair[0] + pair[1] - rank
                if other not in reached and other < n:
                    parents[other] = rank
                    reached.append(other)
    return Tree(tuple(parents), tuple(pieces)) if len(reached) == n else None


def root_of(hops: Sequence[ChunkMoved], n: int) -> int:
    """The rank to which everything is added, from which all comes or to which all goes; else one that has most hops.

    It plays rank 0 of the plan, as the hops show it: a launch may name any.

    Example:
        >>> root_of([ChunkMoved(0, dst, 2, dst, 0, 3, False, 8) for dst in (0, 1)], 3), root_of([], 3)
        (2, 0)
    """
    adding, storing = ([hop for hop in hops if hop.reduces == reduces] for reduces in (True, False))
    for there, alone in ((adding, {hop.src for hop in adding}), (storing, {hop.dst for hop in storing}),
                         (storing, {hop.src for hop in storing})):  # fmt: skip
        left = set(range(n)) - alone
        if there and len(left) == 1:
            return left.pop()
    ends = [rank for hop in hops for rank in (hop.src, hop.dst)]
    return max(range(n), key=ends.count)


def chosen(layout: str, hops: Sequence[ChunkMoved], n: int, trees: Sequence[Tree]) -> str:
    """The layout that is drawn: the one asked for if it can be, else what suits the hops.

    Example:
        >>> ways = (0, 1, 0), (0, 3, 2), (1, 2, 0)
        >>> hops = [ChunkMoved(0, step, src, dst, 0, 4, True, 8) for step, src, dst in ways]
        >>> trees = trees_of(hops, 4, [Piece(0, 4, "x")])
        >>> [chosen(layout, hops, 4, trees) for layout in LAYOUTS], chosen("tree", hops, 4, ())
        (['tree', 'ring', 'tree', 'matrix'], 'ring')
    """
    drawable = 1 <= len(trees) <= 2
    if layout == "auto":
        if drawable and n <= MOST_IN_TREES and any(map(_branches, trees)):
            return "tree"
        return "matrix" if _too_many(hops, n) else "ring"
    return "ring" if layout == "tree" and not drawable else layout


def _branches(tree: Tree) -> bool:
    """Whether it is more than a hub with its neighbours, or a chain: those are seen better as they are."""
    return depth(tree.parents) > 1 and max(map(tree.parents.count, range(len(tree.parents)))) > 1


def _too_many(hops: Sequence[ChunkMoved], n: int) -> bool:
    """Whether so many pairs of ranks exchange something that arrows between them would be a tangle."""
    ways = len({(hop.src, hop.dst) for hop in hops})
    return n > 3 and ways > min(MOST_WAYS * n, n * (n - 1) - 1)
