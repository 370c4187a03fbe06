"""What a rank keeps in its process from one launch to the next: its last two states, numbered alike on all ranks.

A launch ends when a rank is lost, the processes of all others live on: what they have kept here is as new as the last
step. One of the two states is always whole, whenever the writing of the other is interrupted.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Arrays = Sequence[npt.NDArray[Any]]

RUNS = 4
"""Runs of which a process keeps states; an older one is forgotten, though nobody said that it has ended."""
NOBODY = -1
"""The number of no state."""


class Kept(NamedTuple):
    """A state.

    Attributes:
        number: grows from state to state.
        about: what is no array; never changed again.
        arrays: copies.
    """

    number: int
    about: Any
    arrays: Arrays


class Shelf:
    """The last two states of one rank; arrays are copied into the same memory again and again.

    Example:
        >>> shelf = Shelf()
        >>> for number in range(3): n_bytes = shelf.put(number, f"step {number}", [np.full(2, float(number))])
        >>> [(kept.number, kept.about, kept.arrays[0].tolist()) for kept in shelf.states()], n_bytes
        ([(1, 'step 1', [1.0, 1.0]), (2, 'step 2', [2.0, 2.0])], 16)
    """

    def __init__(self) -> None:
        self._kept = [Kept(NOBODY, None, ()), Kept(NOBODY, None, ())]

    def put(self, number: int, about: Any, arrays: Arrays) -> int:
        """Keep a state in the place of the older one; its bytes."""
        older = min((0, 1), key=lambda place: self._kept[place].number)
        memory = self._kept[older].arrays
        self._kept[older] = Kept(NOBODY, None, memory)  # whoever is interrupted while copying leaves no half state
        if [(a.shape, a.dtype) for a in memory] != [(a.shape, a.dtype) for a in arrays]:
            memory = [np.empty_like(array) for array in arrays]
        for mine, array in zip(memory, arrays, strict=True):
            np.copyto(mine, array)
        self._kept[older] = Kept(number, about, memory)
        return sum(array.nbytes for array in memory)

    def states(self) -> list[Kept]:
        """Those that are whole, the newest last."""
        return sorted((kept for kept in self._kept if kept.number != NOBODY), key=lambda kept: kept.number)


class Shelves:
    """The shelves of a process: by run, then by rank. Ranks of one run may share a process, and then what they keep.

    Example:
        >>> shelves = Shelves()
        >>> n_bytes = shelves.of("run", 2).put(7, None, [])
        >>> shelves.newest("run"), shelves.state("run", 7).number, shelves.forget("run"), shelves.newest("run")
        (7, 7, True, -1)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, dict[int, Shelf]] = OrderedDict()

    def of(self, run: str, rank: int) -> Shelf:
        """The shelf of a rank."""
        with self._lock:
            shelf = self._runs.setdefault(run, {}).setdefault(rank, Shelf())
            self._runs.move_to_end(run)
            while len(self._runs) > RUNS:
                self._runs.popitem(last=False)
            return shelf

    def newest(self, run: str) -> int:
        """The number of the newest state of a run, NOBODY without one."""
        return max((kept.number for kept in self._states(run)), default=NOBODY)

    def state(self, run: str, number: int) -> Kept:
        """The state of that number, which is here."""
        return next(kept for kept in self._states(run) if kept.number == number)

    def forget(self, run: str) -> bool:
        """Drop what is kept of a run that has ended; whether there was something."""
        with self._lock:
            return self._runs.pop(run, None) is not None

    def _states(self, run: str) -> list[Kept]:
        with self._lock:
            found = list(self._runs.get(run, {}).values())
        return [kept for shelf in found for kept in shelf.states()]


SHELVES = Shelves()
"""Those of this process."""
