"""Where events go: emitters append to one queue, listeners get batches.

Emitting is an append; delivery happens in `flush`, which runs when the queue is long, when a recording ends, and when a
picture wants to be drawn. So a listener's cost never sits between two operations, and one that fails is let go.

The queue is a log and each listener has a place in it. A place moves on after its listener has taken a batch, and what
is behind all places is cut off in one statement: so an interrupt at any point of a delivery loses nothing, and at worst
offers one batch to one listener again, under the same sequence numbers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from enum import IntEnum
from time import perf_counter_ns
from typing import NamedTuple, Protocol, overload

from lab.errors import ArgumentError
from lab.events.event import EVENTS, ORIGIN, Event, Origin, build, values_of
from lab.events.gate import Gate, Passing

log = logging.getLogger("lab.events")

BATCH = 512
"""A queue this long is delivered at once by whoever emits."""
LIMIT = 512 * BATCH
"""A queue this long (a listener is stuck in another thread) takes no more: newer events are dropped, counted."""


class Row(NamedTuple):
    """What the queue holds; `emit_row` appends plain tuples of this layout, since an object costs 200 ns more."""

    kind: type[Event]
    time_ns: int
    origin: Origin
    values: tuple[object, ...]


class Batch(Sequence[Event]):
    """A run of delivered events: plain rows for who stores columns, Event objects, made on demand, for all others."""

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

    @classmethod
    def named(cls, name: str | Detail) -> Detail:
        """The Detail of a name as users write it.

        Raises:
            ArgumentError: no such name.

        Example:
            >>> Detail.named("statistics")
            <Detail.STATISTICS: 1>
        """
        if isinstance(name, Detail):
            return name
        found = {detail.name.lower(): detail for detail in cls}.get(name)
        if found is None:
            hint = 'one of "shape", "statistics", "value"'
            raise ArgumentError("this is no level of detail", given=repr(name), hint=hint)
        return found


class Listener(Protocol):
    """What the bus needs to know of a listener. `detail`, `sources` and `wants` are asked when it is attached."""

    detail: Detail
    sources: bool
    """True to have the source line, module path and constants of each operation captured."""

    # A listener with an attribute `takes_late` that is True does not mind to be told of what happens within a
    # collective when that is over, with the times at which it happened.

    def wants(self, kind: type[Event]) -> bool:
        """Whether events of this kind shall be delivered."""

    def receive(self, batch: Batch) -> None:
        """Take a batch, in order, in whatever thread delivers. Must be quick and must not block.

        An exception detaches the listener. After a KeyboardInterrupt in here the same batch comes again, perhaps
        longer, with the same `seqs`: who must not count twice compares them with the last that it took.
        """

    def lost(self, n_events: int) -> None:
        """Be told that `n_events` were dropped since the batch before."""

    def detached(self, why: BaseException) -> None:
        """Be told that it failed and will get nothing more."""


class _Place:
    """How far one listener has got, and what it asked for."""

    __slots__ = ("busy", "detail", "equations", "listener", "n_dropped", "next_seq", "operations", "prompt", "sources",
                 "values")  # fmt: skip

    def __init__(self, listener: Listener, next_seq: int, n_dropped: int) -> None:
        self.listener, self.next_seq, self.n_dropped, self.busy = listener, next_seq, n_dropped, False
        # Who wants no operations causes no statistics, copies or stack walks, whatever its detail.
        wanted = [kind for kind in EVENTS.values() if kind.per_operation and listener.wants(kind)]
        self.operations = not all(kind.per_equation for kind in wanted)
        self.equations = any(kind.per_equation for kind in wanted)
        self.detail = Detail(listener.detail) if self.operations else Detail.SHAPE
        self.sources = bool(listener.sources) and self.operations
        self.values = Detail(listener.detail) == Detail.VALUE
        self.prompt = not getattr(listener, "takes_late", False)


class Bus:
    """The one queue of events of this process.

    Attributes:
        listeners: the attached listeners; empty means that emitters must build nothing.
        operations: some listener wants per-operation events. The guard of the hot path.
        equations: some listener wants events of equations. The guard of the executors of graphs.
        detail: the highest detail that a listener to operations asked for.
        sources: some listener to operations wants source lines.
        values: some listener asked for copies of arrays, whatever kinds it wants: for kinds that are not per operation.
        prompt: some listener wants to be told of each thing as it happens, not soon after.
        late_ns: since when things happen that are told when they are over; 0 if there are none.
        plain: operations are wanted, and neither sources nor values: the tape then appends rows itself.
        append: appends a Row-shaped tuple to the queue; whoever uses it calls `relieve` now and then.
        generation: grows with each listener; a leaf announces itself once a generation.
        gates: what holds threads of runs, by run; asked only where operations are wanted, and none of it when empty.
    """

    __slots__ = (
        "_delivering",
        "_lock",
        "_n_dropped",
        "_pending",
        "_places",
        "_seq",
        "append",
        "detail",
        "equations",
        "gates",
        "generation",
        "late_ns",
        "listeners",
        "operations",
        "plain",
        "prompt",
        "sources",
        "values",
    )

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()
        self.operations = self.equations = self.sources = self.plain = self.values = self.prompt = False
        self.late_ns = 0
        self.detail = Detail.SHAPE
        self.generation = 0
        self.gates: dict[str, Gate] = {}
        self._places: tuple[_Place, ...] = ()
        self._pending: list[Row] = []  # append, slice and slice deletion are each one step under the GIL
        self.append = self._pending.append
        self._seq = 0  # of the first row that is pending
        self._n_dropped = 0
        self._lock = threading.RLock()
        self._delivering = False

    def __reduce__(self) -> str:
        """By name: a function of a notebook that emits finds, wherever it is sent, the bus of the process there."""
        return "bus"

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
        n_pending = len(pending)
        if n_pending < LIMIT:
            pending.append((kind, perf_counter_ns(), ORIGIN.get(), values))  # type: ignore[arg-type]
            # Not when somebody delivers: the computation goes on, and does not wait for the lock.
            if n_pending >= BATCH and not self._delivering:
                self.flush()
        elif self._delivering:
            self._n_dropped += 1  # two threads at once may count one: the only approximate figure here
        else:
            self.flush()
            self.emit_row(kind, *values)

    def lose(self, n_events: int) -> None:
        """Count events that were lost on their way to this bus; listeners are told before their next batch."""
        self._n_dropped += n_events  # without the lock: a listener that is stuck must not hold up who counts

    def relieve(self) -> None:
        """Deliver a long queue; while another thread is stuck in delivering, drop what is beyond the limit, counted."""
        n_pending = len(self._pending)
        if n_pending >= BATCH and not self._delivering:
            self.flush()
        elif n_pending > LIMIT:
            self._n_dropped += n_pending - LIMIT
            del self._pending[LIMIT:n_pending]

    def flush(self) -> None:
        """Deliver what is queued to every listener, in the calling thread.

        Called from inside a delivery (by a listener) it does nothing: what was emitted meanwhile waits.
        """
        with self._lock:
            if self._delivering:
                return
            try:
                self._delivering = True
                end = self._seq + len(self._pending)  # what is emitted from here on waits for the next flush
                for place in self._places:
                    self._deliver(place, end)
                self._cut(end)
            finally:
                self._delivering = False

    def _cut(self, end: int) -> None:
        done = min((place.next_seq for place in self._places), default=end)
        n_done, pending = done - self._seq, self._pending
        pending[:n_done], self._seq = (), done  # one statement, no call in it: an interrupt comes before or after both

    def _deliver(self, place: _Place, end: int) -> None:
        if place.busy:  # this listener is what called us
            return
        listener = place.listener
        try:
            place.busy = True
            if self._n_dropped > place.n_dropped:
                n_dropped = self._n_dropped
                listener.lost(n_dropped - place.n_dropped)
                place.n_dropped = n_dropped
            start = place.next_seq
            rows = self._pending[start - self._seq : end - self._seq]
            wanted = {kind: listener.wants(kind) for kind in {row[0] for row in rows}}
            if any(wanted.values()):
                batch = Batch(rows, range(start, end))
                listener.receive(batch if all(wanted.values()) else batch.only(wanted))
            place.next_seq = max(start, end)
        except (Exception, SystemExit) as why:  # noqa: BLE001 -- a failing listener never breaks what it watches
            self._let_go(place, why)
        finally:
            place.busy = False

    def _let_go(self, place: _Place, why: BaseException) -> None:
        log.warning("a listener of events failed and was detached: %s", type(why).__name__, exc_info=why)
        self._set(tuple(x for x in self._places if x is not place))
        try:
            place.listener.detached(why)
        except (Exception, SystemExit):
            log.warning("and failed again when it was told so", exc_info=True)

    def attach(self, listener: Listener) -> None:
        """Start delivering to `listener`, from what is emitted now on; one that is attached already stays as it is."""
        with self._lock:
            if not any(x.listener is listener for x in self._places):
                place = _Place(listener, self._seq + len(self._pending), self._n_dropped)
                self._set((*self._places, place))

    def detach(self, listener: Listener) -> None:
        """Deliver to `listener` what is queued, then nothing more; one that is not attached is ignored."""
        with self._lock:
            for place in self._places:
                if place.listener is listener:
                    self._deliver(place, self._seq + len(self._pending))
                    self._set(tuple(x for x in self._places if x is not place))
            self._cut(self._seq + len(self._pending))

    def set_gate(self, run: str, gate: Gate | None) -> None:
        """Put a gate in the way of a run, in place of the one that it has, or none. It sees what a listener wants."""
        with self._lock:
            others = {name: known for name, known in self.gates.items() if name != run}
            self.gates = others if gate is None else others | {run: gate}
            self._set(self._places)

    def hold(self, unit: str, node: int, op: str, module: str, value: object) -> None:
        """Have the gate of this thread's run look at what passed; call it behind `if bus.gates:`."""
        gate = self.gates.get(ORIGIN.get().run)
        if gate is not None:
            gate.passed(Passing(unit, node, op, module, value))

    def _set(self, places: tuple[_Place, ...]) -> None:
        self._places = places
        self.generation += 1
        self.operations = any(x.operations for x in places)
        self.equations = any(x.equations for x in places)
        self.detail = max((x.detail for x in places), default=Detail.SHAPE)
        self.sources = any(x.sources for x in places)
        self.values = any(x.values for x in places)
        self.prompt = any(x.prompt for x in places)
        self.plain = self.operations and not self.sources and self.detail == Detail.SHAPE and not self.gates
        self.listeners = tuple(x.listener for x in places)


bus = Bus()
"""The bus of this process. Emitters import the object, never copy its attributes."""
