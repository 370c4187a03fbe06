"""What a run carries out: steps, one at a time, and what may be changed between two of them.

The run knows of threads and buttons, the job of models and data; this protocol is all that they know of each other. The
steps may be done in this thread, or by others (`fit(..., on=...)`), who then run ahead of who asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lab.autograd import Tensor
from lab.errors import ArgumentError, RunError
from lab.events import (
    Evaluated,
    Event,
    HyperparameterChanged,
    LayerMeasured,
    LossScaled,
    ParameterMeasured,
    RunFinished,
    RunStarted,
    RunStateChanged,
    SnapshotWritten,
    StepFinished,
    bus,
)
from lab.events.gate import Condition
from lab.events.recording import Recording
from lab.training.inside import Inside
from lab.training.result import Result

RECORDED = (
    RunStarted, RunStateChanged, StepFinished, Evaluated, ParameterMeasured, LayerMeasured, HyperparameterChanged,
    LossScaled, SnapshotWritten, RunFinished,
)  # fmt: skip
"""The kinds of events that a run records of itself, wherever it is carried out."""


BOUNDS: tuple[str, ...] = ("loss", "gradient")
"""What can be bounded: the loss of the batch, the Euclidean norm of the gradient of all parameters."""


class BreakpointError(RunError):
    """A breakpoint was met: the run pauses before the update, and whoever awaits it goes on waiting.

    The step is done again, from its forward on, when the run goes on; the same breakpoint lets it pass then.
    """


class Look(Protocol):
    """What holds a run within its steps. What it is asked comes from any thread, with the lock of the run.

    Attributes:
        units: what can be stepped through: "op", "node", "hop" for a step of a collective, or "action" of a pipeline.
        graph: operations, values and gradients of the step that was looked into last; None before, and elsewhere.
    """

    units: tuple[str, ...]
    graph: Recording | None

    @property
    def is_held(self) -> bool:
        """Whether the run waits in the middle of a step."""

    @property
    def breakpoints(self) -> tuple[str, ...]:
        """The names of its breakpoints."""

    @property
    def unmet(self) -> tuple[str, ...]:
        """The names of those at places to which the last whole step did not come."""

    def step(self, n: int, unit: str) -> None:
        """Let `n` of a unit pass, and hold there; in the next step, if none is under way."""

    def go_on(self) -> None:
        """Let the step pass to its end, or to a breakpoint."""

    def leave(self) -> None:
        """Nobody looks into it any more: the step goes on to its end, whatever there is on the way."""

    def add(self, condition: Condition) -> str:
        """Hold there, from the next step on at the latest; returns the name of the breakpoint."""

    def remove(self, name: str) -> None:
        """Hold there no more."""

    def begin(self, step: int) -> None:
        """The step of this number begins; like all that follows, called in the run's thread."""

    def step_ended(self) -> None:
        """The step is done, and the run is held behind it: what it was let through is forgotten."""

    def end(self) -> None:
        """The run ended."""


class Job(Protocol):
    """The steps of a run. All but `hyperparameters` and `check` are called in the run's thread, between two steps.

    Attributes:
        step: steps done so far.
        n_steps: steps planned, 0 when unknown.
        parameters: what the steps change; two runs never change the same tensor at the same time.
        kinds: of events that the run's recording takes.
        waits_for: what it waits for, in words, if that takes long; "" otherwise. Asked in any thread.
    """

    step: int
    n_steps: int
    kinds: tuple[type[Event], ...]

    @property
    def waits_for(self) -> str:
        """As above."""

    @property
    def parameters(self) -> Sequence[Tensor]:
        """What the steps change."""

    @property
    def finished(self) -> bool:
        """Whether no step is left."""

    @property
    def hyperparameters(self) -> dict[str, float]:
        """What `set` can change."""

    def check(self, name: str, value: float) -> None:
        """Refuse, by an ArgumentError, a hyperparameter that cannot be set to this value."""

    def begin(self, run: str) -> None:
        """Get ready for the first step; called once."""

    def advance(self) -> RunError | None:
        """Carry out one step. An error returned, not raised, pauses the run: the step was not done.

        A job that runs ahead may have done more steps since, or none yet.
        """

    def run_ahead(self) -> None:
        """From here on steps may be done before `advance` asks for them, until `hold`."""

    def ready(self) -> bool:
        """Whether the next step can begin. Waits for that, but not for long: the run may be asked something else."""

    def hold(self) -> None:
        """From here on no step is done that `advance` did not ask for; `step` and parameters are as after the last.

        Called when the run pauses, once a second while it is paused, and when steps are counted that were free.
        """

    def set(self, name: str, value: float) -> None:
        """Set a hyperparameter."""

    def bound(self, name: str, value: float) -> None:
        """Have `advance` return a BreakpointError where loss or gradient (one of BOUNDS) is above; inf: never."""

    def look_inside(self, run: str, held: Callable[[str], object]) -> Look:
        """What holds the run within its steps; `held` is called in its thread, with the words for where and why."""

    def rewind(self) -> None:
        """Go back to the last state known to be sound; also when the run has ended, then in another thread."""

    def result(self, run: str, state: str, elapsed_ms: float) -> Result:
        """What the run leaves behind; called once, after the last step."""

    def close(self) -> None:
        """Give back what it holds; called once, however the run ended."""


