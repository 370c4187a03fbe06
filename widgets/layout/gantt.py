"""Where the parts of a pipeline's board stand: stages in a row, below them the spans, plan and level of each rank.

Numbers in, coordinates out: the board knows how many stages and ranks there are and how long the time axis is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from widgets.pictures.ticks import nice

WIDTH = 900.0
"""Pixels of the whole board, as wide as a notebook's cell shows at a readable size."""
LEFT, RIGHT = 128.0, 62.0
"""Room for the names of the strands, and for their peaks."""
STAGES = 78.0
"""Height of the row of stages, with what moves between them."""
HEAD = 30.0
"""Words between stages and time axis."""
GAP = 12.0
FIRST = STAGES + 2 * HEAD + 22
"""Top of the first row."""
ROWS = 330.0
"""What the rows of all ranks may take together: then the board fits on a screen."""


class Strand(NamedTuple):
    """A horizontal strip: its top edge and its height."""

    top: float
    height: float

    @property
    def middle(self) -> float:
        """Its middle line."""
        return self.top + self.height / 2


class Row(NamedTuple):
    """The three strands of a rank."""

    spans: Strand
    plan: Strand
    level: Strand


class Box(NamedTuple):
    """Centre and size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Board:
    """The coordinates of one board.

    Attributes:
        n_stages, n_ranks: how many boxes and rows there are.
        end: where the time axis ends, in its unit; it begins at 0.

    Example:
        >>> board = Board(2, 2, 10.0)
        >>> board.x(0.0), board.x(10.0) == WIDTH - RIGHT
        (128.0, True)
    """

    n_stages: int
    n_ranks: int
    end: float

    def x(self, time: float) -> float:
        """Where a time stands."""
        return LEFT + (WIDTH - LEFT - RIGHT) * (time / self.end if self.end > 0 else 0.0)

    def stage(self, k: int) -> Box:
        """The box of a stage; they stand in the middle, apart enough to see what moves between them."""
        pitch = min(250.0, WIDTH / self.n_stages)
        width = min(150.0, pitch * 0.66)
        return Box(WIDTH / 2 + (k - (self.n_stages - 1) / 2) * pitch, STAGES / 2, width, STAGES - 8)

    def row(self, rank: int) -> Row:
        """The strands of a rank."""
        return _row(self.n_ranks, rank)

    @property
    def bottom(self) -> float:
        """Below the last row."""
        return FIRST + self.n_ranks * _pitch(self.n_ranks) - GAP

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height of all of it."""
        return WIDTH, self.bottom + 4

    def ticks(self) -> list[tuple[float, str]]:
        """Four to seven places of the time axis with their texts.

        Example:
            >>> Board(1, 1, 1.0).ticks()[-1][1], len(Board(1, 1, 37.0).ticks())
            ('1.0', 4)
            >>> Board(1, 1, 2000.0).ticks()[-1][1]
            '2,000'
        """
        step = nice(self.end / 6)
        digits = max(0, -math.floor(math.log10(step)))
        return [(self.x(k * step), f"{k * step:,.{digits}f}") for k in range(int(self.end / step + 1e-9) + 1)]


def _pitch(n_ranks: int) -> float:
    """From row to row."""
    return max(44.0, min(82.0, ROWS / max(1, n_ranks)))


@lru_cache(256)
def _row(n_ranks: int, rank: int) -> Row:
    room = _pitch(n_ranks) - GAP
    top = FIRST + rank * _pitch(n_ranks)
    spans, plan, level = 0.4 * room, 0.18 * room, 0.24 * room
    rest = (room - spans - plan - level) / 2
    return Row(Strand(top, spans), Strand(top + spans + rest, plan), Strand(top + room - level, level))
