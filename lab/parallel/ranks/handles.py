"""Calls that are under way while the program computes on: a queue, and one thread that carries them out in order.

They go over the same connections as all other calls, one after the other: a call that the program waits for takes its
turn behind those that it has started. So the order of calls is the order in which a program makes them, on every rank.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Generic, NamedTuple, NoReturn, TypeVar, cast

import numpy as np

from lab.errors import ArgumentError, MeshError
from lab.events.event import Array
from lab.parallel.transport.alarm import Alarm
from lab.words import counted

R = TypeVar("R")

LOOKS = 0.5
"""Seconds between two looks of who waits: an interrupt is heard between them."""


class Job(NamedTuple, Generic[R]):
    """A call that is ready: its arguments have been looked at, nothing has been sent."""

    words: str
    """What was called, and in which line."""
    run: Callable[[], R]
    touches: Array | None = None
    """The caller's array, which the call writes to."""


class Handle(Generic[R]):
    """A call that was started (`comm.start`).

    The array that was given belongs to the call until `wait` has returned: who reads it sees anything, and it cannot be
    written to under the name that was given (through another view of the same memory it can, unnoticed).

    Attributes:
        words: what was called, and in which line.
        began, ended: when it was under way, in seconds of `perf_counter`; 0 before.

    Example:
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     handle = comm.start("all_reduce_", np.ones(2))
        ...     return handle.wait().tolist(), handle.done
        >>> run_ranks(program, world_size=2)
        [([2.0, 2.0], True), ([2.0, 2.0], True)]
    """

    def __init__(self, lane: Lane, job: Job[R]) -> None:
        self.words, self._job, self._lane = job.words, job, lane
        self._ended = False
        self.began = self.ended = 0.0
        self._value: R | None = None
        self._error: BaseException | None = None

    def __repr__(self) -> str:
        state = "failed" if self._error is not None else "done" if self._ended else "under way"
        return f"<Handle of {self.words}: {state}>"

    @property
    def done(self) -> bool:
        """Whether the call has ended, well or not; never waits."""
        return self._ended

    def wait(self) -> R:
        """Wait for the end of the call, and return what it gives; again at once, if asked again.

        Raises:
            MeshError, LostRankError: as the call itself.
        """
        self._lane.wait_for(self)
        if self._error is not None:
            raise self._error
        return cast("R", self._value)

    @property
    def result(self) -> R:
        """As `wait`."""
        return self.wait()

    def carry_out(self) -> BaseException | None:
        """Make the call, in this thread; what it raised."""
        self.began = perf_counter()
        try:
            self._value = self._job.run()
        except BaseException as error:  # noqa: BLE001 -- it is raised in the program's thread, by wait()
            self._error = error
        self.ended = perf_counter()
        return self._error

    def end(self, error: BaseException | None = None) -> None:
        """It has ended, or never began, because of an `error` of the call before."""
        self._error = self._error or error
        self._ended = True

    def hold(self) -> None:
        """From now on the array belongs to the call."""
        if self._job.touches is not None:
            self._job.touches.setflags(write=False)

    def give_back(self) -> None:
        """The array is the caller's again."""
        if self._job.touches is not None:
            self._job.touches.setflags(write=True)

    def has(self, array: Array) -> bool:
        """Whether the call writes to memory of `array`."""
        return self._job.touches is not None and np.may_share_memory(self._job.touches, array)


class Lane:
    """The calls of one rank that are under way, and its thread, which begins with the first of them.

    Attributes:
        busy: whether a call is under way or waits for its turn.
        thread: ident of the thread, 0 before it has begun.
    """

    def __init__(self, rank: int, alarm: Alarm) -> None:
        self.rank, self._alarm = rank, alarm
        self.busy, self.thread = False, 0
        self._queue: deque[Handle[object]] = deque()
        self._unwaited: list[Handle[object]] = []
        self._changed = threading.Condition()
        self._closed = False
        self._error: BaseException | None = None
        self._worker: threading.Thread | None = None

    def start(self, job: Job[R]) -> Handle[R]:
        """Take a call into the queue."""
        if job.touches is not None:
            self.require_free(job.touches)
        handle = Handle(self, job)
        with self._changed:
            if self._error is not None:
                self._raise_first()
            handle.hold()
            self._queue.append(cast("Handle[object]", handle))
            self._unwaited.append(cast("Handle[object]", handle))
            self.busy = True
            self._changed.notify_all()
        if self._worker is None:
            self._worker = threading.Thread(target=contextvars.copy_context().run, args=(self._work,),
                                            name=f"lab-progress-{self.rank}", daemon=True)  # fmt: skip
            self._worker.start()
        return handle

    def require_free(self, array: Array) -> None:
        """Refuse an array that a call which has not been waited for writes to.

        Raises:
            ArgumentError: so it is.
        """
        for other in self._unwaited:
            if other.has(array):
                raise ArgumentError("the array belongs to a call that has not been waited for", given=other.words,
                                    hint="wait() for its handle, then use the array again")  # fmt: skip

    def wait_for(self, handle: Handle[R]) -> None:
        """Wait until the call has ended; its array is the caller's again."""
        with self._changed:
            while not handle.done:
                self._changed.wait(LOOKS)
            if any(handle is other for other in self._unwaited):
                self._unwaited = [other for other in self._unwaited if other is not handle]
                handle.give_back()

    def drain(self) -> None:
        """Wait until nothing is under way any more.

        Raises:
            MeshError, LostRankError: a call failed, and nobody has been told yet.
        """
        with self._changed:
            while self.busy:
                self._changed.wait(LOOKS)
            if self._error is not None and self._unwaited:
                self._raise_first()

    def finish(self) -> None:
        """The program ends.

        Raises:
            MeshError: there is a call that it has not waited for; or what such a call raised.
        """
        with self._changed:
            left = self._unwaited
            if self._error is not None and left:
                self._raise_first()
            if left:
                raise MeshError(f"rank {self.rank} ended its program without waiting for {counted(len(left), 'call')}",
                                given="; ".join(handle.words for handle in left[:3]) + "; ..." * (len(left) > 3),
                                hint="keep what comm.start returns, and call its wait()")  # fmt: skip

    def close(self) -> None:
        """End the thread; a call that is under way is broken off, and with it the group."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._worker is not None:
            if self.busy:
                self._alarm.ring("raised", f"rank {self.rank} ended in the middle of a call", rank=self.rank)
            self._worker.join()

    def _raise_first(self) -> NoReturn:
        """What broke the lane, told where it is not told by a handle."""
        assert self._error is not None
        for handle in self._unwaited:
            handle.give_back()
        self._unwaited = []
        raise self._error

    def _work(self) -> None:
        self.thread = threading.get_ident()
        while (handle := self._next()) is not None:
            error = handle.carry_out()
            with self._changed:
                handle.end()
                if error is not None:
                    self._error = error
                    while self._queue:
                        self._queue.popleft().end(error)
                self.busy = bool(self._queue)
                self._changed.notify_all()

    def _next(self) -> Handle[object] | None:
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            return self._queue.popleft() if self._queue else None
