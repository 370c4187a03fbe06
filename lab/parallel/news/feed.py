"""The feed of a launch: fetches what its ranks tell, brings it into one order, and puts it on the launcher's bus.

It has a thread of its own, so that a slow listener holds up neither the launch nor the client; what is not fetched in
time waits at the scheduler, then at the ranks, and what finds no room there is counted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from time import monotonic, perf_counter_ns
from typing import NamedTuple, TypeAlias

from lab.events.bus import Bus, Row, bus
from lab.events.event import Origin
from lab.parallel.news.merge import Merge
from lab.parallel.news.relay import Parcel, unpack

log = logging.getLogger("lab.parallel")

GATHER = 0.02
"""Seconds between two questions, so that parcels of several ranks come with one answer."""
AT_ONCE = 2048
"""Events given to the bus before a look whether the launch still waits."""
SETTLE = 1.0
"""Seconds without any news after which the end does not wait for more."""


class Sent(NamedTuple):
    """What a rank says at its end: parcels that are on their way home, and events that it has had."""

    n_parcels: int
    n_events: int


Arrivals: TypeAlias = list[tuple[int, Parcel]]
"""Parcels and the ranks that they are from, in the order of their coming."""


class Feed:
    """Runs from `start` to `finish`.

    Args:
        fetch: asks for what has arrived, and for the next arrival if nothing has; the answer may take a while.
        merge: makes one order of it.
        origins: what the events of each rank carry.
        every: called about once a second, in the feed's thread.
    """

    def __init__(
        self, fetch: Callable[[], Future[Arrivals]], merge: Merge, origins: list[Origin],
        every: Callable[[], object] = lambda: None, source: Bus = bus,
    ) -> None:  # fmt: skip
        self._fetch, self._merge, self._origins, self._every, self._bus = fetch, merge, origins, every, source
        self._n_parcels, self._n_told = [0] * len(origins), [0] * len(origins)
        self._sent: Mapping[int, Sent] | None = None
        self._wake, self._finishing, self._done = threading.Event(), threading.Event(), threading.Event()
        self._lock, self._given_up, self._n_in_hand = threading.Lock(), False, 0
        self._news = self._looked = monotonic()
        self._told_ns, self._moved = 0, threading.Condition()
        self._thread = threading.Thread(target=copy_context().run, args=(self._work,), name="lab-feed", daemon=True)

    def start(self) -> None:
        """Begin to fetch."""
        self._thread.start()

    def finish(self, sent: Mapping[int, Sent], *, patient: bool) -> None:
        """Wait until what those ranks have sent is delivered; what is missing then is counted as lost.

        Not longer than `SETTLE` seconds without news; if not `patient`, than `SETTLE` seconds.
        """
        begun = self._news = monotonic()
        self._sent = sent
        self._finishing.set()
        self._wake.set()
        while not self._done.is_set():
            left = (self._news if patient else begun) + SETTLE - monotonic()
            if left <= 0:
                break
            self._done.wait(left)
        with self._lock:
            self._given_up = True
            n_missing = sum(its.n_events - self._n_told[rank] for rank, its in sent.items())
            self._bus.lose(self._n_in_hand + n_missing)
        self._wake.set()
        if self._done.is_set():
            self._thread.join()

    def catch_up(self, timeout: float) -> bool:
        """Wait until all that happened on the ranks before this call is delivered, at most so long; whether it is."""
        now_ns = perf_counter_ns()
        with self._moved:
            return self._moved.wait_for(lambda: self._told_ns > now_ns or self._done.is_set(), timeout)

    # --- its own thread ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            self._run()
        except OSError as error:  # the launch itself tells that the scheduler has gone
            log.info("events of ranks come no more: %s", error)
        except Exception:
            log.warning("the feed of the ranks' events failed; the launch goes on", exc_info=True)
        finally:
            self._deliver(self._merge.rest())
            self._done.set()
            with self._moved:
                self._moved.notify_all()

    def _run(self) -> None:
        asked: Future[Arrivals] | None = None
        while not self._complete():
            if asked is None:
                asked = self._fetch()
                asked.add_done_callback(lambda _: self._wake.set())
            self._wake.wait(0.1)
            self._wake.clear()
            if asked.done():
                self._take(asked.result())
                asked = None
            self._deliver(self._merge.ready(perf_counter_ns()))
            with self._moved:
                self._told_ns = self._merge.told_ns
                self._moved.notify_all()
            if monotonic() - self._looked > 1.0 and not self._finishing.is_set():
                self._looked = monotonic()
                self._every()
            self._finishing.wait(GATHER)

    def _complete(self) -> bool:
        sent = self._sent
        told_all = sent is not None and all(self._n_parcels[rank] >= its.n_parcels for rank, its in sent.items())
        return told_all or self._given_up

    def _take(self, arrivals: Arrivals) -> None:
        for rank, parcel in arrivals:
            with self._lock:
                if self._given_up:
                    return
                self._n_in_hand += parcel.n_rows
                self._n_told[rank] += parcel.n_rows + parcel.n_lost
            self._n_parcels[rank] += 1
            self._merge.take(rank, parcel.until_ns, unpack(parcel.body, self._origins[rank]))
            self._bus.lose(parcel.n_lost)
            self._news = monotonic()

    def _deliver(self, rows: list[Row]) -> None:
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            with self._lock:
                if self._given_up:
                    return
                self._n_in_hand -= len(some)
            if self._bus.listeners:
                for row in some:
                    self._bus.append(row)
                self._bus.relieve()
            self._news = monotonic()
