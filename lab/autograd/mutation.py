"""Noticing arrays that were written after a node saved them: one clock instead of a version counter on every tensor.

In-place operations tell the time at which a byte range was written. A node younger than the last write needs no check
at all, so recording costs nothing; an older one looks up what it saved. Views are caught: ranges are of the memory.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from lab.autograd.tape import next_id

Array = np.ndarray[Any, np.dtype[Any]]

last = 0
"""Time of the newest write."""

_WHOLE = (0, sys.maxsize)
"""The range of an array that owns its memory: every view is inside, and nobody has to be asked where it is."""

_writes: dict[int, tuple[weakref.ref[Array], dict[tuple[int, int], int]]] = {}


def _owner(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def mark(array: Array) -> None:
    """Say that `array` was just written.

    Example:
        >>> import numpy as np
        >>> a = np.zeros(3); born = next_id(); changed_after(a[:2], born)
        False
        >>> mark(a[1:]); changed_after(a[:2], born), changed_after(a[:1], born)
        (True, False)
    """
    global last  # noqa: PLW0603 - read as `mutation.last`: one comparison per saved array
    owner = _owner(array)
    key = id(owner)
    entry = _writes.get(key)
    if entry is None or entry[0]() is not owner:
        # The entry leaves with its array: a reused address would otherwise be a false alarm.
        entry = _writes[key] = (weakref.ref(owner, lambda _, key=key: _writes.pop(key, None)), {})  # type: ignore[misc]
    last = entry[1][_WHOLE if array is owner else byte_bounds(array)] = next_id()


def changed_after(array: Any, time: int) -> bool:
    """Whether memory of `array` was written after `time`."""
    if not isinstance(array, np.ndarray) or not _writes:
        return False
    owner = _owner(array)
    entry = _writes.get(id(owner))
    if entry is None or entry[0]() is not owner:
        return False
    low, high = byte_bounds(array)
    return any(written > time and start < high and low < stop for (start, stop), written in list(entry[1].items()))
