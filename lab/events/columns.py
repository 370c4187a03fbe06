"""Columns: how a Recording holds its events, one growing array for each field of each kind.

A column takes whole batches, keeps about 8 bytes an entry, and hands out read-only views. What stands before the
published length never changes, so readers need no lock: a column that must grow moves to a new array and leaves the old
one intact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Flat: TypeAlias = npt.NDArray[Any]
"""One dimension, of whatever dtype the column has."""
Ints: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = tuple[object, ...]
Parts: TypeAlias = dict[str, Flat]
"""The flat arrays of a stretch of a column, by name: what the file stores. "" is the main one."""

MAX_TEXT = 65_536
"""A longer text is cut, so that no single event can make a recording that cannot be loaded again."""


class Growing:
    """A flat array with room behind its end.

    Example:
        >>> a = Growing(np.int64)
        >>> a.extend(np.arange(3)); a.extend(np.arange(2)); a.view().tolist()
        [0, 1, 2, 0, 1]
    """

    __slots__ = ("data", "n")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.data: Flat = np.empty(0, dtype)
        self.n = 0

    def extend(self, entries: Flat) -> None:
        end = self.n + len(entries)
        if end > len(self.data):
            grown = np.empty(max(end, len(self.data) * 3 // 2, 256), self.data.dtype)
            grown[: self.n] = self.data[: self.n]
            self.data = grown
        self.data[self.n : end] = entries
        self.n = end

    def view(self, start: int = 0, stop: int | None = None) -> Flat:
        shown = self.data[start : self.n if stop is None else stop]
        shown.flags.writeable = False
        return shown


class Strings:
    """Every text of a recording once, numbered as it came.

    Example:
        >>> texts = Strings()
        >>> texts.codes(("relu", "exp", "relu")).tolist(), texts.all
        ([0, 1, 0], ['relu', 'exp'])
    """

    def __init__(self) -> None:
        self.all: list[str] = []
        self._ids = _Ids(self.all)
        self._decoded: npt.NDArray[np.object_] = np.empty(0, object)

    def codes(self, texts: Sequence[object]) -> npt.NDArray[np.int32]:
        """The number of each text; an object that is no text (a dtype) counts as its `str`."""
        if _is_constant(texts) and isinstance(texts[0], str):
            return np.full(len(texts), self._ids[texts[0]], np.int32)
        try:
            return np.fromiter(map(self._ids.__getitem__, texts), np.int32, len(texts))
        except TypeError:  # one that cannot be hashed
            return np.fromiter((self._ids[str(x)] for x in texts), np.int32, len(texts))

    def decode(self, codes: Flat) -> npt.NDArray[np.object_]:
        """The texts of an array of numbers, as an object array."""
        if len(self._decoded) < len(self.all):
            self._decoded = np.array([*self.all, None], dtype=object)[:-1]  # the None keeps it one-dimensional
        texts: npt.NDArray[np.object_] = self._decoded[codes]
        return texts


class _Ids(dict[object, int]):
    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def __missing__(self, key: object) -> int:
        if not isinstance(key, str | np.dtype):
            return self[str(key)]  # not remembered: as a key, 1 would stand for True too
        if not isinstance(key, str):
            self[key] = self[str(key)]
            return self[key]
        text = str(key)
        if len(text) > MAX_TEXT:
            text = text[: MAX_TEXT - 1] + "…"
        self.texts.append(text)
        self[key] = len(self.texts) - 1
        return self[key]


def _is_constant(values: Sequence[object]) -> bool:
    """Whether all values are one; the first glance costs nothing, and the full count 3 ns a value when it is true."""
    return len(values) > 0 and values[0] is values[-1] and values.count(values[0]) == len(values)


class Column(Protocol):
    """One field of one kind."""

    def extend(self, values: Values) -> None:
        """Take the field's values of a batch."""

    def truncate(self, n: int) -> None:
        """Forget all but the first n entries (of a batch whose taking was interrupted)."""

    def get(self, start: int, stop: int) -> Sequence[object] | Flat:
        """Entries start to stop as a view in bulk: an array, Ragged or Flats."""

    def items(self, start: int, stop: int) -> Sequence[object]:
        """The same as Python objects, as an Event has them."""

    def pack(self, start: int, stop: int) -> Parts:
        """The same as flat arrays, for the file."""

    def unpack(self, parts: Parts, n: int) -> None:
        """Take n entries from flat arrays; they are checked, since they may come from anywhere."""


class Damaged(Exception):  # noqa: N818 -- a condition of a file; users get a RecordingError with the path
    """A stored recording does not go on as it must: cut, altered, or never one of ours."""


def check(condition: object, what: str) -> None:
    """Refuse what a file says of a column, unless the condition holds."""
    if not condition:
        raise Damaged(what)


