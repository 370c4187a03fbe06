"""Arrays in events: copies of values end to end in one buffer of bytes, within a budget; and the table of column types.

A value seen is small and there may be a million of them: kept as objects they would take three times the room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lab.events.columns import (
    Column,
    Growing,
    NumberColumn,
    Parts,
    RaggedColumn,
    Strings,
    TextColumn,
    Values,
    check,
    check_codes,
)
from lab.events.event import Array

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
        check(len(dtypes) == n, f"{len(dtypes)} arrays for {n} events")
        check_codes(dtypes + np.int8(1), len(DTYPES) + 1)
        check(not len(dims) or dims.min() >= 0, "an array with a negative side")
        lengths = parts["ndim"]
        self.shapes.unpack({"": dims, "length": lengths}, n)
        check(not n or lengths.max() <= 32, f"{lengths.max() if n else 0} dimensions")
        # In floating point, where a product cannot wrap: 32 sides of 2**40 must not come out as 0.
        sides = np.concatenate([np.ones(1), dims.astype(np.float64)])
        ends = np.cumsum(lengths)
        entries = np.ones(n)
        nonempty = np.flatnonzero(lengths)
        if len(nonempty):
            entries[nonempty] = np.multiply.reduceat(sides[1:], (ends - lengths)[nonempty])
        itemsizes = np.array([*(d.itemsize for d in DTYPES), 0], np.float64)[dtypes]  # -1 is the 0 at the end
        sizes = entries * itemsizes
        check(np.isfinite(sizes).all() and sizes.sum() == len(data), f"array shapes that do not fit {len(data)} bytes")
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

    def known(self) -> Array:
        """Which of them are there, without making any."""
        return np.asarray(self._column.dtypes.all.view(self._range.start, self._range.stop) >= 0)

    def __getitem__(self, i: int | slice) -> Array | list[Array | None] | None:  # type: ignore[override]
        if isinstance(i, slice):
            return [self._column.one(j) for j in self._range[i]]
        return self._column.one(self._range[i])


def column_for(of_type: object, strings: Strings, budget: Budget) -> Column:
    """The column that holds a field of one of `event.FIELD_TYPES`."""
    makers: dict[object, Callable[[], Column]] = {
        int: lambda: NumberColumn(np.int64),
        float: lambda: NumberColumn(np.float64),
        bool: lambda: NumberColumn(np.bool_),
        str: lambda: TextColumn(strings),
        tuple[int, ...]: lambda: RaggedColumn(np.int64),
        tuple[float, ...]: lambda: RaggedColumn(np.float64),
        tuple[str, ...]: lambda: RaggedColumn(np.int32, strings),
        Array | None: lambda: ArrayColumn(budget),
    }
    return makers[of_type]()
