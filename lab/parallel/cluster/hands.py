"""What one may do by hand to workers that this process started: kill, stop, let go on, make slow.

A worker is named by its address and its process: what was meant for one that has gone meets nobody in its place. Other
clusters are not touched, for only processes that are children of this one are known here. Everything but a kill is
taken back by `go_on`, and by the cluster's own end.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lab.checks import number
from lab.errors import ArgumentError, MeshError
from lab.events import WorkerHandled, bus
from lab.events.event import ORIGIN, Origin
from lab.words import shown

PERIOD = 0.1
"""Seconds in which a slow worker is stopped once."""
SHARE = 0.25
"""Of its time in which a slow worker runs, if nothing is said."""


class Slowed(NamedTuple):
    """A worker that is not left alone.

    Attributes:
        pid: its process.
        share: of its time in which it runs; 0 for one that is stopped.
    """

    pid: int
    share: float


class Hands:
    """Hands on the workers of one cluster.

    Args:
        processes: tells the process of each worker by its address, at any time.
        run_of: tells the name of the run whose rank a worker holds, "" for none.

    Example:
        >>> hands = Hands(dict)
        >>> hands.kill("tcp://127.0.0.1:40000")
        Traceback (most recent call last):
        lab.errors.MeshError: no such worker was started here
        given: 'tcp://127.0.0.1:40000', and there are none
        hint:  one of somebody else's cluster is left alone: end it where it was started
    """

    def __init__(
        self, processes: Callable[[], Mapping[str, int]], run_of: Callable[[str], str] = lambda _: ""
    ) -> None:
        self._processes, self._run_of = processes, run_of
        self._slowed: dict[str, Slowed] = {}
        self._lock, self._change = threading.RLock(), threading.Event()
        self._thread: threading.Thread | None = None

    def kill(self, worker: str, *, pid: int = 0) -> None:
        """End a worker at once, as a crash or the memory killer would (SIGKILL); its nanny starts another.

        Args:
            worker: its address.
            pid: of the process that is meant; one that has taken its place is not touched.

        Raises:
            MeshError: this process has not started it, or it has gone.
        """
        self._act(worker, pid, "killed", 0.0)

    def stop(self, worker: str, *, pid: int = 0) -> None:
        """Stop a worker where it is (SIGSTOP), until `go_on`; arguments and errors as `kill`."""
        self._act(worker, pid, "stopped", 0.0)

    def slow(self, worker: str, share: float = SHARE, *, pid: int = 0) -> None:
        """Let a worker run for a share of its time, and stop it for the rest of each tenth of a second.

        Raises:
            ArgumentError: a share that is not between 0 and 1.
            MeshError: as `kill`.
        """
        share = number("share", share, hint="0.25 for a quarter of its time")
        if not 0 < share < 1:
            raise ArgumentError("a slow worker runs for a share of its time", given=f"share={shown(share)}",
                                hint="between 0 and 1; stop() stops it, go_on() lets it run")  # fmt: skip
        self._act(worker, pid, "slowed", share)

    def go_on(self, worker: str, *, pid: int = 0) -> None:
        """Let a worker that was stopped or slowed run as it likes; arguments and errors as `kill`."""
        self._act(worker, pid, "let go on", 1.0)

    def state_of(self, worker: str) -> Slowed | None:
        """What is done to a worker now; None if it is left alone, or has gone."""
        with self._lock:
            held = self._slowed.get(worker)
            return held if held is not None and self._processes().get(worker) == held.pid else None

    def let_all_go_on(self) -> None:
        """Nobody is stopped or slowed any more."""
        with self._lock:
            slowed, self._slowed = self._slowed, {}
            self._change.set()
            for worker, held in slowed.items():
                if self._processes().get(worker) == held.pid:
                    _signal(held.pid, "SIGCONT")

    def _act(self, worker: str, pid: int, action: str, share: float) -> None:
        with self._lock:
            pid = self._meant(worker, pid)
            self._slowed.pop(worker, None)
            if action in ("stopped", "slowed"):
                self._slowed[worker] = Slowed(pid, share)
            _signal(pid, {"killed": "SIGKILL", "stopped": "SIGSTOP"}.get(action, "SIGCONT"))
            self._change.set()
            if action == "slowed" and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._take_turns, name="slow workers", daemon=True)
                self._thread.start()
        self._tell(WorkerHandled(worker, pid, action, share), self._run_of(worker))

    def _meant(self, worker: str, pid: int) -> int:
        there = self._processes()
        if worker not in there:
            others = f"there {'are' if len(there) != 1 else 'is'} {', '.join(there) or 'none'}"
            raise MeshError(
                "no such worker was started here", given=f"{worker!r}, and {others}",
                hint="one of somebody else's cluster is left alone: end it where it was started",
            )  # fmt: skip
        if pid and there[worker] != pid:
            raise MeshError("that worker has gone, and another has its place", given=f"process {pid}, now "
                            f"{there[worker]}", hint="the new one was not touched")  # fmt: skip
        return there[worker]

    @staticmethod
    def _tell(event: WorkerHandled, run: str) -> None:
        """As of the run whose rank was struck: its recording shall have it."""
        if not bus.listeners:
            return
        before = ORIGIN.set(Origin(ORIGIN.get().rank, run or ORIGIN.get().run))
        try:
            bus.emit(event)
        finally:
            ORIGIN.reset(before)

    def _take_turns(self) -> None:
        """Stop each slow worker once in a period; in a thread of its own, until none is left."""
        while True:
            self._change.clear()
            with self._lock:
                turns = sorted((held.share, held.pid) for held in self._slowed.values() if held.share)
                there = set(self._processes().values())
                if not turns:
                    self._thread = None
                    return
                self._signal_all([pid for _, pid in turns if pid in there], "SIGSTOP")
            passed = 0.0
            for share, pid in sorted(turns, reverse=True):  # the one that runs most goes on first
                wait = (1 - share) * PERIOD - passed
                if wait > 0 and self._change.wait(wait):
                    break
                passed = max(passed, (1 - share) * PERIOD)
                self._let_run(pid)
            else:
                self._change.wait(PERIOD - passed)
            for _, pid in turns:
                self._let_run(pid)

    def _let_run(self, pid: int) -> None:
        """Unless somebody has stopped it for good meanwhile."""
        with self._lock:
            stopped = {held.pid for held in self._slowed.values() if not held.share}
            if pid in self._processes().values() and pid not in stopped:
                _signal(pid, "SIGCONT")

    def _signal_all(self, pids: list[int], name: str) -> None:
        for pid in pids:
            _signal(pid, name)


def _signal(pid: int, name: str) -> None:
    """Send a signal to a child of ours; one that has just ended needs none.

    Raises:
        MeshError: this system has no such signal.
    """
    number_of = getattr(signal, name, None)
    if number_of is None:
        raise MeshError("processes cannot be stopped and let go on here", given=f"no {name} on this system",
                        hint="Linux and macOS have it")  # fmt: skip
    try:
        os.kill(pid, number_of)
    except ProcessLookupError:
        return
