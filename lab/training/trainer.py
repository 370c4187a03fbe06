"""Training as a job: one batch forward, backward and update a step, an evaluation after each epoch, and the way back.

All that happens is said in events; a loss or a gradient that is no number stops before it reaches the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from lab.autograd import Tensor, no_grad
from lab.data import Batch, Dataset, Loader
from lab.errors import RunError
from lab.events import (
    Evaluated,
    Event,
    HyperparameterChanged,
    LayerMeasured,
    LossScaled,
    ParameterMeasured,
    RunStarted,
    StepFinished,
    bus,
)
from lab.events.gate import clock
from lab.nn.module import leaf_of
from lab.optim import Optimizer
from lab.optim.flat import FlatParameters
from lab.optim.optimizer import Snapshot
from lab.precision.casting import autocast
from lab.precision.scaling import UNSCALED, Mixed
from lab.training.accumulation import WHOLE, Accumulation, MicroBatch
from lab.training.bounds import beyond
from lab.training.counting import counts_of
from lab.training.diagnosis import finite, origin_of_nonfinite, unlearnable
from lab.training.evaluate import Loss, Model, evaluate, loss_of
from lab.training.inside import Inside
from lab.training.job import BreakpointError, Here
from lab.training.layers import Watch
from lab.training.measure import tell_parameters
from lab.training.replica import Alone, Replica
from lab.training.result import Result
from lab.training.snapshots import Snapshots
from lab.training.standing import Sound, Standing, buffers_of, named_buffers, restore_buffers

EXPLODED = 3.0
"""A loss of so many times the first one is no state to come back to."""


class Training(Here):
    """The job behind `fit`; its arguments are explained there.

    Attributes:
        replica: this copy's place among those that train together.
        snapshots: where it is written, None for nowhere.
        accumulation: how what a copy takes of a batch is cut into micro-batches.
        precision: of forward and backward; None is that of the parameters.
        scaler: of the loss, which gradients are divided by before anybody uses them.
        is_resumed: whether it stands where another copy stood, and begins there.
        tell: takes what all copies have in common to tell, on each of them; None emits it, where this is the first.
    """

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
        replica: Replica | None = None,
        snapshots: Snapshots | None = None,
        accumulation: Accumulation = WHOLE,
        precision: Mixed | None = None,
    ) -> None:
        self.replica = replica or Alone()
        self.model, self.loader, self.validation, self.loss, self.optimizer = model, loader, validation, loss, optimizer
        self.n_epochs, self.measure_every, self.accumulation = n_epochs, measure_every, accumulation
        self.precision, self.scaler = precision, precision.begins() if precision else UNSCALED
        self.step, self.n_steps = 0, n_epochs * len(loader)
        self.last_loss = self.accuracy = math.nan
        self._batches: Iterator[Batch] = iter(())
        self._batch: Batch | None = None  # taken from the loader, not yet learned from
        self._first_loss = math.nan
        self._sound = Sound(0, math.nan, optimizer.snapshot(), buffers_of(self.model), self.scaler)
        self._remembering = [tensor for _, tensor in named_buffers(self.model)]
        self._bounds: dict[str, float] = {}
        self._watch: Watch | None = None  # of the step that is done now
        self._broke_at = 0  # the step in which a bound held last: done again, it passes
        self.snapshots, self.is_resumed = snapshots, False
        self.tell: Callable[[Event], object] | None = None

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

    def look_inside(self, run: str, held: Callable[[str], object]) -> Inside:
        return Inside(run, held, within=(self.model, self.loss))

    def check(self, name: str, value: float) -> None:
        self.optimizer.check(name, value)

    def begin(self, run: str) -> None:
        if self._tells:
            n_parameters = sum(p.size for p in self.optimizer.parameters)
            model, optimizer = " ".join(repr(self.model).split()), repr(self.optimizer)
            self._say(RunStarted(run, self.n_steps, self.n_epochs, n_parameters, model, optimizer))
            for name, value in self.hyperparameters.items():
                self._say(HyperparameterChanged(self.step, name, value))
        if not self.is_resumed:
            self._look_back()

    def advance(self) -> RunError | None:
        start = clock()
        batch = self._batch = self._batch or self._next_batch()
        step, groups = self.step + 1, self.optimizer.groups
        remembered = [(tensor, tensor.value) for tensor in self._remembering]
        self.replica.scale = self.scaler.scale
        mine = self.replica.take(step, batch, counts_of(self.loss, batch.targets))
        own = self.replica.differentiate(self._differentiate, mine)
        loss, culprit = self.replica.agree(own)
        if culprit >= 0:
            for tensor, value in remembered:  # what the layers learned from this batch is no number either
                tensor.value = value
            culprit = self.replica.guilty(culprit, lambda: not math.isfinite(self._loss_of(mine)))
            return self._trouble(f"the loss became {own}", culprit, mine)  # only the culprit's words are heard
        self.replica.reduce(groups)
        is_finite = self._unscaled(groups)
        if not is_finite and self.precision and self.precision.can_back_off(self.scaler):
            self._scaled(step, is_finite=False)
            self._end_step(step, loss, batch, start)
            return None
        if not is_finite:
            own_gradients = (leaf_of(p).grad for p in self.optimizer.parameters)
            culprit = self.replica.culprit(not finite(found for found in own_gradients if found is not None))
            return self._trouble("a gradient became nan or inf", culprit, mine)
        norm = self.optimizer.gradient_norm() if self._wants_norm else 0.0
        if held := self._beyond(step, loss, norm):
            return held
        self._update(step, loss, batch, start, norm)
        return None

    def bound(self, name: str, value: float) -> None:
        self._bounds = {n: v for n, v in (self._bounds | {name: value}).items() if v < math.inf}

    @property
    def _wants_norm(self) -> bool:
        """Whether a step needs the norm of the whole gradient."""
        return "gradient" in self._bounds or self.optimizer.clips

    def _beyond(self, step: int, loss: float, norm: float) -> BreakpointError | None:
        """What to return when a bound is passed, the same on all copies; a step that is done again passes."""
        above = beyond(self._bounds, {"loss": loss, "gradient": norm}, step) if step != self._broke_at else None
        if above is not None:
            self._broke_at = step
        return above

    def _update(self, step: int, loss: float, batch: Batch, start: float, norm: float) -> None:
        """The end of a step that began at `start`: the gradients are in the groups, and all of them are finite.

        `norm` is that of all of them, on whatever ranks they are, if it is wanted.
        """
        pause = clock()
        self._measure(step)
        start += clock() - pause  # nobody would measure without somebody who looks
        self.optimizer.apply(norm)
        if self.precision is not None:
            self._scaled(step, is_finite=True)
        self._end_step(step, loss, batch, start)

    def _end_step(self, step: int, loss: float, batch: Batch, start: float) -> None:
        """The step is done, whether or not it moved the parameters."""
        epoch = self.epoch
        self.replica.updated(self.optimizer.groups)
        self.step, self.last_loss, self._batch = step, loss, None
        if self._tells:
            self._say(StepFinished(step, epoch, loss, len(batch.inputs), 1000 * (clock() - start)))
        if step % len(self.loader) == 0:
            self._look_back()
        if self.snapshots is not None and self.tell is None:  # ranks write when all of them have the step
            self.snapshots.write_if_due(self)

    def _unscaled(self, groups: Sequence[FlatParameters]) -> bool:
        """Whether the gradient is a number, which is then that of the loss itself."""
        if self.scaler.scale != 1:
            for group in groups:
                group.gradients *= group.gradients.dtype.type(1 / self.scaler.scale)
        return finite(group.gradients for group in groups)

    def _scaled(self, step: int, *, is_finite: bool) -> None:
        """Say what scale the step had, and take the next."""
        rule = self.precision.rule if self.precision else None
        if rule is None:
            return
        before, self.scaler = self.scaler, self.scaler.after(rule, is_finite=is_finite)
        if self._tells:
            self._say(LossScaled(step, before.scale, self.scaler.scale, not is_finite))

    def _heard(self, batch: Batch) -> Tensor:
        """The loss of a batch, in the precision of this training."""
        if self.precision is None:
            return loss_of(self.model, self.loss, batch)[1]

        def loss(inputs: Any) -> Tensor:
            return loss_of(self.model, self.loss, Batch(inputs, batch.targets))[1]

        found: Tensor = autocast(loss, self.precision.dtype)(batch.inputs)
        return found

    def _loss_of(self, mine: Batch) -> float:
        """Without a gradient; 0 without examples."""
        with no_grad():
            return self._heard(mine).item() if self._counts(mine) else 0.0

    def _counts(self, mine: Batch) -> bool:
        """Whether the loss is a mean of anything there."""
        counts = counts_of(self.loss, mine.targets)
        return bool(len(mine.inputs) if counts is None else counts.any())

    def _differentiate(self, mine: Batch) -> float:
        """Forward and backward for these examples: the loss; the gradient, if that is finite, is in the groups."""
        if not self._counts(mine):
            for group in self.optimizer.groups:
                group.gradients[...] = 0
            for _ in range(self.accumulation.n):
                self.replica.passed()
            return math.nan
        self._watch = Watch() if self._measures(self.step + 1, LayerMeasured) else None
        total, is_first, goes_on = 0.0, True, True
        with self.replica.together():
            for part in self.accumulation.parts(mine, counts_of(self.loss, mine.targets)):
                if part.share and goes_on:
                    value, goes_on = self._back(part, is_first=is_first)
                    total, is_first = total + part.counted * value, False
                self.replica.passed()
            if goes_on:
                self.optimizer.gather(self.replica.lacking)
        return total

    def _back(self, part: MicroBatch, *, is_first: bool) -> tuple[float, bool]:
        """Forward, and backward from a finite loss, which adds to the gradients that there are; whether it did."""
        with (self._watch if is_first else None) or nullcontext():
            loss = self._heard(part.batch)
        if not loss.requires_grad:
            raise unlearnable()
        value: float = loss.item()
        is_finite = self.replica.all_finite(math.isfinite(value))
        if is_finite:
            if is_first:
                self.optimizer.zero_grad()
            self.replica.backward(loss, part.share * self.scaler.scale, is_last=part.is_last)
        return value, is_finite

    def set(self, name: str, value: float) -> None:
        self.optimizer.set(name, value)
        if self._tells:
            self._say(HyperparameterChanged(self.step, name, value))

    def rewind(self) -> None:
        self.step, self.accuracy, snapshot, buffers, self.scaler = self._sound
        self.optimizer.restore(snapshot)
        restore_buffers(self.model, buffers)
        self.optimizer.zero_grad()
        self._batch, self._batches, self._broke_at = None, iter(()), 0

    def load(self, state: Snapshot) -> None:
        """Go on with other parameters and another state of the optimiser."""
        self.optimizer.restore(state)

    def standing(self) -> Standing:
        """Where it stands; the arrays are copies."""
        optimizer = self.optimizer.snapshot()
        return Standing(self.step, self._first_loss, self.last_loss, self.accuracy, optimizer, self._sound,
                        buffers_of(self.model), self.scaler)  # fmt: skip

    def stand(self, at: Standing) -> None:
        """Stand where another copy does."""
        (self.step, self._first_loss, self.last_loss, self.accuracy, optimizer, self._sound, buffers,
         self.scaler) = at  # fmt: skip
        self.optimizer.restore(optimizer)
        restore_buffers(self.model, buffers)
        self._batch, self._batches = None, self.loader.epoch(self.epoch, self.step % len(self.loader))

    def result(self, run: str, state: str, elapsed_ms: float) -> Result:
        n_epochs = self.step // len(self.loader)
        return Result(run, state, self.step, n_epochs, self.last_loss, self.accuracy, elapsed_ms)

    def _next_batch(self) -> Batch:
        in_epoch = self.step % len(self.loader)
        if in_epoch == 0:
            self._batches = self.loader.epoch(self.epoch)
        return next(self._batches)

    def _measure(self, step: int) -> None:
        """Layers, parameters and gradients as this step found them."""
        for event in self._watch.events(step) if self._watch is not None else ():
            bus.emit(event)
        if self._measures(step, ParameterMeasured):
            tell_parameters(step, self.optimizer)

    def _measures(self, step: int, kind: type[Event]) -> bool:
        """Whether this copy measures at a step what somebody wants to hear of."""
        due = self.measure_every and not (step - 1) % self.measure_every and not self.replica.rank
        return bool(due) and any(listener.wants(kind) for listener in bus.listeners)

    def _look_back(self) -> None:
        """Evaluate, and keep the state to come back to if all of it is finite and the loss has not exploded."""
        sound, loss = self._is_finite(), self.last_loss
        if self.validation is not None:
            loss, self.accuracy = self.replica.shared(self._evaluate(self.validation))
            if self._tells:
                epoch, n = self.step // len(self.loader), len(self.validation.inputs)
                self._say(Evaluated(self.step, epoch, "test", loss, self.accuracy, n))
            sound = sound and math.isfinite(loss)
        if math.isnan(self._first_loss):
            self._first_loss = loss
        if sound and not loss > EXPLODED * self._first_loss:  # one of the two may be nan: nothing was measured yet
            self._sound = Sound(self.step, self.accuracy, self.optimizer.snapshot(), buffers_of(self.model),
                                self.scaler)  # fmt: skip

    def _is_finite(self) -> bool:
        """Whether all parameters are, the same on all ranks."""
        return finite(group.values for group in self.optimizer.groups)

    def _evaluate(self, validation: Dataset) -> tuple[float, float]:
        """Loss and accuracy; on rank 0 alone, so that they are what `evaluate` finds."""
        if self.replica.rank:
            return math.nan, math.nan
        found = evaluate(self.model, validation, loss=self.loss)
        return found.loss, found.accuracy

    def _trouble(self, problem: str, culprit: int, mine: Batch) -> RunError:
        """What went wrong in the step after this one, as the culprit finds it when it does its part again."""
        self.optimizer.zero_grad()
        found = None
        if self.replica.rank == max(culprit, 0):
            where = f" on rank {culprit}" if self.replica.world_size > 1 and culprit >= 0 else ""
            found = self._diagnosed(f"{problem} at step {self.step + 1:,}{where}", culprit, mine)
        return self.replica.told(found, max(culprit, 0))

    def _diagnosed(self, problem: str, culprit: int, mine: Batch) -> RunError:
        given, cure = "each rank's own is finite, their sum is not", ""
        if culprit >= 0:
            with self.replica.apart():
                given, cure = origin_of_nonfinite(self._heard, mine, self.parameters, self.step, self.scaler.scale)
        back = f"run.rewind() returns to step {self._sound.step}; then run.set('learning_rate', ...) and run.resume()"
        return RunError(problem, given=given, hint=cure or back)

    @property
    def _tells(self) -> bool:
        """Whether this copy shall tell what all copies have in common."""
        return self.tell is not None or (bool(bus.listeners) and self.replica.rank == 0)

    def _say(self, event: Event) -> None:
        (self.tell or bus.emit)(event)
