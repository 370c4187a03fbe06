"""The training of a trace: the run as one slice, its steps below, loss and hyperparameters as counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lab.events import Evaluated, HyperparameterChanged, RunFinished, RunStarted, RunStateChanged, StepFinished
from lab.interop.trace.form import CUT, Json, Teller, Tracks, level, moment, span


class TrainingTeller(Teller):
    """Told by whoever launched the run, in one process or on ranks.

    A step ends when it is told and began its `elapsed_ms` before, but not before the step before it ended.
    """

    hears = (RunStarted, RunStateChanged, StepFinished, Evaluated, HyperparameterChanged, RunFinished)

    def __init__(self, tracks: Tracks) -> None:
        super().__init__(tracks)
        self._open: dict[str, RunStarted] = {}
        self._until: dict[str, int] = {}
        self._set: dict[tuple[str, str], HyperparameterChanged] = {}

    def tell(self, event: Any) -> Iterator[Json]:
        run, now = self.tracks.host(event.run, "run"), event.time_ns
        match event:
            case RunStarted():
                self._open[event.run] = event
            case RunFinished():
                yield from self._ran(event.run, now, event.state, event.reason)
            case RunStateChanged():
                yield moment(run, event.state, "training", now, step=event.step)
            case StepFinished():
                start = max(now - round(event.elapsed_ms * 1e6), self._until.get(event.run, 0))
                self._until[event.run] = now
                yield span(self.tracks.host(event.run, "steps"), f"step {event.step}", "training,step", start, now,
                           epoch=event.epoch, loss=event.loss, n_examples=event.n_examples,
                           elapsed_ms=event.elapsed_ms)  # fmt: skip
                yield from level(run, "loss", now, event.loss)
            case Evaluated():
                yield moment(run, f"evaluated on {event.split}", "training,evaluation", now, loss=event.loss,
                             accuracy=event.accuracy, step=event.step)  # fmt: skip
                yield from level(run, f"{event.split} loss", now, event.loss)
                yield from level(run, f"{event.split} accuracy", now, event.accuracy)
            case HyperparameterChanged():
                yield from self._hyperparameter(event)

    def _hyperparameter(self, event: HyperparameterChanged) -> Iterator[Json]:
        """A counter of each that changes; those that stay stand among the arguments of the run."""
        before = self._set.get((event.run, event.name))
        self._set[event.run, event.name] = event
        if before is not None:
            run = self.tracks.host(event.run, "run")
            if before.step == 0:
                yield from level(run, event.name, before.time_ns, before.value)
            yield from level(run, event.name, event.time_ns, event.value)

    def _ran(self, run: str, now: int, state: str, reason: str) -> Iterator[Json]:
        if start := self._open.pop(run, None):
            name = start.name if start.name.startswith("run") else f"run {start.name}"
            said = {"state": state, "reason": reason, "model": start.model, "optimizer": start.optimizer}
            yield span(self.tracks.host(run, "run"), name, "training,run", start.time_ns, now,
                       n_parameters=start.n_parameters, n_steps=start.n_steps, **said)  # fmt: skip

    def end(self) -> Iterator[Json]:
        for run in list(self._open):
            yield from self._ran(run, self.tracks.last_ns, CUT, "")
