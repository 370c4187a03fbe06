"""The thread side of a run: it carries out steps, and between two of them looks at what it was asked for.

Other threads only set flags under one lock and wake it; nothing of the job is touched while a step is under way.
"""

from __future__ import annotations

import contextvars
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing
from types import TracebackType
from typing import TextIO

import numpy as np

from lab.errors import MeshError, RunError
from lab.events import ORIGIN, Origin, RunFinished, RunStateChanged, bus
from lab.events.gate import clock
from lab.events.recording import Recording
from lab.kernels.blas import one_blas_thread
from lab.training.job import BreakpointError, Job
from lab.training.registry import unique_name
from lab.training.result import Result

log = logging.getLogger("lab.training")

ENDED = frozenset({"finished", "stopped", "failed"})
LOOKS_S = 1.0
"""How often a paused run looks whether what it holds is still there."""


class Worker:
    """Carries out a job in a thread of its own; `Run` adds the controls."""

    def __init__(self, job: Job, name: str, paused: bool) -> None:
        self.name = unique_name(name or "run")
        self.recording = Recording(kinds=job.kinds, run=self.name, sources=False)
        self.reason = ""
        self._job = job
        self._changed = threading.Condition()
        self._wanted = "paused" if paused else "running"  # or "stopping": what the last handler asked for
        self._n_granted = 0  # steps that may be done although it is paused
        self._free = False  # nobody counts the steps
        self._requests: deque[Callable[[], None]] = deque()  # what the thread shall do between two steps
        self._values: dict[str, float] = {}  # hyperparameters that were set by hand, maybe not in the job yet
        self._state = self._told_state = "running"
        self._elapsed_s = 0.0
        self._trouble: RunError | None = None
        self._failure: tuple[BaseException, TracebackType | None] | None = None
        self._result: Result | None = None
        self._watchers: list[Callable[[], None]] = []
        self._inside = job.look_inside(self.name, self._held_inside)
        self._bounds: dict[str, float] = {}
        self._is_told = False  # a line says of its trouble, and nothing that it is over
        bus.attach(self.recording)
        # The copied context takes settings along, and keeps what the thread prints in the cell that started it.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._work,), name=f"lab {self.name}", daemon=True)

    @property
    def state(self) -> str:
        """One of "running", "paused", "stopping", "finished", "stopped", "failed"."""
        return "stopping" if self._wanted == "stopping" and self._state not in ENDED else self._state

    @property
    def waits_for(self) -> str:
        """What it waits for, if that takes longer than a second, as workers that are busy; "" otherwise."""
        return "" if self._state in ENDED else self._job.waits_for

    @property
    def ended(self) -> bool:
        """Whether nothing will happen any more."""
        return self._state in ENDED

    def _work(self) -> None:
        ORIGIN.set(Origin(0, self.name))
        # NumPy keeps this by thread. Nan and inf are looked for where they matter, and said in the learner's words.
        np.seterr(over="ignore", invalid="ignore", divide="ignore")
        state = "failed"
        try:
            with one_blas_thread(), closing(self._job):
                ended = self._carry_out()
                self._result = self._job.result(self.name, ended, 1000 * self._elapsed_s)
            state = ended
        except BaseException as why:  # noqa: BLE001 - whatever it is, who waits for the run must hear of it
            self._failure, self.reason = (why, why.__traceback__), _reason_of(why)
        finally:
            self._end(state)

    def _carry_out(self) -> str:
        job = self._job
        self._timed(lambda: job.begin(self.name))
        while not job.finished and self._may_go_on():
            self._inside.begin(job.step + 1)
            trouble = self._timed(job.advance)
            if trouble:
                self._hold(trouble)
            elif self._is_told:
                self._answer(f"is sound again: step {job.step:,} is done")
        return "finished" if job.finished else "stopped"

    def _timed(self, part: Callable[[], RunError | None]) -> RunError | None:
        start = clock()
        try:
            return part()
        finally:
            self._elapsed_s += clock() - start

    def _may_go_on(self) -> bool:
        """Between two steps: do what was asked for, hold while paused; False when the run shall stop."""
        if self._free and self._wanted == self._state == "running" and not self._requests:
            return True
        while True:
            while self._requests:
                self._requests.popleft()()
            state = self._next_state()
            was_free, self._free = self._free, self._wanted == state == "running"
            if self._free:
                self._job.run_ahead()
            elif state == "paused" or (state == "running" and was_free):
                self._job.hold()
            if self._job.finished:  # what ran ahead was at the end before it was held
                return False
            if state == "running" and not self._free and not self._job.ready():
                continue  # a granted step waits for workers; meanwhile it may be taken back
            self._enter(state)
            if state != "paused":
                return state == "running"
            with self._changed:
                self._changed.wait_for(lambda: self._requests or self._next_state() != "paused", LOOKS_S)

    def _next_state(self) -> str:
        return "running" if self._wanted == "paused" and self._n_granted else self._wanted

    def _enter(self, state: str) -> None:
        # Events are emitted without the lock: whoever delivers them may be waiting for it.
        if state != self._told_state and bus.listeners:
            bus.emit(RunStateChanged(self._job.step, state))
        self._told_state = state
        with self._changed:
            if state == "running" and self._n_granted:
                self._n_granted -= 1
            if state == "paused":
                if self._next_state() != "paused":  # somebody has asked for more since
                    return
                self._inside.step_ended()
            self._state = state
            self._notify()

    def _held_inside(self, words: str) -> None:
        """The gate has closed in the middle of a step."""
        bus.flush()  # who sees that the run is held finds in the recordings what it was held at
        with self._changed:
            if self._inside.is_held:  # else somebody has turned it already
                self._state, self.reason = "paused", words
                self._notify()

    def _let_pass(self, turn: Callable[[], None]) -> None:
        """Turn the gate; who looks at the state from now on does not see the old hold. The lock is held."""
        if self._inside.is_held:
            self._state, self.reason = "running", ""
        turn()

    def _hold(self, trouble: RunError) -> None:
        with self._changed:
            if isinstance(trouble, BreakpointError):  # asked for: who awaits the run goes on waiting
                self.reason = f"{trouble.problem}: {trouble.given}"
            else:
                if not (self._watchers or self._is_told):  # the same again after each click on Resume says nothing new
                    self._say(f"paused at step {self._job.step:,}: {trouble.problem}", "shows more")
                    self._is_told = True
                self._trouble, self.reason = trouble, trouble.problem
            if self._wanted != "stopping":
                self._wanted, self._n_granted = "paused", 0

    def _rewind(self, done: threading.Event) -> None:
        self._job.rewind()
        self._trouble, self.reason = None, ""
        if self._is_told:
            self._answer(f"is back at step {self._job.step:,}, where it was sound")
        if bus.listeners:
            bus.emit(RunStateChanged(self._job.step, "paused"))
        self._told_state = "paused"
        with self._changed:
            self._state = "paused"
            self._notify()
        done.set()

    def _end(self, state: str) -> None:
        """Tell everybody, whatever else goes wrong."""
        try:
            self._inside.end()
            if bus.listeners:
                bus.emit(RunFinished(self.name, state, self._job.step, 1000 * self._elapsed_s, self.reason))
            self.recording.close()
        finally:
            with self._changed:
                if self._failure and not self._watchers:
                    why = self._failure[0]
                    log.error("run %s failed", self.name, exc_info=why)
                    kind = type(why).__name__
                    named = kind if self.reason == kind else f"{kind}: {self.reason}"
                    self._say(f"failed at step {self._job.step:,}: {named}", "shows where")
                self._state, self._requests = state, deque()
                self._notify()

    def _say(self, what: str, more: str) -> None:
        """One line for who does not wait: below the cell that started the run, or on the terminal."""
        _write(sys.stderr, f"Run {self.name!r} {what}. `await run` {more}; in a script, run.wait().")

    def _answer(self, what: str) -> None:
        """What was said of its trouble is over."""
        self._is_told = False
        _write(sys.stdout, f"Run {self.name!r} {what}.")

    @property
    def _settled(self) -> bool:
        """Nothing will happen without somebody's doing."""
        return self.ended or (self._trouble is not None and self.state == "paused")

    def _when_settled(self, tell: Callable[[], None]) -> None:
        with self._changed:
            self._watchers.append(tell)
            self._notify()

    def _notify(self) -> None:
        """Wake those who wait; the lock is held."""
        self._changed.notify_all()
        if self._settled:
            watchers, self._watchers = self._watchers, []
            for tell in watchers:
                tell()


def _write(stream: TextIO | None, line: str) -> None:
    if stream is not None:  # a program without a terminal
        stream.write(f"{line}\n")
        stream.flush()


def _reason_of(why: BaseException) -> str:
    """Why a run failed, in one line; that it got no workers is told with who holds them and what helps."""
    if isinstance(why, MeshError) and why.given:
        return " ".join(f"{why.problem}: {why.given}{f'; {why.hint}' if why.hint else ''}".split())
    return str(why).split("\n", 1)[0] or type(why).__name__
