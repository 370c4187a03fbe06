"""Partners that are powers of two apart: buffers are halved while sums grow, and doubled while they spread.

log2 n steps like a tree, bytes like a ring. Ranks beyond a power of two give what they have to a partner first, rest,
and get the result from it last; where only copies move, no rank has to rest (Bruck and others, 1997).
Rabenseifner, Optimization of Collective Reduction Operations (ICCS 2004).
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.parallel.paper.collectives.tree import distances, span
from lab.parallel.paper.plans import Plan, Recv, Send, Step, block, collective


def power_below(world_size: int) -> int:
    """The largest power of two that is not above.

    Example:
        >>> [power_below(n) for n in (1, 2, 3, 4, 63)]
        [1, 2, 2, 4, 32]
    """
    return 1 << (world_size.bit_length() - 1)


def _folded(inner: Plan, rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """An all-reduce for a power of two; the ranks beyond it are added to their partners first and get the sum last."""
    core = power_below(world_size)
    if core == world_size:
        yield from inner(rank, core, n_chunks)  # type: ignore[misc]  # of the house: its steps are tuples
        return
    has_partner = rank + core < world_size
    if rank >= core:
        yield (Send(rank - core, 0, n_chunks),)
        yield from [()] * len(list(inner(0, core, n_chunks)))
        yield (Recv(rank - core, 0, n_chunks, reduce=False),)
        return
    yield (Recv(rank + core, 0, n_chunks, reduce=True),) if has_partner else ()
    yield from inner(rank, core, n_chunks)  # type: ignore[misc]
    yield (Send(rank + core, 0, n_chunks),) if has_partner else ()


@collective("all_reduce", "doubling")
def all_reduce_doubling(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Partners swap all that they have and add it: in each step a sum has twice as many parts. log2 n whole buffers."""

    def swaps(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
        for distance in distances(world_size):
            partner = rank ^ distance
            yield Send(partner, 0, n_chunks), Recv(partner, 0, n_chunks, reduce=True)

    yield from _folded(swaps, rank, world_size, n_chunks)


@collective("all_reduce", "halving")
def all_reduce_halving(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Partners share the work of adding: each adds half of what both have, then half of that with the next partner.

    On the way back the halves are put together: 2 log2 n steps, 2 (n - 1) / n of the buffer for a power of two.
    The nearest partner comes first, so that sums are (0+1) + (2+3) + ...: the order of a tree, whatever the world.
    """

    def halves(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
        ranges = [(0, world_size)]  # what the rank works on, step by step, in as many parts as there are ranks
        for distance in distances(world_size):
            start, stop = ranges[-1]
            middle = (start + stop) // 2
            low, high = (start, middle), (middle, stop)
            mine, theirs = (high, low) if rank & distance else (low, high)
            ranges.append(mine)
            yield _swap(rank ^ distance, theirs, mine, True, world_size, n_chunks)
        for distance in reversed(distances(world_size)):
            mine, (start, stop) = ranges.pop(), ranges[-1]
            theirs = (mine[1], stop) if mine[0] == start else (start, mine[0])
            yield _swap(rank ^ distance, mine, theirs, False, world_size, n_chunks)

    yield from _folded(halves, rank, world_size, n_chunks)


def _swap(peer: int, out: tuple[int, int], back: tuple[int, int], reduce: bool, world_size: int, n_chunks: int) -> Step:
    return Send(peer, *span(*out, world_size, n_chunks)), Recv(peer, *span(*back, world_size, n_chunks), reduce)


@collective("reduce_scatter", "halving")
def reduce_scatter_halving(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Partners share the blocks, the farthest first, so that each rank is left with its own.

    A rank beyond the power of two leaves its block to its partner, who adds it up and hands it out in the end.
    """
    core = power_below(world_size)

    def blocks(first: int, last: int) -> list[tuple[int, int]]:
        """Those of ranks `first` to `last`, and those of their partners."""
        return [span(first, last, world_size, n_chunks), span(core + first, core + last, world_size, n_chunks)]

    if rank >= core:
        yield (Send(rank - core, 0, n_chunks),)
        yield from [()] * len(distances(core))
        yield (Recv(rank - core, *block(rank, world_size, n_chunks), reduce=False),)
        return
    has_partner = rank + core < world_size
    if core < world_size:
        yield (Recv(rank + core, 0, n_chunks, reduce=True),) if has_partner else ()
    for distance in reversed(distances(core)):
        peer, first = rank ^ distance, rank // distance * distance
        theirs, mine = blocks(first ^ distance, (first ^ distance) + distance), blocks(first, first + distance)
        yield *(Send(peer, *here) for here in theirs), *(Recv(peer, *here, reduce=True) for here in mine)
    if core < world_size:
        yield (Send(rank + core, *block(rank + core, world_size, n_chunks)),) if has_partner else ()


@collective("all_gather", "bruck")
def all_gather_bruck(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Each rank sends all that it has to the one that is 1, 2, 4 ... below: in each step it has twice as many blocks.

    Any number of ranks takes log2 n steps, rounded up; in the last step no more is sent than is missing.
    """

    def blocks(owner: int, n_blocks: int) -> list[tuple[int, int]]:
        """Those of `owner` and the ranks after it, around the circle."""
        end = owner + n_blocks
        return [span(owner, end, world_size, n_chunks), span(0, max(0, end - world_size), world_size, n_chunks)]

    for distance in distances(world_size):
        n_blocks = min(distance, world_size - distance)
        below, above = (rank - distance) % world_size, (rank + distance) % world_size
        yield (
            *(Send(below, *here) for here in blocks(rank, n_blocks)),
            *(Recv(above, *here, reduce=False) for here in blocks(above, n_blocks)),
        )
