"""Rings and chains: every rank talks to its neighbours only, and all links are in use at once.

Least bytes, most steps: for long buffers, or few ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.parallel.paper.plans import Recv, Send, Step, block, collective


@collective("reduce_scatter", "ring")
def reduce_scatter_ring(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Each block travels once around and is added up on its way; rank r ends with the whole sum of block r.

    Block b starts at rank b + 1 and ends at rank b, so its sum is x[b+1] + x[b+2] + ... + x[b], from left to right.
    """
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):
        yield (
            Send(right, *block(rank - step - 1, world_size, n_chunks)),
            Recv(left, *block(rank - step - 2, world_size, n_chunks), reduce=True),
        )


@collective("all_gather", "ring")
def all_gather_ring(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Each rank passes on the block that it received last, at first its own; n - 1 steps later all have all."""
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):
        yield (
            Send(right, *block(rank - step, world_size, n_chunks)),
            Recv(left, *block(rank - step - 1, world_size, n_chunks), reduce=False),
        )


@collective("all_reduce", "ring")
def all_reduce_ring(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Reduce-scatter, then all-gather: 2 (n - 1) steps, each rank sends 2 (n - 1) / n of the buffer.

    Patarasuk and Yuan, Journal of Parallel and Distributed Computing 69 (2009): no plan sends less.
    """
    yield from reduce_scatter_ring(rank, world_size, n_chunks)
    yield from all_gather_ring(rank, world_size, n_chunks)


@collective("broadcast", "pipelined", chunks_per_rank=4)
def broadcast_pipelined(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """A chain: each rank passes on one chunk while the next one comes in. Takes n - 2 + chunks steps.

    However long the chain is, a long buffer takes little more than once over one link: hence many chunks.
    """
    if world_size == 1:
        return
    for step in range(n_chunks + world_size - 2):
        going, coming = step - rank, step - rank + 1
        hops: list[Send | Recv] = []
        if rank < world_size - 1 and 0 <= going < n_chunks:
            hops.append(Send(rank + 1, going, going + 1))
        if rank and 0 <= coming < n_chunks:
            hops.append(Recv(rank - 1, coming, coming + 1, reduce=False))
        yield tuple(hops)
