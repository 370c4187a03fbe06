"""Where the bars of a Gantt of threads stand: a lane for each thread under a time axis. Numbers in, coordinates out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from widgets.pictures.ticks import nice

WIDTH = 900.0
"""Pixels of the whole board, as wide as a notebook's cell shows at a readable size."""
LEFT, RIGHT = 96.0, 20.0
"""Room for the names of the lanes, and for the last tick."""
HEAD = 62.0
"""Words and time axis above the first lane."""
PITCH, BAR = 58.0, 30.0
"""From lane to lane, and the height of a bar: between them arrows turn."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The coordinates of one board.

    Attributes:
        n: how many lanes there are.
        end: where the time axis ends, in ms; it begins at 0.

    Example:
        >>> board = Lanes(2, 10.0)
        >>> board.x(0.0), board.x(10.0), board.middle(1) - board.middle(0)
        (96.0, 880.0, 58.0)
    """

    n: int
    end: float

    def x(self, time: float) -> float:
        """Where a time stands."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (time / self.end if self.end > 0 else 0.0)

    def middle(self, lane: int) -> float:
        """The middle line of a lane."""
        return HEAD + 14.0 + BAR / 2 + lane * PITCH

    @property
    def bottom(self) -> float:
        """Below the last lane."""
        return HEAD + 14.0 + self.n * PITCH - (PITCH - BAR) + 10.0

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height of all of it."""
        return WIDTH, self.bottom + 4.0

    def ticks(self) -> list[tuple[float, str]]:
        """Some places of the time axis with their texts.

        Example:
            >>> [text for _, text in Lanes(1, 2.0).ticks()]
            ['0.0', '0.5', '1.0', '1.5', '2.0']
        """
        if self.end <= 0:
            return []
        step = nice(self.end / 6)
        digits = max(0, -math.floor(math.log10(step)))
        return [(self.x(k * step), f"{k * step:,.{digits}f}") for k in range(int(self.end / step + 1e-9) + 1)]
