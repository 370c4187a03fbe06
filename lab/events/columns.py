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

from lab.errors import RecordingError
from lab.events.event import Array

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


def _check(condition: object, what: str) -> None:
    if not condition:
        raise RecordingError("a column of the recording contradicts itself", given=what)


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
        _check(len(numbers) == n, f"{len(numbers)} numbers for {n} events")
        _check(np.can_cast(numbers.dtype, dtype, "same_kind"), f"{numbers.dtype} for {dtype}")
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


def check_codes(codes: Flat, n: int) -> None:
    """Refuse numbers that are not below n and not negative."""
    _check(not len(codes) or (codes.min() >= 0 and codes.max() < n), f"an entry refers to none of {n}")


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
        _check(np.can_cast(flat.dtype, dtype, "same_kind"), f"{flat.dtype} for {dtype}")
        _check(len(lengths) == n, f"{len(lengths)} lengths for {n} events")
        inside = not n or (lengths.min() >= 0 and lengths.max() <= len(flat))
        _check(inside and lengths.sum() == len(flat), f"lengths that do not fit {len(flat)} values")
        if self.strings is not None:
            check_codes(flat, len(self.strings.all))
        self._extend(lengths, flat)


DTYPES = tuple(
    np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
)
"""What an array in an event may hold. The position here is the number in the file: append only."""
_NUMBERS = {dtype: i for i, dtype in enumerate(DTYPES)}


class Budget:
    """Bytes that the arrays of a recording may take together, and how many found no room."""

    __slots__ = ("n_bytes", "n_dropped", "used")

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes, self.used, self.n_dropped = n_bytes, 0, 0


