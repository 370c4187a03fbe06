"""All ranks of a plan in one process, in lock step: the meaning of a plan, and the oracle for every transport.

In each round every rank that is free begins its next step and posts its sends; then receives take what has arrived.
A receive waits for its send, a send waits for nobody; between two ranks messages keep their order.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from lab.errors import DTypeError, MeshError, PlanError
from lab.parallel.paper.plans import Plan, Recv, Send, Step, chunks, chunks_of, elements, require_count, steps_of
from lab.words import shown

T = TypeVar("T")
D = TypeVar("D", bound=np.generic)


class Hop(NamedTuple):
    """One message that arrived."""

    round: int
    """Of lock step, from 0."""
    step: int
    """Of the receiver's plan."""
    src: int
    dst: int
    start: int
    stop: int
    reduce: bool
    at: int
    """First chunk of where it went; `start` if it kept its place."""

    def __str__(self) -> str:
        done = "added" if self.reduce else "stored"
        moved = "" if self.at == self.start else f" as {chunks(self.at, self.at + self.stop - self.start)}"
        return f"rank {self.dst}, step {self.step}: {done} {chunks(self.start, self.stop)} from rank {self.src}{moved}"


class _Message(NamedTuple, Generic[T]):
    step: int
    send: Send
    payload: T


NUMERIC = "iufcb"
"""Kinds of dtypes that ranks add."""

Wires = dict[tuple[int, int], deque[_Message[T]]]


def lockstep(plan: Sequence[Sequence[Step]], take: Callable[[int, Send], T], put: Callable[[Hop, T], None]) -> int:
    """Run the steps of all ranks.

    Args:
        plan: the steps of each rank.
        take: what a rank sends; must be a copy, taken when the step begins.
        put: apply a message that arrived. Receives of a step come in the order written.

    Returns:
        The number of rounds.

    Raises:
        PlanError: ranks that wait for each other, a send and its receive that name different chunks, a message that
            nobody receives.
    """
    wires: Wires[T] = defaultdict(deque)
    at = [-1] * len(plan)
    waiting: list[deque[Recv]] = [deque() for _ in plan]
    for at_round in count():
        free = [rank for rank, steps in enumerate(plan) if not waiting[rank] and at[rank] + 1 < len(steps)]
        if not free and not any(_arrived(rank, waiting, wires) for rank in range(len(plan))):
            _refuse_deadlock(at, waiting)
            _refuse_lost(wires)
            return at_round
        for rank in free:
            at[rank] += 1
            step = plan[rank][at[rank]]
            waiting[rank].extend(hop for hop in step if isinstance(hop, Recv))
            for send in (hop for hop in step if isinstance(hop, Send)):
                wires[rank, send.peer].append(_Message(at[rank], send, take(rank, send)))
        for rank in range(len(plan)):
            while _arrived(rank, waiting, wires):
                recv = waiting[rank].popleft()
                message = wires[recv.peer, rank].popleft()
                _refuse_mismatch(message.step, message.send, at[rank], recv)
                put(Hop(at_round, at[rank], recv.peer, rank, recv.start, recv.stop, recv.reduce, recv.place[0]),
                    message.payload)  # fmt: skip
    raise AssertionError("count() has no end")


def _arrived(rank: int, waiting: Sequence[deque[Recv]], wires: Wires[T]) -> bool:
    return bool(waiting[rank]) and bool(wires[waiting[rank][0].peer, rank])


def _refuse_mismatch(sent_in: int, send: Send, step: int, recv: Recv) -> None:
    if (send.start, send.stop) != (recv.start, recv.stop):
        src, dst = recv.peer, send.peer
        raise PlanError(
            f"rank {src}, step {sent_in}: sent {chunks(send.start, send.stop)}, "
            f"but rank {dst} waits for {chunks(recv.start, recv.stop)}",
            given=f"{send} on rank {src} meets {recv} in step {step} of rank {dst}",
            hint="the two sides of a hop must name the same chunks: which chunk does the left neighbour send just now?",
            rank=src,
            step=sent_in,
        )


def _refuse_deadlock(at: Sequence[int], waiting: Sequence[deque[Recv]]) -> None:
    """Follow who waits for whom to a rank that has ended, or around a circle, and name what is met there."""
    stuck = [rank for rank, receives in enumerate(waiting) if receives]
    if not stuck:
        return

    def waits(rank: int) -> str:
        recv = waiting[rank][0]
        return f"for {chunks(recv.start, recv.stop)} from rank {recv.peer}"

    rank, seen = stuck[0], set[int]()
    while rank not in seen and waiting[waiting[rank][0].peer]:
        seen.add(rank)
        rank = waiting[rank][0].peer
    peer = waiting[rank][0].peer
    if waiting[peer]:
        then = f"which waits in step {at[peer]} {waits(peer)}"
        hint = "sends of one step leave before its receives wait: yield both in the same step"
    else:
        then = "which has nothing more to send there"
        hint = "every receive needs a send on the other side: does the peer send to this rank, in this direction?"
    given = f"ranks that wait for ever: {', '.join(map(str, stuck))}"
    raise PlanError(f"rank {rank}, step {at[rank]}: waits {waits(rank)}, {then}", given=given, hint=hint,
                    rank=rank, step=at[rank])  # fmt: skip


