"""What anybody may want of a run: pause, go on, step, stop, change, go back, hold at breakpoints.

Only flags are set here, by whichever thread asks; the run's own thread acts on them between two steps, or at its gate.
"""

from __future__ import annotations

import math
import threading

from lab.checks import flag, number, whole
from lab.errors import ArgumentError, RunError
from lab.events.gate import Condition
from lab.events.recording import Recording
from lab.training.worker import ENDED, Worker

UNIT_WORDS = {"step": "step of training", "op": "operation", "node": "node of the backward walk",
              "hop": "step of a collective", "action": "action of a pipeline"}  # fmt: skip
"""What `Run.step(of=...)` knows; a run has some of them."""
PATIENCE_S = 2.0
"""How long a rewind or an interrupted wait gives the current step to end."""


class Wishes(Worker):
    """The controls of a run; `Run` adds waiting for it."""

    def pause(self) -> None:
        """Hold after the current step; does nothing to a run that has ended."""
        with self._changed:
            if self._wanted != "stopping":
                self._wanted, self._n_granted = "paused", 0

    @property
    def is_pausing(self) -> bool:
        """Whether a pause was asked for and the step under way is not over yet."""
        with self._changed:
            return self._wanted == "paused" and self._state == "running" and not self._n_granted

    def resume(self) -> None:
        """Go on after a pause, also one that the run made by itself, at a breakpoint, or in the middle of a step.

        Raises:
            RunError: the run has ended or is stopping.
        """
        with self._changed:
            self._want("running", "resume")
            self._let_pass(self._inside.go_on)

    def step(self, n: int = 1, of: str = "step") -> None:
        """Do `n` steps, then pause; asked again before they are done, it adds to them.

        Args:
            of: "step" is a step of training; what was begun is brought to its end first, and counts. "op" is one
                operation of the forward, "node" one node of the backward walk: the run is held in the middle of its
                step, `reason` says where, and `graph` has what it did. "hop" is one step of a collective, where copies
                train on ranks (`on=DataParallel(...)`). "action" is one tick of a pipeline (`on=Pipeline(...)`): each
                stage whose next forward or backward has its input does that one, and what it sends on is received;
                the others rest. One action at a time would show them one after another; a tick shows what runs at
                the same time, a column of the picture with its bubble. The run is held at the end of the step at the
                latest.

        Raises:
            ArgumentError: n is not a whole number, or below 1; something else to step through.
            RunError: the run has ended or is stopping, or has nothing of this kind in its steps.

        Example:
            >>> from lab.data import digits
            >>> from lab.nn import mlp
            >>> from lab.training import fit
            >>> run = fit(mlp(64, 32, 10, rng=0), digits()[0], paused=True)
            >>> run.step(2, of="op")
            >>> run.wait_until("paused", timeout=10), run.reason
            (True, 'held after add of module 0')
            >>> run.stop()
        """
        n = whole("n", n, least=1, hint="run.step(3) does three; run.rewind() goes back")
        if of != "step":
            self._step_inside(n, of)
            return
        with self._changed:
            more = n - self._inside.is_held
            self._want("paused", "step", self._n_granted + more if more else 0)
            self._let_pass(self._inside.go_on)

    def _step_inside(self, n: int, unit: str) -> None:
        if unit not in UNIT_WORDS:
            raise ArgumentError(
                "a run cannot be stepped by this",
                given=repr(unit),
                hint=" or ".join(f'"{known}" ({words})' for known, words in UNIT_WORDS.items()),
            )
        if unit not in self.units:
            raise RunError(
                f"{self.name} cannot be stepped by {UNIT_WORDS[unit]}",
                given=self._where(),
                hint=f"it knows {', '.join(map(repr, self.units))}",
            )
        with self._changed:
            self._want("paused", "step", int(not self._inside.is_held))  # asked twice before it began: one step
            self._let_pass(lambda: self._inside.step(n, unit))

    def _where(self) -> str:
        return "its operations run in this process" if "op" in self.units else "its operations run on workers"

    def break_on(
        self,
        *,
        loss_above: float | None = None,
        gradient_above: float | None = None,
        nonfinite: bool = False,
        at: str | int = "",
        backward: bool = False,
    ) -> str:
        """Pause by itself where this holds, as often as it does; returns the name of the breakpoint.

        Whoever awaits the run goes on waiting. A bound holds before the update, on workers too, and takes the place of
        an earlier one on the same; what holds at single operations makes each step slower, since all are looked at.

        Args:
            loss_above: loss of a batch.
            gradient_above: Euclidean norm of the gradient of all parameters.
            nonfinite: the first value or gradient that holds nan or inf.
            at: name of an operation, path of a module (held at what is within it, too), or number of a node;
                `backward`: where its gradient passes.

        Raises:
            ArgumentError: not exactly one of them, a bound that is no finite number, or a place that no run comes to.
            RunError: the run has ended, or its operations run on workers.

        Example:
            >>> from lab.training import Countdown, Run
            >>> run = Run(Countdown(10), paused=True)
            >>> run.break_on(loss_above=3)
            'loss above 3'
            >>> run.breakpoints
            ('loss above 3',)
            >>> run.stop()
        """
        bounds = {"loss": loss_above, "gradient": gradient_above}
        nonfinite, backward = flag("nonfinite", nonfinite), flag("backward", backward)
        asked = [name for name, value in bounds.items() if value is not None] + ["nonfinite"] * nonfinite
        asked += ["at"] if at != "" else []
        if len(asked) != 1 or (backward and at == ""):
            raise ArgumentError("a breakpoint is on one thing", given=", ".join(asked) or "nothing to hold at",
                                hint='run.break_on(loss_above=3) or (at="matmul"); call it once for each')  # fmt: skip
        if self.ended:
            raise RunError(f"{self.name} will meet no breakpoint", given=f"it is {self.state}",
                           hint="lab.fit(...) starts another")  # fmt: skip
        for name, value in bounds.items():
            if value is not None:
                bound = number(f"{name}_above", value, hint=f"run.break_on({name}_above=10)")
                if not math.isfinite(bound):
                    raise ArgumentError("a bound is a finite number", given=f"{name}_above={bound}",
                                        hint="to take one away: run.clear_breakpoint(name)")  # fmt: skip
                return self._bound(name, bound)
        if "op" not in self.units:
            raise RunError(f"{self.name} cannot be held at an operation", given=self._where(),
                           hint="bounds on loss and gradient hold there too; or train without on=")  # fmt: skip
        return self._inside.add(Condition(str(at), ("node" if backward else "op") if at != "" else "", nonfinite))

    def _bound(self, name: str, value: float) -> str:
        with self._changed:
            self._bounds = {n: v for n, v in (self._bounds | {name: value}).items() if v < math.inf}
            self._requests.append(lambda: self._job.bound(name, value))
            self._changed.notify_all()
        return f"{name} above {value:g}"

    @property
    def is_inside(self) -> bool:
        """Whether it is held in the middle of a step; `reason` says where."""
        with self._changed:
            return self._state == "paused" and self._inside.is_held

    @property
    def units(self) -> tuple[str, ...]:
        """What `step(of=...)` knows for this run."""
        return "step", *self._inside.units

    @property
    def breakpoints(self) -> tuple[str, ...]:
        """The names of its breakpoints."""
        return (*(f"{name} above {value:g}" for name, value in self._bounds.items()), *self._inside.breakpoints)

    @property
    def unmet_breakpoints(self) -> tuple[str, ...]:
        """The names of those at places to which its last whole step did not come, as an operation of other models."""
        return self._inside.unmet

    def clear_breakpoint(self, name: str) -> None:
        """Take a breakpoint away.

        Raises:
            ArgumentError: there is none of this name.
        """
        if name not in self.breakpoints:
            raise ArgumentError(f"{self.name} has no such breakpoint", given=repr(name),
                                hint=f"one of {self.breakpoints}")  # fmt: skip
        for bound, value in tuple(self._bounds.items()):
            if name == f"{bound} above {value:g}":
                self._bound(bound, math.inf)
        self._inside.remove(name)

    @property
    def graph(self) -> Recording | None:
        """What the step that was looked into last has done so far, for a GraphView; None before the first one."""
        return self._inside.graph

    def _want(self, wanted: str, verb: str, n_granted: int = 0) -> None:
        with self._changed:
            if self.state in ENDED or self._wanted == "stopping":
                raise RunError(
                    f"{self.name} cannot {verb}", given=f"it is {self.state}", hint="lab.fit(...) starts another"
                )
            self._n_granted = n_granted
            self._wanted, self._trouble, self.reason = wanted, None, ""
            if wanted == "running":
                self._state = wanted  # who waits for its next pause does not find the old one
            self._changed.notify_all()

    def stop(self) -> None:
        """End after the current step; `await run` then gives what there is. Does nothing to a run that has ended."""
        with self._changed:
            self._wanted = "stopping"
            self._let_pass(self._inside.leave)
            self._changed.notify_all()

    def abandon(self) -> None:
        """Stop, and keep to itself how that ended: the program ends, and nobody will look."""
        self._when_settled(lambda: None)  # as if somebody waited, who is told instead of the terminal
        self.stop()

    def set(self, name: str, value: float) -> None:
        """Change a hyperparameter from the next step on.

        Raises:
            ArgumentError: no such hyperparameter, or a value that it cannot have.
            RunError: the run has ended.

        Example:
            >>> from lab.training import Countdown, Run
            >>> run = Run(Countdown(1_000_000))
            >>> run.set("by", 2)
            >>> run.hyperparameters
            {'by': 2.0}
            >>> run.stop()
        """
        self._job.check(name, value)
        with self._changed:
            if self.ended:
                hint = "lab.fit(...) starts another"
                raise RunError(f"{self.name} cannot change {name}", given=f"it is {self.state}", hint=hint)
            self._values[name] = float(value)
            self._requests.append(lambda: self._job.set(name, float(value)))
            self._changed.notify_all()

    def rewind(self) -> None:
        """Go back to the last state known to be sound, and pause there: parameters, optimiser and step count.

        Raises:
            RunError: the current step did not end in time, or the run is stopping.
        """
        with self._changed:
            if self.ended:
                self._job.rewind()
                return
            if self._wanted == "stopping":
                hint = "run.wait() gives its result; after that it can be rewound"
                raise RunError(f"{self.name} cannot rewind", given="it is stopping", hint=hint)
            done = threading.Event()
            self._wanted, self._n_granted = "paused", 0
            self._requests.append(lambda: self._rewind(done))
            self._let_pass(self._inside.go_on)
            self._changed.notify_all()
        if not done.wait(PATIENCE_S):
            raise RunError(
                f"{self.name} is still busy with its step", given=repr(self), hint="it rewinds when the step ends"
            )
