"""The relay of a rank: a listener of its worker's bus that sends what the launcher wants to hear home, in parcels.

Between the bus and the way home is a ring of limited size with a thread of its own: what finds no room is dropped and
counted, and neither a slow way home nor a failing one costs the program anything.
"""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import secrets
import threading
from collections.abc import Callable, Sequence
from time import monotonic, perf_counter_ns, sleep
from typing import NamedTuple, cast

import numpy as np

from lab.events.bus import Batch, Bus, Detail, Listener, Row, bus
from lab.events.columns import Values
from lab.events.event import EVENTS, Event, Origin, fields_of
from lab.events.schema import generic_kind

log = logging.getLogger("lab.parallel")

PERIOD = 0.03
"""Seconds between two parcels, while there is something to send."""
PERIOD_IN_FLOOD = 0.25
"""The same while events are left out, since there are too many: a parcel takes all processes on its way some ms."""
QUIET = 0.06
"""Seconds after which an empty parcel says "nothing until now": the launcher waits for no rank that has told so."""
MARGIN_NS = 1_000_000
"""An emitter reads the clock a moment before its event is in the queue; a parcel does not vouch for the last ms."""
RING = 1 << 15
"""Events that wait for the way home, at most."""
RING_BYTES = 16 << 20
"""Bytes of arrays in them, at most."""
LAST_WORD = 1.0
"""Seconds that the end of a rank waits for its last parcel to be taken."""
FOREVER_NS = 2**63 - 1

_TOKEN = secrets.token_hex(8)


def this_process() -> str:
    """A name that no other process has, forked ones included."""
    return f"{_TOKEN}-{os.getpid()}"


class Watch(NamedTuple):
    """What whoever launches wants to hear of its ranks."""

    kinds: frozenset[str]
    detail: Detail
    sources: bool
    process: str
    """Who listens: a rank in the same process is heard without a relay."""


def watch_of(source: Bus) -> Watch | None:
    """What the listeners of a bus want together; None if they want nothing that ranks can tell.

    Events of single operations would flood the way home: who takes all kinds does not get those of ranks, who wants
    them names them.
    """
    asked = {listener: _asked_by(listener) for listener in source.listeners}
    kinds = frozenset[str]().union(*asked.values())
    if not kinds:
        return None
    listeners = [listener for listener, its_kinds in asked.items() if its_kinds]
    detail = max(Detail(listener.detail) for listener in listeners)
    return Watch(kinds, detail, any(listener.sources for listener in listeners), this_process())


def _asked_by(listener: Listener) -> set[str]:
    wanted = [kind for kind in EVENTS.values() if listener.wants(kind)]
    takes_all = len(wanted) == len(EVENTS)
    return {kind.__name__ for kind in wanted if not (takes_all and kind.per_operation)}


class Parcel(NamedTuple):
    """What a rank sends at once: all events that it had until then, since the parcel before."""

    until_ns: int
    """In its own clock; `FOREVER_NS` with the last parcel."""
    n_rows: int
    n_lost: int
    """Events that were dropped since the parcel before."""
    body: bytes


def pack(rows: Sequence[Row]) -> bytes:
    """Rows as columns, pickled; the origin is left out, for a parcel has one.

    Example:
        >>> from lab.events import ORIGIN, RankStarted
        >>> row = Row(RankStarted, 5, ORIGIN.get(), (1, 4, "tcp://a", 77))
        >>> unpack(pack([row] * 3), ORIGIN.get()) == [row] * 3
        True
    """
    if not rows:
        return b""
    kinds, times, _, values = zip(*rows, strict=True)
    groups: dict[tuple[type[Event], int], list[Values]] = {}  # fields with defaults may be left out at the end
    for kind, its_values in zip(kinds, values, strict=True):
        groups.setdefault((kind, len(its_values)), []).append(its_values)
    known = {key: code for code, key in enumerate(groups)}
    codes = [known[kind, len(its_values)] for kind, its_values in zip(kinds, values, strict=True)]
    names = [(kind.__name__, tuple(fields_of(kind).items()), len(groups[kind, n])) for kind, n in groups]
    columns = [list(zip(*group, strict=True)) for group in groups.values()]
    return pickle.dumps((names, codes, times, columns), protocol=5)


def unpack(body: bytes, origin: Origin) -> list[Row]:
    """The rows of `pack`, their kinds found here by name."""
    if not body:
        return []
    names, codes, times, columns = pickle.loads(body)  # noqa: S301 -- it came over the cluster's own connection
    kinds = [_kind_of(name, fields) for name, fields, _ in names]
    rows = [
        zip(*fields, strict=True) if fields else itertools.repeat((), n)
        for fields, (_, _, n) in zip(columns, names, strict=True)
    ]
    its_kinds, its_values = (kinds[code] for code in codes), (next(rows[code]) for code in codes)
    # Tuples of the layout of Row, as the bus has them: an object costs 200 ns more.
    return cast("list[Row]", list(zip(its_kinds, times, itertools.repeat(origin), its_values, strict=False)))


