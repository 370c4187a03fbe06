"""Training as a job: one batch forward, backward and update a step, an evaluation after each epoch, and the way back.

All that happens is said in events; a loss or a gradient that is no number stops before it reaches the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from lab.autograd import Tensor
from lab.data import Batch, Dataset, Loader
from lab.errors import GradientError, RunError
from lab.events import Evaluated, HyperparameterChanged, ParameterMeasured, RunStarted, StepFinished, bus
from lab.nn.module import leaf_of
from lab.optim import Optimizer
from lab.optim.optimizer import Snapshot
from lab.training.diagnosis import origin_of_nonfinite
from lab.training.evaluate import Loss, Model, evaluate, loss_of
from lab.training.measure import measured
from lab.training.result import Result

EXPLODED = 3.0
"""A loss of so many times the first one is no state to come back to."""


class Sound(NamedTuple):
    """A state to go back to: the last end of an epoch at which all was finite, or the beginning."""

    step: int
    accuracy: float
    optimizer: Snapshot


class Training:
    """The job behind `fit`; its arguments are explained there."""

    def __init__(
        self,
        model: Model,
        loader: Loader,
        validation: Dataset | None,
        loss: Loss,
        optimizer: Optimizer,
        *,
        n_epochs: int,
        measure_every: int,
    ) -> None:
        self.model, self.loader, self.validation, self.loss, self.optimizer = model, loader, validation, loss, optimizer
        self.n_epochs, self.measure_every = n_epochs, measure_every
        self.step, self.n_steps = 0, n_epochs * len(loader)
        self.last_loss = self.accuracy = math.nan
        self._batches: Iterator[Batch] = iter(())
        self._batch: Batch | None = None  # taken from the loader, not yet learned from
        self._first_loss = math.nan
        self._sound = Sound(0, math.nan, optimizer.snapshot())

    @property
    def epoch(self) -> int:
        """Number of the epoch that the next step belongs to, from 0."""
        return self.step // len(self.loader)

    @property
    def parameters(self) -> Sequence[Tensor]:
        return self.optimizer.parameters

    @property
    def finished(self) -> bool:
        return self.step >= self.n_steps

    @property
    def hyperparameters(self) -> dict[str, float]:
        return self.optimizer.hyperparameters

    def check(self, name: str, value: float) -> None:
        self.optimizer.check(name, value)

    def begin(self, run: str) -> None:
        if bus.listeners:
            n_parameters = sum(p.size for p in self.optimizer.parameters)
            model, optimizer = " ".join(repr(self.model).split()), repr(self.optimizer)
            bus.emit(RunStarted(run, self.n_steps, self.n_epochs, n_parameters, model, optimizer))
            for name, value in self.hyperparameters.items():
                bus.emit(HyperparameterChanged(0, name, value))
        self._look_back()

    def advance(self) -> RunError | None:
        start = perf_counter()
        batch = self._batch = self._batch or self._next_batch()
        epoch, step = self.epoch, self.step + 1
        _, loss = loss_of(self.model, self.loss, batch)
        if not loss.requires_grad:
            raise _lost()
        value = loss.item()
        if not math.isfinite(value):
            return self._trouble(f"the loss became {value} at step {step}", batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.gather()
        if not all(np.isfinite(group.gradients).all() for group in self.optimizer.groups):
            return self._trouble(f"a gradient became nan or inf at step {step}", batch)
        pause = perf_counter()
        self._measure(step)
        start += perf_counter() - pause
        self.optimizer.apply()
        self.step, self.last_loss, self._batch = step, value, None
        if bus.listeners:
            bus.emit(StepFinished(step, epoch, value, len(batch.inputs), 1000 * (perf_counter() - start)))
        if step % len(self.loader) == 0:
            self._look_back()
        return None

    def set(self, name: str, value: float) -> None:
        self.optimizer.set(name, value)
        if bus.listeners:
            bus.emit(HyperparameterChanged(self.step, name, value))

    def rewind(self) -> None:
        self.step, self.accuracy, snapshot = self._sound
        self.optimizer.restore(snapshot)
        self.optimizer.zero_grad()
        self._batch, self._batches = None, iter(())

    def result(self, run: str, state: str, elapsed_ms: float) -> Result:
        n_epochs = self.step // len(self.loader)
        return Result(run, state, self.step, n_epochs, self.last_loss, self.accuracy, elapsed_ms)

    def _next_batch(self) -> Batch:
        in_epoch = self.step % len(self.loader)
        if in_epoch == 0:
            self._batches = self.loader.epoch(self.epoch)
        return next(self._batches)

    def _measure(self, step: int) -> None:
        """Parameters and gradients as this step found them."""
        if not self.measure_every or (step - 1) % self.measure_every or not _somebody_wants_measures():
            return
        for i, p in enumerate(self.optimizer.parameters):
            name = p.name or str(i)
            bus.emit(measured(step, name, "value", p.value))
            bus.emit(measured(step, name, "gradient", leaf_of(p).grad))

    def _look_back(self) -> None:
        """Evaluate, and keep the state to come back to if all of it is finite and the loss has not exploded."""
        sound, loss = all(np.isfinite(group.values).all() for group in self.optimizer.groups), self.last_loss
        if self.validation is not None:
            found = evaluate(self.model, self.validation, loss=self.loss)
            self.accuracy, loss = found.accuracy, found.loss
            sound = sound and math.isfinite(loss)
            if bus.listeners:
                epoch = self.step // len(self.loader)
                bus.emit(Evaluated(self.step, epoch, "test", found.loss, found.accuracy, found.n_examples))
        if math.isnan(self._first_loss):
            self._first_loss = loss
        if sound and not loss > EXPLODED * self._first_loss:  # one of the two may be nan: nothing was measured yet
            self._sound = Sound(self.step, self.accuracy, self.optimizer.snapshot())

    def _trouble(self, problem: str, batch: Batch) -> RunError:
        self.optimizer.zero_grad()
        given, cure = origin_of_nonfinite(self.model, self.loss, batch, self.optimizer.parameters, self.step)
        back = f"run.rewind() returns to step {self._sound.step}; then run.set('learning_rate', ...) and run.resume()"
        return RunError(problem, given=given, hint=cure or back)


def _lost() -> GradientError:
    given = "a loss that no parameter leads to by operations on tensors"
    hint = "in forward and loss, .numpy(), .item(), float() and no_grad() lose the gradient"
    return GradientError("this loss cannot be learned from", given=given, hint=hint)


def _somebody_wants_measures() -> bool:
    return any(listener.wants(ParameterMeasured) for listener in bus.listeners)
