"""Gradients summed over ranks after each micro-batch: `DataParallel(sync="micro-batch")`, to see what that costs.

The sum over ranks is linear, so once a step is enough: torch calls that `no_sync`. To sum each micro-batch's gradient
gives the same result, but for rounding, and sends as many times the bytes as there are micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lab.autograd.between import set_gradient
from lab.data import Batch
from lab.errors import ArgumentError
from lab.optim.flat import FlatParameters, Vector
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.layers import Layers
from lab.parallel.training.replicas import Rank
from lab.parallel.training.steering import Steering
from lab.words import one_of, shown

STEP, MICRO_BATCH = "step", "micro-batch"
SYNC = (STEP, MICRO_BATCH)


def require_sync(sync: object, others: dict[str, object]) -> str:
    """When gradients are summed, if there is such a way.

    Args:
        others: what else was chosen that sums gradients in its own way, by name.

    Raises:
        ArgumentError: there is none, or something else stands against it.

    Example:
        >>> require_sync("micro-batch", {"bucket_bytes": None})
        'micro-batch'
    """
    if not (isinstance(sync, str) and sync in SYNC):
        raise ArgumentError("gradients are summed once a step, or after each micro-batch", given=f"sync={shown(sync)}",
                            hint=one_of(sync, SYNC))  # fmt: skip
    against = [f"{name}={shown(value)}" for name, value in others.items() if value]
    if sync == MICRO_BATCH and against:
        raise ArgumentError("something else sums gradients in its own way", given=f"sync={sync!r}, {against[0]}",
                            hint="leave out one of the two")  # fmt: skip
    return sync


class EagerRank(Rank):
    """A rank that meets the others after each micro-batch."""

    def __init__(
        self, comm: Comm, steering: Steering, algorithm: str | Plan, *, layers: Layers,
        groups: Sequence[FlatParameters],
    ) -> None:  # fmt: skip
        super().__init__(comm, steering, algorithm, layers=layers, groups=groups)
        self._totals: list[Vector] = [np.zeros_like(group.values) for group in groups]

    def differentiate(self, back: Callable[[Batch], float], mine: Batch) -> float:
        for total in self._totals:
            total[...] = 0
        return back(mine)

    def passed(self) -> None:
        for group, total in zip(self._groups, self._totals, strict=True):
            group.gather([])
            self._shard.weigh_(group.gradients)
            self.comm.all_reduce_(group.gradients, self.algorithm)
            total += group.gradients
            for parameter, leaf in zip(group.parameters, group.leaves, strict=True):
                if leaf.grad is not None:  # one that has none at the end took no part in the loss
                    set_gradient(leaf, np.zeros_like(parameter.value))

    def reduce(self, groups: Sequence[FlatParameters]) -> None:
        for group, total in zip(groups, self._totals, strict=True):
            group.gradients[...] = total
        self._tell("reduced", [group.gradients for group in groups])
