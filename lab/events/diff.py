"""The first event in which two recorded runs differ: rank by rank, ignoring times, names of runs, processes, addresses.

Ranks interleave differently in every run, so each is compared with its namesake, and the earliest difference is told.
What the two recordings did not both take is left out of the comparison, and said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.errors import ArgumentError, RecordingError
from lab.events.alike import MACHINE_KINDS, VALUE_KINDS, Mask, Numbering, Rows, compared_fields, first_unlike, uses_of
from lab.events.bus import Detail
from lab.events.catalogue import ValueSeen
from lab.events.columns import Flat, Ints
from lab.events.event import Event
from lab.events.recording import Recording
from lab.events.telling import Place, place_of, words_of

TRAINING = frozenset(
    {
        "RunStarted", "StepFinished", "Evaluated", "ParameterMeasured", "LayerMeasured", "HyperparameterChanged",
        "RunFinished",
    }
)
"""Kinds that whoever trains emits: beside those of ranks and those of operations a stream of their own, because a
launcher and its rank 0 have one number and no common order."""
N_STREAMS = 3


class Side(NamedTuple):
    """What one of the runs did there.

    Attributes:
        position: of the event in its recording, -1 if the run had ended.
        event: it, or None.
        place: the operation it belongs to, with its source line.
        value: of the field that differs.
    """

    position: int = -1
    event: Event | None = None
    place: Place = Place()
    value: object = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event in which two runs differ.

    Attributes:
        rank: of the event.
        agreed: how many events of that rank agree before it.
        field: the first field that differs; "" where the kinds differ, or one run has ended.
        a, b: what each did.
        later: other ranks that differ too, later.
        why_short: why the run that ended may have, "" if nothing is known.
    """

    rank: int
    agreed: int
    field: str
    a: Side
    b: Side
    later: tuple[int, ...] = ()
    why_short: str = ""

    @property
    def ran_on(self) -> str:
        """The run that went on where the other had ended: "a", "b", or "" if both did something else."""
        kinds = [type(side.event).__name__ if side.event is not None else "RunFinished" for side in (self.a, self.b)]
        if self.field or kinds[0] == kinds[1]:
            return ""
        return {("RunFinished", kinds[1]): "b", (kinds[0], "RunFinished"): "a"}.get((kinds[0], kinds[1]), "")

    @property
    def op(self) -> str:
        """The operation of the event, "" if it belongs to none."""
        return self.a.place.op or self.b.place.op

    @property
    def line(self) -> int:
        """The source line of the operation in `a` (in `b` where `a` has none), 0 where it is not known."""
        return self.a.place.line or self.b.place.line

    @property
    def text(self) -> str:
        """The difference in three lines."""
        return "\n".join(words_of(self))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison of two recordings found.

    Attributes:
        difference: the first, or None.
        n_events: how many of `a` were compared, or agreed where there is a difference.
        ranks: of both.
        notes: what was left out of the comparison, and why; a sentence each.
    """

    difference: Difference | None
    n_events: int
    ranks: tuple[int, ...]
    tolerance: float = 0.0
    notes: tuple[str, ...] = field(default=())

    @property
    def text(self) -> str:
        """What was found, in three lines."""
        return self.said()

    def said(self, names: tuple[str, str] = ("a", "b")) -> str:
        """The same with other names for the two."""
        notes = " ".join(self.notes)
        if self.difference is not None:
            first, second, third = words_of(self.difference, names)
            return "\n".join((first, second, f"{third} {notes}".strip()))
        numbers = f"numbers to a share of {self.tolerance:g}" if self.tolerance else "numbers bit for bit"
        ranks = f"{len(self.ranks)} rank{'s' * (len(self.ranks) != 1)}"
        agree = f"No difference: {self.n_events:,} event{'s' * (self.n_events != 1)} of {ranks} agree, {numbers}."
        return "\n".join((
            agree if self.n_events else "No difference, and nothing to compare: neither recording has an event.",
            "Not compared: times, names of runs, processes, addresses, numbers of nodes and of source lines.",
            notes or "Both recordings took the same kinds of events.",
        ))  # fmt: skip

    def __str__(self) -> str:
        return self.text


def first_difference(a: Any, b: Any, *, tolerance: float = 0.0) -> Difference | None:
    """The first event in which two runs differ, None if there is none.

    Args:
        a, b: recordings, or what has one in `.recording`.
        tolerance: how far numbers may lie apart, as a share of the larger one; 0: not in a single bit.

    Raises:
        ArgumentError: no recordings, or a tolerance that is none.
        RecordingError: they have nothing in common that could be compared.

    Example:
        >>> import lab
        >>> def run(weight):
        ...     x, w = lab.tensor(2.0, requires_grad=True, name="x"), lab.tensor(weight, name="w")
        ...     with lab.record() as rec:
        ...         lab.tanh(x * w)
        ...     return rec
        >>> first_difference(run(3.0), run(3.0)) is None
        True
        >>> first_difference(run(3.0), run(4.0)).op
        'multiply'
    """
    return compare(a, b, tolerance=tolerance).difference


def compare(a: Any, b: Any, *, tolerance: float = 0.0) -> Comparison:
    """The same with what was compared, and what was not; arguments and errors of `first_difference`."""
    runs = _Run(_recording(a, "a")), _Run(_recording(b, "b"))
    asked: Any = tolerance
    if isinstance(asked, bool) or not isinstance(asked, (int, float)) or not 0 <= asked < 1:
        raise ArgumentError("a tolerance is a share of a number", given=repr(tolerance), hint="as 1e-6; 0 for no bit")
    known, notes = _common(runs[0].recording, runs[1].recording, tolerance)
    for run in runs:
        run.take(known)
    ranks = tuple(sorted({*runs[0].ranks, *runs[1].ranks}))
    found = [d for rank in ranks if (d := _rank_difference(runs[0], runs[1], rank, known)) is not None]
    if not ranks and (len(runs[0].recording) or len(runs[1].recording)):
        raise RecordingError(
            "these recordings have no kind of events in common", given=" ".join(notes) or "nothing to compare",
            hint="record both with the same kinds and detail",
        )  # fmt: skip
    if not found:
        return Comparison(None, runs[0].n, ranks, tolerance, notes)
    found.sort(key=lambda d: min(side.position for side in (d.a, d.b) if side.position >= 0))
    first = found[0]
    short = runs[0].recording if first.a.event is None else runs[1].recording
    why = f"{short.dropped:,} of its events were lost or found no room" if short.dropped and first.ran_on else ""
    later = tuple(d.rank for d in found[1:])
    return Comparison(
        Difference(first.rank, first.agreed, first.field, first.a, first.b, later, why),
        first.agreed, ranks, tolerance, notes,
    )  # fmt: skip


def around(a: Any, b: Any, found: Difference, *, before: int = 4, after: int = 3) -> tuple[list[Side], list[Side]]:
    """What each run did just before and just after its first difference, on the same rank: so many events of each.

    Example:
        >>> import lab
        >>> def run(op):
        ...     with lab.record(detail="shape") as rec:
        ...         op(lab.exp(lab.tensor(2.0, requires_grad=True, name="x")))
        ...     return rec
        >>> a, b = run(lab.tanh), run(lab.sin)
        >>> first, second = around(a, b, first_difference(a, b))
        >>> [side.event.op for side in second if hasattr(side.event, "op")]
        ['exp', 'sin']
    """
    runs = _Run(_recording(a, "a")), _Run(_recording(b, "b"))
    known, _ = _common(runs[0].recording, runs[1].recording, 0.0)
    told = []
    for run, side in zip(runs, (found.a, found.b), strict=True):
        run.take(known)
        event = side.event or found.a.event or found.b.event
        assert event is not None, "a difference has an event on one side at least"
        stream = run.positions(found.rank, _stream_of(type(event)))
        at = int(np.searchsorted(stream, side.position)) if side.position >= 0 else len(stream)
        told.append([run.side(p, found.rank) for p in stream[max(0, at - before) : at + 1 + after].tolist()])
    return told[0], told[1]


def _stream_of(kind: type[Event]) -> int:
    return 0 if kind.per_operation else 1 if kind.__name__ in TRAINING else 2


def _recording(source: Any, name: str) -> Recording:
    recording = getattr(source, "recording", source)
    if not isinstance(recording, Recording):
        raise ArgumentError(
            "a difference is found between two recordings", given=f"{name} is {type(source).__name__}",
            hint="Recording.load(path), lab.record(), or a run",
        )  # fmt: skip
    return recording


class _Known(NamedTuple):
    """What both recordings took: of which kinds which fields."""

    detail: Detail
    sources: bool
    takes: frozenset[str] | None
    tolerance: float

    def fields(self, kind: type[Event]) -> dict[str, object]:
        """Name and type of each field of a kind that is compared; empty for a kind that is not."""
        name = kind.__name__
        no_values = (self.detail is Detail.SHAPE and name == ValueSeen.__name__) or (
            self.detail is not Detail.VALUE and name in VALUE_KINDS
        )
        if name in MACHINE_KINDS or no_values or (self.takes is not None and name not in self.takes):
            return {}
        values, rounded = self.detail is Detail.VALUE, self.tolerance > 0
        return compared_fields(kind, sources=self.sources, values=values, rounded=rounded)


def _common(a: Recording, b: Recording, tolerance: float) -> tuple[_Known, tuple[str, ...]]:
    notes = []
    detail = min(a.detail, b.detail)
    if a.detail != b.detail:
        words = " and ".join(f'{name} with detail "{x.detail.name.lower()}"' for name, x in (("a", a), ("b", b)))
        what = "values were" if detail is Detail.SHAPE else "entries of arrays were"
        notes.append(f"Recorded {words}: {what} not compared.")
    if bool(a.sources) != bool(b.sources):
        notes.append(f"Only {'a' if a.sources else 'b'} has sources: constants and names were not compared.")
    takes = [x.takes for x in (a, b)]
    wanted = frozenset.intersection(*(t for t in takes if t is not None)) if any(t is not None for t in takes) else None
    for name, x, other in (("a", a, b), ("b", b, a)):
        missing = sorted(k.__name__ for k in other.kinds if x.takes is not None and k.__name__ not in x.takes)
        if missing:
            notes.append(f"{name} did not record {', '.join(missing)}: not compared.")
    lost = [name for name, x in (("a", a), ("b", b)) if x.dropped_values]
    if lost:
        notes.append(f"Some arrays found no room in {' and '.join(lost)}: not compared.")
    return _Known(detail, bool(a.sources and b.sources), wanted, tolerance), tuple(notes)


class _Run:
    """One of the two recordings, with its events by rank and stream."""

    def __init__(self, recording: Recording) -> None:
        self.recording, self.n = recording, 0
        self._length = len(recording)  # takes what the bus holds; what comes later is not looked at
        self._store = recording._store  # of this room

    def take(self, known: _Known) -> None:
        """Find the rank and the stream of each event that counts."""
        self._tables = {t.kind.__name__: t for t in self._store.tables if t.rows(0, self._length)[1]}
        self.kinds = {name: t.kind for name, t in self._tables.items()}
        rank_of = np.array([o.rank for o in self._store.origins] or [0], np.int64)
        self.stream = np.full(self._length, -1, np.int64)
        self.rank = np.zeros(self._length, np.int64)
        self._table_ranks: dict[str, Flat] = {}
        self._compared: set[str] = set()
        for name, table in self._tables.items():
            n = table.rows(0, self._length)[1]
            ranks = self._table_ranks[name] = rank_of[table.origin.view(0, n)]
            if known.fields(table.kind):
                self._compared.add(name)
                where = table.position.view(0, n)
                self.rank[where] = ranks
                self.stream[where] = _stream_of(table.kind)
        counted = self.stream >= 0
        self.n = int(counted.sum())
        self.ranks = np.unique(self.rank[counted]).tolist()
        self._numbers: dict[int, Numbering] = {}

    def positions(self, rank: int, stream: int) -> Ints:
        """Where the events of a stream stand."""
        found: Ints = np.flatnonzero((self.rank == rank) & (self.stream == stream))
        return found

    def codes(self, positions: Ints, names: dict[str, int]) -> Flat:
        """The kind of each, numbered by `names`."""
        table = np.array([names.get(t.kind.__name__, -1) for t in self._store.tables] or [0], np.int64)
        return table[self._store.order.view(0, self._length)[positions]]

    def rows(self, name: str, rank: int) -> Rows:
        """The rows of a kind that a rank emitted."""
        table = self._tables[name]
        n = table.rows(0, self._length)[1]
        numbers = self._numbering(rank) if table.kind.per_operation else Numbering(())
        return Rows(table.pack(0, n), self._mine(name, rank), self._store.strings, numbers)

    def _mine(self, name: str, rank: int) -> Mask | None:
        mine: npt.NDArray[np.bool_] = self._table_ranks[name] == rank
        return None if mine.all() else mine

    def _numbering(self, rank: int) -> Numbering:
        if rank not in self._numbers:
            uses = [
                pair
                for name, table in self._tables.items()
                if table.kind.per_operation and name in self._compared
                for pair in uses_of(table, len(self._table_ranks[name]), self._mine(name, rank))
            ]
            self._numbers[rank] = Numbering(uses)
        return self._numbers[rank]

    def row_at(self, position: int, rank: int) -> tuple[type[Event], Rows]:
        """The row of one event."""
        table = self._store.tables[int(self._store.order.view()[position])]
        row = table.rows(position, position + 1)[0]
        return table.kind, Rows(table.pack(row, row + 1), None, self._store.strings, self._numbering(rank))

    def agreed_before(self, rank: int, position: int) -> int:
        """How many events of a rank that count stand before a position."""
        before = slice(0, self._length if position < 0 else position)
        return int(((self.rank[before] == rank) & (self.stream[before] >= 0)).sum())

    def side(self, position: int, rank: int) -> Side:
        """The event at a position, with what is known of it."""
        if position < 0:
            return Side()
        event = self.recording[position]
        return Side(position, event, place_of(self.recording, event, position, rank))


def _rank_difference(a: _Run, b: _Run, rank: int, known: _Known) -> Difference | None:
    """The first difference of one rank."""
    pairs = [pair for stream in range(N_STREAMS) if (pair := _stream_difference(a, b, rank, stream, known))]
    if not pairs:
        return None
    at_a, at_b = min(pairs, key=lambda pair: (min(p for p in pair if p >= 0), -1 in pair))
    sides = a.side(at_a, rank), b.side(at_b, rank)
    agreed = a.agreed_before(rank, at_a) if at_a >= 0 else b.agreed_before(rank, at_b)
    name = _first_field(a, b, (at_a, at_b), rank, known)
    first, second = (side._replace(value=getattr(side.event, name)) if name else side for side in sides)
    return Difference(rank, agreed, name, first, second)


def _stream_difference(a: _Run, b: _Run, rank: int, stream: int, known: _Known) -> tuple[int, int] | None:
    """Positions of the first two events of a stream that differ, -1 for one that is not there."""
    where = a.positions(rank, stream), b.positions(rank, stream)
    shared = min(map(len, where))
    names = {name: k for k, name in enumerate({**a.kinds, **b.kinds})}
    codes = [run.codes(w, names) for run, w in zip((a, b), where, strict=True)]
    unlike = codes[0][:shared] != codes[1][:shared]
    n = int(unlike.argmax()) if unlike.any() else shared
    for code in np.flatnonzero(np.bincount(codes[0][:n])).tolist():
        name = list(names)[code]
        kind = a.kinds[name]
        at = np.flatnonzero(codes[0][:n] == code)
        row = first_unlike(kind, known.fields(kind), a.rows(name, rank), b.rows(name, rank), len(at), known.tolerance)
        n = min(n, int(at[row]) if row < len(at) else n)
    if n == shared == max(map(len, where)):
        return None
    first, second = (int(w[n]) if n < len(w) else -1 for w in where)
    return first, second


def _first_field(a: _Run, b: _Run, positions: tuple[int, int], rank: int, known: _Known) -> str:
    """The field to name: the entries of an array before what is computed from them, else the first that differs."""
    if -1 in positions:
        return ""
    (kind, x), (other, y) = a.row_at(positions[0], rank), b.row_at(positions[1], rank)
    if kind.__name__ != other.__name__:
        return ""
    fields = known.fields(kind).items()
    found = [name for name, of_type in fields if first_unlike(kind, {name: of_type}, x, y, 1, known.tolerance) == 0]
    return "value" if "value" in found else found[0]
