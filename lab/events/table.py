"""Table: all events of one kind, a row each; and Columns, the view of a stretch of them that folds and tests read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lab.errors import RecordingError
from lab.events.arrays import Budget, column_for
from lab.events.columns import Damaged, Flat, Growing, Ints, NumberColumn, Parts, Strings, Values, check_codes
from lab.events.event import Array, Event, Origin, fields_of


class Table:
    """The rows of one kind. `position` (index in the recording) grows from row to row, so bisection finds stretches."""

    def __init__(self, kind: type[Event], strings: Strings, origins: list[Origin], budget: Budget) -> None:
        self.kind, self.origins = kind, origins
        self.stored = fields_of(kind)  # as the file knows them, if it comes from one
        self.columns = {name: column_for(of_type, strings, budget) for name, of_type in fields_of(kind).items()}
        self.position, self.seq, self.time_ns = Growing(np.int64), Growing(np.int64), Growing(np.int64)
        self.origin = Growing(np.int32)
        self._defaults = _defaults(kind)

    def extend(self, positions: Ints, seqs: Flat, times: Flat, origins: Flat, rows: Sequence[Values]) -> None:
        """Take the rows of a batch. Fields left out at the end have their defaults.

        Raises:
            RecordingError: a row has other fields than the kind.
        """
        try:
            fields = list(zip(*rows, strict=True))
        except ValueError:  # rows of differing lengths
            fields = []
        if len(fields) != len(self.columns):
            fields = list(zip(*map(self._whole, rows), strict=True))
        for column, values in zip(self.columns.values(), fields, strict=True):
            column.extend(values)
        self.position.extend(positions)
        self.seq.extend(seqs)
        self.time_ns.extend(times)
        self.origin.extend(origins)

    def _whole(self, row: Values) -> Values:
        n_missing = len(self.columns) - len(row)
        if 0 <= n_missing <= len(self._defaults):
            return row + self._defaults[len(self._defaults) - n_missing :]
        raise RecordingError(
            f"an event of kind {self.kind.__name__} has other fields than its kind",
            given=f"{len(row)} values for {len(self.columns)} fields: {', '.join(self.columns)}",
            hint="emit(Kind(...)) checks them; emit_row takes them in order",
        )

    def truncate(self, n_events: int) -> None:
        """Forget rows of positions that were never published."""
        n = int(np.searchsorted(self.position.view(), n_events))
        for column in self.columns.values():
            column.truncate(n)
        self.position.n = self.seq.n = self.time_ns.n = self.origin.n = n

    def rows(self, start: int, stop: int) -> tuple[int, int]:
        """The rows whose positions are start <= p < stop."""
        first, last = np.searchsorted(self.position.view(), (start, stop)).tolist()
        return first, last

    def events(self, first: int, last: int) -> Iterator[Event]:
        """Rows first to last as Event objects."""
        fields = [column.items(first, last) for column in self.columns.values()]
        rows: Iterator[Values] = zip(*fields, strict=True) if fields else iter([()] * (last - first))
        envelope = (x.view(first, last).tolist() for x in (self.seq, self.time_ns, self.origin))
        for values, seq, time_ns, origin in zip(rows, *envelope, strict=True):
            made = self.kind(*values)
            made.seq, made.time_ns, (made.rank, made.run) = seq, time_ns, self.origins[origin]
            yield made

    def pack(self, first: int, last: int) -> Parts:
        """Rows first to last as flat arrays by name, without the positions."""
        parts: Parts = {name: getattr(self, name).view(first, last) for name in ("seq", "time_ns", "origin")}
        for name, column in self.columns.items():
            for part, flat in column.pack(first, last).items():
                parts[f"{name}.{part}" if part else name] = flat
        return parts

    def n_strings(self, first: int, last: int) -> int:
        """One more than the highest number of a text in rows first to last."""
        codes = [c.pack(first, last)[""] for c in self.columns.values() if getattr(c, "strings", None)]
        return max((int(flat.max()) + 1 for flat in codes if len(flat)), default=0)

    def unpack(self, parts: Parts, positions: Ints) -> None:
        """Take rows from flat arrays by name."""
        for name in ("seq", "time_ns", "origin", *self.stored):
            if name not in parts:
                raise Damaged(f"the column {self.kind.__name__}.{name} is missing")
        n = len(positions)
        check_codes(parts["origin"], len(self.origins))
        for name, growing in (("seq", self.seq), ("time_ns", self.time_ns), ("origin", self.origin)):
            envelope = NumberColumn(np.int64)
            envelope.unpack({"": parts[name]}, n)
            growing.extend(envelope.all.view())
        for name, column in self.columns.items():
            if name in self.stored:
                own = {part.partition(".")[2]: flat for part, flat in parts.items() if part.partition(".")[0] == name}
                column.unpack(own, n)
            else:
                column.extend((self._fill(name),) * n)
        self.position.extend(positions)

    def _fill(self, name: str) -> object:
        """What a field has in events of a file that does not know it: its default, or a neutral value."""
        behind = list(self.columns).index(name) - len(self.columns)
        if -behind <= len(self._defaults):
            return self._defaults[behind]
        return NEUTRAL[fields_of(self.kind)[name]]


NEUTRAL: dict[object, object] = {
    int: 0,
    float: float("nan"),
    bool: False,
    str: "",
    tuple[int, ...]: (),
    tuple[float, ...]: (),
    tuple[str, ...]: (),
    Array | None: None,
}


def _defaults(kind: type[Event]) -> Values:
    """Defaults of the last fields, as many as have one."""
    given = [f.default for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    return tuple(x for x in given if x is not dataclasses.MISSING)  # fields with defaults stand behind those without


class Columns(Mapping[str, Any]):
    """A stretch of the events of one kind by field, decoded when asked for; `len(columns)` is the number of columns.

    Fields of type str give an object array of str, tuples a `Ragged`, arrays a sequence of `ndarray | None`, all others
    a read-only array. Beside the fields: "position", "seq", "time_ns", "rank", "run".
    """

    def __init__(self, table: Table, first: int, last: int) -> None:
        self._table, self._rows = table, (first, last)

    @property
    def n_rows(self) -> int:
        """How many events there are."""
        first, last = self._rows
        return last - first

    def __getitem__(self, name: str) -> Any:
        table = self._table
        if name in table.columns:
            return table.columns[name].get(*self._rows)
        if name in ("position", "seq", "time_ns"):
            return getattr(table, name).view(*self._rows)
        if name in ("rank", "run"):
            known = [getattr(origin, name) for origin in table.origins]
            decoded = np.array(known, np.int64 if name == "rank" else object)
            return decoded[table.origin.view(*self._rows)]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._table.columns
        yield from ("position", "seq", "time_ns", "rank", "run")

    def __len__(self) -> int:
        return len(self._table.columns) + 5

    def __repr__(self) -> str:
        return f"<Columns of {self.n_rows:,} {self._table.kind.__name__}: {', '.join(self._table.columns)}>"
