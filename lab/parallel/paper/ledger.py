"""Who holds whose parts while a plan runs on paper, and which hop is to blame if the end is not what was promised.

A plan may use a chunk that the promise leaves free, so a hop is not wrong before its result turns out to matter: what
looks wrong is kept, and blamed only if the end is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lab.errors import PlanError
from lab.parallel.paper.additions import Additions
from lab.parallel.paper.lockstep import Hop
from lab.parallel.paper.operations import AT_LEAST_ONCE, PLACES, Counts, places, promised
from lab.parallel.paper.plans import Send


class Message(NamedTuple):
    """What travels on paper, a row for each chunk."""

    parts: Counts
    """How often whose part is in it."""
    origin: npt.NDArray[np.int64]
    """In which chunk it was in the beginning."""
    sums: list[int]
    """In which order it was added, as `Additions` counts."""


@dataclass(frozen=True, slots=True)
class _Fault:
    position: int
    hop: Hop
    chunk: int
    """In which place."""
    parts: tuple[int, ...]
    """Whose came in too often, or went lost."""
    had: tuple[int, ...]
    """Whose were in the chunk before."""
    came: tuple[int, ...]
    """Whose the message held."""

    @property
    def done(self) -> str:
        """What the hop did to the chunk."""
        verb = "added" if self.hop.reduce else "stored"
        sent = self.chunk - self.hop.at + self.hop.start
        moved = "" if sent == self.chunk else f" {'to' if self.hop.reduce else 'as'} chunk {self.chunk}"
        return f"{verb} chunk {sent} from rank {self.hop.src}{moved}"


class Ledger:
    """What each rank holds in each chunk, for one plan.

    Args:
        operation: what the end is compared with.

    Raises:
        PlanError: as `promised` and `places`.
    """

    def __init__(self, operation: str, world_size: int, n_chunks: int) -> None:
        self.operation, self.promise = operation, promised(operation, world_size, n_chunks)
        self.place = places(operation, world_size, n_chunks)
        self.wanted = self.promise.max(axis=0) > 0  # (chunk, whose part): wanted by anybody
        self.held = np.broadcast_to(np.eye(world_size, dtype=np.int64)[:, None], self.promise.shape).copy()
        self.origin = np.tile(np.arange(n_chunks), (world_size, 1))
        self.additions = Additions(world_size, n_chunks)
        self.hops: list[Hop] = []
        self.added: dict[int, _Fault] = {}  # by chunk, the first hop that counted a part too often
        self.lost: dict[int, _Fault] = {}  # by chunk, the first hop that stored over a part that is wanted
        self.strayed: dict[
            tuple[int, int], _Fault
        ] = {}  # by rank and chunk, the hop that brought what belongs elsewhere

    def take(self, rank: int, send: Send) -> Message:
        """What a rank sends."""
        here = slice(send.start, send.stop)
        return Message(self.held[rank, here].copy(), self.origin[rank, here].copy(),
                       self.additions.take(rank, send.start, send.stop))  # fmt: skip

    def put(self, hop: Hop, message: Message) -> None:
        """Add or store what came."""
        here = slice(hop.at, hop.at + hop.stop - hop.start)
        self.additions.put(hop.dst, hop.at, message.sums, adds=hop.reduce)
        before = self.held[hop.dst, here].copy()
        after = before + message.parts if hop.reduce else message.parts
        self.held[hop.dst, here] = after
        wanted = self.wanted[here]
        if hop.reduce:
            faults, parts = self.added, after > wanted
        else:
            faults, parts = self.lost, wanted & (before > after) & (self.promise[hop.dst, here] != 0)
        for row in np.flatnonzero(parts.any(axis=1)).tolist() if parts.any() else ():
            faults.setdefault(hop.at + row, self._fault(hop, row, parts[row], before[row], message.parts[row]))
        self._move(hop, here, message, before)
        self.hops.append(hop)

    def _move(self, hop: Hop, here: slice, message: Message, before: Counts) -> None:
        """Keep where what came was in the beginning; of a sum of two places none, for it is right nowhere."""
        had, right = self.origin[hop.dst, here], self.place[hop.dst, here]
        self.origin[hop.dst, here] = np.where(message.origin == had, had, -1) if hop.reduce else message.origin
        astray = self.origin[hop.dst, here] != right
        if not (self.strayed or astray.any()):
            return
        for row, is_astray in enumerate(astray.tolist()):
            key = (hop.dst, hop.at + row)
            if not is_astray:
                self.strayed.pop(key, None)
            elif not (hop.reduce and key in self.strayed):
                self.strayed[key] = self._fault(hop, row, message.parts[row], before[row], message.parts[row])

    def _fault(self, hop: Hop, row: int, *parts: Counts) -> _Fault:
        whose, had, came = (tuple(np.flatnonzero(x).tolist()) for x in parts)
        return _Fault(len(self.hops), hop, hop.at + row, whose, had, came)

    def disorder(self) -> str:
        """Where two ranks add the same parts in another order, in words; "" if nowhere, or if no sum is promised."""
        return "" if self.operation in AT_LEAST_ONCE else self.additions.disorder(self.promise)

    def close(self) -> None:
        """Compare the end with the promise.

        Raises:
            PlanError: they differ.
        """
        cares = self.promise >= 0
        too_many = cares & (self.held > self.promise) & (self.operation not in AT_LEAST_ONCE)
        too_few = cares & (self.held < self.promise)
        astray = cares.any(axis=2) & (self.origin != self.place)
        if not ((too_many | too_few).any() or astray.any()):
            return
        found = [self.added[chunk] for chunk in _chunks_of(too_many) if chunk in self.added]
        found += [self.lost[chunk] for chunk in _chunks_of(too_few) if chunk in self.lost]
        found += [fault for key, fault in self.strayed.items() if astray[key]]
        if found:
            raise self._wrong(min(found, key=lambda fault: fault.position))
        rank, chunk = (int(i) for i in np.argwhere((too_many | too_few).any(axis=2) | astray)[0])
        raise self._unfinished(rank, chunk)

    def _wrong(self, fault: _Fault) -> PlanError:
        hop, chunk = fault.hop, fault.chunk
        verdict, hint = self._verdict(fault)
        return PlanError(
            f"rank {hop.dst}, step {hop.step}: {fault.done}{verdict}",
            given=f"rank {hop.dst} had {_parts(fault.had)} in chunk {chunk}, {_parts(fault.came)} came",
            hint=hint,
            rank=hop.dst,
            step=hop.step,
        )

    def _verdict(self, fault: _Fault) -> tuple[str, str]:
        """What is wrong with a hop, and what to do about it."""
        copies = "this operation copies, it adds nothing: reduce=False"
        adds = (self.promise.sum(axis=2) > 1).any()
        if fault.hop.reduce and not adds:
            return ", expected to store it", copies
        goes = "at= says in which place a chunk is stored: in the block of the rank that it comes from"
        if (stray := self.strayed.get((fault.hop.dst, fault.chunk))) and stray.position == fault.position:
            keep = "chunks keep their places in this operation: leave `at` out"
            return ", where it does not belong", goes if self.operation in PLACES else keep
        if not fault.hop.reduce:
            over = f" over {_parts(fault.parts)}"
            if not adds:
                keep = "what a rank has to keep or still has to send must not be stored over"
                return over, goes if self.operation in PLACES else keep
            return over, "a sum that still grows is added (reduce=True); only a finished one is stored"
        if adds and all(self.wanted[fault.chunk, list(fault.parts)]):
            counts = "counts" if len(fault.parts) == 1 else "count"
            hint = "a finished sum is stored (reduce=False); or it goes around one step too far"
            return f", so that {_parts(fault.parts)} {counts} twice", hint
        return ", expected to store it", copies

    def _unfinished(self, rank: int, chunk: int) -> PlanError:
        last = [hop for hop in self.hops if hop.dst == rank and hop.at <= chunk < hop.at + hop.stop - hop.start]
        held, promise = (np.flatnonzero(counts[rank, chunk]).tolist() for counts in (self.held, self.promise))
        return PlanError(
            f"rank {rank} ends with {_parts(held)} in chunk {chunk}, expected {_parts(promise)}",
            given=f"the last hop that brought it this chunk: {last[-1]}" if last else "no hop brings it this chunk",
            hint="is there a step too few, or one of the two phases missing?",
            rank=rank,
            step=last[-1].step if last else -1,
        )


def _chunks_of(cells: npt.NDArray[np.bool_]) -> list[int]:
    return [int(chunk) for chunk in np.flatnonzero(cells.any(axis=(0, 2)))]


def _parts(ranks: list[int] | tuple[int, ...]) -> str:
    if len(ranks) < 2:
        return f"the part of rank {ranks[0]}" if ranks else "nothing"
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"the parts of ranks {ranks[0]} to {ranks[-1]}"
    return f"the parts of ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
