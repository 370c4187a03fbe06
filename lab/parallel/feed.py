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
from typing import TypeAlias

from lab.events.bus import Bus, Row, bus
from lab.events.event import Origin
from lab.parallel.merge import Merge
from lab.parallel.relay import Parcel, unpack

log = logging.getLogger("lab.parallel")

GATHER = 0.02
"""Seconds between two questions, so that parcels of several ranks come with one answer."""
SETTLE = 1.0
"""Seconds without any news after which the end does not wait for more."""

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
        self._n_parcels = [0] * len(origins)
        self._expected: Mapping[int, int] | None = None
        self._wake, self._finishing, self._done = threading.Event(), threading.Event(), threading.Event()
        self._given_up = False
        self._news = monotonic()
        self._thread = threading.Thread(target=copy_context().run, args=(self._work,), name="lab-feed", daemon=True)

    def start(self) -> None:
        """Begin to fetch."""
        self._thread.start()

    def finish(self, expected: Mapping[int, int]) -> None:
        """Wait until so many parcels of each rank are delivered, or nothing has come for `SETTLE` seconds."""
        self._expected, self._news = expected, monotonic()
        self._finishing.set()
        self._wake.set()
        while not self._done.is_set() and (left := self._news + SETTLE - monotonic()) > 0:
            self._done.wait(left)
        self._given_up = True
        self._wake.set()
        if self._done.is_set():
            self._thread.join()

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

    def _run(self) -> None:
        asked: Future[Arrivals] | None = None
        looked = monotonic()
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
            if monotonic() - looked > 1.0 and not self._finishing.is_set():
                looked = monotonic()
                self._every()
            self._finishing.wait(GATHER)

    def _complete(self) -> bool:
        if self._given_up:
            return True
        expected = self._expected
        return expected is not None and all(self._n_parcels[rank] >= n for rank, n in expected.items())

    def _take(self, arrivals: Arrivals) -> None:
        for rank, parcel in arrivals:
            self._n_parcels[rank] += 1
            self._merge.take(rank, parcel.until_ns, unpack(parcel.body, self._origins[rank]))
            if parcel.n_lost:
                self._bus.lose(parcel.n_lost)
        if arrivals:
            self._news = monotonic()

    def _deliver(self, rows: list[Row]) -> None:
        if self._given_up:
            self._bus.lose(len(rows))
        elif rows and self._bus.listeners:
            for row in rows:
                self._bus.append(row)
            self._bus.relieve()
            self._news = monotonic()
