"""A plan as columns of numbers, one row a message: what a simulation of many ranks goes through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from lab.errors import PlanError
from lab.parallel.paper import collectives as _collectives  # noqa: F401 -- fills COLLECTIVES
from lab.parallel.paper.calling import name_of
from lab.parallel.paper.lockstep import lockstep
from lab.parallel.paper.plans import COLLECTIVES, Plan, Send, steps_of

Column = npt.NDArray[np.int32]

MOST_CHUNKS = 1 << 24
"""Of a buffer that is simulated; numbers of chunks are 32 bits wide."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Every message of a plan; which send meets which receive is settled, as between two ranks order is kept.

    Attributes:
        src, dst: who sends it, and to whom.
        sent_in, received_in: the step of each.
        sent_as, received_as: the how-manieth send or receive of that step.
        start, stop: its chunks.
        reduces: whether it is added.
    """

    src: Column
    dst: Column
    sent_in: Column
    sent_as: Column
    received_in: Column
    received_as: Column
    start: Column
    stop: Column
    reduces: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.src)

    @property
    def in_waves(self) -> bool:
        """Whether every message is sent and received in the same step, as the same one of it."""
        return bool((self.sent_in == self.received_in).all() and (self.sent_as == self.received_as).all())


ALIKE: frozenset[Plan] = frozenset(
    COLLECTIVES[key] for key in product(("all_reduce", "reduce_scatter", "all_gather"), ("ring", "direct"))
)
"""Plans in which a hop moves one block, and all ranks do the same, each with its own neighbours and blocks.

So one rank says what all do: a ring of 1,024 has two million hops, which would take half a minute to read. A test holds
them to it.
"""


@lru_cache(maxsize=8)  # a ring of 1,024 is 2.1 million messages, 70 MB
def messages_of(plan: Plan, world_size: int, n_chunks: int) -> Messages:
    """All messages of a plan; its hops are read one by one, but for those that are `ALIKE`.

    Raises:
        PlanError: as `steps_of`; sends and receives that do not fit together, ranks that wait for each other.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> found = messages_of(COLLECTIVES["all_reduce", "ring"], 3, 3)
        >>> len(found), found.in_waves, found.src[:4].tolist(), found.dst[:4].tolist()
        (12, True, [0, 0, 0, 0], [1, 1, 1, 1])
    """
    if n_chunks > MOST_CHUNKS:
        raise PlanError("a buffer of so many chunks takes too long to simulate", given=f"n_chunks={n_chunks:,}",
                        hint=f"at most {MOST_CHUNKS:,}")  # fmt: skip
    whole = _turned(plan, world_size, n_chunks) if plan in ALIKE and n_chunks % world_size == 0 else np.concatenate(
        [_table(plan, rank, world_size, n_chunks) for rank in range(world_size)])  # fmt: skip
    sends, receives = whole[whole[:, 2] == 0], whole[whole[:, 2] == 1]
    sends, receives = sends[_by_pair(sends, 0, 3)], receives[_by_pair(receives, 3, 0)]
    met = len(sends) == len(receives) and all(
        (sends[:, mine] == receives[:, theirs]).all() for mine, theirs in ((0, 3), (3, 0), (5, 5), (6, 6))
    )
    if not met:
        refuse(plan, world_size, n_chunks)
    return Messages(sends[:, 0], sends[:, 3], sends[:, 1], sends[:, 4], receives[:, 1], receives[:, 4],
                    sends[:, 5], sends[:, 6], receives[:, 7].astype(bool))  # fmt: skip


def _table(plan: Plan, rank: int, world_size: int, n_chunks: int) -> Column:
    return np.array(list(_rows(plan, rank, world_size, n_chunks)), np.int32).reshape(-1, 8)


def _turned(plan: Plan, world_size: int, n_chunks: int) -> Column:
    """The table of all ranks from that of rank 0."""
    own = _table(plan, 0, world_size, n_chunks)
    whole = np.repeat(own[None], world_size, axis=0)
    rank, size = np.arange(world_size, dtype=np.int32)[:, None], n_chunks // world_size
    whole[:, :, 0] = rank
    whole[:, :, 3] = (own[:, 3] + rank) % world_size
    whole[:, :, 5] = (own[:, 5] + size * rank) % n_chunks
    whole[:, :, 6] = whole[:, :, 5] + own[:, 6] - own[:, 5]
    return whole.reshape(-1, 8)


def _rows(plan: Plan, rank: int, world_size: int, n_chunks: int) -> Iterator[tuple[int, ...]]:
    """Rank, step, kind (0 send, 1 receive), peer, which one of this kind in the step, start, stop, reduces."""
    for at, step in enumerate(steps_of(plan, rank, world_size, n_chunks)):
        n_sends = n_receives = 0
        for hop in step:
            if isinstance(hop, Send):
                yield rank, at, 0, hop.peer, n_sends, hop.start, hop.stop, 0
                n_sends += 1
            else:
                yield rank, at, 1, hop.peer, n_receives, hop.start, hop.stop, hop.reduce
                n_receives += 1


def _by_pair(rows: Column, src: int, dst: int) -> npt.NDArray[np.int64]:
    """The order by source and destination; of each pair rows keep theirs."""
    return np.lexsort((rows[:, dst], rows[:, src]))


def refuse(plan: Plan, world_size: int, n_chunks: int) -> None:
    """Say what is wrong with a plan that does not end.

    Raises:
        PlanError: ranks wait for each other, or a send and its receive do not fit.
    """
    steps = [steps_of(plan, rank, world_size, n_chunks) for rank in range(world_size)]
    lockstep(steps, lambda rank, send: None, lambda hop, payload: None)
    raise AssertionError(f"{name_of(plan)} ends in lock step, but not in a simulation")
