"""Where two tables of one kind differ first: column by column, for a million events in well under a second.

What tells of a machine and not of a computation (times, processes, addresses) is left out, and numbers of nodes, which
differ from process to process, are replaced by the order in which a recording first names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lab.events.arrays import DTYPES
from lab.events.columns import Flat, Ints, Parts, Strings
from lab.events.event import Array, Event, fields_of
from lab.events.table import Table

Mask = npt.NDArray[np.bool_]

MACHINE_KINDS = frozenset({"WorkerSeen", "WorkerHandled", "ClockAligned", "StrangerRefused", "RunStateChanged",
                           "TrainingResumed", "StateKept", "SnapshotWritten", "LaneBusy",
                           "CrossingFound", "MemorySampled", "PeakFound", "CallsPaid",
                           "EquationRan", "StageRan", "LinkFitted"})  # fmt: skip
"""How workers, clocks, memory, threads and the reader's own clicks were: two runs of a computation differ in these."""
MACHINE_FIELDS = frozenset({"pid", "worker", "generation", "file", "line", "reason"})
"""Numbers of processes and launches, addresses (also within reasons), the place of a line, which an edit moves."""
RUN_FIELDS = {"RunStarted": ("name", "n_steps", "n_epochs"), "RunFinished": ("name",),
              "TangentPushed": ("level",), "OpBatched": ("level",), "CallMeasured": ("words",)}  # fmt: skip
"""What a run is called, and how long it was meant to be: one that only ran on is told as such; and
how many transforms a process had begun before; and whether loops came from its cache."""
SOURCE_FIELDS = {"OpRecorded": ("constants", "params"), "LeafUsed": ("name",),
                 "TangentPushed": ("name", "constants", "params"),
                 "OpBatched": ("name", "constants", "params")}  # fmt: skip
"""Known only where sources were recorded."""
NUMBERS_AS_TEXT = {"OpRecorded": ("constants",), "TangentPushed": ("constants",), "OpBatched": ("constants",),
                   "ParametersKept": ("parameters",), "RunStarted": ("optimizer",)}  # fmt: skip
"""Texts with numbers in them: with a tolerance they are left to the fields that have the numbers themselves."""
VALUE_KINDS = frozenset({"OperandKept", "ParametersKept"})
"""Emitted from detail "value" on only."""
NODE_FIELDS = ("node", "parents", "source", "targets", "root")
"""Numbers of nodes, in kinds of single operations."""


def compared_fields(kind: type[Event], *, sources: bool, values: bool, rounded: bool = False) -> dict[str, object]:
    """Name and type of the fields of a kind that two runs should have in common.

    Example:
        >>> from lab.events import StepFinished
        >>> list(compared_fields(StepFinished, sources=True, values=True))
        ['step', 'epoch', 'loss', 'n_examples']
    """
    name = kind.__name__
    out = {*MACHINE_FIELDS, *kind.clocks, *RUN_FIELDS.get(name, ()), *(() if sources else SOURCE_FIELDS.get(name, ()))}
    out |= {*(NUMBERS_AS_TEXT.get(name, ()) if rounded else ())}
    return {
        f: of_type
        for f, of_type in fields_of(kind).items()
        if f not in out and not f.endswith(("_ms", "_ns")) and (values or of_type != Array | None)
    }


class Rows(NamedTuple):
    """Rows of a table, of one rank: its flat parts, and which entries of it belong to them (None: all).

    Attributes:
        numbers: the number that stands for a node, by `Numbering`.
    """

    parts: Parts
    mine: Mask | None
    strings: Strings
    numbers: Numbering

    @property
    def n(self) -> int:
        """How many rows."""
        return len(self.parts["seq"]) if self.mine is None else int(self.mine.sum())

    def flat(self, name: str) -> Flat:
        """A part with one entry a row."""
        return self.parts[name] if self.mine is None else self.parts[name][self.mine]

    def long(self, name: str, lengths: Flat) -> Flat:
        """A part with `lengths` entries a row (of all rows of the table)."""
        return self.parts[name] if self.mine is None else self.parts[name][np.repeat(self.mine, lengths)]

    def cut(self, lengths: Flat) -> Flat:
        """`lengths` of these rows."""
        return lengths if self.mine is None else lengths[self.mine]


