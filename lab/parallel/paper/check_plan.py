"""Prove a plan on paper: run it on numbers that remember whose they are, and look where each rank's part ended up.

Each chunk of each rank is a row that counts how often every rank's part is in it; adding rows is what adding numbers
would do. A plan that passes is right for numbers of any kind and buffers of any size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lab.errors import PlanError
from lab.parallel.paper.additions import Additions
from lab.parallel.paper.lockstep import Hop, lockstep
from lab.parallel.paper.operations import Counts, promised, require_operation
from lab.parallel.paper.plans import Plan, Send, Step, elements, plan_of, require_count, steps_of
from lab.parallel.paper.reference import first_difference

MOST_RANKS = 128
"""Worlds up to this are proved: rows, hops and parts all grow with the ranks, so time grows by their third power."""


@dataclass(frozen=True, slots=True, repr=False)
class PlanReport:
    """What a right plan costs, counted from its hops.

    Attributes:
        operation: what was promised, and is kept.
        world_size: number of ranks.
        n_chunks: into how many chunks the buffer is cut.
        steps: rounds of lock step.
        hops: every message, in order of arrival.
        disorder: where two ranks add the same parts in another order, in words; "" if nowhere.
    """

    operation: str
    world_size: int
    n_chunks: int
    steps: int
    hops: tuple[Hop, ...]
    disorder: str = ""

    @property
    def same_order(self) -> bool:
        """Whether ranks that end with the same sum have added in the same order, and so end with the same bits."""
        return not self.disorder

    @property
    def sends(self) -> tuple[int, ...]:
        """Messages that each rank sends."""
        return self._by_rank(Counter(hop.src for hop in self.hops))

    @property
    def chunks_sent(self) -> tuple[int, ...]:
        """Chunks that each rank sends."""
        return self.bytes_sent(self.n_chunks, 1)

    @property
    def links(self) -> dict[tuple[int, int], int]:
        """Chunks that go over each link, by (source, destination)."""
        return self.bytes_by_link(self.n_chunks, 1)

    def bytes_sent(self, n_elements: int, itemsize: int) -> tuple[int, ...]:
        """Bytes that each rank sends of a buffer of this size; exact, also where chunks differ by an element.

        Raises:
            PlanError: a size that is no whole number, or below 0.
        """
        total: Counter[int] = Counter()
        for (src, _), n_bytes in self.bytes_by_link(n_elements, itemsize).items():
            total[src] += n_bytes
        return self._by_rank(total)

    def bytes_by_link(self, n_elements: int, itemsize: int) -> dict[tuple[int, int], int]:
        """Bytes that go over each link, by (source, destination), for a buffer of this size.

        Raises:
            PlanError: a size that is no whole number, or below 0.
        """
        n_elements = require_count("n_elements", n_elements, least=0)
        itemsize = require_count("itemsize", itemsize, least=1)
        total: Counter[tuple[int, int]] = Counter()
        for hop in self.hops:
            part = elements(hop.start, hop.stop, self.n_chunks, n_elements)
            total[hop.src, hop.dst] += (part.stop - part.start) * itemsize
        return dict(sorted(total.items()))

    def _by_rank(self, total: Mapping[int, int]) -> tuple[int, ...]:
        return tuple(total.get(rank, 0) for rank in range(self.world_size))

    def __repr__(self) -> str:
        most = max(self.chunks_sent)
        order = "all add in one order" if self.same_order else "not all add in one order, so their last bits may differ"
        adds = any(hop.reduce for hop in self.hops)
        return (f"{self.operation} of {self.n_chunks} chunks on {self.world_size} ranks: steps {self.steps}, "
                f"messages {len(self.hops)}, most sent by one rank {most / self.n_chunks:.3g} buffers"
                + (f"; {order}" if adds else ""))  # fmt: skip


def check_plan(
    operation: str,
    plan: Plan | str,
    world_size: int,
    n_chunks: int | None = None,
    *,
    reference: Plan | str | None = None,
) -> PlanReport:
    """See whether a plan keeps the promise of an operation for one world, or say its first wrong hop.

    Args:
        operation: a key of `OPERATIONS`.
        plan: a plan, or the name of its algorithm.
        n_chunks: one for each rank if not given.
        reference: a right plan to compare a wrong one with, so that the error can say what was expected. A right plan
            passes whether it looks like the reference or not.

    Raises:
        PlanError: no such operation or plan, more ranks than `MOST_RANKS`, a function of other arguments or one that
            raises by itself, a hop that cannot be, ranks that wait for each other, a part that is missing, lost or
            counted twice.

    Example:
        >>> print(check_plan("all_reduce", "ring", 4))
        all_reduce of 4 chunks on 4 ranks: steps 6, messages 24, most sent by one rank 1.5 buffers; all add in one order
        >>> check_plan("all_reduce", "naive", 4).chunks_sent
        (12, 4, 4, 4)
    """
    require_operation(operation)
    plan = plan_of(operation, plan)
    right = None if reference is None else plan_of(operation, reference)
    world_size = require_count("world_size", world_size, least=1)
    n_cuts = world_size if n_chunks is None else require_count("n_chunks", n_chunks, least=1)
    if world_size > MOST_RANKS:
        raise PlanError("a world of so many ranks takes too long to prove", given=f"world_size={world_size:,}",
                        hint=f"at most {MOST_RANKS}; of more ranks formulas tell the costs: in a ring of n each rank "
                        "sends 2 (n - 1) / n buffers in 2 (n - 1) steps")  # fmt: skip
    if n_cuts * world_size**2 > MOST_RANKS**3:
        raise PlanError("a buffer of so many chunks takes too much memory to prove", given=f"n_chunks={n_cuts:,}",
                        hint=f"at most {MOST_RANKS**3 // world_size**2:,} for {world_size} ranks; one for each rank "
                        "proves a plan for all sizes")  # fmt: skip
    steps = [steps_of(plan, rank, world_size, n_cuts) for rank in range(world_size)]
    try:
        return _checked(operation, steps, n_cuts)
    except PlanError as why:
        there = right and first_difference(operation, steps, right, n_cuts)
        if not there:
            raise
        raise PlanError(there.text, given=why.problem, hint=why.hint, rank=there.rank, step=there.step) from None


def _checked(operation: str, steps: list[list[Step]], n_chunks: int) -> PlanReport:
    world_size = len(steps)
    ledger = _Ledger(promised(operation, world_size, n_chunks))
    n_rounds = lockstep(steps, ledger.take, ledger.put)
    ledger.close()
    return PlanReport(operation, world_size, n_chunks, n_rounds, tuple(ledger.hops),
                      ledger.additions.disorder(ledger.promise))  # fmt: skip


class _Ledger:
    """Who holds whose parts, and which hops look wrong; they are blamed only if the end is wrong.

    A plan may use a chunk that the promise leaves free, so a hop is not wrong before its result turns out to matter.
    """

    def __init__(self, promise: Counts) -> None:
        world_size = len(promise)
        self.promise = promise
        self.wanted = promise.max(axis=0) > 0  # (chunk, whose part): wanted by anybody
        self.held = np.broadcast_to(np.eye(world_size, dtype=np.int64)[:, None], promise.shape).copy()
        self.additions = Additions(world_size, promise.shape[1])
        self.hops: list[Hop] = []
        self.added: dict[int, _Fault] = {}  # by chunk, the first hop that counted a part too often
        self.lost: dict[int, _Fault] = {}  # by chunk, the first hop that stored over a part that is wanted

    def take(self, rank: int, send: Send) -> tuple[Counts, list[int]]:
        return self.held[rank, send.start : send.stop].copy(), self.additions.take(rank, send.start, send.stop)

    def put(self, hop: Hop, message: tuple[Counts, list[int]]) -> None:
        here, (payload, sums) = slice(hop.start, hop.stop), message
        self.additions.put(hop.dst, hop.start, sums, adds=hop.reduce)
        before = self.held[hop.dst, here].copy()
        after = before + payload if hop.reduce else payload
        self.held[hop.dst, here] = after
        wanted = self.wanted[here]
        if hop.reduce:
            faults, parts = self.added, after > wanted
        else:
            faults, parts = self.lost, wanted & (before > after) & (self.promise[hop.dst, here] != 0)
        for row in np.flatnonzero(parts.any(axis=1)).tolist() if parts.any() else ():
            whose, had, came = (tuple(np.flatnonzero(x[row]).tolist()) for x in (parts, before, payload))
            faults.setdefault(hop.start + row, _Fault(len(self.hops), hop, hop.start + row, whose, had, came))
        self.hops.append(hop)

    def close(self) -> None:
        """Compare the end with the promise.

        Raises:
            PlanError: they differ.
        """
        cares = self.promise >= 0
        too_many = cares & (self.held > self.promise)
        too_few = cares & (self.held < self.promise)
        if not (too_many | too_few).any():
            return
        found = [self.added[chunk] for chunk in _chunks_of(too_many) if chunk in self.added]
        found += [self.lost[chunk] for chunk in _chunks_of(too_few) if chunk in self.lost]
        if found:
            raise self._wrong(min(found, key=lambda fault: fault.position))
        rank, chunk = (int(i) for i in np.argwhere((too_many | too_few).any(axis=2))[0])
        raise self._unfinished(rank, chunk)

    def _wrong(self, fault: _Fault) -> PlanError:
        hop, chunk = fault.hop, fault.chunk
        if not hop.reduce:
            verdict = f"stored chunk {chunk} from rank {hop.src} over {_parts(fault.parts)}"
            hint = "a sum that still grows is added (reduce=True); only a finished one is stored"
        elif all(self.wanted[chunk, list(fault.parts)]):
            counts = "counts" if len(fault.parts) == 1 else "count"
            verdict = f"added chunk {chunk} from rank {hop.src}, so that {_parts(fault.parts)} {counts} twice"
            hint = "a finished sum is stored (reduce=False); or it goes around one step too far"
        else:
            verdict = f"added chunk {chunk} from rank {hop.src}, expected to store it"
            hint = "this operation copies, it adds nothing: reduce=False"
        return PlanError(
            f"rank {hop.dst}, step {hop.step}: {verdict}",
            given=f"rank {hop.dst} had {_parts(fault.had)} in chunk {chunk}, {_parts(fault.came)} came",
            hint=hint,
            rank=hop.dst,
            step=hop.step,
        )

    def _unfinished(self, rank: int, chunk: int) -> PlanError:
        last = [hop for hop in self.hops if hop.dst == rank and hop.start <= chunk < hop.stop]
        held, promise = (np.flatnonzero(counts[rank, chunk]).tolist() for counts in (self.held, self.promise))
        return PlanError(
            f"rank {rank} ends with {_parts(held)} in chunk {chunk}, expected {_parts(promise)}",
            given=f"the last hop that brought it this chunk: {last[-1]}" if last else "no hop brings it this chunk",
            hint="is there a step too few, or one of the two phases missing?",
            rank=rank,
            step=last[-1].step if last else -1,
        )


@dataclass(frozen=True, slots=True)
class _Fault:
    position: int
    hop: Hop
    chunk: int
    parts: tuple[int, ...]
    """Whose came in too often, or went lost."""
    had: tuple[int, ...]
    """Whose were in the chunk before."""
    came: tuple[int, ...]
    """Whose the message held."""


def _chunks_of(cells: npt.NDArray[np.bool_]) -> list[int]:
    return [int(chunk) for chunk in np.flatnonzero(cells.any(axis=(0, 2)))]


def _parts(ranks: list[int] | tuple[int, ...]) -> str:
    if len(ranks) < 2:
        return f"the part of rank {ranks[0]}" if ranks else "nothing"
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"the parts of ranks {ranks[0]} to {ranks[-1]}"
    return f"the parts of ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
