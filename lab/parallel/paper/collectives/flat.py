"""Flat: everything goes through rank 0, one rank after the other. Nothing is simpler, and rank 0 is the bottleneck."""

from __future__ import annotations

from collections.abc import Iterator

from lab.parallel.paper.plans import Recv, Send, Step, block, collective


@collective("reduce", "flat")
def reduce_flat(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Rank 0 receives every other buffer, one after the other, and adds: x0 + x1 + x2 ... from left to right."""
    for peer in range(1, world_size):
        if rank == 0:
            yield (Recv(peer, 0, n_chunks, reduce=True),)
        else:
            yield (Send(0, 0, n_chunks),) if rank == peer else ()


@collective("broadcast", "flat")
def broadcast_flat(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Rank 0 sends its buffer to every other rank, one after the other."""
    for peer in range(1, world_size):
        if rank == 0:
            yield (Send(peer, 0, n_chunks),)
        else:
            yield (Recv(0, 0, n_chunks, reduce=False),) if rank == peer else ()


@collective("all_reduce", "naive")
def all_reduce_naive(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Everything goes to rank 0, is added there, and comes back: n - 1 whole buffers in, n - 1 out, at one rank."""
    yield from reduce_flat(rank, world_size, n_chunks)
    yield from broadcast_flat(rank, world_size, n_chunks)


@collective("gather", "flat")
def gather_flat(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Rank 0 receives the block of every other rank, one after the other, each in its place."""
    for peer in range(1, world_size):
        here = block(peer, world_size, n_chunks)
        if rank == 0:
            yield (Recv(peer, *here, reduce=False),)
        else:
            yield (Send(0, *here),) if rank == peer else ()


@collective("scatter", "flat")
def scatter_flat(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Rank 0 sends to every other rank the block that is its own, one after the other."""
    for peer in range(1, world_size):
        here = block(peer, world_size, n_chunks)
        if rank == 0:
            yield (Send(peer, *here),)
        else:
            yield (Recv(0, *here, reduce=False),) if rank == peer else ()
