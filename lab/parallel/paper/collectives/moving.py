"""Plans that add nothing: what one rank has goes to another; and a barrier, which moves nothing but the word."""

from __future__ import annotations

from collections.abc import Iterator

from lab.errors import PlanError
from lab.parallel.paper.collectives.tree import distances
from lab.parallel.paper.plans import Recv, Send, Step, block, collective


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


def partner(rank: int, turn: int, world_size: int) -> int:
    """With whom a rank is paired in a turn of a tournament in which all meet; itself, if it rests.

    An odd number of players has a turn for each, in which one rests: the sum of a pair is the turn, modulo the world.
    Of an even number the last one plays against the one who rests.

    Example:
        >>> [[partner(rank, turn, 4) for rank in range(4)] for turn in range(3)]
        [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]]
    """
    odd = world_size - 1 + world_size % 2
    if rank == odd:
        return turn * (odd + 1) // 2 % odd
    found = (turn - rank) % odd
    return odd if found == rank and world_size % 2 == 0 else found


@collective("all_to_all", "direct")
def all_to_all_direct(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """A tournament: whoever meets gives the other the block that is meant for it, and keeps what comes in its place.

    So nothing is overwritten that is still to be sent, and the buffer is all the memory that it takes: n - 1 turns, n
    if the number of ranks is odd.

    Raises:
        PlanError: blocks that differ in size, which cannot be swapped.
    """
    if n_chunks % world_size:
        raise PlanError("an all-to-all swaps blocks of one size",
                        given=f"n_chunks={n_chunks}, world_size={world_size}",
                        hint=f"a multiple of the world size: n_chunks={world_size}")  # fmt: skip
    for turn in range(world_size - 1 + world_size % 2 if world_size > 1 else 0):
        peer = partner(rank, turn, world_size)
        mine, theirs = block(rank, world_size, n_chunks), block(peer, world_size, n_chunks)
        yield () if peer == rank else (Send(peer, *theirs), Recv(peer, *mine, reduce=False, at=theirs[0]))


@collective("barrier", "dissemination")
def barrier_dissemination(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """Each rank tells the one that is 1, 2, 4 ... after it of all whom it has heard of: log2 n steps, rounded up.

    Nobody leaves before everybody has come. The buffer only counts who came; a rank may be counted twice.
    Hensgen, Finkel and Manber, International Journal of Parallel Programming 17 (1988).
    """
    for distance in distances(world_size):
        after, before = (rank + distance) % world_size, (rank - distance) % world_size
        yield Send(after, 0, n_chunks), Recv(before, 0, n_chunks, reduce=True)
