"""Two binary trees at once, each for half of the buffer: whoever is inside one tree is a leaf of the other.

In one tree the leaves, half of all ranks, would only send and receive once while those inside do three times as much.
With two trees all do the same, and log2 n steps come together with few bytes (Sanders, Speck and Traeff, Parallel
Computing 35 (2009)). The halves go through in pieces, so that all levels of a tree work at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from lab.parallel.paper.plans import Recv, Send, Step, block, collective

PIECES = 4
"""Pieces of each half, for each level of its tree: the steps in which it fills and empties are half of all, or less."""


class Tree(NamedTuple):
    """A binary tree over the ranks.

    Attributes:
        parent: of each rank; of the root itself.
        children: of each rank, at most two.
        level: of each rank, its distance from the root.
        depth: the highest level.
    """

    parent: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    level: tuple[int, ...]
    depth: int


def _parent(rank: int, world_size: int) -> int:
    """Ranks in the order of their binary numbers: odd ones are leaves, rank 0 is the root above all.

    A rank that ends with a 1 and k zeros has its parent 2**k away, on the side on which there is one.
    """
    if not rank:
        return 0
    low = rank & -rank
    above = (rank - low) | (2 * low)
    return above if above < world_size else rank - low


def _tree(world_size: int, role: Callable[[int], int], rank_of: Callable[[int], int]) -> Tree:
    parent = tuple(rank_of(_parent(role(rank), world_size)) for rank in range(world_size))
    below: list[list[int]] = [[] for _ in parent]
    for rank, above in enumerate(parent):
        if above != rank:
            below[above].append(rank)

    def level(rank: int) -> int:
        return 0 if parent[rank] == rank else 1 + level(parent[rank])

    levels = tuple(map(level, range(world_size)))
    return Tree(parent, tuple(map(tuple, below)), levels, max(levels))


@lru_cache(maxsize=64)
def two_trees(world_size: int) -> tuple[Tree, Tree]:
    """Two trees of one form; a rank with two children in one of them has none in the other.

    The second is the first one's mirror image; of an odd number of ranks that would keep the leaves, so then all move
    on by one instead.

    Example:
        >>> first, second = two_trees(6)
        >>> first.children
        ((4,), (), (1, 3), (), (2, 5), ())
        >>> second.children
        ((), (0, 3), (), (2, 4), (), (1,))
    """
    n = world_size
    first = _tree(n, lambda rank: rank, lambda rank: rank)
    if n % 2:
        return first, _tree(n, lambda rank: (rank - 1) % n, lambda role: (role + 1) % n)
    return first, _tree(n, lambda rank: n - 1 - rank, lambda role: n - 1 - role)


@collective("all_reduce", "double_tree", chunks_per_rank=4)
def all_reduce_double_tree(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Sums go up both trees and come down again, piece behind piece: P - 1 + 2 depth steps for P pieces of each half.

    A rank adds its children's sums to its own part, the lower child's first.
    """
    if world_size == 1:
        return
    trees, half = two_trees(world_size), (n_chunks + 1) // 2
    depth = trees[0].depth
    n_pieces = max(1, min(PIECES * depth, half))
    for step in range(n_pieces - 1 + 2 * depth):
        yield (
            *_hops(trees[0], rank, step, n_pieces, 0, half),
            *_hops(trees[1], rank, step, n_pieces, half, n_chunks),
        )


def _hops(tree: Tree, rank: int, step: int, n_pieces: int, first: int, last: int) -> Iterator[Send | Recv]:
    """What one rank does in a step for chunks `first` to `last`.

    Piece p leaves level v upwards in step p + depth - v, and downwards in step p + depth + v.
    """

    def piece(number: int) -> tuple[int, int]:
        if not 0 <= number < n_pieces:
            return 0, 0
        start, stop = block(number, n_pieces, last - first)
        return first + start, first + stop

    level, children, inner = tree.level[rank], tree.children[rank], tree.parent[rank] != rank
    up, down = step - tree.depth + level, step - tree.depth - level
    if inner:
        yield Send(tree.parent[rank], *piece(up))
    yield from (Send(child, *piece(down)) for child in children)
    yield from (Recv(child, *piece(up + 1), reduce=True) for child in children)
    if inner:
        yield Recv(tree.parent[rank], *piece(down + 1), reduce=False)
