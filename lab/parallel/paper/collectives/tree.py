"""Binomial trees: in each step twice as many ranks are done, so n ranks take log2 n steps, rounded up.

Fewest steps, whole buffers: for short buffers. What is added is (0+1) + (2+3) + ..., halves of halves: how many ranks
hold these parts makes no difference to the order, as long as each holds as many as a power of two.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.parallel.paper.plans import Recv, Send, Step, collective


def distances(world_size: int) -> list[int]:
    """Between partners, from the first step to the last: 1, 2, 4 and on, below the number of ranks.

    Example:
        >>> distances(6), distances(1)
        ([1, 2, 4], [])
    """
    return [1 << bit for bit in range((world_size - 1).bit_length())]


def span(first: int, last: int, world_size: int, n_chunks: int) -> tuple[int, int]:
    """First chunk and end of the blocks of ranks `first` to `last` (not included); ranks that do not exist have none.

    Example:
        >>> span(1, 3, 4, 8), span(2, 9, 4, 8), span(5, 9, 4, 8)
        ((2, 6), (4, 8), (8, 8))
    """
    first, last = min(first, world_size), min(last, world_size)
    return n_chunks * first // world_size, n_chunks * last // world_size


@collective("reduce", "tree")
def reduce_tree(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Of two partners the higher one gives its sum to the lower one and is done; partners are 1, 2, 4 ... apart."""
    for distance in distances(world_size):
        if rank % (2 * distance) == distance:
            yield (Send(rank - distance, 0, n_chunks),)
        elif rank % (2 * distance) == 0 and rank + distance < world_size:
            yield (Recv(rank + distance, 0, n_chunks, reduce=True),)
        else:
            yield ()


@collective("broadcast", "tree")
def broadcast_tree(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Who has the buffer gives it to a partner that has not; in each step twice as many have it."""
    for distance in reversed(distances(world_size)):
        if rank % (2 * distance) == distance:
            yield (Recv(rank - distance, 0, n_chunks, reduce=False),)
        elif rank % (2 * distance) == 0 and rank + distance < world_size:
            yield (Send(rank + distance, 0, n_chunks),)
        else:
            yield ()


@collective("all_reduce", "tree")
def all_reduce_tree(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Up a tree to rank 0, and down again: 2 log2 n steps of whole buffers."""
    yield from reduce_tree(rank, world_size, n_chunks)
    yield from broadcast_tree(rank, world_size, n_chunks)


@collective("gather", "tree")
def gather_tree(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """As the tree that reduces, but what a rank gives away are the blocks that it has gathered."""
    for distance in distances(world_size):
        if rank % (2 * distance) == distance:
            yield (Send(rank - distance, *span(rank, rank + distance, world_size, n_chunks)),)
        elif rank % (2 * distance) == 0 and rank + distance < world_size:
            theirs = span(rank + distance, rank + 2 * distance, world_size, n_chunks)
            yield (Recv(rank + distance, *theirs, reduce=False),)
        else:
            yield ()


@collective("scatter", "tree")
def scatter_tree(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Who has blocks of others gives half of them away, with the work of giving them on."""
    for distance in reversed(distances(world_size)):
        if rank % (2 * distance) == distance:
            yield (Recv(rank - distance, *span(rank, rank + distance, world_size, n_chunks), reduce=False),)
        elif rank % (2 * distance) == 0 and rank + distance < world_size:
            yield (Send(rank + distance, *span(rank + distance, rank + 2 * distance, world_size, n_chunks)),)
        else:
            yield ()
