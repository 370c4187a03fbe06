"""Whether two ranks are in the same call: a header that says something else is an error which names both sides.

The same program has the same calls on all ranks; what differs is a mistake, and the earlier it is told the better.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from lab.errors import MeshError
from lab.parallel.transport.wire import COLLECTIVE, COUNT_BITS, GOODBYE, Call, Header, mark_of

NAMES_THE_HOP = "check_plan(...) names the hop"
REMEMBERED = 256
"""Collectives that a rank remembers: who only sends may be ahead of its peers by many."""


class Past:
    """The last collectives that a rank has finished, and the number of the latest of each group.

    Example:
        >>> past = Past()
        >>> past.append(Call(4, "barrier", "a.py:1"))
        >>> [str(call) for call in past], past.latest(0), past.latest(1 << COUNT_BITS)
        (['barrier at a.py:1'], 4, -1)
    """

    def __init__(self) -> None:
        self._calls: deque[Call] = deque(maxlen=REMEMBERED)
        self._latest: dict[int, int] = {}

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls)

    @property
    def last(self) -> Call:
        """The collective that ended last; there is one."""
        return self._calls[-1]

    def append(self, call: Call) -> None:
        """It has ended well."""
        self._calls.append(call)
        self._latest[call.number >> COUNT_BITS] = call.number

    def latest(self, number: int) -> int:
        """Number of the latest in the group to which the call of this number belongs, -1 if there is none."""
        return self._latest.get(number >> COUNT_BITS, -1)


def require_agreement(
    rank: int, kind: int, call: Call, peer: int, header: Header, n_bytes: int, step: int = -1
) -> None:
    """Compare what `rank` waits for, `n_bytes` of a `call` of a `kind`, with the header that came from `peer`.

    Args:
        step: of the plan in which it waits; -1 if it is in none.

    Raises:
        MeshError: they differ; both ranks, both calls and both lines are named, or who has ended its program. Where
            the calls are equal and the plan is wrong, the bytes of both sides and the step.

    Example:
        >>> header = Header(COLLECTIVE, 1, 0, 0, 8, mark_of(Call(0, "barrier", "a.py:1")), "barrier at a.py:1")
        >>> require_agreement(0, COLLECTIVE, Call(0, "barrier", "a.py:2"), 1, header, 8)
        >>> require_agreement(0, COLLECTIVE, Call(0, "agreement int64[1]", "a.py:3"), 1, header, 8)
        Traceback (most recent call last):
        lab.errors.MeshError: ranks 0 and 1 make different calls
        given: rank 0: agreement int64[1] at a.py:3; rank 1: barrier at a.py:1
        hint:  every rank must make the same calls in the same order, with equal shapes and dtypes
    """
    agree = header.kind == kind and header.n_bytes == n_bytes and header.mark == mark_of(call)
    if agree and (kind != COLLECTIVE or header.number == call.number):
        return
    if header.kind == kind == COLLECTIVE and header.mark == mark_of(call) and header.number == call.number:
        raise _other_size(rank, call, peer, header, n_bytes, step)
    if header.kind == GOODBYE:
        raise _ended(peer, rank, str(call))
    if kind == GOODBYE:
        raise _ended(rank, peer, header.words)
    raise _different(rank, call, peer, header)


def require_same_past(rank: int, past: Iterable[Call], peer: int, header: Header) -> None:
    """Compare a piece that nobody waits for with the collective of that number, if `rank` has finished it.

    So do ranks differ that all send and do not wait for each other: broadcasts from other roots.

    Raises:
        MeshError: the finished call was another one than that of `peer`.

    Example:
        >>> mine, theirs = Call(0, "broadcast flat root 0", "a.py:1"), Call(0, "broadcast flat root 1", "a.py:1")
        >>> header = Header(COLLECTIVE, 1, 0, 0, 8, mark_of(theirs), str(theirs))
        >>> require_same_past(0, [mine], 1, header)
        Traceback (most recent call last):
        lab.errors.MeshError: ranks 0 and 1 make different calls
        given: rank 0: broadcast flat root 0 at a.py:1; rank 1: broadcast flat root 1 at a.py:1
        hint:  every rank must make the same calls in the same order, with equal shapes and dtypes
    """
    for call in past:
        if call.number == header.number and mark_of(call) != header.mark:
            raise _different(rank, call, peer, header)


def require_same_wait(rank: int, kind: int, call: Call, past: Past, peer: int, header: Header) -> None:
    """Compare with the collective in which `peer` says that it waits, if `rank` is in that of the same number.

    So do ranks differ that all wait and do not send: broadcasts, each from the other's root.

    Raises:
        MeshError: they are different calls, or `rank` has ended its program without it.

    Example:
        >>> mine, theirs = Call(0, "broadcast flat root 1", "a.py:1"), Call(0, "broadcast flat root 0", "a.py:1")
        >>> header = Header(4, 1, 0, 0, 0, mark_of(theirs), str(theirs))
        >>> require_same_wait(0, COLLECTIVE, mine, Past(), 1, header)
        Traceback (most recent call last):
        lab.errors.MeshError: ranks 0 and 1 make different calls
        given: rank 0: broadcast flat root 1 at a.py:1; rank 1: broadcast flat root 0 at a.py:1
        hint:  every rank must make the same calls in the same order, with equal shapes and dtypes
    """
    require_same_past(rank, past, peer, header)
    if kind == COLLECTIVE and header.number == call.number and header.mark != mark_of(call):
        raise _different(rank, call, peer, header)
    if kind == GOODBYE and header.number > past.latest(header.number):
        raise _ended(rank, peer, header.words)


def _ended(rank: int, peer: int, words: str) -> MeshError:
    return MeshError(f"rank {rank} has ended its program, and rank {peer} waits for it",
                     given=f"rank {peer}: {words}", hint="every rank must make the same calls")  # fmt: skip


def _other_size(rank: int, call: Call, peer: int, header: Header, n_bytes: int, step: int) -> MeshError:
    """Both are in the same call, with arrays of one size: the plan tells them different things."""
    return MeshError(
        f"rank {rank} expects {n_bytes} bytes of rank {peer}, which sends {header.n_bytes}",
        given=(f"step {step} on rank {rank} of " if step >= 0 else "") + str(call),
        hint=f"the plan's two sides name different chunks: {NAMES_THE_HOP}",
    )


def _different(rank: int, call: Call, peer: int, header: Header) -> MeshError:
    is_alike = header.kind == COLLECTIVE and header.mark == mark_of(call)  # they are in it another number of times
    return MeshError(
        f"ranks {min(rank, peer)} and {max(rank, peer)} make different calls",
        given=f"rank {rank}: {call}; rank {peer}: {header.words}"
        + _numbers(call.number, header.number),
        hint=f"a plan whose sends and receives do not pair does so: {NAMES_THE_HOP}"
        if is_alike
        else "every rank must make the same calls in the same order, with equal shapes and dtypes",
    )


def _numbers(mine: int, theirs: int) -> str:
    """How often each had called, where that differs; of groups that differ it says nothing."""
    if mine == theirs or mine >> COUNT_BITS != theirs >> COUNT_BITS:
        return ""
    count = (1 << COUNT_BITS) - 1
    return f" (calls number {mine & count} and {theirs & count})"