class Here:
    """What a job need not say whose steps are done in the run's own thread."""

    kinds: tuple[type[Event], ...] = RECORDED
    waits_for: str = ""

    def look_inside(self, run: str, held: Callable[[str], object]) -> Inside:
        """Operations and backward nodes can be held in the run's thread."""
        return Inside(run, held)

    def run_ahead(self) -> None:
        """Nobody does."""

    def ready(self) -> bool:
        """It can."""
        return True

    def hold(self) -> None:
        """Nothing moves between two calls."""

    def close(self) -> None:
        """Nothing is held."""


class Countdown(Here):
    """The smallest job: counts down to 0. For trying out controls, and for their tests.

    Args:
        n: where it starts.
        fails_at: the value at which a step raises; its loss is the value.

    Example:
        >>> job = Countdown(2)
        >>> job.advance(), job.advance(), job.finished
        (None, None, True)
    """

    def __init__(self, n: int, *, fails_at: int | None = None, troubled_at: int | None = None) -> None:
        self.n, self.start, self.fails_at, self.troubled_at = n, n, fails_at, troubled_at
        self.step, self.n_steps, self.hyperparameters = 0, n, {"by": 1.0}

    @property
    def parameters(self) -> Sequence[Tensor]:
        """Nothing."""
        return ()

    @property
    def finished(self) -> bool:
        """Whether it is at 0."""
        return self.n <= 0

    def check(self, name: str, value: float) -> None:
        """Only "by" can be set, to 1 or more."""
        if name != "by" or not value >= 1:
            given, hint = f"{name}={value}", "by=2 counts in twos"
            raise ArgumentError("a countdown can only be set to go by larger steps", given=given, hint=hint)

    def begin(self, run: str) -> None:
        """Say that it starts."""
        if bus.listeners:
            bus.emit(RunStarted(run, self.n_steps, 1, 0, f"Countdown({self.n})", ""))

    def advance(self) -> RunError | None:
        """Count."""
        if self.n == self.fails_at:
            raise ZeroDivisionError(f"the countdown failed at {self.n}")
        if self.n == self.troubled_at:
            hint = "run.rewind(), then run.resume()"
            return RunError(f"the countdown stalled at {self.n}", given="as told", hint=hint)
        self.n, self.step = max(0, self.n - int(self.hyperparameters["by"])), self.step + 1
        if bus.listeners:
            bus.emit(StepFinished(self.step, 0, self.n, 1, 0.0))
        return None

    def set(self, name: str, value: float) -> None:
        """Set how far a step goes."""
        self.hyperparameters[name] = value
        if bus.listeners:
            bus.emit(HyperparameterChanged(self.step, name, value))

    def bound(self, name: str, value: float) -> None:
        """A countdown never rises."""

    def rewind(self) -> None:
        """Start again."""
        self.n, self.step, self.troubled_at = self.start, 0, None

    def result(self, run: str, state: str, elapsed_ms: float) -> Result:
        """Where it stands."""
        return Result(run, state, self.step, 1, loss=self.n, elapsed_ms=elapsed_ms)
