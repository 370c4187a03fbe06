"""`step_through`: a function of the user's, carried out in a thread of its own and held between its operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

from lab.autograd import Tensor
from lab.errors import ArgumentError
from lab.events import RunStarted, bus
from lab.events.gate import Abandoned
from lab.training.inside import Inside
from lab.training.job import Here
from lab.training.result import Result
from lab.training.run import Run


class Calling(Here):
    """One call as a job of one step, which a stop abandons at its next operation."""

    def __init__(self, function: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, Any]) -> None:
        self._function, self._args, self._kwargs = function, args, kwargs
        self.step, self.n_steps, self.hyperparameters = 0, 1, dict[str, float]()
        self._value: Any = None

    @property
    def parameters(self) -> Sequence[Tensor]:
        """What it changes is not known."""
        return ()

    @property
    def finished(self) -> bool:
        return self.step == 1

    def look_inside(self, run: str, held: Callable[[str], object]) -> Inside:
        within = (self._function, *self._args, *self._kwargs.values())
        return Inside(run, held, within=within, abandons=True)

    def check(self, name: str, value: float) -> None:
        raise ArgumentError("a function has no hyperparameters", given=f"{name}={value}", hint="give it arguments")

    def begin(self, run: str) -> None:
        if bus.listeners:
            bus.emit(RunStarted(run, 1, 1, 0, getattr(self._function, "__qualname__", "a function"), ""))

    def advance(self) -> None:
        try:
            self._value = self._function(*self._args, **self._kwargs)
        except Abandoned:
            return
        self.step = 1

    def set(self, name: str, value: float) -> None:
        """Nothing can be set: `check` has refused it."""

    def bound(self, name: str, value: float) -> None:
        """It has no loss that anybody knows of."""

    def rewind(self) -> None:
        """To its beginning; what it changed outside stays."""
        self.step, self._value = 0, None

    def result(self, run: str, state: str, elapsed_ms: float) -> Result:
        return Result(run, state, self.step, 0, nan, elapsed_ms=elapsed_ms, value=self._value)


def step_through(function: Callable[..., Any], *args: object, **kwargs: Any) -> Run:
    """Call a function in a thread of its own, held before its first operation; returns the Run at once.

    `run.step(of="op")` lets one operation pass, `run.step(of="node")` a node of the backward walk, `run.resume()` all;
    `run.break_on(at="matmul")` holds it there. `run.graph` has what it did so far, for a GraphView that follows, and
    `(await run).value` what it returned. A stop abandons it at its next operation.

    Raises:
        ArgumentError: it is no function.

    Example:
        >>> import lab
        >>> x = lab.tensor(3.0, requires_grad=True, name="x")
        >>> run = step_through(lambda: (x * x + x).backward())
        >>> run.step(of="op")
        >>> run.wait_until("paused", timeout=10), run.reason
        (True, 'held after multiply')
        >>> run.resume()
        >>> run.wait(10).state, x.grad
        ('finished', tensor(7.))
    """
    called: Any = function
    if not callable(called):
        hint = "lab.step_through(lambda: loss_of(model)): what runs inside is held"
        raise ArgumentError("step_through needs a function", given=repr(function)[:60], hint=hint)
    return Run(Calling(function, args, kwargs), name=getattr(function, "__name__", "").strip("<>"), paused=True)
