"""Memory for large outputs, used again when the caller has let go of what was in it.

The system gives out fresh pages one fault at a time, which takes as long as filling them: an array of 16 MB costs 2 ms
before anything is in it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from lab.shapes import Spec

LARGE = 1 << 17
"""Bytes from which on an output is worth it: smaller ones the allocator keeps by itself."""
MOST = 2
"""Arrays that are kept: the caller often holds the last result while the next is made."""


class Room:
    """Gives out arrays of one shape and dtype, a new one whenever all that it keeps are still in use.

    What is given out is a view; whoever holds it, or any view of it, holds the array below, and Python counts that. So
    an array is used again only when nobody can see it any more.

    Example:
        >>> room = Room(Spec((2,), np.dtype(float)))
        >>> first, second = room(), room()
        >>> np.shares_memory(first, second)
        False
        >>> first[:] = 7.0
        >>> part = first[1:]
        >>> del first
        >>> np.shares_memory(room(), part)
        False
    """

    __slots__ = ("_kept", "_spec")

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._kept: list[Any] = []

    def __call__(self) -> Any:
        """An array whose entries may be anything."""
        kept = self._kept
        for i in range(len(kept)):
            if _holders(kept, i) <= _ALONE:
                return kept[i][...]
        array = np.empty(self._spec.shape, self._spec.dtype)
        if len(kept) >= MOST:
            return array
        kept.append(array)
        return array[...]


def _holders(kept: list[Any], i: int) -> int:
    return sys.getrefcount(kept[i])


_ALONE = _holders([np.empty(1)], 0)
"""What Python counts for an array that one list holds, while it is asked."""
