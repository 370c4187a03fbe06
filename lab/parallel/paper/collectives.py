"""The collectives of the house: one generator each, read it as a description of what one rank does.

Sender and receiver of a hop name the same step, so step numbers mean the same on all ranks: who rests yields `()`.
The order in which a sum is made is part of each plan, so the same plan gives the same bits.
"""

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


@collective("send_recv", "direct")
def send_recv(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """The buffer of rank 0 goes to the last rank; the others rest."""
    last = world_size - 1
    if rank == 0 and last > 0:
        yield (Send(last, 0, n_chunks),)
    elif rank == last > 0:
        yield (Recv(0, 0, n_chunks, reduce=False),)


@collective("shift", "direct")
def shift(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Every rank sends its buffer to the next and receives the previous one's, all at once."""
    if world_size > 1:
        right, left = (rank + 1) % world_size, (rank - 1) % world_size
        yield Send(right, 0, n_chunks), Recv(left, 0, n_chunks, reduce=False)
