"""Recording: keeps the events that it is told, in columns; views fold it, tests read it, a file holds it.

It is a listener like any other. One thread at a time writes (the bus sees to that), any number read, each a
consistent prefix: a batch is published by one statement after all of its columns have been written.
"""

from __future__ import annotations

import html
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from os import PathLike
from typing import overload

import numpy as np

from lab.events import loading, saving
from lab.events.bus import Batch, Detail, bus
from lab.events.columns import Ints
from lab.events.event import ORIGIN, Event, fields_of, wanted_kinds
from lab.events.schema import Head
from lab.events.store import Store
from lab.events.table import Columns, Table

LIMIT = 2_000_000
"""Events that a recording takes unless told otherwise: some 140 bytes each for OpRecorded, so at most about 0.5 GB."""
VALUE_BYTES = 64 * 2**20
"""Bytes of arrays that it takes."""
_BLOCK = 1024


class Recording(Sequence[Event]):
    """Events in the order of their delivery, as a sequence of Event objects or, faster, as columns by kind.

    While it is attached, asking for its length, its end, or a file first takes what the bus still holds. It takes what
    happens in any thread, unless that belongs to another run.

    Args:
        detail: what it wants of each array: "shape", "statistics" (minimum, mean, norm ...) or "value" (copies too).
        sources: whether it wants the source line of each operation.
        kinds: the kinds that it takes; None takes all.
        run: takes only events of the run of this name; None means the run that the caller is in ("" outside any), so
            that a training in the background does not fill a lesson's recording; "*" takes all.
        limit: how many events it takes; later ones are counted in `dropped`.
        value_bytes: how many bytes of arrays it takes; later ones are None, counted in `dropped_values`.

    Attributes:
        detached_because: the error that ended it, or None.
        from_file: it was loaded or copied: numbers of its nodes are of another session.
        takes: names of the kinds that it takes, None for all; also known of a loaded one.
        meta: text about it by name: title, lab, python, numpy, created, note. Yours to change; "made" may say that the
            numbers are "simulated", or "throttled", and pictures say so too.
        path: the file from which it was loaded, "" otherwise.

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
        self.detached_because: BaseException | None = None
        self.path = ""
        self.from_file = False
        roof = sys.modules[__name__.partition(".")[0]]  # not by import, for imports point down
        self.meta: dict[str, str] = {
            "title": "",
            "lab": str(getattr(roof, "__version__", "")),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "note": "",
        }
        self._wanted = wanted_kinds(kinds)
        self.takes = None if self._wanted is None else frozenset(kind.__name__ for kind in self._wanted)
        self._store = Store(value_bytes)
        self._empty: dict[type[Event], Table] = {}

    # --- as a listener -------------------------------------------------------------------------------------------

    def wants(self, kind: type[Event]) -> bool:
        return self._wanted is None or kind in self._wanted

    def lost(self, n_events: int) -> None:
        self._store.n_dropped += n_events

    def detached(self, why: BaseException) -> None:
        self.detached_because = why

    def receive(self, batch: Batch) -> None:
        self._store.take(batch, run=self.run, limit=self.limit, lines=self.sources)

    # --- as what was recorded ------------------------------------------------------------------------------------

    def _fetch(self) -> int:
        """How many events there are, with those that the bus still holds for it.

        Whoever asks for a stretch by its end takes what is here: views do, many times a second.
        """
        if self.live:
            bus.flush()
        return self._store.n

    def __len__(self) -> int:
        return self._fetch()

    @overload
    def __getitem__(self, i: int) -> Event: ...
    @overload
    def __getitem__(self, i: slice) -> list[Event]: ...
    def __getitem__(self, i: int | slice) -> Event | list[Event]:
        if isinstance(i, slice):
            wanted = range(self._fetch())[i]
            if wanted.step == 1:  # together: a tenth of the time
                return self._store.events(wanted.start, max(wanted.start, wanted.stop))
            return [self._store.events(p, p + 1)[0] for p in wanted]
        if not 0 <= i < (n := self._store.n):
            n = self._fetch()
        try:
            p = range(n)[i]
        except IndexError:
            raise IndexError(f"event {i} of a recording of {n}") from None
        return self._store.events(p, p + 1)[0]

    def __iter__(self) -> Iterator[Event]:
        n = self._fetch()
        for start in range(0, n, _BLOCK):
            yield from self._store.events(start, min(start + _BLOCK, n))

    @property
    def kinds(self) -> list[type[Event]]:
        """The kinds of which there are events, in order of first appearance."""
        n = self._fetch()
        return [table.kind for table in self._store.tables if table.rows(0, n)[1]]

    def _table(self, kind: type[Event]) -> Table:
        for table in self._store.tables:
            if table.kind.__name__ == kind.__name__ and fields_of(table.kind) == fields_of(kind):
                return table
        if kind not in self._empty:  # views ask for kinds that never come, many times a second
            self._empty[kind] = self._store.new_table(kind)
        return self._empty[kind]

    def columns(self, kind: type[Event], start: int = 0, stop: int | None = None) -> Columns:
        """The events of a kind at positions start <= p < stop, by field.

        A mapping from field to array (str: object array; tuple: `Ragged`; array: sequence of `ndarray | None`), also
        "position", "seq", "time_ns", "rank", "run". A kind of which there is none gives empty columns.
        """
        stop = self._fetch() if stop is None else min(stop, self._store.n)
        table = self._table(kind)
        first, last = table.rows(start, max(start, stop))
        return Columns(table, first, last)

    def positions(self, kind: type[Event]) -> Ints:
        """Where the events of a kind stand in the recording, int64."""
        positions: Ints = self.columns(kind)["position"]
        return positions

    def source(self, file: str, line: int) -> str:
        """The text of a source line that some event names, as it was when recorded; "" when unknown."""
        return self._store.lines.get((file, line), "")

    @property
    def dropped(self) -> int:
        """Events that were lost before they came here, or found no room within `limit`."""
        return self._store.n_dropped

    @property
    def dropped_values(self) -> int:
        """Arrays that found no room within `value_bytes`, or whose dtype has no place in the file."""
        return self._store.used[1]

    @property
    def live(self) -> bool:
        """Whether it is attached to the bus and grows."""
        return any(listener is self for listener in bus.listeners)

    def close(self) -> None:
        """Take what the bus still holds, then stop listening. Closing twice does nothing."""
        bus.detach(self)

    # --- as a file -----------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file: a zip of JSON and .npy columns, without pickle (`lab/events/saving.py` has the layout).

        Raises:
            RecordingError: the disk is full, the folder missing ...; a file that was there before is as it was.
        """
        self._fetch()
        saving.save(path, self._store, self._head())

    def _head(self) -> Head:
        takes = None if self.takes is None else sorted(self.takes)
        return Head(
            self.detail.name.lower(), bool(self.sources), self.run, self.dropped, self.dropped_values, self.meta, takes
        )

    @classmethod
    def load(cls, path: str | PathLike[str], *, salvage: bool = False, max_bytes: int = loading.MAX_BYTES) -> Recording:
        """Read one from a file. Nothing in it is run, and nothing is believed before it was checked.

        Args:
            path: where it is.
            salvage: load of a damaged or cut file what stands whole before the damage; the rest counts as `dropped`.
            max_bytes: memory that it may take; a small file may not take more than 256 MiB or 500 times its size.

        Raises:
            RecordingError: no such file, no recording, damaged, hostile, or of a newer schema.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Recording().save(f"{folder}/empty.lab")
            ...     Recording.load(f"{folder}/empty.lab")
            <Recording: 0 events>
        """
        made = cls._of(*loading.load(path, salvage=salvage, max_bytes=max_bytes))
        made.path = os.fsdecode(path)
        return made

    @classmethod
    def _of(cls, store: Store, head: Head) -> Recording:
        made = cls(detail=head.detail, sources=head.sources, run=head.run)
        store.budget.n_bytes = made._store.budget.n_bytes
        made.meta, made._store, made.from_file = dict(head.meta), store, True
        made.takes = None if head.takes is None else frozenset(head.takes)
        return made

    @classmethod
    def _from_bytes(cls, data: bytes) -> Recording:
        return cls._of(*loading.loads(data))

    def __reduce__(self) -> tuple[object, ...]:
        self._fetch()
        return type(self)._from_bytes, (saving.dumps(self._store, self._head()),)

    # --- as a value ----------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        n = self._fetch()
        counts = [(table.rows(0, n)[1], table.kind.__name__) for table in self._store.tables]
        parts = [f"{n:,} events"]
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

    What other threads do meanwhile is taken as well, unless it belongs to a run of its own (`run`).

    Example:
        >>> import lab
        >>> x, y = lab.tensor(2.0, requires_grad=True), lab.tensor(3.0, requires_grad=True)
        >>> with lab.record() as rec:
        ...     z = x * y
        >>> [type(event).__name__ for event in rec]
        ['LeafUsed', 'ValueSeen', 'LeafUsed', 'ValueSeen', 'OpRecorded', 'ValueSeen']
        >>> rec[-2].op, rec[-1].mean
        ('multiply', 6.0)
    """
    rec = Recording(detail=detail, sources=sources, kinds=kinds, run=run, limit=limit, value_bytes=value_bytes)
    try:
        bus.attach(rec)
        yield rec
    finally:
        rec.close()