def _kind_of(name: str, fields: tuple[tuple[str, object], ...]) -> type[Event]:
    known = EVENTS.get(name)
    if known is not None and tuple(fields_of(known).items()) == fields:
        return known
    return generic_kind(name, fields)


class Relay:
    """A listener of a rank's own events, and the thread that sends them home.

    Args:
        watch: what is wanted.
        origin: the very object that the rank's events carry; those of others in the process are not ours.
        post: takes a parcel home and says whether there was room for it; may wait, may raise.

    Attributes:
        n_parcels: how many were taken.
        takes_late: what happens within a collective may be told when it is over.
        n_events: all that it has heard of, lost ones too: who counts what the parcels told of knows what is missing.
    """

    takes_late = True

    def __init__(self, watch: Watch, origin: Origin, post: Callable[[Parcel], bool], source: Bus = bus) -> None:
        self.detail, self.sources = watch.detail, watch.sources
        self.n_parcels, self.n_events = 0, 0
        self._kinds, self._origin, self._post, self._bus = watch.kinds, origin, post, source
        self._lock = threading.Lock()
        self._ring: list[Row] = []
        self._n_bytes, self._n_lost, self._broken = 0, 0, False
        self._in_flood = False
        self._unsent: Parcel | None = None
        self._closing = threading.Event()
        self._last_sent = monotonic()
        self._thread = threading.Thread(target=self._work, name="lab-relay", daemon=True)

    def start(self) -> None:
        """Listen from now on."""
        self._bus.attach(self)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, send what is left, and wait for that at most `LAST_WORD` seconds."""
        self._bus.detach(self)
        self._closing.set()
        self._thread.join(LAST_WORD)

    # --- as a listener, in whatever thread delivers --------------------------------------------------------------

    def wants(self, kind: type[Event]) -> bool:
        return kind.__name__ in self._kinds

    def receive(self, batch: Batch) -> None:
        ours = [row for row in batch.rows if row[2] is self._origin]
        with self._lock:
            room = 0 if self._broken else max(RING - len(self._ring), 0)
            taken = ours[:room]
            if self.detail == Detail.VALUE:
                taken = self._fitting(taken)
            self._ring += taken
            self._n_lost += len(ours) - len(taken)
            self.n_events += len(ours)

    def _fitting(self, rows: list[Row]) -> list[Row]:
        """As many as there is room for the arrays of."""
        for i, row in enumerate(rows):
            self._n_bytes += sum(value.nbytes for value in row[3] if isinstance(value, np.ndarray))
            if self._n_bytes > RING_BYTES:
                return rows[:i]
        return rows

    def lost(self, n_events: int) -> None:
        with self._lock:
            self._n_lost += n_events
            self.n_events += n_events

    def detached(self, why: BaseException) -> None:
        self._broken = True

    # --- its own thread ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self._closing.wait(PERIOD_IN_FLOOD if self._in_flood else PERIOD):
                self._send(self._next(last=False))
            until = monotonic() + LAST_WORD
            while (parcel := self._next(last=True)) is not None and monotonic() < until:
                if not self._send(parcel):
                    sleep(PERIOD)
                elif parcel.until_ns == FOREVER_NS:
                    return
        except Exception as error:
            log.warning("a rank's events cannot be sent home any more: %s", error, exc_info=True)
            self._broken = True

    def _next(self, *, last: bool) -> Parcel | None:
        """The parcel to send now, if there is one."""
        if self._unsent is not None:
            return self._unsent
        until_ns = perf_counter_ns() - MARGIN_NS
        if late_ns := self._bus.late_ns:
            until_ns = min(until_ns, late_ns - 1)
        self._bus.flush()
        with self._lock:
            rows, n_lost = self._ring, self._n_lost
            if not (rows or n_lost or last or monotonic() - self._last_sent > QUIET):
                return None
            self._ring, self._n_bytes, self._n_lost, self._in_flood = [], 0, 0, n_lost > 0
            self._unsent = Parcel(FOREVER_NS if last else until_ns, len(rows), n_lost, b"")
        self._unsent = self._unsent._replace(body=pack(rows))
        return self._unsent

    def _send(self, parcel: Parcel | None) -> bool:
        if parcel is None or not self._post(parcel):
            return False
        self._unsent, self._last_sent, self.n_parcels = None, monotonic(), self.n_parcels + 1
        return True
