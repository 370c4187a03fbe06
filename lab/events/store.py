"""Store: the events behind a Recording, in tables by kind; what is written becomes visible in one statement.

One thread at a time writes. An interrupt in the middle leaves rows behind the published end, and the next writer cuts
them off: so each event is in the store once, however often its delivery is tried.
"""

from __future__ import annotations

import linecache
import sys
from bisect import bisect_right
from collections.abc import Sequence
from itertools import compress

import numpy as np

from lab.errors import RecordingError
from lab.events.arrays import Budget
from lab.events.bus import Batch
from lab.events.columns import Flat, Growing, Strings, Values
from lab.events.event import Event, Origin, fields_of
from lab.events.table import Table

_MAX_LINE = 500
_MAX_LINES = 100_000


class Store:
    """Tables of events, and beside them the order of all, the texts, the origins and the source lines.

    Attributes:
        n: how many events are published.
        last_seq: sequence number of the last that was offered.
        n_dropped: events for which there was no room.
        order: for each event the number of its table.
        lines: text of source lines by file and number.
    """

    def __init__(self, value_bytes: int) -> None:
        self.n, self.last_seq, self.n_dropped, self.used, self.dirty = 0, -1, 0, (0, 0), False
        self.budget = Budget(value_bytes)
        self.strings = Strings()
        self.origins: list[Origin] = []
        self.tables: list[Table] = []
        self.order = Growing(np.uint8)
        self.lines: dict[tuple[str, int], str] = {}
        self._origin_codes: dict[Origin, int] = {}
        self._codes: dict[type[Event], int] = {}

    def roll_back(self) -> None:
        """Forget what an interrupted batch left behind the published end."""
        if self.dirty:
            for table in self.tables:
                table.truncate(self.n)
            self.order.n = self.n
            self.budget.used, self.budget.n_dropped = self.used
            self.dirty = False

    def take(self, batch: Batch, *, run: str, limit: int, lines: bool) -> None:
        """Take of a batch the events of a run ("*": all) for which there is room, and the source lines that they name.

        A batch that was taken before (its delivery was interrupted) is passed over.
        """
        self.roll_back()
        old = bisect_right(batch.seqs, self.last_seq)
        if old == len(batch):
            return
        if old:
            batch = batch[old:]
        self.dirty = True
        kinds, times, origins, rows = zip(*batch.rows, strict=True)
        seqs: Sequence[int] = batch.seqs
        if run != "*" and not (origins.count(origins[0]) == len(origins) and origins[0].run == run):
            ours = [origin.run == run for origin in origins]
            kinds, times, origins, rows, seqs = (tuple(compress(x, ours)) for x in (kinds, times, origins, rows, seqs))
        room = max(limit - self.n, 0)
        n_over = max(len(kinds) - room, 0)
        if n_over:
            kinds, times, origins, rows, seqs = kinds[:room], times[:room], origins[:room], rows[:room], seqs[:room]
        if kinds:
            self._write(kinds, np.array(times, np.int64), self._coded(origins), rows, np.array(seqs, np.int64))
            if lines:
                self._keep_lines()
        self.publish(batch.seqs[-1], n_over)

    def publish(self, last_seq: int = -1, n_over: int = 0) -> None:
        """Show readers what was written; n_over events found no room."""
        used = self.budget.used, self.budget.n_dropped
        # One statement, no call in it: an interrupt comes before it, and the batch comes again, or after, and it is in.
        self.n, self.last_seq, self.used, self.n_dropped, self.dirty = (
            self.order.n,
            last_seq,
            used,
            self.n_dropped + n_over,
            False,
        )

    def _coded(self, origins: tuple[Origin, ...]) -> Flat:
        single = origins.count(origins[0]) == len(origins)
        for origin in origins[:1] if single else dict.fromkeys(origins):
            if origin not in self._origin_codes:
                self.origins.append(origin)
                self._origin_codes[origin] = len(self.origins) - 1
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
            table = self.tables[code]
            its_rows = rows if len(here) == len(rows) else [rows[i] for i in here.tolist()]
            table.extend(here + self.n, seqs[here], times[here], origins[here], its_rows)
        self.order.extend(order)

    def _code_for(self, kind: type[Event]) -> int:
        for code, table in enumerate(self.tables):
            if table.kind.__name__ == kind.__name__:  # its cell ran again: the same kind, if it has the same fields
                if fields_of(table.kind) == fields_of(kind):
                    return code
                raise RecordingError(
                    f"the kind {kind.__name__} changed its fields during the recording",
                    given=f"{', '.join(fields_of(kind))} after {', '.join(fields_of(table.kind))}",
                    hint="start a new recording",
                )
        if len(self.tables) == 256:
            raise RecordingError(
                "a recording holds at most 256 kinds of events",
                given=kind.__name__,
                hint="record some of them: kinds=[...]",
            )
        self.tables.append(self.new_table(kind))
        return len(self.tables) - 1

    def new_table(self, kind: type[Event]) -> Table:
        """An empty table that shares our texts and origins."""
        return Table(kind, self.strings, self.origins, self.budget)

    def _keep_lines(self) -> None:
        """Read the source lines that the newest rows name, now: the file may change, and the recording may travel."""
        for table in self.tables:
            first, last = table.rows(self.n, sys.maxsize)
            if first < last and {"file", "line"} <= table.columns.keys():
                files, lines = (table.columns[name].pack(first, last)[""] for name in ("file", "line"))
                known = (lines > 0) & (lines < 2**31)
                pairs = np.unique(files[known].astype(np.int64) << 32 | lines[known])
                for pair in pairs.tolist():
                    key = self.strings.all[pair >> 32], pair & 0xFFFFFFFF
                    if key not in self.lines and len(self.lines) < _MAX_LINES:
                        self.lines[key] = _line(*key)

    def events(self, start: int, stop: int) -> list[Event]:
        """The events at positions start <= p < stop."""
        order = self.order.view(start, stop).tolist()
        by_kind = {code: self.tables[code].events(*self.tables[code].rows(start, stop)) for code in {*order}}
        return [next(by_kind[code]) for code in order]


def _line(name: str, number: int) -> str:
    try:
        return linecache.getline(name, number).strip()[:_MAX_LINE]
    except ValueError:  # a file name with NUL in it
        return ""
