"""A column of numbers as a value: appending makes a longer one that shares the storage of the one it extends."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_LOCK = threading.Lock()  # held for the claim of the next free place only


class _Store:
    """Storage with room to grow; `used` is the length of the longest series in it."""

    __slots__ = ("data", "used")

    def __init__(self, capacity: int) -> None:
        self.data = np.empty(capacity)
        self.used = 0


class Series:
    """An immutable float64 column. Extending the longest series of a storage copies nothing old; a branch copies once.

    Example:
        >>> a = Series().extended([1.0, 2.0])
        >>> b, c = a.extended([3.0]), a.extended([4.0])
        >>> a.array, b.array, c.array
        (array([1., 2.]), array([1., 2., 3.]), array([1., 2., 4.]))
    """

    __slots__ = ("_n", "_store")

    def __init__(self) -> None:
        self._store, self._n = _Store(0), 0

    def __len__(self) -> int:
        return self._n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Series) and np.array_equal(self.array, other.array, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]  # compared by content

    def __repr__(self) -> str:
        return f"Series({self.array!r})"

    @property
    def array(self) -> npt.NDArray[np.float64]:
        """The numbers, read-only."""
        view = self._store.data[: self._n]
        view.flags.writeable = False
        return view

    def extended(self, values: Sequence[float] | npt.NDArray[np.generic]) -> Series:
        """This series with more numbers at its end."""
        new = np.asarray(values, dtype=np.float64)
        end = self._n + len(new)
        with _LOCK:
            store = self._store
            if store.used != self._n or end > len(store.data):
                store = _Store(max(16, 2 * end))
                store.data[: self._n] = self._store.data[: self._n]
            store.data[self._n : end] = new
            store.used = end
        made = Series()
        made._store, made._n = store, end
        return made

    def appended(self, value: float) -> Series:
        """This series with one more number."""
        return self.extended([value])
