"""One rank's part of a training on a pipeline: its stages, the optimiser of their parameters, and what all agree on.

A step is that of `Training` with the forward and backward carried out by a PipelineRank. Each rank keeps its stages
alone; rank 0 has a copy of the whole, which is brought up to date to be evaluated, diagnosed or sent home.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from lab.autograd import Tensor
from lab.data import Batch, Dataset
from lab.errors import RunError
from lab.events import StepFinished, bus
from lab.optim import Optimizer
from lab.parallel.joining import Joining
from lab.parallel.pipeline_rank import PipelineRank
from lab.parallel.runtime import Comm
from lab.parallel.stages import Stage
from lab.parallel.steering import Steering
from lab.training.replica import Alone
from lab.training.trainer import Sound, Standing, Training, finite


class PipelineTraining(Training):
    """What `Steering.lead` leads on each rank.

    Args:
        whole: the training as it was sent; rank 0 keeps it.
        stages: all of its model.
        pipe: carries out this rank's actions.
    """

    def __init__(self, steering: Steering, whole: Training, stages: Sequence[Stage], pipe: PipelineRank) -> None:
        comm = steering.comm
        owned = owners(stages, whole.optimizer, comm.world_size)
        self.steering, self._pipe = steering, pipe
        self._joining = Joining(comm, whole.optimizer, owned)
        self._whole = whole if comm.rank == 0 else None
        model = whole.model if comm.rank == 0 else stages[comm.rank]  # only rank 0 will call it
        super().__init__(
            model, whole.loader, whole.validation, whole.loss, whole.optimizer.part(owned[comm.rank]),
            n_epochs=whole.n_epochs, measure_every=whole.measure_every, replica=OnStage(comm),
        )  # fmt: skip

    def advance(self) -> RunError | None:
        start = perf_counter()
        batch = self._batch = self._batch or self._next_batch()
        epoch, step = self.epoch, self.step + 1
        self.optimizer.zero_grad()
        own = self._pipe.step(batch)
        self.optimizer.gather()
        loss, is_sound = self._agree(own)
        if not math.isfinite(loss):
            return self._told(f"the loss became {loss}", batch)
        if not is_sound:
            return self._told("a gradient became nan or inf", batch)
        pause = perf_counter()
        self._measure(step)
        start += perf_counter() - pause
        self.optimizer.apply()
        self.step, self.last_loss, self._batch = step, loss, None
        if self._tells:
            bus.emit(StepFinished(step, epoch, loss, len(batch.inputs), 1000 * (perf_counter() - start)))
        if step % len(self.loader) == 0:
            self._look_back()
        return None

    def standing(self) -> Standing | None:  # type: ignore[override]  # rank 0 alone knows of the whole
        """Where all ranks stand, on rank 0; all ranks call it."""
        now = self._joining.gather(self.optimizer.snapshot())
        sound = self._joining.gather(self._sound.optimizer)
        if now is None or sound is None:
            return None
        step, accuracy, _ = self._sound
        return Standing(self.step, self._first_loss, self.last_loss, self.accuracy, now, Sound(step, accuracy, sound))

    def announce(self, run: str) -> None:
        if self._whole is not None:
            self._whole.announce(run)

    def _agree(self, own_loss: float) -> tuple[float, bool]:
        """The loss of the batch, and whether all gradients on all ranks are finite; the next order comes with them."""
        is_bad = not finite(group.gradients for group in self.optimizer.groups)
        loss, n_bad = self.steering.agree(np.array([own_loss, float(is_bad)]))
        return float(loss), not n_bad

    def _told(self, problem: str, batch: Batch) -> RunError:
        """What went wrong in the step after this one. Rank 0 does it again with the whole model; its words are heard."""
        self.optimizer.zero_grad()
        standing = self.standing()
        if self._whole is None or standing is None:
            return RunError(problem, given=f"rank {self.replica.rank} of a pipeline", hint="rank 0 knows more")
        self._whole.stand(standing)
        return self._whole.trouble(problem, 0, batch)

    def _is_finite(self) -> bool:
        n_bad = np.array([float(not super()._is_finite())])
        return not self.steering.comm.agree(n_bad)[0]

    def _evaluate(self, validation: Dataset) -> tuple[float, float]:
        found = self._joining.gather(self.optimizer.snapshot())
        if self._whole is not None and found is not None:
            self._whole.optimizer.restore(found)
        return super()._evaluate(validation)


class OnStage(Alone):
    """A rank of a pipeline among the others: none is a copy of another, but all know what rank 0 found out."""

    def __init__(self, comm: Comm) -> None:
        self._comm, self.rank, self.world_size = comm, comm.rank, comm.world_size

    def shared(self, numbers: Sequence[float]) -> list[float]:
        """The numbers that rank 0 has."""
        words = np.array(numbers if self.rank == 0 else [0.0] * len(numbers))
        return [float(word) for word in self._comm.agree(words)]


def owners(stages: Sequence[Stage], optimizer: Optimizer, world_size: int) -> list[list[Tensor]]:
    """The parameters of an optimiser that each rank has: those of its stages.

    What lies in no layer can only be the loss's own, and is on the rank of the last stage.

    Example:
        >>> from lab.nn import mlp
        >>> from lab.optim import SGD
        >>> from lab.parallel.stages import split
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
