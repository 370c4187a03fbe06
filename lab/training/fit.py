"""`fit`: put model, data, loss and optimiser together and let a run begin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lab import ops
from lab.checks import whole
from lab.data import Dataset, Loader, as_dataset
from lab.nn import Module
from lab.optim import Adam, Optimizer
from lab.precision.scaling import Mixed, mixed_of
from lab.training.accumulation import Accumulation, accumulation_of
from lab.training.evaluate import Loss
from lab.training.job import Job
from lab.training.refusals import refuse_what_cannot_be_trained
from lab.training.registry import refuse_trained
from lab.training.run import Run
from lab.training.snapshots import Snapshots, take_up
from lab.training.trainer import Training

Data = Dataset | Sequence[npt.ArrayLike]


class Strategy(Protocol):
    """Where and how a training is carried out, when not in this process's own thread."""

    def job(self, training: Training) -> Job:
        """The job that carries it out; refuses at once what cannot be. `training` stays here, and stands for it."""


def fit(
    model: Module,
    train: Data,
    *,
    validation: Data | None = None,
    loss: Loss = ops.cross_entropy,
    optimizer: Optimizer | None = None,
    epochs: int = 10,
    batch_size: int = 64,
    rng: int | np.random.Generator | None = 0,
    name: str = "",
    accumulate: int | Accumulation = 1,
    precision: str | Mixed | None = None,
    measure_every: int = 10,
    paused: bool = False,
    on: Strategy | None = None,
    snapshot: str | os.PathLike[str] | None = None,
    snapshot_every: int = 100,
    resume: str | os.PathLike[str] | None = None,
) -> Run:
    """Train `model` in a thread of its own; returns at once with the Run to watch, pause, change and await.

    The same seed and the same model give the same bits, however often the run is paused. While it goes on, its
    parameters change under the hands of whoever uses the model, and gradients of other code would be added to its own:
    pause first (`run.pause(); run.wait_until("paused")`), or compute with a copy (`copy.deepcopy(model)`).

    Args:
        train: a Dataset or a pair (inputs, targets).
        validation: evaluated before the first step and after each epoch.
        loss: `(prediction, targets) -> scalar Tensor`, the mean over the batch; a `Counted` loss is a mean of something
            else than examples.
        optimizer: Adam with learning rate 1e-3 if none is given. Its learning rate may follow a schedule, as in
            `Adam(model.parameters(), Cosine(1e-3, n_steps))`, and `clip_norm=` keeps its gradients in bounds.
        rng: seed of the order of the examples.
        name: of the run; made unique.
        accumulate: cuts each batch into so many micro-batches, whose gradients are added before an update: the same
            gradient, in the memory of a part, in more time. `Accumulation(4, mean=...)` also makes the usual mistakes.
        precision: "float16", "bfloat16" or a `lab.precision.Mixed`: products in 16 bits, parameters in float32; None
            computes in the dtype of the parameters.
        measure_every: steps from one measurement of all parameters and gradients to the next, 0 for none.
        paused: hold before the first step.
        on: where else to train: `DataParallel(cluster)` or `Pipeline(cluster)` from lab.parallel. The model has the
            trained parameters whenever the run is paused, and at its end; meanwhile it stays as it was.
        snapshot: path of a file to which the state is written after every `snapshot_every` steps and at the end, whole
            or not at all; on ranks by the first of them, on its machine.
        resume: path of such a file: go on from there, to the bits that the run would have come to without a break.
            Model, optimiser, data, batch size and seed are to be those of then; `epochs` counts from the beginning.

    Raises:
        ArgumentError: a count out of range, a model without parameters, an optimiser of another model, a snapshot of
            another training or one that cannot be written, or an argument of another kind.
        DataError: data that are no data set, or no snapshot.
        RunError: another run is training these parameters, or gradients are switched off here.

    Example:
        >>> from lab.data import digits
        >>> from lab.nn import mlp
        >>> train, test = digits()
        >>> run = fit(mlp(64, 32, 10, rng=0), train, validation=test, epochs=5)
        >>> run.wait().accuracy > 0.5
        True
    """
    epochs = whole("epochs", epochs, least=1, hint="epochs=10 goes ten times through the data")
    measure_every = whole("measure_every", measure_every, least=0, hint="0 measures nothing")
    accumulation, mixed = accumulation_of(accumulate), mixed_of(precision)
    refuse_what_cannot_be_trained(model, loss, optimizer, name, on)
    if isinstance(model, Module):
        model.name_parts()
    test = None if validation is None else as_dataset(validation)
    loader = Loader(train, batch_size, rng=rng)
    refuse_trained(optimizer.parameters if optimizer else model.parameters())
    optimizer = optimizer or Adam(model.parameters())
    snapshots = None if snapshot is None else Snapshots(snapshot, snapshot_every)
    training = Training(model, loader, test, loss, optimizer, n_epochs=epochs, measure_every=measure_every,
                        snapshots=snapshots, accumulation=accumulation, precision=mixed)  # fmt: skip
    if resume is not None:
        take_up(training, resume)
    return Run(training if on is None else on.job(training), name=name, paused=paused)