def _refuse_lost(wires: Wires[T]) -> None:
    lost = sorted((m.step, src, m.send) for (src, _), messages in wires.items() for m in messages)
    if lost:
        step, src, send = lost[0]
        raise PlanError(
            f"rank {src}, step {step}: sent {chunks(send.start, send.stop)} to rank {send.peer}, which never takes it",
            given=f"{send}; messages that nobody receives: {len(lost)}",
            hint="every send needs a receive on the other side, in the same order",
            rank=src,
            step=step,
        )


def require_arrays(arrays: object) -> None:
    """Refuse what is no list of NumPy arrays, one for each rank.

    Raises:
        MeshError: so it is, or the list is empty.
    """
    if not isinstance(arrays, list | tuple) or not arrays:
        raise MeshError("each rank brings an array of its own", given=f"arrays={shown(arrays)}",
                        hint="a list with one array for each rank: [np.ones(4)] * 3")  # fmt: skip
    for rank, array in enumerate(arrays):
        if not isinstance(array, np.ndarray):
            raise MeshError("all ranks must bring NumPy arrays", given=f"rank {rank}: {shown(array)}",
                            hint="np.asarray makes one")  # fmt: skip


def require_even(n_elements: int, n_chunks: int) -> None:
    """Refuse a buffer whose chunks differ in size: of two that change places one would not fit.

    Raises:
        MeshError: so it is.

    Example:
        >>> require_even(10, 4)
        Traceback (most recent call last):
        lab.errors.MeshError: chunks that change places must have one size
        given: 10 elements in 4 chunks
        hint:  pad the array to 12 elements
    """
    if n_elements % n_chunks:
        raise MeshError("chunks that change places must have one size",
                        given=f"{n_elements} elements in {n_chunks} chunks",
                        hint=f"pad the array to {-(-n_elements // n_chunks) * n_chunks} elements")  # fmt: skip


def simulate_arrays(plan: Plan, arrays: Sequence[npt.NDArray[D]], n_chunks: int | None = None) -> list[npt.NDArray[D]]:
    """What each rank holds after the plan, computed in one process; the arrays given are not changed.

    The order of additions is the plan's, so a transport must give the same bits: on receipt `mine = mine + theirs`.

    Shapes:
        arrays: one for each rank, any shape and dtype, the same on all ranks; result: the same.

    Args:
        n_chunks: `chunks_of` the plan if not given; need not divide the size, unless chunks go to other places.

    Raises:
        MeshError: no arrays, something else than arrays, ranks that disagree on shape or dtype, or chunks of two sizes
            that would have to change places.
        DTypeError: arrays of a dtype that cannot be added, and the plan adds.
        PlanError: the plan cannot run.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> ring = COLLECTIVES["all_reduce", "ring"]
        >>> [x.tolist() for x in simulate_arrays(ring, [np.array([1.0, 2.0]), np.array([10.0, 20.0])])]
        [[11.0, 22.0], [11.0, 22.0]]
    """
    require_arrays(arrays)
    for rank, array in enumerate(arrays):
        if (array.shape, array.dtype) != (arrays[0].shape, arrays[0].dtype):
            raise MeshError(
                "all ranks must bring arrays of one shape and dtype",
                given=f"rank 0: {arrays[0].dtype} {arrays[0].shape}, rank {rank}: {array.dtype} {array.shape}",
                hint="pad the shorter one, or cast before the collective",
            )
    n_cuts = chunks_of(plan, len(arrays)) if n_chunks is None else require_count("n_chunks", n_chunks, least=1)
    steps = [steps_of(plan, rank, len(arrays), n_cuts) for rank in range(len(arrays))]
    receives = [hop for own in steps for step in own for hop in step if isinstance(hop, Recv)]
    if any(recv.at is not None for recv in receives):
        require_even(arrays[0].size, n_cuts)
    if arrays[0].dtype.kind not in NUMERIC and any(recv.reduce for recv in receives):
        raise DTypeError("ranks add numbers", given=f"dtype {arrays[0].dtype}",
                         hint="convert it with astype to float32 or float64")  # fmt: skip
    held = [array.flatten() for array in arrays]

    def part(start: int, stop: int) -> slice:
        return elements(start, stop, n_cuts, arrays[0].size)

    def put(hop: Hop, payload: npt.NDArray[D]) -> None:
        mine = held[hop.dst][part(hop.at, hop.at + hop.stop - hop.start)]
        if hop.reduce:
            np.add(mine, payload, out=mine)
        else:
            mine[...] = payload

    lockstep(steps, lambda rank, send: held[rank][part(send.start, send.stop)].copy(), put)
    return [flat.reshape(array.shape) for flat, array in zip(held, arrays, strict=True)]
