"""One rank's part of a training on a pipeline: its stages, the optimiser of their parameters, and what all agree on.

A step is that of `Training` with the forward and backward carried out by a PipelineRank. Each rank keeps its stages
alone; rank 0 has a copy of the whole, which is brought up to date to be evaluated, diagnosed or sent home.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lab.autograd import Tensor
from lab.data import Batch, Dataset
from lab.errors import RunError
from lab.events import bus
from lab.events.gate import clock
from lab.optim import Optimizer
from lab.optim.optimizer import Snapshot
from lab.parallel.pipeline.joining import Joining
from lab.parallel.pipeline.pipeline_rank import PipelineRank
from lab.parallel.pipeline.stages import Stage
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.steering import Steering
from lab.training.replica import Alone
from lab.training.standing import Standing
from lab.training.trainer import Training


class PipelineTraining(Training):
    """What `Steering.lead` leads on each rank.

    Args:
        whole: the training as it was sent; rank 0 keeps it.
        stages: all of its model.
        pipe: carries out this rank's actions.
    """

    def __init__(self, steering: Steering, whole: Training, stages: Sequence[Stage], pipe: PipelineRank) -> None:
        self.steering, self._comm, self._pipe = steering, steering.comm, pipe
        owned, rank = owners(stages, whole.optimizer, self._comm.world_size), self._comm.rank
        self._joining = Joining(self._comm, whole.optimizer, owned)
        self._whole = whole if rank == 0 else None
        super().__init__(
            stages[rank], whole.loader, whole.validation, whole.loss, whole.optimizer.part(owned[rank]),
            n_epochs=whole.n_epochs, measure_every=whole.measure_every, replica=OnStage(self._comm),
        )  # fmt: skip

    def begin(self, run: str) -> None:
        found = math.nan, math.nan
        if self._whole is not None:
            self._whole.begin(run)
            found = self._whole._first_loss, self._whole.accuracy
        self._first_loss, self.accuracy = self.replica.shared(found)
        self._sound = self._sound._replace(accuracy=self.accuracy)

    def advance(self) -> RunError | None:
        start = clock()
        batch = self._batch = self._batch or self._next_batch()
        step = self.step + 1
        self.optimizer.zero_grad()
        own_loss = self._pipe.step(batch)
        self.optimizer.gather()
        # Nothing is known of the loss before the last micro-batch, and then all gradients are: one agreement is enough.
        own_flaw = not all(np.isfinite(group.gradients).all() for group in self.optimizer.groups)
        own_square = self.optimizer.gradient_norm() ** 2 if self._wants_norm else 0.0
        loss, n_flaws, square = self.steering.agree(np.array([own_loss, own_flaw, own_square])).tolist()
        if not math.isfinite(loss):
            return self._failed(f"the loss became {loss}", batch)
        if n_flaws:
            return self._failed("a gradient became nan or inf", batch)
        norm = math.sqrt(square)
        if held := self._beyond(step, loss, norm):
            return held
        self._update(step, loss, batch, start, norm)
        return None

    def load(self, state: Snapshot) -> None:
        """Take this rank's part of it."""
        self.optimizer.restore(self._joining.share(state, self.optimizer.snapshot()))

    def standing(self) -> Standing:
        """Where all ranks stand, on rank 0; elsewhere where this one does. All ranks call it."""
        own = super().standing()
        now, sound = self._joining.gather(own.optimizer), self._joining.gather(own.sound.optimizer)
        if now is None or sound is None:
            return own
        return own._replace(optimizer=now, sound=own.sound._replace(optimizer=sound))

    def _failed(self, problem: str, batch: Batch) -> RunError:
        """What went wrong in the step after this one: rank 0 does it again with the whole model, and tells."""
        self.optimizer.zero_grad()
        standing = self.standing()
        if self._whole is None:
            return RunError(problem, given=f"rank {self._comm.rank} of a pipeline", hint="rank 0 knows more")
        self._whole.stand(standing)
        return self._whole._trouble(problem, 0, batch)

    def _is_finite(self) -> bool:
        own_flaw = np.array([float(not super()._is_finite())])
        return not self._comm.agree(own_flaw).any()

    def _evaluate(self, validation: Dataset) -> tuple[float, float]:
        found = self._joining.gather(self.optimizer.snapshot())
        if self._whole is None or found is None:
            return math.nan, math.nan
        self._whole.step = self.step
        self._whole.optimizer.restore(found)
        return self._whole._evaluate(validation)

    @property
    def _tells(self) -> bool:
        return bool(bus.listeners) and self._comm.rank == 0


class OnStage(Alone):
    """A rank of a pipeline is the only one with its parameters; all ranks know what rank 0 found out of the whole."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm

    def shared(self, numbers: Sequence[float]) -> list[float]:
        """The numbers that rank 0 has."""
        words = np.array(numbers if self._comm.rank == 0 else [0.0] * len(numbers))
        return [float(word) for word in self._comm.agree(words)]


def owners(stages: Sequence[Stage], optimizer: Optimizer, world_size: int) -> list[list[Tensor]]:
    """The parameters of an optimiser that each rank has: those of its stages.

    What lies in no layer can only be the loss's own, and is on the rank of the last stage.

    Example:
        >>> from lab.nn import mlp
        >>> from lab.optim import SGD
        >>> from lab.parallel.pipeline.stages import split
        >>> model = mlp(2, 3, 1, rng=0)
        >>> [len(mine) for mine in owners(split(model, 3), SGD(model.parameters()), world_size=3)]
        [2, 0, 2]
    """
    rank_of = {id(p): stage.number % world_size for stage in stages for p in stage.parameters()}
    last = stages[-1].number % world_size
    owned: list[list[Tensor]] = [[] for _ in range(world_size)]
    for p in optimizer.parameters:
        owned[rank_of.get(id(p), last)].append(p)
    return owned
