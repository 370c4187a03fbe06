"""The matrix layout: bytes from each rank to each other, and beside it what each rank holds in each chunk.

Numbers in, coordinates out; `matrix.py` fills the cells.
"""

from __future__ import annotations

from typing import NamedTuple

from widgets.layout.ring import MOST_IN_ROWS, Point
from widgets.views.collective.plan import HEAD, LEGIBLE

WIDEST = 1180.0
"""Both grids beside each other take no more; else one is below the other."""
LEFT, RIGHT, ABOVE, BELOW, BETWEEN = 70.0, 70.0, 44.0, 22.0, 40.0
"""Room of a grid for the names of its rows, their totals, its heads, the totals of its columns; and between two."""


class Grid(NamedTuple):
    """Where both grids stand.

    Attributes:
        n: ranks.
        n_pieces: columns of the second grid, 1 where pieces are counted only.
        link, piece: width and height of a cell of the first and of the second.
        first, second: the left top corners of their cells.
        width, height: of the whole.
    """

    n: int
    n_pieces: int
    link: Point
    piece: Point
    first: Point
    second: Point
    width: float
    height: float

    @property
    def roomy(self) -> bool:
        """Whether cells have two lines."""
        return max(self.n, self.n_pieces) <= MOST_IN_ROWS

    @property
    def worded(self) -> bool:
        """Whether cells have words at all."""
        return self.n <= LEGIBLE

    def link_at(self, src: int, dst: int) -> Point:
        """The centre of a cell of the first grid."""
        return _centre(self.first, self.link, dst, src)

    def piece_at(self, rank: int, k: int) -> Point:
        """The centre of a cell of the second grid."""
        return _centre(self.second, self.piece, k, rank)


def _centre(corner: Point, size: Point, column: int, row: int) -> Point:
    return corner[0] + (column + 0.5) * size[0], corner[1] + (row + 0.5) * size[1]


def grid_of(n: int, n_pieces: int) -> Grid:
    """The grids of `n` ranks whose buffers are cut into so many pieces.

    Example:
        >>> grid = grid_of(4, 4)
        >>> grid.link_at(0, 1), grid.piece_at(0, 0), (grid.width, grid.height)
        ((175.0, 117.0), (586.0, 117.0), (978.0, 286.0))
    """
    shown = n_pieces if n_pieces <= LEGIBLE else 1
    roomy = max(n, shown) <= MOST_IN_ROWS
    link = (70.0, 42.0) if roomy else (58.0, 30.0) if n <= LEGIBLE else (14.0, 14.0)
    piece = (112.0 if shown <= 4 else 96.0, 42.0) if roomy else (58.0 if n <= LEGIBLE else 30.0, link[1])
    if shown == 1:
        piece = (150.0, link[1])
    first = (LEFT, HEAD + ABOVE)
    wide = LEFT + n * link[0] + RIGHT, LEFT + shown * piece[0]
    high = ABOVE + n * link[1] + BELOW
    if wide[0] + BETWEEN + wide[1] <= WIDEST:
        second = (wide[0] + BETWEEN + LEFT, first[1])
        return Grid(n, shown, link, piece, first, second, second[0] + shown * piece[0], HEAD + high)
    second = (LEFT, HEAD + high + 12.0 + ABOVE)
    return Grid(n, shown, link, piece, first, second, max(wide), second[1] + n * piece[1])
