"""One rank's place among those of Local SGD: between two meetings it asks nobody, and is told by nobody.

What `Rank` does with the others once a step is done here with this rank's own numbers, which are kept for the meeting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lab.autograd import Tensor
from lab.data import Batch
from lab.errors import RunError
from lab.optim import Optimizer
from lab.optim.flat import FlatParameters, Vector
from lab.optim.optimizer import Snapshot
from lab.parallel.local.meetings import share_among
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.layers import Layers
from lab.parallel.training.replicas import Rank
from lab.parallel.training.shards import shard_of
from lab.parallel.training.steering import Steering
from lab.training.counting import Counts
from lab.training.replica import Verdict


class LocalRank(Rank):
    """A rank that goes its own way.

    Attributes:
        shares: of each rank, its parts of the batches since the last meeting, added.
        losses: since then this rank's parts of the losses of the batches.
        unused: parameters that had no gradient in any step since then.
    """

    def __init__(
        self, comm: Comm, steering: Steering, algorithm: str | Plan, optimizer: Optimizer, layers: Layers
    ) -> None:
        super().__init__(comm, steering, algorithm, layers=layers, groups=optimizer.groups)
        self._optimizer = optimizer
        self._before: Snapshot | None = None  # a step without examples, where there is one
        self.set_out()

    def set_out(self) -> None:
        """The ranks part."""
        self.shares: npt.NDArray[np.float64] = np.zeros(self.world_size)
        self.losses = list[float]()
        self.unused: list[Tensor] | None = None

    def take(self, step: int, batch: Batch, counts: Counts | None = None) -> Batch:
        mine = super().take(step, batch, counts)
        n = len(batch.inputs)
        self.shares += [shard_of(rank, self.world_size, n, counts).share for rank in range(self.world_size)]
        return mine

    def agree(self, loss: float) -> Verdict:
        """Its own loss is what counts here."""
        share = self._shard.share
        is_bad = share > 0 and not np.isfinite(loss)
        if not is_bad:
            self.losses.append(loss * share if share else 0.0)
            self._note_unused()
        return Verdict(loss, self.rank if is_bad else -1)

    def _note_unused(self) -> None:
        if not self._shard.share:
            return
        lacking = {id(p) for p in self.lacking or ()}
        known = self.unused if self.unused is not None else list(self.lacking or ())
        self.unused = [p for p in known if id(p) in lacking]

    def refuse_unused(self) -> None:
        """Some rank has met no gradient of a parameter since all met; refuse one that no rank has. All call it."""
        self.lacking = self.unused
        self._refuse_unused(lacks_all=self.unused is None)

    def reduce(self, groups: Sequence[FlatParameters]) -> None:
        """The gradient is its own; without examples there is none, and the step is to move nothing."""
        self._before = None if self._shard.share else self._optimizer.snapshot()

    def updated(self, groups: Sequence[FlatParameters]) -> None:
        if self._before is not None:
            self._optimizer.restore(self._before._replace(n_steps=self._optimizer.n_steps))

    def culprit(self, is_guilty: bool) -> int:
        """Who else."""
        return self.rank if is_guilty else -1

    def told(self, trouble: RunError | None, culprit: int) -> RunError:
        """What it knows itself, until it meets the others."""
        assert trouble is not None, "it is the culprit"
        return trouble

    def told_by(self, trouble: RunError | None, culprit: int) -> RunError:
        """The error that the culprit has to tell, on every rank; others may have met some, too."""
        return super().told(trouble if self.rank == culprit else None, culprit)

    def meet_layers(self) -> None:
        """Running statistics become their mean over the ranks, weighted by examples."""
        self._layers.end(share_among(self.shares, self.rank))

    def _tell(self, phase: str, vectors: Sequence[Vector] = ()) -> None:
        """What it does between two meetings is told at the next."""
