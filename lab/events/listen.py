"""Listening: events as they come, for a function of the user's, in a thread of its own.

What the function costs, and what becomes of it, stays there: a slow one is told less (the rest is counted), one that
fails is told nothing more, and the computation notices neither.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from types import TracebackType
from typing import Any, Self

from lab.errors import ArgumentError
from lab.events.bus import Batch, Bus, Detail, bus
from lab.events.event import ORIGIN, Event, Origin, wanted_kinds

log = logging.getLogger("lab.events")

PERIOD = 0.05
"""Seconds between two looks at the bus."""
PATIENCE = 1.0
"""Seconds that the end of a `with` block waits for a slow function."""
RUN = "lab.listen"
"""The run of what listening functions do themselves. None of them hears it, or they would feed themselves for ever."""


class Listening:
    """A function that is told of events, until `close` or the end of its `with` block. Made by `listen`.

    Attributes:
        dropped: events that it was not told of, since it was too slow or failed.
        failed: the error that ended it, or None.
    """

    def __init__(
        self,
        callback: Callable[[Event], object],
        *,
        kinds: Iterable[type[Event]] | None,
        detail: Detail,
        sources: bool,
        limit: int,
        source: Bus,
    ) -> None:
        self.detail, self.sources, self.dropped = detail, sources, 0
        self.failed: BaseException | None = None
        self._callback, self._limit, self._bus = callback, limit, source
        self._wanted = wanted_kinds(kinds)
        self._waiting: deque[Batch] = deque()
        self._at = 0  # in the first of these
        self._told = -1  # sequence number
        self._changed = threading.Condition()
        self._closing, self._given_up = False, threading.Event()
        self._thread = threading.Thread(target=copy_context().run, args=(self._work,), name="lab.listen", daemon=True)

    # --- as a listener, in whatever thread delivers --------------------------------------------------------------

    def wants(self, kind: type[Event]) -> bool:
        return self._wanted is None or kind in self._wanted

    def receive(self, batch: Batch) -> None:
        others = [i for i, row in enumerate(batch.rows) if row[2].run != RUN]
        if len(others) < len(batch):
            batch = Batch([batch.rows[i] for i in others], [batch.seqs[i] for i in others])
        with self._changed:
            room = max(self._limit - self._n_waiting(), 0)
            self.dropped += max(len(batch) - room, 0)
            if taken := batch[:room]:
                self._waiting.append(taken)
                self._changed.notify()

    def lost(self, n_events: int) -> None:
        with self._changed:
            self.dropped += n_events

    def detached(self, why: BaseException) -> None:
        self.failed = why

    # --- its own thread ------------------------------------------------------------------------------------------

    def _n_waiting(self) -> int:
        return sum(map(len, self._waiting)) - self._at

    def _work(self) -> None:
        ORIGIN.set(Origin(ORIGIN.get().rank, RUN))
        try:
            while self._wait():
                self._tell()
        except BaseException as why:
            log.warning("a function given to lab.listen failed and is told nothing more", exc_info=True)
            self.failed = why
            self._bus.detach(self)
        self._drop()

    def _drop(self) -> None:
        """Count what it was not told, and tell it nothing more."""
        with self._changed:
            self._given_up.set()
            self.dropped += self._n_waiting()
            self._waiting.clear()
            self._at = 0

    def _wait(self) -> bool:
        """Fetch what the bus has; False when closed and nothing is left to tell."""
        with self._changed:
            if not self._waiting and not self._closing:
                self._changed.wait(PERIOD)
            if self._closing:
                return bool(self._waiting) and not self._given_up.is_set()
        self._bus.flush()
        return True

    def _tell(self) -> None:
        while event := self._next():
            if event.seq > self._told:  # a batch whose delivery was interrupted comes twice
                self._told = event.seq
                self._callback(event)

    def _next(self) -> Event | None:
        with self._changed:
            if not self._waiting:
                return None
            batch = self._waiting[0]
            event = batch[self._at]
            self._at += 1
            if self._at == len(batch):
                self._waiting.popleft()
                self._at = 0
            return event

    # --- for its owner -------------------------------------------------------------------------------------------

    def close(self, timeout: float = PATIENCE) -> None:
        """Stop listening; wait until the function was told what came before, at most `timeout` seconds.

        What it could not be told in that time is dropped, and counted.
        """
        self._bus.detach(self)
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        name = getattr(self._callback, "__qualname__", type(self._callback).__name__)
        state = f"ended by {type(self.failed).__name__}" if self.failed else "closed" if self._closing else "live"
        return f"<Listening of {name}: {state}, {self.dropped:,} dropped>"


def listen(
    callback: Callable[[Event], object],
    *,
    kinds: Iterable[type[Event]] | None = None,
    detail: str | Detail = Detail.SHAPE,
    sources: bool = False,
    limit: int = 100_000,
    source: Bus = bus,
) -> Listening:
    """Have a function called with each event, about 20 times a second, in a thread of its own.

    Leaving a `with` block waits a second at most for a slow one; `close(timeout)` as long as you say. What the function
    computes itself is told to no listening function, and belongs to a run of its own for recordings.

    Args:
        callback: called with one event. A slow one costs the computation nothing; one that raises is told no more.
        kinds: the kinds of events that it wants; None for all.
        detail: what it wants to know of each array: "shape", "statistics" or "value".
        sources: whether it wants source lines.
        limit: how many events may wait for it; later ones are counted in `dropped`.
        source: the bus to listen to.

    Raises:
        ArgumentError: `callback` is no function, or something in `kinds` no kind of event.

    Example:
        >>> from lab.events import RunStateChanged, bus
        >>> seen = []
        >>> with listen(lambda event: seen.append(event.state), kinds=[RunStateChanged]):
        ...     bus.emit(RunStateChanged(step=0, state="paused"))
        >>> seen
        ['paused']
    """
    function: Any = callback
    if not callable(function):
        hint = "lab.listen(print): it is called with each event"
        raise ArgumentError("listen needs a function of one event", given=repr(callback)[:60], hint=hint)
    made = Listening(callback, kinds=kinds, detail=Detail.named(detail), sources=sources, limit=limit, source=source)
    source.attach(made)
    made._thread.start()
    return made
