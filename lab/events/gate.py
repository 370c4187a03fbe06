"""A gate in the way of a run: it lets so many operations or backward nodes pass, or all until one meets a breakpoint.

The thread that computes is held right after what passed was recorded, so a picture shows all that has happened and
nothing more. Nobody pays for it who has none: where operations are not observed, gates are not asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ArgumentError

UNITS: tuple[str, ...] = ("op", "node")
"""What can be stepped through: operations as they run, nodes of a backward walk as their rules run."""


class _Held(threading.local):
    seconds = 0.0


_HELD = _Held()


def clock() -> float:
    """Seconds like `perf_counter`, without those for which this thread was held.

    Example:
        >>> clock() <= clock()
        True
    """
    return perf_counter() - _HELD.seconds


def leave_out(seconds: float) -> None:
    """Have `clock` leave out so many seconds more in this thread: it was held by something else than a gate.

    Example:
        >>> before = clock()
        >>> leave_out(60.0)
        >>> round(before - clock())
        60
        >>> leave_out(-60.0)
    """
    _HELD.seconds += seconds


class Abandoned(BaseException):
    """Raised in a thread that waits at its gate, or comes to it, when what it computes is not wanted any more."""


class Passing(NamedTuple):
    """What has just happened in the thread of a run."""

    unit: str
    """One of UNITS."""
    node: int
    op: str
    module: str
    value: Any
    """The output of an operation, the gradient that came to a node; None where no array is there."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A breakpoint on what passes: holds where all that it says is so.

    Attributes:
        at: name of an operation, path of a module (what is within it counts), or number of a node; "" for any.
        unit: one of UNITS, "" for both.
        nonfinite: only where the value holds nan or inf.

    Example:
        >>> Condition(at="matmul").met(Passing("op", 7, "matmul", "1", None))
        True
        >>> str(Condition(at="1", unit="node")), str(Condition(nonfinite=True))
        ("backward through '1'", 'nan or inf')
    """

    at: str = ""
    unit: str = ""
    nonfinite: bool = False

    def met(self, passing: Passing) -> bool:
        """Whether it is so."""
        if self.unit and passing.unit != self.unit:
            return False
        if self.at and not (
            self.at in {passing.op, passing.module, str(passing.node)} or passing.module.startswith(f"{self.at}.")
        ):
            return False
        return not self.nonfinite or (passing.value is not None and not bool(np.isfinite(passing.value).all()))

    def __str__(self) -> str:
        words = {"op": "forward through", "node": "backward through", "": "at"}[self.unit]
        return " ".join(
            filter(None, ("nan or inf" if self.nonfinite else "", f"{words} {self.at!r}" if self.at else ""))
        )


@dataclass(eq=False)
class Gate:
    """The gate of one run. Other threads turn it; `passed` is called by the thread that computes.

    Args:
        run: name of the run whose thread it holds.
        before_waiting: called by that thread when it is held, with what passed and why, before it waits.

    Example:
        >>> gate = Gate("mine")
        >>> gate.passed(Passing("op", 1, "add", "", None)), gate.held is None
        (None, True)
    """

    run: str
    before_waiting: Callable[[Passing, str], object] = lambda passing, why: None
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    """Breakpoints by name; replaced, never changed."""
    held: Passing | None = None
    met: set[str] = field(default_factory=set)
    """Names of the breakpoints that something has met since `forget`."""
    _is_abandoned: bool = False
    _granted: dict[str, float] = field(default_factory=dict)
    """How many of each unit may pass before it closes; none said: all."""
    _modules: dict[int, str] = field(default_factory=dict)
    """Where each node was recorded: a backward walk only knows the node."""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def step(self, n: int = 1, unit: str = "op") -> None:
        """Let `n` of a unit pass, then hold; what is of the other unit passes by.

        Raises:
            ArgumentError: there is no such unit.
        """
        if unit not in UNITS:
            raise ArgumentError(
                "nothing of this kind passes a gate", given=repr(unit), hint=f"one of {', '.join(UNITS)}"
            )
        with self._changed:
            self._granted = {unit: self._granted.get(unit, 0) + n if self.held is None else n}
            self._go()

    def open(self, *, for_good: bool = False) -> None:
        """Let all pass; breakpoints still hold, unless it is open for good."""
        with self._changed:
            self._granted = {}
            if for_good:
                self.conditions = {}
            self._go()

    def abandon(self) -> None:
        """Have the thread leave what it computes by an `Abandoned`, at the next thing that would pass."""
        with self._changed:
            self._is_abandoned = True
            self._go()

    def forget(self) -> None:
        """Nodes that were recorded until now will not be walked any more, and what was met is of the past."""
        self._modules.clear()
        self.met.clear()

    def _go(self) -> None:
        self.held = None
        self._changed.notify_all()

    def passed(self, passing: Passing) -> None:
        """Hold this thread if the gate is closed now; returns when it is turned.

        Raises:
            Abandoned: what it computes is not wanted any more.
        """
        self._leave_if_abandoned()
        if passing.unit == "op":
            self._modules[passing.node] = passing.module
        else:
            passing = passing._replace(module=self._modules.get(passing.node, ""))
        with self._changed:
            why = self._why(passing)
            if why is None:
                return
            self.held = passing
        start = perf_counter()
        self.before_waiting(passing, why)
        with self._changed:
            self._changed.wait_for(lambda: self.held is None)
        leave_out(perf_counter() - start)
        self._leave_if_abandoned()

    def _leave_if_abandoned(self) -> None:
        if self._is_abandoned:
            raise Abandoned

    def _why(self, passing: Passing) -> str | None:
        """Why it closes behind this, "" for a step that is done, None if it stays open."""
        every = [name for name, condition in self.conditions.items() if condition.met(passing)]
        self.met.update(every)
        met = every[0] if every else None
        if passing.unit in self._granted:
            self._granted[passing.unit] -= 1
            if self._granted[passing.unit] <= 0 and met is None:
                return ""
        return met