class NumberColumn:
    """int, float or bool."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.all = Growing(dtype)

    def extend(self, values: Values) -> None:
        if _is_constant(values) and isinstance(values[0], int):  # not float: 0.0 equals -0.0
            self.all.extend(np.full(len(values), values[0], self.all.data.dtype))
        else:
            self.all.extend(np.fromiter(values, self.all.data.dtype, len(values)))

    def truncate(self, n: int) -> None:
        self.all.n = n

    def get(self, start: int, stop: int) -> Flat:
        return self.all.view(start, stop)

    def items(self, start: int, stop: int) -> Sequence[object]:
        entries: list[object] = self.all.view(start, stop).tolist()
        return entries

    def pack(self, start: int, stop: int) -> Parts:
        return {"": self.all.view(start, stop)}

    def unpack(self, parts: Parts, n: int) -> None:
        numbers, dtype = parts[""], self.all.data.dtype
        check(len(numbers) == n, f"{len(numbers)} numbers for {n} events")
        check_dtype(numbers, dtype)
        self.all.extend(numbers)


class TextColumn(NumberColumn):
    """str, as numbers of interned texts."""

    def __init__(self, strings: Strings) -> None:
        super().__init__(np.int32)
        self.strings = strings

    def extend(self, values: Values) -> None:
        self.all.extend(self.strings.codes(values))

    def get(self, start: int, stop: int) -> Flat:
        return self.strings.decode(self.all.view(start, stop))

    def items(self, start: int, stop: int) -> Sequence[object]:
        return [self.strings.all[code] for code in self.all.view(start, stop).tolist()]

    def unpack(self, parts: Parts, n: int) -> None:
        check_codes(parts[""], len(self.strings.all))
        super().unpack(parts, n)


def check_dtype(flat: Flat, dtype: np.dtype[Any]) -> None:
    """Refuse numbers of another kind than the column's."""
    if not np.can_cast(flat.dtype, dtype, "same_kind"):
        raise Damaged(f"{flat.dtype} for {dtype}")


def check_codes(codes: Flat, n: int) -> None:
    """Refuse numbers that are not below n and not negative."""
    check(not len(codes) or (codes.min() >= 0 and codes.max() < n), f"an entry refers to none of {n}")


class Ragged(Sequence[tuple[object, ...]]):
    """Tuples of differing lengths: entry i is `values[offsets[i] : offsets[i + 1]]`.

    Example:
        >>> Ragged(np.array([0, 2, 2, 3]), np.array([7, 8, 9]))[0]
        (7, 8)
    """

    __slots__ = ("offsets", "values")

    def __init__(self, offsets: Ints, values: Flat) -> None:
        self.offsets, self.values = offsets, values

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int | slice) -> tuple[object, ...] | list[tuple[object, ...]]:  # type: ignore[override]
        if isinstance(i, slice):
            return [self._one(j) for j in range(*i.indices(len(self)))]
        return self._one(range(len(self))[i])

    def _one(self, i: int) -> tuple[object, ...]:
        return tuple(self.values[self.offsets[i] : self.offsets[i + 1]].tolist())

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        offsets = self.offsets.tolist()
        first = offsets[0]
        values = self.values[first : offsets[-1]].tolist()
        for start, stop in pairwise(offsets):
            yield tuple(values[start - first : stop - first])


class RaggedColumn:
    """tuple[int, ...], tuple[float, ...] or (with `strings`) tuple[str, ...]."""

    def __init__(self, dtype: npt.DTypeLike, strings: Strings | None = None) -> None:
        self.strings = strings
        self.values = Growing(dtype if strings is None else np.int32)
        self.offsets = Growing(np.int64)
        self.offsets.extend(np.zeros(1, np.int64))

    def extend(self, values: Values) -> None:
        tuples: Any = values
        if self.values.data.dtype.kind == "i" and _is_constant(tuples):  # one shape, or no constants at all
            lengths = np.full(len(tuples), len(tuples[0]), np.int64)
            flat = np.tile(self._flat(tuples[0], len(tuples[0])), len(tuples))
        else:
            lengths = np.fromiter(map(len, tuples), np.int64, len(tuples))
            flat = self._flat(chain.from_iterable(tuples), int(lengths.sum()))
        self._extend(lengths, flat)

    def _flat(self, values: Iterable[Any], n: int) -> Flat:
        if self.strings is None:
            return np.fromiter(values, self.values.data.dtype, n)
        return self.strings.codes(tuple(values))

    def _extend(self, lengths: Ints, flat: Flat) -> None:
        self.values.n = int(self.offsets.data[self.offsets.n - 1])  # more than that is of an interrupted batch
        self.values.extend(flat)
        self.offsets.extend(self.offsets.data[self.offsets.n - 1] + np.cumsum(lengths))

    def truncate(self, n: int) -> None:
        self.offsets.n = n + 1

    def get(self, start: int, stop: int) -> Ragged:
        offsets: Ints = self.offsets.view(start, stop + 1)
        values = self.values.view(0, int(offsets[-1]))
        if self.strings is None:
            return Ragged(offsets, values)
        return Ragged(offsets - offsets[0], self.strings.decode(values[offsets[0] :]))

    def items(self, start: int, stop: int) -> Sequence[object]:
        offsets: Ints = self.offsets.view(start, stop + 1)
        entries = Ragged(offsets, self.values.view(0, int(offsets[-1])))
        if self.strings is None:
            return list(entries)
        texts = self.strings.all
        return [tuple(texts[code] for code in codes) for codes in entries]  # type: ignore[call-overload]

    def pack(self, start: int, stop: int) -> Parts:
        offsets = self.offsets.view(start, stop + 1)
        return {"": self.values.view(int(offsets[0]), int(offsets[-1])), "length": np.diff(offsets)}

    def unpack(self, parts: Parts, n: int) -> None:
        flat, lengths, dtype = parts[""], parts["length"], self.values.data.dtype
        check_dtype(flat, dtype)
        check(len(lengths) == n, f"{len(lengths)} lengths for {n} events")
        inside = not n or (lengths.min() >= 0 and lengths.max() <= len(flat))
        check(inside and lengths.sum() == len(flat), f"lengths that do not fit {len(flat)} values")
        if self.strings is not None:
            check_codes(flat, len(self.strings.all))
        self._extend(lengths, flat)
