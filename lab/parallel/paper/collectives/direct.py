"""Direct: everybody talks to everybody, in as few steps as there can be.

For ranks that reach all others equally fast, such as those that share memory. In each step a rank sends to the next
one first, then to the one after it; so everybody is sent one message at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.parallel.paper.plans import Recv, Send, Step, block, collective


def others(rank: int, world_size: int) -> tuple[list[int], list[int]]:
    """To whom a rank sends and from whom it receives, in an order in which no two meet at a third.

    Example:
        >>> others(1, 4)
        ([2, 3, 0], [0, 3, 2])
    """
    turns = range(1, world_size)
    return [(rank + turn) % world_size for turn in turns], [(rank - turn) % world_size for turn in turns]


@collective("reduce_scatter", "direct")
def reduce_scatter_direct(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Each rank gets its own block from all others at once and adds: x[r] + x[r-1] + ... + x[r+1] for rank r."""
    after, before = others(rank, world_size)
    mine = block(rank, world_size, n_chunks)
    if after:
        yield (
            *(Send(peer, *block(peer, world_size, n_chunks)) for peer in after),
            *(Recv(peer, *mine, reduce=True) for peer in before),
        )


@collective("all_gather", "direct")
def all_gather_direct(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Each rank sends its own block to all others at once."""
    after, before = others(rank, world_size)
    mine = block(rank, world_size, n_chunks)
    if after:
        yield (
            *(Send(peer, *mine) for peer in after),
            *(Recv(peer, *block(peer, world_size, n_chunks), reduce=False) for peer in before),
        )


@collective("all_reduce", "direct")
def all_reduce_direct(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Every rank sums its own slice of all buffers, then gives it to all: two steps, the bytes of a ring."""
    yield from reduce_scatter_direct(rank, world_size, n_chunks)
    yield from all_gather_direct(rank, world_size, n_chunks)
