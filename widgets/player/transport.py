"""Where a player is and whether it moves: stops, seeking, pace, without widgets and threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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


class Transport:
    """Where the player is and whether it moves: the logic without widgets and threads.

    Attributes:
        stops: for each stop how many events have been folded then, ascending; never empty.
        index: the current stop.
        playing: whether `tick` moves.
        at_end: the reader wants the newest stop, also when more come.
    """

    def __init__(self, stops: Positions) -> None:
        self.stops: Positions = stops if len(stops) else np.zeros(1, np.int64)
        self.index, self.playing, self.at_end, self.speed = 0, False, False, 1.0

    @property
    def position(self) -> int:
        """How many events have been folded at the current stop."""
        return int(self.stops[self.index])

    def seek(self, index: int) -> None:
        """Go to a stop; one that is not there becomes the nearest. Playing goes on from there."""
        self.index, self.at_end = min(max(index, 0), len(self.stops) - 1), False

    def to_end(self) -> None:
        """Go to the newest stop, and stay at the newest while more come."""
        self.seek(len(self.stops) - 1)
        self.at_end, self.playing = True, False

    def play(self) -> None:
        """Start moving; at the last stop, from the first one again."""
        if self.index == len(self.stops) - 1:
            self.index = 0
        self.playing, self.at_end = True, False

    def tick(self) -> None:
        """Move on if playing; at the last stop playing ends."""
        if self.playing:
            self.seek(self.index + pace(len(self.stops), self.speed).stride)
            self.playing = self.index < len(self.stops) - 1

    def grown(self, stops: Positions) -> None:
        """More was recorded: earlier stops stay where they are."""
        if len(stops):
            self.stops = stops
            self.index = len(stops) - 1 if self.at_end else min(self.index, len(stops) - 1)