class ArrayColumn:
    """Array | None: bytes end to end, with dtype and shape beside; None again when the budget is used up."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.dtypes = NumberColumn(np.int8)  # number in DTYPES; -1: None
        self.shapes = RaggedColumn(np.int64)
        self.offsets = Growing(np.int64)
        self.offsets.extend(np.zeros(1, np.int64))
        self.bytes = Growing(np.uint8)

    def extend(self, values: Values) -> None:
        if all(value is None for value in values):  # not `count`: it would compare arrays
            self._extend([-1] * len(values), [()] * len(values), [b""] * len(values))
            return
        kept = [self._fitting(value) for value in values]
        self._extend(*zip(*kept, strict=True))

    def _fitting(self, value: object) -> tuple[int, tuple[int, ...], bytes]:
        if value is None:
            return -1, (), b""
        array = np.asarray(value)
        number = _NUMBERS.get(array.dtype, -1)
        if number < 0:
            array, number = _plain(array)
        if number < 0 or self.budget.used + array.nbytes > self.budget.n_bytes:
            self.budget.n_dropped += 1
            return -1, (), b""
        self.budget.used += array.nbytes
        return number, array.shape, array.tobytes()

    def _extend(self, dtypes: Sequence[int], shapes: Sequence[tuple[int, ...]], data: Sequence[bytes]) -> None:
        self.bytes.n = int(self.offsets.data[self.offsets.n - 1])
        self.dtypes.extend(tuple(dtypes))
        self.shapes.extend(tuple(shapes))
        self.bytes.extend(np.frombuffer(b"".join(data), np.uint8))
        sizes = np.fromiter(map(len, data), np.int64, len(data))
        self.offsets.extend(self.offsets.data[self.offsets.n - 1] + np.cumsum(sizes))

    def truncate(self, n: int) -> None:
        self.dtypes.truncate(n)
        self.shapes.truncate(n)
        self.offsets.n = n + 1

    def get(self, start: int, stop: int) -> Arrays:
        return Arrays(self, start, stop)

    def items(self, start: int, stop: int) -> Sequence[object]:
        return list(Arrays(self, start, stop))

    def one(self, i: int) -> Array | None:
        """Entry i, a fresh copy: nobody can write into the recording, and it is aligned."""
        number = int(self.dtypes.all.data[i])
        if number < 0:
            return None
        start, stop = self.offsets.data[i : i + 2].tolist()
        flat = np.frombuffer(self.bytes.data[start:stop].tobytes(), DTYPES[number])
        return flat.reshape(self.shapes.items(i, i + 1)[0]).copy()  # type: ignore[call-overload, no-any-return]

    def pack(self, start: int, stop: int) -> Parts:
        offsets = self.offsets.view(start, stop + 1)
        shapes = self.shapes.pack(start, stop)
        return {
            "": self.bytes.view(int(offsets[0]), int(offsets[-1])),
            "dtype": self.dtypes.get(start, stop),
            "ndim": shapes["length"],
            "shape": shapes[""],
        }

    def unpack(self, parts: Parts, n: int) -> None:
        data, dtypes, dims = parts[""], parts["dtype"], parts["shape"]
        _check(len(dtypes) == n, f"{len(dtypes)} arrays for {n} events")
        check_codes(dtypes + np.int8(1), len(DTYPES) + 1)
        _check(not len(dims) or dims.min() >= 0, "an array with a negative side")
        lengths = parts["ndim"]
        self.shapes.unpack({"": dims, "length": lengths}, n)
        _check(not n or lengths.max() <= 32, f"{lengths.max() if n else 0} dimensions")
        # In floating point, where a product cannot wrap: 32 sides of 2**40 must not come out as 0.
        sides = np.concatenate([np.ones(1), dims.astype(np.float64)])
        ends = np.cumsum(lengths)
        entries = np.ones(n)
        nonempty = np.flatnonzero(lengths)
        if len(nonempty):
            entries[nonempty] = np.multiply.reduceat(sides[1:], (ends - lengths)[nonempty])
        itemsizes = np.array([*(d.itemsize for d in DTYPES), 0], np.float64)[dtypes]  # -1 is the 0 at the end
        sizes = entries * itemsizes
        _check(np.isfinite(sizes).all() and sizes.sum() == len(data), f"array shapes that do not fit {len(data)} bytes")
        self.bytes.n = int(self.offsets.data[self.offsets.n - 1])
        self.dtypes.unpack({"": dtypes}, n)
        self.bytes.extend(data)
        self.offsets.extend(self.offsets.data[self.offsets.n - 1] + np.cumsum(sizes.astype(np.int64)))
        self.budget.used += len(data)


def _plain(array: Array) -> tuple[Array, int]:
    """An array of another dtype in one of DTYPES that holds the same numbers (bfloat16: float32), or -1."""
    for dtype in (array.dtype.newbyteorder("="), np.dtype("float32"), np.dtype("float64")):
        if dtype in _NUMBERS and array.dtype != object and np.can_cast(array.dtype, dtype, "safe"):
            return array.astype(dtype), _NUMBERS[dtype]
    return array, -1


class Arrays(Sequence[Array | None]):
    """The arrays of a stretch of events, each made when it is asked for."""

    __slots__ = ("_column", "_range")

    def __init__(self, column: ArrayColumn, start: int, stop: int) -> None:
        self._column, self._range = column, range(start, stop)

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, i: int | slice) -> Array | list[Array | None] | None:  # type: ignore[override]
        if isinstance(i, slice):
            return [self._column.one(j) for j in self._range[i]]
        return self._column.one(self._range[i])


def column_for(of_type: object, strings: Strings, budget: Budget) -> Column:
    """The column that holds a field of one of `event.FIELD_TYPES`."""
    makers: dict[object, Column] = {
        int: NumberColumn(np.int64),
        float: NumberColumn(np.float64),
        bool: NumberColumn(np.bool_),
        str: TextColumn(strings),
        tuple[int, ...]: RaggedColumn(np.int64),
        tuple[float, ...]: RaggedColumn(np.float64),
        tuple[str, ...]: RaggedColumn(np.int32, strings),
        Array | None: ArrayColumn(budget),
    }
    return makers[of_type]
