"""What a worker knows of its ranks: one seat per run, with the alarm that ends it, and which runs are over.

A seat is made by whoever comes first, the rank's thread or a message that its run has ended; a run that has ended is
remembered, so that a task that comes late (or is tried again by Dask) refuses at once.
"""

from __future__ import annotations

import ctypes
import pickle
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from lab.parallel.cluster.children import Children
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.transport.alarm import Alarm

if TYPE_CHECKING:
    from lab.parallel.ranks.runtime import Comm

REMEMBERED = 256
"""Ended runs that a worker remembers."""


class Interrupted(BaseException):
    """Thrown into a program that computes on while its run has ended; no `except Exception` swallows it."""


def throw_into(thread: int) -> None:
    """Raise `Interrupted` in a thread at its next line of Python.

    It is never taken back: CPython 3.11 leaves its flag set when the exception is replaced by none, and a function that
    is entered under a profiler then waits for ever.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Interrupted))


class Seat:
    """A rank's place on a worker.

    Attributes:
        mailbox: what the launch says to the rank.
        comm: the rank's Comm once it is connected; asked from outside where the rank is.
        thread: ident of the thread that runs the program, 0 while none does.
        children: the processes that were there before it; None where others than the rank may start some.
    """

    def __init__(self, rank: int, mailbox: Mailbox | None = None) -> None:
        self.rank, self.alarm, self.thread, self.mailbox = rank, Alarm(), 0, mailbox or Mailbox()
        self.comm: Comm | None = None
        self.children: Children | None = None
        self._lock, self._thrown = threading.Lock(), False

    def program_begins(self, thread: int) -> None:
        """From here on the program may be interrupted."""
        with self._lock:
            self.thread = thread

    def program_ends(self) -> None:
        """From here on it may not, and an interrupt that is on its way arrives here."""
        try:
            self._close_the_program()
        except Interrupted:  # it comes once
            self._close_the_program()

    def _close_the_program(self) -> None:
        with self._lock:
            self.thread, was_thrown = 0, self._thrown
        if was_thrown:
            for _ in range(1000):  # a thread takes an interrupt where its loops turn
                pass

    def interrupt(self) -> None:
        """Throw `Interrupted` into the program, if it runs, and end the processes that it has started."""
        with self._lock:
            if self.thread and not self._thrown:
                self._thrown = True
                throw_into(self.thread)
                if self.children is not None:  # it may wait for one of them, where no interrupt is heard
                    self.children.end(reap=False)

    def where(self) -> tuple[str, str, list[int]]:
        """What the rank does ("computes", "waits" or has "ended"), the call that it is in, and whom it waits for."""
        comm = self.comm
        if comm is None:
            return "computes", "", []
        if comm.links.leaves:
            return "ended", "", []
        call = comm.inside
        return "waits" if call else "computes", call, comm.links.waits_for() if call else []


class Seats:
    """All seats of a worker; usually one.

    Example:
        >>> seats = Seats()
        >>> seats.ring("run a", "stopped", "Stop was pressed")
        False
        >>> seats.take("run a", 0) is None
        True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: dict[str, Seat] = {}
        self._over: OrderedDict[str, None] = OrderedDict()
        self._mail: OrderedDict[str, Mailbox] = OrderedDict()  # of runs whose rank has not come yet

    def take(self, run: str, rank: int) -> Seat | None:
        """A seat, or None: the run is over, or has a rank here already."""
        with self._lock:
            if run in self._over or run in self._taken:
                return None
            seat = self._taken[run] = Seat(rank, self._mail.pop(run, None) or Mailbox(_loads))
            return seat

    def say(self, run: str, message: bytes) -> None:
        """Put a pickled message into the mailbox of the run's rank, also before it has come; not when it is over."""
        with self._lock:
            if run in self._over:
                return
            seat = self._taken.get(run)
            box = seat.mailbox if seat else self._mail.setdefault(run, Mailbox(_loads))
            box.put(message)
            _keep_newest(self._mail)

    def leave(self, run: str) -> None:
        """The rank's thread is done."""
        with self._lock:
            seat = self._taken.pop(run, None)
            self._remember(run)
        if seat is not None:
            seat.alarm.close()

    def ring(self, run: str, kind: str, why: str, rank: int = -1) -> bool:
        """End a run here; whether a rank of it is still at work."""
        with self._lock:
            seat = self._taken.get(run)
            self._remember(run)
        if seat is not None:
            seat.alarm.ring(kind, why, rank=rank)
        return seat is not None

    def ring_all(self, kind: str, why: str) -> None:
        """End everything: the worker closes."""
        for run in list(self._taken):
            self.ring(run, kind, why)

    def at(self, run: str) -> Seat | None:
        """The seat of a run, if its rank is at work."""
        return self._taken.get(run)

    def _remember(self, run: str) -> None:
        self._mail.pop(run, None)
        self._over[run] = None
        _keep_newest(self._over)


def _keep_newest(runs: OrderedDict[str, Any]) -> None:
    while len(runs) > REMEMBERED:
        runs.popitem(last=False)


def _loads(message: object) -> object:
    assert isinstance(message, bytes)
    return pickle.loads(message)  # noqa: S301 -- it came over the cluster's own connection
