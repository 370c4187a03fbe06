"""Groups of ranks, such as the machines of a cluster: what is near is added first, so that little has to go far.

Within each group a ring adds up a block for each member; the members with the same place in all groups sum that block
over the groups, in rings of their own; then each group gathers its blocks. Far links carry 1 / group of the buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from lab.errors import PlanError
from lab.parallel.paper.collectives.ring import all_gather_ring, all_reduce_ring, reduce_scatter_ring
from lab.parallel.paper.plans import Plan, Recv, Send, Step, block, collective, require_count


def group_size_for(world_size: int) -> int:
    """The divisor of the world nearest to its square root: with it rings have fewest steps. The smaller of two.

    Example:
        >>> [group_size_for(n) for n in (1, 4, 6, 8, 12, 13, 64)]
        [1, 2, 2, 2, 3, 1, 8]
    """
    divisors = [size for size in range(1, world_size + 1) if world_size % size == 0]
    return min(divisors, key=lambda size: abs(size - world_size**0.5))


def within(steps: Iterable[Step], members: Sequence[int], first: int = 0) -> Iterator[Step]:
    """A plan of a few ranks as part of a larger one: its rank i is `members[i]`, its chunk 0 is chunk `first`.

    Example:
        >>> list(within(all_gather_ring(0, 2, 2), [3, 7], first=4))
        [(Send(peer=7, start=4, stop=5), Recv(peer=7, start=5, stop=6, reduce=False))]
    """
    for step in steps:
        yield tuple(_moved(hop, members[hop.peer], first) for hop in step)


def _moved(hop: Send | Recv, peer: int, first: int) -> Send | Recv:
    moved = hop._replace(peer=peer, start=hop.start + first, stop=hop.stop + first)
    if isinstance(moved, Recv) and moved.at is not None:
        return moved._replace(at=moved.at + first)
    return moved


def hierarchical(group_size: int) -> Plan:
    """The hierarchical all-reduce for groups of this size, where ranks 0 to `group_size` - 1 are the first group.

    Raises:
        PlanError: a size below 1; when the plan is used, a world that is no multiple of it.

    Example:
        >>> from lab.parallel import check_plan
        >>> check_plan("all_reduce", hierarchical(4), 8).steps, check_plan("all_reduce", hierarchical(2), 8).steps
        (8, 8)
    """
    return _in_groups_of(require_count("group_size", group_size, least=1))


@lru_cache(maxsize=256)  # the same plan each time, so that what is made of it is made once
def _in_groups_of(size: int) -> Plan:
    def in_groups(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
        if world_size % size:
            raise PlanError("a world is cut into groups of one size",
                            given=f"group_size={size}, world_size={world_size}",
                            hint="a divisor of the world size")  # fmt: skip
        yield from _in_groups(rank, world_size, n_chunks, size)

    in_groups.__name__ = f"hierarchical({size})"
    return in_groups


@collective("all_reduce", "hierarchical")
def all_reduce_hierarchical(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
    """In groups of the size nearest to the square root of the world that divides it; `hierarchical(size)` takes others.

    With groups of g: 2 (g - 1) + 2 (n / g - 1) steps, and the bytes of a ring.
    """
    yield from _in_groups(rank, world_size, n_chunks, group_size_for(world_size))


def _in_groups(rank: int, world_size: int, n_chunks: int, size: int) -> Iterator[Step]:
    group, place = divmod(rank, size)
    near, far = range(group * size, (group + 1) * size), range(place, world_size, size)
    first, last = block(place, size, n_chunks)
    yield from within(reduce_scatter_ring(place, size, n_chunks), near)
    yield from within(all_reduce_ring(group, len(far), last - first), far, first)
    yield from within(all_gather_ring(place, size, n_chunks), near)
