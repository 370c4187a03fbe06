"""Where events go: emitters append to one queue, listeners get batches.

Emitting is an append; delivery happens in `flush`, which runs when the queue is long, when a recording ends, and when a
picture wants to be drawn. So a listener's cost never sits between two operations, and one that fails is let go.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from enum import IntEnum
from time import perf_counter_ns
from typing import NamedTuple, Protocol, overload

from lab.events.event import EVENTS, ORIGIN, Event, Origin, build, values_of

log = logging.getLogger("lab.events")

BATCH = 4096
"""A queue this long is delivered at once by whoever emits."""
LIMIT = 64 * BATCH
"""A queue this long (a listener is stuck in another thread) loses its newest events, counted."""


class Row(NamedTuple):
    """What the queue holds. `emit_row` appends plain tuples of this layout: building an object would cost 200 ns more."""

    kind: type[Event]
    time_ns: int
    origin: Origin
    values: tuple[object, ...]


class Batch(Sequence[Event]):
    """A run of delivered events: plain rows for those who store columns, Event objects, made on demand, for all others."""

    __slots__ = ("rows", "seqs")

    def __init__(self, rows: Sequence[Row], seqs: Sequence[int]) -> None:
        self.rows, self.seqs = rows, seqs

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, i: int) -> Event: ...
    @overload
    def __getitem__(self, i: slice) -> Batch: ...
    def __getitem__(self, i: int | slice) -> Event | Batch:
        if isinstance(i, slice):
            return Batch(self.rows[i], self.seqs[i])
        kind, time_ns, origin, values = self.rows[i]
        return build(kind, values, self.seqs[i], time_ns, origin)

    def __iter__(self) -> Iterator[Event]:
        for (kind, time_ns, origin, values), seq in zip(self.rows, self.seqs, strict=True):
            yield build(kind, values, seq, time_ns, origin)

    def only(self, wanted: dict[type[Event], bool]) -> Batch:
        """The events of the wanted kinds, with the sequence numbers that they have."""
        kept = [i for i, row in enumerate(self.rows) if wanted[row[0]]]
        return Batch([self.rows[i] for i in kept], [self.seqs[i] for i in kept])


class Detail(IntEnum):
    """How much a listener wants to know of each array."""

    SHAPE = 0
    STATISTICS = 1
    VALUE = 2


class Listener(Protocol):
    """What the bus needs to know of a listener."""

    detail: Detail
    sources: bool
    """True to have the source line, module path and constants of each operation captured."""

    def wants(self, kind: type[Event]) -> bool:
        """Whether events of this kind shall be delivered."""

    def receive(self, batch: Batch) -> None:
        """Take a batch, in order. Must be quick and must not block; an exception detaches the listener."""

    def lost(self, n_events: int) -> None:
        """Be told that `n_events` were dropped before this batch."""

    def detached(self, why: BaseException) -> None:
        """Be told that it failed and will get nothing more."""


class Bus:
    """The one queue of events of this process.

    Attributes:
        listeners: the attached listeners; empty means that emitters must build nothing.
        operations: some listener wants per-operation events. The guard of the hot path.
        detail: the highest detail that any listener asked for.
        sources: some listener wants source lines.
        generation: grows with each listener; a leaf announces itself once a generation.
    """

    __slots__ = ("_dropped", "_lock", "_pending", "_seq", "detail", "generation", "listeners", "operations", "sources")

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()
        self.operations = self.sources = False
        self.detail = Detail.SHAPE
        self.generation = 0
        self._pending: deque[Row] = deque()
        self._lock = threading.RLock()
        self._seq = 0
        self._dropped = 0

    def emit(self, event: Event) -> None:
        """Queue one event. Call it only behind `if bus.listeners:`, building nothing before the test.

        Example:
            >>> from lab.events import RunStateChanged, bus
            >>> if bus.listeners:
            ...     bus.emit(RunStateChanged(step=3, state="paused"))
        """
        self.emit_row(type(event), *values_of(event))

    def emit_row(self, kind: type[Event], *values: object) -> None:
        """Queue one event as its bare field values: for per-operation kinds, behind `if bus.operations:`.

        A `str` field may be given as any object (a dtype): it is made text when somebody looks at it.
        """
        pending = self._pending
        pending.append((kind, perf_counter_ns(), ORIGIN.get(), values))  # type: ignore[arg-type]
        if len(pending) >= BATCH:
            self._relieve()

    def _relieve(self) -> None:
        if self._lock.acquire(blocking=False):  # somebody else is delivering: let them, the computation goes on
            try:
                self.flush()
            finally:
                self._lock.release()
        elif len(self._pending) > LIMIT:
            try:
                self._pending.pop()
                self._dropped += 1
            except IndexError:  # delivered meanwhile by the other thread
                return

    def flush(self) -> None:
        """Deliver what is queued to every listener, in the calling thread."""
        with self._lock:
            pending = self._pending
            rows = [pending.popleft() for _ in range(len(pending))]  # what is emitted from here on waits for the next flush
            batch = Batch(rows, range(self._seq, self._seq + len(rows)))
            self._seq += len(rows)
            dropped, self._dropped = self._dropped, 0
            if rows or dropped:
                for listener in self.listeners:
                    self._deliver(listener, batch, dropped)

    def _deliver(self, listener: Listener, batch: Batch, dropped: int) -> None:
        try:
            if dropped:
                listener.lost(dropped)
            wanted = {kind: listener.wants(kind) for kind in {row[0] for row in batch.rows}}
            listener.receive(batch if all(wanted.values()) else batch.only(wanted))
        except Exception as why:
            log.warning("a listener of events failed and was detached: %r", why, exc_info=True)
            self._remove(listener)
            listener.detached(why)

    def attach(self, listener: Listener) -> None:
        """Start delivering to `listener`, beginning with what is emitted from now on."""
        with self._lock:
            self.flush()
            self._set((*self.listeners, listener))

    def detach(self, listener: Listener) -> None:
        """Deliver what is queued, then stop delivering to `listener`; one that is not attached is ignored."""
        with self._lock:
            self.flush()
            self._remove(listener)

    def _remove(self, listener: Listener) -> None:
        self._set(tuple(x for x in self.listeners if x is not listener))

    def _set(self, listeners: tuple[Listener, ...]) -> None:
        self.listeners = listeners
        self.generation += 1
        self.operations = any(x.wants(k) for x in listeners for k in EVENTS.values() if k.per_operation)
        self.detail = max((x.detail for x in listeners), default=Detail.SHAPE)
        self.sources = any(x.sources for x in listeners)


bus = Bus()
"""The bus of this process. Emitters import the object, never copy its attributes."""
