"""Where a player is and whether it moves: stops, seeking, pace, without widgets and threads."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ViewError
from lab.words import shown
from widgets.fold import Positions

LONGEST_S = 60.0
"""A recording plays in at most this long at normal speed: longer ones skip stops."""
SHORTEST_TICK_S = 0.2
"""Nobody follows more pictures than five a second, and the browser has other messages to take."""


class Pace(NamedTuple):
    """How playing advances: every so many seconds by so many stops."""

    seconds: float
    stride: int


def pace(n_stops: int, speed: float) -> Pace:
    """One stop a second at normal speed; faster where that would take longer than LONGEST_S.

    Example:
        >>> pace(7, 1.0), pace(12_000, 1.0)
        (Pace(seconds=1.0, stride=1), Pace(seconds=0.2, stride=40))
    """
    per_second = max(1.0, n_stops / LONGEST_S) * speed
    seconds = max(SHORTEST_TICK_S, 1 / per_second)
    return Pace(seconds, max(1, round(per_second * seconds)))


def checked_speed(speed: Any) -> float:
    """The speed, if one can play at it."""
    if isinstance(speed, (int, float)) and 0 < speed < math.inf:
        return float(speed)
    raise ViewError("the speed of a player is a positive number", given=shown(speed), hint="1.0 is one stop a second")


class Transport:
    """Where the player is and whether it moves: the logic without widgets and threads.

    Attributes:
        stops: for each stop how many events have been folded then, ascending; never empty.
        index: the current stop.
        playing: whether `tick` moves.
        at_end: the reader wants the newest stop, also when more come.
        loop: first and last stop of what playing repeats, None for no loop.
        loop_start: where the reader began to mark a loop, None for nowhere.
    """

    def __init__(self, stops: Positions) -> None:
        self.stops: Positions = stops if len(stops) else np.zeros(1, np.int64)
        self.index, self.playing, self.at_end, self.speed = 0, False, False, 1.0
        self.loop: tuple[int, int] | None = None
        self.loop_start: int | None = None

    @property
    def last(self) -> int:
        """The newest stop."""
        return len(self.stops) - 1

    @property
    def position(self) -> int:
        """How many events have been folded at the current stop."""
        return int(self.stops[self.index])

    def stop_of(self, position: int) -> int:
        """The first stop at which so many events have been folded, or the last there is."""
        return min(int(np.searchsorted(self.stops, position)), self.last)

    def seek(self, index: int) -> None:
        """Go to a stop; one that is not there becomes the nearest. Playing goes on from there."""
        self.index, self.at_end = min(max(index, 0), self.last), False

    def to_end(self) -> None:
        """Go to the newest stop, and stay at the newest while more come."""
        self.seek(self.last)
        self.at_end, self.playing = True, False

    def play(self) -> None:
        """Start moving; at the last stop, from the first one again; with a loop, inside it."""
        if self.loop is not None:
            if not self.loop[0] <= self.index < self.loop[1]:
                self.index = self.loop[0]
        elif self.index == self.last:
            self.index = 0
        self.playing, self.at_end = True, False

    def tick(self) -> None:
        """Move on if playing; at the last stop playing ends, at the last of a loop it begins again."""
        if not self.playing:
            return
        ahead = self.index + pace(self._length(), self.speed).stride
        if self.loop is None:
            self.seek(ahead)
            self.playing = self.index < self.last
            return
        first, last = self.loop
        self.seek(first if not first <= self.index < last else min(ahead, last))

    def _length(self) -> int:
        return len(self.stops) if self.loop is None else self.loop[1] - self.loop[0] + 1

    def repeat(self, first: int, last: int) -> None:
        """Loop from one stop to another; one stop alone, or no other order, becomes the whole."""
        first, last = (min(max(i, 0), self.last) for i in (first, last))
        self.loop = (first, last) if first < last else (0, self.last) if self.last else None
        self.loop_start = None

    def mark_loop(self) -> None:
        """First the beginning of a loop, here; then its end, here; then no loop. Twice at one stop: the whole."""
        if self.loop is not None:
            self.loop = None
        elif self.loop_start is None:
            self.loop_start = self.index
        else:
            self.repeat(*sorted((self.loop_start, self.index)))

    def grown(self, stops: Positions) -> None:
        """More was recorded: earlier stops stay where they are."""
        if len(stops):
            self.stops = stops
            self.index = self.last if self.at_end else min(self.index, self.last)
            if self.loop is not None and self.loop[1] > self.last:
                self.loop = None
