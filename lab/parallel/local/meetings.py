"""When ranks of Local SGD meet, and how those who meet make one set of parameters of theirs.

A meeting sums, over its ranks, how far each has gone since the last one, weighted by the examples that it has seen. So
what nobody has moved stays to the bit, and all who meet have the same bits afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.checks import whole
from lab.errors import ArgumentError
from lab.optim import Optimizer
from lab.parallel.local.outer import MEAN, Outer
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.runtime import Comm
from lab.words import shown

Vector = npt.NDArray[Any]
Shares = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rhythm:
    """After which steps ranks meet.

    Attributes:
        every: steps from one meeting to the next.
        sizes: of the groups; () for one of all.
        outer_every: with groups, every so many meetings is one of all ranks.

    Example:
        >>> rhythm = Rhythm(4, (2, 2), 3)
        >>> rhythm.next_of_all(0, 100), rhythm.next(5, 100), rhythm.next(97, 98)
        (12, 8, 98)
        >>> rhythm.groups
        [(0, 1), (2, 3)]
    """

    every: int
    sizes: tuple[int, ...] = ()
    outer_every: int = 1

    def next(self, step: int, n_steps: int) -> int:
        """The step after which ranks meet next who have done so many."""
        return min(_multiple_above(step, self.every), n_steps)

    def next_of_all(self, step: int, n_steps: int) -> int:
        """The same, where all meet: a round ends there."""
        return min(_multiple_above(step, self.every * self.outer_every), n_steps)

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The ranks of each group."""
        return [tuple(range(a, b)) for a, b in pairwise(accumulate(self.sizes, initial=0))]

    def group_of(self, rank: int) -> tuple[int, ...]:
        """The group that a rank is in."""
        return next(group for group in self.groups if rank in group)


def _multiple_above(step: int, every: int) -> int:
    return (step // every + 1) * every


def rhythm_of(every: object, groups: object, outer_every: object) -> Rhythm:
    """The rhythm that was asked for.

    Raises:
        ArgumentError: there is none such.

    Example:
        >>> rhythm_of(8, None, 4)
        Rhythm(every=8, sizes=(), outer_every=1)
    """
    steps = whole("every", every, least=1, hint="every=8 averages after 8 steps; 1 after each")
    n_meetings = whole("outer_every", outer_every, least=1, hint="outer_every=4: each 4th meeting is one of all ranks")
    if groups is None:
        return Rhythm(steps)
    if isinstance(groups, str) or not isinstance(groups, Sequence) or len(groups) < 2:
        raise ArgumentError("groups are the sizes of two groups of ranks, or of more", given=f"groups={shown(groups)}",
                            hint="groups=(2, 2): ranks 0 and 1, ranks 2 and 3")  # fmt: skip
    sizes = tuple(whole("the size of a group", size, least=1, hint="groups=(2, 2)") for size in groups)
    return Rhythm(steps, sizes, n_meetings)


class Meeting:
    """One rank's part in the meetings of some ranks, all or a group.

    Args:
        comm: of those who meet.
        outer: the step that is made of the outer gradient.
        averages_state: whether the optimiser's state is averaged as parameters are.

    Attributes:
        group: name of the group, "" for all ranks.
        velocities: of the outer step, by group of the optimiser: alike on all ranks.
    """

    def __init__(
        self, comm: Comm, optimizer: Optimizer, algorithm: str | Plan, outer: Outer = MEAN, *,
        averages_state: bool = False,
    ) -> None:  # fmt: skip
        self._comm, self._optimizer, self._algorithm, self._outer = comm, optimizer, algorithm, outer
        self._averages_state, self.group = averages_state, comm.name
        self.velocities = [np.zeros_like(group.values) for group in optimizer.groups if outer.momentum]

    def is_troubled(self, am_i: bool) -> bool:
        """Whether any of those who meet is; all call it."""
        return bool(self._comm.agree(np.array([am_i], np.float64))[0])

    def average_(self, began: Sequence[Vector], shares: Shares) -> float:
        """Make one of all parameters, in place; how far this rank's were from their mean, as a Euclidean norm.

        Args:
            began: by group of the optimiser, what all had when they last met.
            shares: of each rank of the launch, how many examples it has seen since then, as a part of any whole.
        """
        share, far = self._share(shares), 0.0
        for number, (group, start) in enumerate(zip(self._optimizer.groups, began, strict=True)):
            own = start - group.values
            mean = self._summed(own, share)
            far += float(np.square(own - mean, dtype=np.float64).sum())
            moved = self._outer.step(mean, self.velocities[number]) if self.velocities else mean
            if not self.velocities and self._outer.learning_rate != 1:
                moved = mean * mean.dtype.type(self._outer.learning_rate)
            np.subtract(start, moved, out=group.values)
            group.changed()
        if self._averages_state:
            for slots in self._optimizer.slots:
                for name, vector in slots.items():
                    slots[name][...] = self._summed(vector, share)
        return math.sqrt(far)

    @property
    def n_bytes(self) -> int:
        """Of what each rank brings to a meeting."""
        parameters = sum(group.values.nbytes for group in self._optimizer.groups)
        slots = (a.nbytes for found in self._optimizer.slots for a in found.values())
        return parameters + (sum(slots) if self._averages_state else 0)

    def _share(self, shares: Shares) -> float:
        mine = self._comm.ranks
        return share_among(shares[list(mine)], self._comm.rank)

    def _summed(self, vector: Vector, share: float) -> Vector:
        return self._comm.all_reduce_(vector * vector.dtype.type(share), self._algorithm)


def share_among(shares: Shares, rank: int) -> float:
    """A rank's weight among those who meet; where nobody has seen an example, all weigh the same.

    Example:
        >>> share_among(np.array([3.0, 1.0]), 0), share_among(np.zeros(4), 0)
        (0.75, 0.25)
    """
    total = float(shares.sum())
    return float(shares[rank]) / total if total else 1.0 / len(shares)
