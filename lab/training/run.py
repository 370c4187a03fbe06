"""A run: steps carried out in a thread of their own, held and released by flags that other threads set between steps.

So a notebook's buttons, a script and an interrupt all do the same thing, and whatever stops a run finds complete steps.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator, Sequence
from time import monotonic
from typing import Any

from lab.autograd import Tensor
from lab.errors import ArgumentError, RunError
from lab.training.job import Job
from lab.training.registry import enter
from lab.training.result import Result
from lab.training.wishes import PATIENCE_S, Wishes
from lab.training.worker import ENDED, log

TICK_S = 0.1
"""How long an interrupt may go unnoticed by who waits."""
STATES = ("running", "paused", "stopping", *sorted(ENDED))


class Run(Wishes):
    """Training under way in a thread of its own: look at it, pause it, change it, wait for it.

    `await run` gives the result and keeps a notebook's controls alive meanwhile; `run.wait()` does so in a script.
    Both raise what made the run fail, and a RunError when it paused because the loss is no longer a number: such a run
    can be rewound, changed, resumed, and awaited again. Interrupting either stops the run after its step.

    Args:
        paused: hold before the first step.

    Attributes:
        name: unique among the runs of this process.
        recording: the run's own events.
        reason: why it paused by itself or failed; "" otherwise.
        waits_for: what it waits for, if that takes longer than a second; "" otherwise.

    Example:
        >>> from lab.training import Countdown
        >>> run = Run(Countdown(3), name="countdown")
        >>> run.wait()
        Result 'countdown': finished after 3 steps, loss 0, ... s
        >>> run.state, run.progress
        ('finished', (3, 3))
    """

    def __init__(self, job: Job, *, name: str = "", paused: bool = False) -> None:
        super().__init__(job, name, paused)
        enter(self)
        self._thread.start()

    # --- what anybody may ask ------------------------------------------------------------------------------------

    @property
    def progress(self) -> tuple[int, int]:
        """Steps done and steps planned (0 when unknown)."""
        return self._job.step, self._job.n_steps

    @property
    def parameters(self) -> Sequence[Tensor]:
        """The tensors that its steps change."""
        return self._job.parameters

    @property
    def trouble(self) -> RunError | None:
        """Why it paused by itself, with the operation in which nan or inf began as `given`; None otherwise."""
        return self._trouble

    @property
    def hyperparameters(self) -> dict[str, float]:
        """What `set` can change, with the values that the next step will use."""
        with self._changed:
            return self._job.hyperparameters | self._values

    @property
    def result(self) -> Result:
        """What the run left behind.

        Raises:
            RunError: it has not ended, or it failed.
        """
        if self._result is not None:
            return self._result
        if self._failure:
            hint = "`await run` shows where it happened"
            raise RunError(f"{self.name} failed", given=self.reason, hint=hint) from self._failure[0]
        raise self._unfinished()

    def _unfinished(self) -> RunError:
        given = "{} after {} of {} steps".format(self.state, *self.progress)
        return RunError(
            f"{self.name} has not ended yet", given=given, hint="`await run` gives the result; in a script, run.wait()"
        )

    def __repr__(self) -> str:
        why = f" ({self.reason or self.waits_for})" if self.reason or self.waits_for else ""
        return "Run {!r}: {}{}, step {} of {}".format(self.name, self.state, why, *self.progress)

    # --- waiting -------------------------------------------------------------------------------------------------

    def wait(self, timeout: float | None = None) -> Result:
        """The result, when there is one. Blocks a notebook's controls meanwhile: use `await run` there.

        Args:
            timeout: seconds.

        Raises:
            RunError: not ended in time, or paused because the loss is no longer a number.
            KeyboardInterrupt: interrupted; the run has been stopped.
        """
        end = None if timeout is None else monotonic() + timeout
        try:
            self._when_settled(lambda: None)  # somebody listens: a failure need not go to the log
            with self._changed:
                while not self._settled and (end is None or monotonic() < end):
                    # A short wait, because a lock that is waited for without end cannot be interrupted on Windows.
                    self._changed.wait(TICK_S if end is None else min(TICK_S, max(0.0, end - monotonic())))
        except KeyboardInterrupt:
            self.stop()
            self.join(PATIENCE_S)
            raise
        return self._outcome()

    def wait_until(self, *states: str, timeout: float | None = None) -> bool:
        """Wait until the run is in one of these states with no granted step left; False after `timeout` seconds.

        Raises:
            ArgumentError: there is no such state.

        Example:
            >>> from lab.training import Countdown
            >>> run = Run(Countdown(1_000_000))
            >>> run.pause()
            >>> run.wait_until("paused", timeout=10)
            True
            >>> run.stop()
        """
        if unknown := [state for state in states if state not in STATES]:
            raise ArgumentError(
                "a run is never in such a state", given=str(unknown), hint=f"one of {', '.join(STATES)}"
            )
        with self._changed:

            def busy() -> bool:
                return bool(self._n_granted) and not self._inside.is_held

            return self._changed.wait_for(lambda: self.state in states and not busy(), timeout)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread is gone, for so many seconds at most; whether it is."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def __await__(self) -> Generator[Any, None, Result]:
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            try:
                loop.call_soon_threadsafe(_resolve, settled)
            except RuntimeError:
                log.debug("%s ended after the event loop that awaited it", self.name)

        ticking: asyncio.Handle

        def tick() -> None:  # a kernel's interrupt is a signal, which a loop only notices when something wakes it up
            nonlocal ticking
            ticking = loop.call_later(TICK_S, tick)

        ticking = loop.call_soon(tick)
        self._when_settled(tell)
        try:
            yield from settled
        except asyncio.CancelledError:
            self.stop()
            self.join(PATIENCE_S)
            if _in_kernel():  # where an interrupt cancels the cell's task: the learner shall see an interrupt
                raise KeyboardInterrupt from None
            raise
        finally:
            ticking.cancel()
        return self._outcome()

    def _outcome(self) -> Result:
        if self._failure:
            error, traceback = self._failure
            raise error.with_traceback(traceback)  # or each wait would lengthen the traceback
        if self._trouble and self.state == "paused":
            raise self._trouble.with_traceback(None)
        if self._result is None:
            raise self._unfinished()
        return self._result


def _resolve(settled: asyncio.Future[None]) -> None:
    if not settled.done():  # nobody waits for a future that was cancelled
        settled.set_result(None)


def _in_kernel() -> bool:
    """Whether this code runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return hasattr(shell, "kernel")