class Numbering:
    """Numbers of nodes by order of first use: the same in every run that does the same.

    Args:
        uses: pairs of node ids and ascending keys that say when they were used.

    Example:
        >>> Numbering([(np.array([70, 50, 70]), np.array([1, 2, 3]))]).of(np.array([50, 70, -1])).tolist()
        [1, 0, -1]
    """

    def __init__(self, uses: Iterable[tuple[Flat, Flat]]) -> None:
        found = [(ids[ids >= 0], keys[ids >= 0]) for ids, keys in uses]
        found = [(ids, keys) for ids, keys in found if len(ids)]
        low, high = (min(int(i.min()) for i, _ in found), max(int(i.max()) for i, _ in found)) if found else (0, -1)
        n = sum(len(ids) for ids, _ in found)
        # Numbers of one process are dense; those of a file from somewhere need not be.
        dense = high - low < 8 * n + 1024
        self._low, self._known = low, None if dense else np.unique(np.concatenate([ids for ids, _ in found]))
        never, size = np.iinfo(np.int64).max, high - low + 1 if self._known is None else len(self._known)
        first = np.full(size, never)
        for ids, keys in found:
            here = np.full(size, never)
            here[self._place(ids[::-1])] = keys[::-1]  # of equal ids the last assigned stays: the earliest use
            np.minimum(first, here, out=first)
        used = np.flatnonzero(first != never)
        self._number = np.full(size + 1, -1, np.int64)
        self._number[used[np.argsort(first[used], kind="stable")]] = np.arange(len(used))

    def _place(self, ids: Flat) -> Ints:
        place: Ints = ids - self._low if self._known is None else np.searchsorted(self._known, ids)
        return place

    def of(self, ids: Flat) -> Ints:
        """The numbers of these ids; -1 stays -1."""
        return self._number[np.where(ids < 0, -1, self._place(ids))]


def uses_of(table: Table, n: int, mine: Mask | None) -> Iterable[tuple[Flat, Flat]]:
    """When the first n rows of a table of single operations use which nodes."""
    parts = table.pack(0, n)
    rows = Rows(parts, mine, Strings(), Numbering(()))
    when = rows.cut(table.position.view(0, n)) << 20
    for slot, name in enumerate(name for name in NODE_FIELDS if name in parts):
        if f"{name}.length" not in parts:
            yield rows.flat(name), when + slot
            continue
        lengths = parts[f"{name}.length"]
        own = rows.cut(lengths)
        within = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
        yield rows.long(name, lengths), np.repeat(when, own) + 8 + np.minimum(within, (1 << 20) - 9)


def first_unlike(kind: type[Event], fields: dict[str, object], a: Rows, b: Rows, n: int, tolerance: float) -> int:
    """The first of n rows in which some of the fields differ; n if none does."""
    for name, of_type in fields.items():
        nodes = kind.per_operation and name in NODE_FIELDS
        if of_type == Array | None:
            n = _arrays(name, a, b, n, tolerance)
        elif of_type in (int, bool, float, str):
            x, y = a.flat(name)[:n], b.flat(name)[:n]
            n = _first(_unlike(x, y, a, b, nodes=nodes, text=of_type is str, tolerance=tolerance), n)
        else:
            n = _tuples(name, of_type == tuple[str, ...], nodes, a, b, n, tolerance)
    return n


def _first(unlike: Mask, n: int) -> int:
    """Index of the first True, n if there is none."""
    return int(unlike.argmax()) if len(unlike) and unlike.any() else n


def _unlike(x: Flat, y: Flat, a: Rows, b: Rows, *, nodes: bool, text: bool, tolerance: float) -> Mask:
    """Which entries differ."""
    if nodes:
        x, y = a.numbers.of(x), b.numbers.of(y)
    elif text and a.strings is not b.strings:
        y = _translated(y, b.strings.all, a.strings.all)
    return floats_unlike(x, y, tolerance) if x.dtype.kind in "fc" else x != y


def _translated(codes: Flat, theirs: Sequence[str], ours: Sequence[str]) -> Flat:
    """Numbers of their texts as numbers of ours; -1 for those that we do not have."""
    known = {text: k for k, text in enumerate(ours)}
    table = np.fromiter((known.get(text, -1) for text in theirs), np.int64, len(theirs))
    return table[codes]


