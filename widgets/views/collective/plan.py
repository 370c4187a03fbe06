"""How a collective is laid out: decided once from all that was recorded of it, so that nothing jumps while it plays."""

from __future__ import annotations

from typing import NamedTuple

from lab.events import ChunkMoved, CollectiveStarted
from widgets.layout.ring import MOST_IN_ROWS, Circle, Pair, Point
from widgets.views.collective import paper
from widgets.views.collective.state import Counts, Piece
from widgets.views.collective.trees import Tree
from widgets.views.collective.words import Form

MOST_RANKS = 64
"""More are counted, not drawn."""
PAD, TITLE, FOOT, HEAD = 12.0, 30.0, 38.0, 52.0
LEGIBLE = 16
"""With more ranks or pieces the cells of a matrix have no words."""
NARROW = 112.0
"""A card of this width has no room for more than one piece."""
CELL, ROW = 38.0, 44.0
"""Height of a cell, and from one to the next."""


class Plan(NamedTuple):
    """Where everything stands.

    A rank has a seat in each tree: seat s is rank s modulo the number of ranks drawn. Without trees it has one.

    Attributes:
        layout: "ring", "tree" or "matrix".
        about: what was called.
        pieces: what each rank's buffer is cut into; one summed up where there are too many to be read.
        trees: those that are drawn.
        circle: the cards by seat, below the heading.
        card: width and height.
        pairs: who sends to whom, ever, by seats.
        exchanged: pairs of seats that send to each other in one step.
        bends: of the arrow of each pair.
        top: of the cards: the room that heading and arrows take above.
        extent: width and height of the whole.
        hops: all of them, whenever they come.
        steps: the numbers of all steps.
        root: the rank that plays the plan's rank 0.
        most: bytes at the end of a bar.
        wanted: for each rank and piece whose parts are in it at the end, None where anything may be.
    """

    layout: str
    about: CollectiveStarted
    pieces: tuple[Piece, ...]
    trees: tuple[Tree, ...]
    circle: Circle
    card: Point
    pairs: frozenset[Pair]
    exchanged: frozenset[frozenset[int]]
    bends: dict[Pair, tuple[Point, ...]]
    top: float
    extent: Point
    hops: tuple[ChunkMoved, ...]
    steps: tuple[int, ...]
    root: int
    most: float
    wanted: dict[int, tuple[Counts | None, ...]]
    form: Form
    """How all cells write their numbers, at every moment."""
    sizes: Point
    """The smallest and the largest buffer, in bytes."""

    @property
    def alike(self) -> bool:
        """Whether all ranks came with buffers of one size."""
        return self.sizes[0] == self.sizes[1]

    @property
    def drawn(self) -> int:
        """Ranks that are drawn."""
        return min(self.about.world_size, MOST_RANKS)

    @property
    def seats(self) -> range:
        """Places of cards."""
        return range(self.drawn * max(1, len(self.trees)))

    def on(self, seat: int) -> tuple[int, ...]:
        """Numbers of the pieces on a card: those of its tree."""
        return self.trees[seat // self.drawn].pieces if self.trees else tuple(range(len(self.pieces)))

    def name(self, seat: int) -> str:
        """What stands in ids for a seat: its rank, and "b" in a second tree."""
        return f"{seat % self.drawn}{'b' * (seat // self.drawn)}"

    def seats_of(self, hop: ChunkMoved) -> list[Pair]:
        """Between which cards a hop goes: of ranks that are drawn, once in each tree whose pieces it has."""
        if max(hop.src, hop.dst) >= self.drawn:
            return []
        n, pieces = self.drawn, self.pieces
        if not self.trees:
            return [(hop.src, hop.dst)]
        carried = {k for k, piece in enumerate(pieces) if hop.start <= piece.start and piece.stop <= hop.stop}
        return [(t * n + hop.src, t * n + hop.dst) for t, tree in enumerate(self.trees) if carried & {*tree.pieces}]

    @property
    def crowded(self) -> bool:
        """Whether there is no room for words between the cards."""
        return self.drawn > MOST_IN_ROWS

    @property
    def per_card(self) -> int:
        """The most pieces on a card."""
        return max((len(tree.pieces) for tree in self.trees), default=len(self.pieces))

    @property
    def compact(self) -> bool:
        """Whether cards say how many chunks are complete, instead of showing each."""
        if self.layout == "matrix":
            return len(self.pieces) > LEGIBLE
        return is_compact(self.per_card, self.card[0])

    @property
    def columns(self) -> int:
        """In how many columns the cells of a card stand."""
        return columns(self.per_card)

    @property
    def tag(self) -> float:
        """Room for the name of a chunk before its cell."""
        return tag(self.per_card)

    @property
    def cell(self) -> float:
        """Width of a cell."""
        return cell(self.card[0], self.per_card)

    def place(self, seat: int) -> Point:
        """Left top corner of a card."""
        x, y = self.circle.centres[seat]
        return x - self.card[0] / 2, self.top + y - self.card[1] / 2

    def cell_place(self, seat: int, at: int) -> Point:
        """Left top corner of a cell, without its tag; `at` counts the cells of the card."""
        row, column = divmod(at, self.columns)
        x, y = self.place(seat)
        return x + PAD + column * (self.cell + self.tag + 8) + self.tag, y + TITLE + row * ROW

    def expected(self, rank: int) -> float | None:
        """Bytes that the text-book says a rank sends."""
        about = self.about
        part = paper.share(about.operation, about.algorithm, rank, self.root, about.world_size)
        return None if part is None or not self.alike else part * about.n_bytes


def is_compact(n_pieces: int, width: float) -> bool:
    """Whether there are too many pieces for a card of this width."""
    return n_pieces > (MOST_IN_ROWS if width > NARROW else 1)


def columns(n_pieces: int) -> int:
    """In how many columns so many pieces stand."""
    return 1 if n_pieces <= 3 or n_pieces > MOST_IN_ROWS else 2


def tag(n_pieces: int) -> float:
    """Room for the name of one of so many pieces."""
    return 0.0 if n_pieces == 1 or n_pieces > MOST_IN_ROWS else 24.0


def cell(width: float, n_pieces: int) -> float:
    """Width of a cell in a card of this width."""
    across = columns(n_pieces)
    return (width - 2 * PAD - (across - 1) * 8) / across - tag(n_pieces)
