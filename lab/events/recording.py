"""Recording: keeps the events that it is told, in columns; views fold it, tests read it, a file holds it.

It is a listener like any other. One thread at a time writes (whoever flushes the bus), any number read, each a
consistent prefix: a batch is published by one statement after all of its columns have been written.
"""

from __future__ import annotations

import html
import linecache
import platform
import sys
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import compress
from typing import overload

import numpy as np

from lab.errors import RecordingError
from lab.events.bus import Batch, Detail, bus
from lab.events.columns import Budget, Flat, Growing, Ints, Strings, Values
from lab.events.event import ORIGIN, Event, Origin, fields_of
from lab.events.table import Columns, Table

LIMIT = 2_000_000
"""Events that a recording takes unless told otherwise: some 140 bytes each for OpRecorded, so at most about 0.5 GB."""
VALUE_BYTES = 64 * 2**20
"""Bytes of arrays that it takes."""
_MAX_LINE = 500
_MAX_LINES = 100_000
_BLOCK = 1024


class Recording(Sequence[Event]):
    """Events in the order of their delivery, as a sequence of Event objects or, faster, as columns by kind.

    Args:
        detail: what it wants of each array: "shape", "statistics" (minimum, mean, norm ...) or "value" (copies too).
        sources: whether it wants the source line of each operation.
        kinds: the kinds that it takes; None takes all.
        run: takes only events of the run of this name; None means the run that the caller is in ("" outside any), so
            that a training in the background does not fill a lesson's recording; "*" takes all.
        limit: how many events it takes; later ones are counted in `dropped`.
        value_bytes: how many bytes of arrays it takes; later ones are None, counted in `dropped_values`.

    Attributes:
        dropped: events that were lost or found no room.
        dropped_values: arrays that found no room.
        detached_because: the error that ended it, or None.
        meta: text about it by name: title, lab, python, numpy, created, note. Yours to change.

    Example:
        >>> from lab.events import Bus, RunStateChanged
        >>> bus, rec = Bus(), Recording()
        >>> bus.attach(rec)
        >>> for step, state in enumerate(("running", "paused")):
        ...     bus.emit(RunStateChanged(step, state))
        >>> bus.detach(rec)
        >>> rec[-1].state, rec.columns(RunStateChanged)["step"].tolist()
        ('paused', [0, 1])
    """

    def __init__(
        self,
        *,
        detail: str | Detail = Detail.SHAPE,
        sources: bool = True,
        kinds: Iterable[type[Event]] | None = None,
        run: str | None = None,
        limit: int = LIMIT,
        value_bytes: int = VALUE_BYTES,
    ) -> None:
        self.detail, self.sources, self.limit = Detail.named(detail), sources, limit
        self.run = ORIGIN.get().run if run is None else run
        self.dropped = 0
        self.detached_because: BaseException | None = None
        roof = sys.modules[__name__.partition(".")[0]]  # not by import, for imports point down
        self.meta: dict[str, str] = {
            "title": "",
            "lab": str(getattr(roof, "__version__", "")),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "note": "",
        }
        self._wanted = None if kinds is None else frozenset(kinds)
        self._lock = threading.Lock()  # of writers; readers need none
        self._n, self._last_seq, self._used, self._dirty = 0, -1, (0, 0), False
        self._budget = Budget(value_bytes)
        self._strings = Strings()
        self._origins: list[Origin] = []
        self._origin_codes: dict[Origin, int] = {}
        self._tables: list[Table] = []
        self._codes: dict[type[Event], int] = {}
        self._order = Growing(np.uint8)  # for each event the number of its table
        self._lines: dict[tuple[str, int], str] = {}

    # --- as a listener -------------------------------------------------------------------------------------------

    def wants(self, kind: type[Event]) -> bool:
        return self._wanted is None or kind in self._wanted

    def lost(self, n_events: int) -> None:
        self.dropped += n_events

    def detached(self, why: BaseException) -> None:
        self.detached_because = why

    def receive(self, batch: Batch) -> None:
        """Take a batch; one that was taken before (its delivery was interrupted) is passed over."""
        with self._lock:
            self._roll_back()
            old = bisect_right(batch.seqs, self._last_seq)
            if old < len(batch):
                self._take(batch[old:] if old else batch)

    def _roll_back(self) -> None:
        """Forget what an interrupted batch left behind the published end."""
        if self._dirty:
            for table in self._tables:
                table.truncate(self._n)
            self._order.n = self._n
            self._budget.used, self._budget.n_dropped = self._used
            self._dirty = False

    def _take(self, batch: Batch) -> None:
        self._dirty = True
        kinds, times, origins, rows = zip(*batch.rows, strict=True)
        seqs: Sequence[int] = batch.seqs
        if self.run != "*" and not (origins.count(origins[0]) == len(origins) and origins[0].run == self.run):
            ours = [origin.run == self.run for origin in origins]
            kinds, times, origins, rows, seqs = (tuple(compress(x, ours)) for x in (kinds, times, origins, rows, seqs))
        room = max(self.limit - self._n, 0)
        n_over = max(len(kinds) - room, 0)
        if n_over:
            kinds, times, origins, rows, seqs = kinds[:room], times[:room], origins[:room], rows[:room], seqs[:room]
        if kinds:
            self._write(kinds, np.array(times, np.int64), self._coded(origins), rows, np.array(seqs, np.int64))
        self._publish(batch.seqs[-1], n_over)

    def _publish(self, last_seq: int, n_over: int) -> None:
        used = self._budget.used, self._budget.n_dropped
        # One statement, no call in it: an interrupt comes before it, and the batch comes again, or after, and it is in.
        self._n, self._last_seq, self._used, self.dropped, self._dirty = (
            self._order.n,
            last_seq,
            used,
            self.dropped + n_over,
            False,
        )

    def _coded(self, origins: tuple[Origin, ...]) -> Flat:
        single = origins.count(origins[0]) == len(origins)
        for origin in origins[:1] if single else dict.fromkeys(origins):
            if origin not in self._origin_codes:
                self._origins.append(origin)
                self._origin_codes[origin] = len(self._origins) - 1
        if single:
            return np.full(len(origins), self._origin_codes[origins[0]], np.int32)
        return np.fromiter(map(self._origin_codes.__getitem__, origins), np.int32, len(origins))

    def _write(
        self, kinds: Sequence[type[Event]], times: Flat, origins: Flat, rows: Sequence[Values], seqs: Flat
    ) -> None:
        if not self._codes.keys() >= {*kinds}:
            for kind in dict.fromkeys(kinds):  # in order of appearance
                self._codes[kind] = self._code_for(kind)
        order = np.fromiter(map(self._codes.__getitem__, kinds), np.uint8, len(kinds))
        for code in np.unique(order).tolist():
            here = np.flatnonzero(order == code)
            table = self._tables[code]
            its_rows = rows if len(here) == len(rows) else [rows[i] for i in here.tolist()]
            table.extend(here + self._n, seqs[here], times[here], origins[here], its_rows)
            if self.sources and "file" in table.columns and "line" in table.columns:
                self._keep_lines(table, self._n)
        self._order.extend(order)

    def _code_for(self, kind: type[Event]) -> int:
        for code, table in enumerate(self._tables):
            if table.kind.__name__ == kind.__name__:  # its cell ran again: the same kind, if it has the same fields
                if fields_of(table.kind) == fields_of(kind):
                    return code
                raise RecordingError(
                    f"the kind {kind.__name__} changed its fields during the recording",
                    given=f"{', '.join(fields_of(kind))} after {', '.join(fields_of(table.kind))}",
                    hint="start a new recording",
                )
        if len(self._tables) == 256:
            raise RecordingError("a recording holds at most 256 kinds of events", given=kind.__name__)
        self._tables.append(Table(kind, self._strings, self._origins, self._budget))
        return len(self._tables) - 1

    def _keep_lines(self, table: Table, start: int) -> None:
        """Read the source lines that the newest rows name, now: the file may change, and the recording may travel."""
        first, last = table.rows(start, sys.maxsize)
        files, lines = (table.columns[name].pack(first, last)[""] for name in ("file", "line"))
        known = (lines > 0) & (lines < 2**31)
        pairs = np.unique(files[known].astype(np.int64) << 32 | lines[known])
        for pair in pairs.tolist():
            key = self._strings.all[pair >> 32], pair & 0xFFFFFFFF
            if key not in self._lines and len(self._lines) < _MAX_LINES:
                self._lines[key] = _line(*key)

    # --- as what was recorded ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, i: int) -> Event: ...
    @overload
    def __getitem__(self, i: slice) -> list[Event]: ...
    def __getitem__(self, i: int | slice) -> Event | list[Event]:
        if isinstance(i, slice):
            return [self._block(p, p + 1)[0] for p in range(self._n)[i]]
        try:
            p = range(self._n)[i]
        except IndexError:
            raise IndexError(f"event {i} of a recording of {self._n}") from None
        return self._block(p, p + 1)[0]

    def __iter__(self) -> Iterator[Event]:
        n = self._n
        for start in range(0, n, _BLOCK):
            yield from self._block(start, min(start + _BLOCK, n))

    def _block(self, start: int, stop: int) -> list[Event]:
        order = self._order.view(start, stop).tolist()
        by_kind = {code: self._tables[code].events(*self._tables[code].rows(start, stop)) for code in {*order}}
        return [next(by_kind[code]) for code in order]

    @property
    def kinds(self) -> list[type[Event]]:
        """The kinds of which there are events, in order of first appearance."""
        n = self._n
        return [table.kind for table in self._tables if table.rows(0, n)[1]]

    def _table(self, kind: type[Event]) -> Table:
        for table in self._tables:
            if table.kind.__name__ == kind.__name__ and fields_of(table.kind) == fields_of(kind):
                return table
        return Table(kind, self._strings, self._origins, self._budget)

    def columns(self, kind: type[Event], start: int = 0, stop: int | None = None) -> Columns:
        """The events of a kind at positions start <= p < stop, by field.

        A mapping from field to array (str: object array; tuple: `Ragged`; array: sequence of `ndarray | None`), also
        "position", "seq", "time_ns", "rank", "run". A kind of which there is none gives empty columns.
        """
        stop = self._n if stop is None else min(stop, self._n)
        table = self._table(kind)
        first, last = table.rows(start, max(start, stop))
        return Columns(table, first, last)

    def positions(self, kind: type[Event]) -> Ints:
        """Where the events of a kind stand in the recording, int64."""
        positions: Ints = self.columns(kind)["position"]
        return positions

    def source(self, file: str, line: int) -> str:
        """The text of a source line that some event names, as it was when recorded; "" when unknown."""
        return self._lines.get((file, line), "")

    @property
    def dropped_values(self) -> int:
        """Arrays that found no room within `value_bytes`, or whose dtype has no place in the file."""
        return self._used[1]

    @property
    def live(self) -> bool:
        """Whether it is attached to the bus and grows."""
        return any(listener is self for listener in bus.listeners)

    def close(self) -> None:
        """Take what the bus still holds, then stop listening. Closing twice does nothing."""
        bus.detach(self)

    # --- as a value ----------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        n = self._n
        counts = [(table.rows(0, n)[1], table.kind.__name__) for table in self._tables]
        parts = [f"{len(self):,} events"]
        parts += [f"{count:,} {name}" for count, name in counts if count]
        parts += [f"{self.dropped:,} dropped"] if self.dropped else []
        parts += [f"{self.dropped_values:,} values dropped"] if self.dropped_values else []
        parts += ["live"] if self.live else []
        parts += [f"ended by {type(self.detached_because).__name__}"] if self.detached_because else []
        title = f" {self.meta['title']!r}" if self.meta.get("title") else ""
        return f"<Recording{title}: {', '.join(parts)}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        text = repr(self)
        return {"text/plain": text, "text/html": f"<code>{html.escape(text)}</code>"}


def _line(file: str, number: int) -> str:
    try:
        return linecache.getline(file, number).strip()[:_MAX_LINE]
    except ValueError:  # a file name with NUL in it
        return ""


@contextmanager
def record(
    *,
    detail: str | Detail = Detail.VALUE,
    sources: bool = True,
    kinds: Iterable[type[Event]] | None = None,
    run: str | None = None,
    limit: int = LIMIT,
    value_bytes: int = VALUE_BYTES,
) -> Iterator[Recording]:
    """Record what happens in a `with` block; the arguments are those of `Recording`, but values are kept too.

    Example:
        >>> from lab.events import RunStateChanged, bus
        >>> with record() as rec:
        ...     bus.emit(RunStateChanged(step=0, state="running"))
        >>> rec
        <Recording: 1 events, 1 RunStateChanged>
    """
    rec = Recording(detail=detail, sources=sources, kinds=kinds, run=run, limit=limit, value_bytes=value_bytes)
    try:
        bus.attach(rec)
        yield rec
    finally:
        rec.close()
