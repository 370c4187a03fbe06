"""Prove a plan on paper: run it on numbers that remember whose they are, and look where each rank's part ended up.

Each chunk of each rank is a row that counts how often every rank's part is in it; adding rows is what adding numbers
would do. A plan that passes is right for numbers of any kind and buffers of any size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lab.errors import PlanError
from lab.parallel.paper.ledger import Ledger
from lab.parallel.paper.lockstep import Hop, lockstep
from lab.parallel.paper.operations import require_operation
from lab.parallel.paper.plans import Plan, Step, chunks_of, elements, plan_of, require_count, steps_of
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
        n_chunks: `chunks_of` the plan if not given.
        reference: a right plan to compare a wrong one with, so that the error can say what was expected. A right plan
            passes whether it looks like the reference or not.

    Raises:
        PlanError: no such operation or plan, more ranks than `MOST_RANKS`, a function of other arguments or one that
            raises by itself, a hop that cannot be, ranks that wait for each other, a part that is missing, lost,
            counted twice or in a wrong place.

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
    n_cuts = chunks_of(plan, world_size) if n_chunks is None else require_count("n_chunks", n_chunks, least=1)
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
    ledger = Ledger(operation, world_size, n_chunks)
    n_rounds = lockstep(steps, ledger.take, ledger.put)
    ledger.close()
    return PlanReport(operation, world_size, n_chunks, n_rounds, tuple(ledger.hops), ledger.disorder())
