"""Folding a recording: the state of a view at any position, from the nearest keyframe on.

States are values, so a keyframe costs nothing but the memory that it does not share; at most 64 are kept.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

import numpy as np
import numpy.typing as npt

from lab.events import Event

S = TypeVar("S")
Positions = npt.NDArray[np.int64]

BLOCK = 1024
"""Events that are decoded at once."""
KEYFRAMES = 64
"""At most so many states are remembered on the way; a seek then folds 1/64 of the recording at the worst."""


class Events(Protocol):
    """What a view needs of a Recording: a growing sequence of events that also reads as columns."""

    @property
    def live(self) -> bool:
        """Whether more events may come."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, position: int) -> Event: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Event]: ...
    def columns(self, kind: type[Event], start: int = 0, stop: int | None = None) -> Mapping[str, Any]:
        """The fields of all events of a kind at positions start <= p < stop, one array a field."""

    def positions(self, kind: type[Event]) -> Positions:
        """Where the events of a kind stand, ascending."""


class Prefix:
    """The first events of a recording: so many, however much it grows while they are read.

    Whoever asks a growing recording twice may be told of two lengths; all that belongs together is asked of one prefix.

    Example:
        >>> import lab
        >>> from lab.events import LeafUsed
        >>> with lab.record() as rec:
        ...     first = Prefix.now(rec)
        ...     _ = lab.tensor(1.0, requires_grad=True) * 2.0
        >>> len(first), len(first.positions(LeafUsed)), len(rec.positions(LeafUsed))
        (0, 0, 1)
    """

    def __init__(self, events: Events, n: int) -> None:
        self.events, self.n = events, n

    @classmethod
    def now(cls, events: Events) -> Prefix:
        """All that there is at the moment."""
        return cls(events, len(events))

    @property
    def live(self) -> bool:
        """Whether the recording may grow."""
        return self.events.live

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, position: int) -> Event: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Event]: ...
    def __getitem__(self, position: int | slice) -> Event | Sequence[Event]:
        if isinstance(position, slice):
            wanted = range(self.n)[position]
            return self.events[wanted.start : wanted.stop : wanted.step]
        return self.events[range(self.n)[position]]

    def columns(self, kind: type[Event], start: int = 0, stop: int | None = None) -> Mapping[str, Any]:
        """The fields of all events of a kind at positions start <= p < stop, one array a field."""
        return self.events.columns(kind, start, self.n if stop is None else min(stop, self.n))

    def positions(self, kind: type[Event]) -> Positions:
        """Where the events of a kind stand, ascending."""
        positions: Positions = self.columns(kind)["position"]
        return positions


class Stretch(NamedTuple):
    """The events at positions start <= p < stop of a recording."""

    events: Events
    start: int
    stop: int

    def positions(self, kind: type[Event]) -> Positions:
        """Where the events of a kind stand within the stretch."""
        positions: Positions = self.columns(kind)["position"]
        return positions

    def columns(self, kind: type[Event]) -> Mapping[str, Any]:
        """The fields of the events of a kind, one array a field."""
        return self.events.columns(kind, self.start, self.stop)

    def of(self, kinds: tuple[type[Event], ...]) -> Iterator[Event]:
        """The events of these kinds, in order."""
        yield from self.at(merged(*(self.positions(kind) for kind in kinds)))

    def at(self, positions: Positions) -> Iterator[Event]:
        """The events at these ascending positions: where most of a block is wanted, all of it is decoded together."""
        for wanted in np.split(positions, np.flatnonzero(np.diff(positions // BLOCK)) + 1) if len(positions) else ():
            first, last = int(wanted[0]), int(wanted[-1]) + 1
            if last - first > 3 * len(wanted):
                yield from (self.events[p] for p in wanted.tolist())
            else:
                block = self.events[first:last]
                yield from (block[p - first] for p in wanted.tolist())


def merged(*columns: Positions) -> Positions:
    """Several ascending columns of positions as one, each position once.

    Example:
        >>> merged(np.array([1, 4]), np.array([2, 4])).tolist()
        [1, 2, 4]
    """
    every = np.sort(
        np.concatenate([np.empty(0, np.int64), *columns]), kind="stable"
    )  # np.unique hashes: 1 s for a million
    fresh = np.ones(len(every), dtype=bool)
    fresh[1:] = every[1:] != every[:-1]
    return every[fresh]


class Folds(Protocol[S]):
    """What is folded with: the pure half of a View."""

    def start(self) -> S:
        """The state before the first event."""

    def fold_many(self, state: S, stretch: Stretch) -> S:
        """The state after a stretch of events."""


class Fold(Generic[S]):
    """The states of one view over one recording. Safe to ask from several threads.

    Example:
        >>> from lab.events import StepFinished
        >>> class Count:
        ...     def start(self): return 0
        ...     def fold_many(self, state, stretch): return state + stretch.stop - stretch.start
        >>> fold = Fold(Count(), range(1000))
        >>> fold.at(700), fold.at(12), len(fold.keyframes) <= KEYFRAMES
        (700, 12, True)
    """

    def __init__(self, view: Folds[S], events: Events) -> None:
        self.view, self.events = view, events
        self.keyframes: list[int] = [0]
        self._states: dict[int, S] = {0: view.start()}
        self._last = 0, self._states[0]
        self._failed: tuple[int, int, S] | None = None  # the stretch that could not be folded, and the state before it
        self._lock = threading.Lock()

    def at(self, position: int) -> S:
        """The state after the first `position` events."""
        with self._lock:
            near = self.keyframes[bisect_right(self.keyframes, position) - 1]
            state = self._states[near]
            if near < self._last[0] <= position:  # following a live end, or stepping on
                near, state = self._last
            while near < position:
                stop = min(position, near + self._stride())
                self._failed = near, stop, state
                state = self.view.fold_many(state, Stretch(self.events, near, stop))
                self._failed, near = None, stop
                self._remember(near, state)
            self._last = position, state
            return state

    def culprit(self) -> int | None:
        """Position of the event that could not be folded when a state was asked for last; None if all could.

        Example:
            >>> class Picky:
            ...     def start(self): return 0
            ...     def fold_many(self, state, stretch): return 1 // (700 not in range(stretch.start, stretch.stop))
            >>> fold = Fold(Picky(), range(1000))
            >>> fold.at(1000)
            Traceback (most recent call last):
                ...
            ZeroDivisionError: integer division or modulo by zero
            >>> fold.culprit()
            700
        """
        with self._lock:
            if self._failed is None:
                return None
            first, bad, state = self._failed
            good = first
            while bad - good > 1:
                middle = (good + bad) // 2
                try:
                    self.view.fold_many(state, Stretch(self.events, first, middle))
                except Exception:  # noqa: BLE001 - it is known that it fails; where is the question
                    bad = middle
                else:
                    good = middle
            return good

    def _stride(self) -> int:
        return max(256, -(-len(self.events) // (KEYFRAMES // 2)))

    def _remember(self, position: int, state: S) -> None:
        k = bisect_right(self.keyframes, position)
        if position - self.keyframes[k - 1] < self._stride():
            return
        insort(self.keyframes, position)
        self._states[position] = state
        if len(self.keyframes) > KEYFRAMES:
            for stale in self.keyframes[1::2]:
                del self._states[stale]
            self.keyframes = self.keyframes[::2]