def floats_unlike(x: Flat, y: Flat, tolerance: float) -> Mask:
    """Which numbers differ: in any bit (nan is like nan), or by more than a share of the larger one.

    Example:
        >>> x, y = np.array([0.0, 1.0, np.nan]), np.array([-0.0, 1.0 + 1e-12, np.nan])
        >>> floats_unlike(x, y, 0.0).tolist(), floats_unlike(x, y, 1e-9).tolist()
        ([True, True, False], [False, False, False])
    """
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    width = x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1)
    bits = x.view(f"i{width}") != y.view(f"i{width}")
    unlike: Mask = bits.reshape(len(x), -1).any(axis=1) if x.dtype.kind == "c" else bits
    at = np.flatnonzero(unlike)
    if len(at):
        p, q = x[at], y[at]
        alike = np.isnan(p) & np.isnan(q)
        if tolerance:
            with np.errstate(invalid="ignore", over="ignore"):
                near = abs(p - q) <= tolerance * np.maximum(abs(p), abs(q))
            alike |= (near & np.isfinite(p) & np.isfinite(q)) | (p == q)
        unlike[at[alike]] = False
    return unlike


def _tuples(name: str, text: bool, nodes: bool, a: Rows, b: Rows, n: int, tolerance: float) -> int:
    lengths_a, lengths_b = a.parts[f"{name}.length"], b.parts[f"{name}.length"]
    own = a.cut(lengths_a)[:n]
    n = _first(own != b.cut(lengths_b)[:n], n)
    own = own[:n]
    m = int(own.sum())
    x, y = a.long(name, lengths_a)[:m], b.long(name, lengths_b)[:m]
    entry = _first(_unlike(x, y, a, b, nodes=nodes, text=text, tolerance=tolerance), m)
    return n if entry == m else int(np.searchsorted(np.cumsum(own), entry, side="right"))


def _arrays(name: str, a: Rows, b: Rows, n: int, tolerance: float) -> int:
    """Arrays that both have: one that found no room, or was too large to be kept, says nothing."""
    x, y = _Arrays.of(name, a, n), _Arrays.of(name, b, n)
    both = (x.dtype >= 0) & (y.dtype >= 0)
    n = _first(both & ((x.dtype != y.dtype) | (x.ndim != y.ndim) | (x.size != y.size)), n)
    both = both[:n]
    for number in np.unique(x.dtype[:n][both]).tolist():
        dtype = DTYPES[number]
        rows = np.flatnonzero(both & (x.dtype[:n] == number))
        p, q = x.entries(rows, n, dtype), y.entries(rows, n, dtype)
        if len(p) != len(q):  # rows of equal size that are none: cannot be
            continue
        unlike = floats_unlike(p, q, tolerance) if dtype.kind in "fc" else p != q
        entry = _first(unlike, len(p))
        if entry < len(p):
            ends = np.cumsum(x.size[rows]) // dtype.itemsize
            n = min(n, int(rows[np.searchsorted(ends, entry, side="right")]))
            both = both[:n]
    return n


class _Arrays(NamedTuple):
    """Arrays of some rows: number of the dtype, dimensions and bytes of each, and all bytes."""

    dtype: Flat
    ndim: Flat
    size: Ints
    data: Flat

    @classmethod
    def of(cls, name: str, rows: Rows, n: int) -> _Arrays:
        parts = rows.parts
        dtypes, dims = parts[f"{name}.dtype"], parts[f"{name}.ndim"]
        sides = np.concatenate([np.ones(1, np.int64), parts[f"{name}.shape"].astype(np.int64)])
        entries, ends = np.ones(len(dims), np.int64), np.cumsum(dims)
        some = np.flatnonzero(dims)
        if len(some):
            entries[some] = np.multiply.reduceat(sides[1:], (ends - dims)[some])
        sizes = entries * np.array([*(d.itemsize for d in DTYPES), 0])[dtypes]
        return cls(rows.cut(dtypes)[:n], rows.cut(dims)[:n], rows.cut(sizes)[:n], rows.long(name, sizes))

    def entries(self, rows: Ints, n: int, dtype: np.dtype[np.generic]) -> Flat:
        """The entries of the arrays of these rows, end to end."""
        size = self.size[:n]
        wanted = np.zeros(n, bool)
        wanted[rows] = True
        data = self.data[: int(size.sum())]
        return np.ascontiguousarray(data[np.repeat(wanted, size)]).view(dtype)
