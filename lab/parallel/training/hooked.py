"""A rank whose gradients are summed by a hook: `DataParallel(comm_hook=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.events import GradientCompressed, bus
from lab.optim.flat import FlatParameters, Vector
from lab.parallel.compression.hook import CommHook
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.layers import Layers
from lab.parallel.training.replicas import Rank
from lab.parallel.training.steering import Steering


class HookedRank(Rank):
    """Hooks see gradients that are numbers: where a rank's are not, all ranks leave them out and have nan."""

    def __init__(
        self, comm: Comm, steering: Steering, algorithm: str | Plan, *, layers: Layers,
        groups: Sequence[FlatParameters], hook: CommHook,
    ) -> None:  # fmt: skip
        super().__init__(comm, steering, algorithm, layers=layers, groups=groups)
        self._hook = hook
        self._memories: list[dict[str, Any]] = [{} for _ in groups]

    def _sum(self, groups: Sequence[FlatParameters]) -> None:
        is_bad = np.array([not all(np.isfinite(group.gradients).all() for group in groups)], np.float64)
        if self.comm.agree(is_bad)[0]:
            for group in groups:
                group.gradients[...] = np.nan
            return
        for group, memory in zip(groups, self._memories, strict=True):
            self._sum_one(group, memory)

    def _sum_one(self, group: FlatParameters, memory: dict[str, Any]) -> None:
        """What is kept from step to step is of the gradient itself, whatever its loss was scaled by."""
        gradient, scale = group.gradients, group.gradients.dtype.type(self.scale)
        gradient /= scale
        before, norm = self.comm.links.n_sent, _norm(gradient)
        self._hook(self.comm, gradient, memory, [p.shape for p in group.parameters])
        if bus.listeners and any(listener.wants(GradientCompressed) for listener in bus.listeners):
            left = _norm(memory["residual"]) if "residual" in memory else float("nan")
            n_bytes = self.comm.links.n_sent - before
            bus.emit(GradientCompressed(self._step, gradient.nbytes, n_bytes, norm, left))
        gradient *= scale


def _norm(vector: Vector) -> float:
    return float(np.sqrt(np.dot(vector.astype(np.float64), vector)))
