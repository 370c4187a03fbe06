"""How a collective is laid out: decided once from all that was recorded of it, so that nothing jumps while it plays."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lab.events import ChunkMoved, CollectiveStarted
from lab.parallel import COLLECTIVES, OPERATIONS, compile_plan
from lab.parallel.paper.operations import promised
from widgets.layout.ring import MOST_IN_ROWS, Circle, Pair, Point, bends, hub_of, ring, star
from widgets.views.ring import paper
from widgets.views.ring.collective import Collective, Counts, Piece, pieces_of, values_of
from widgets.views.ring.words import Form, form_for

MOST_RANKS = 64
"""More are counted, not drawn."""
PAD, TITLE, FOOT, HEAD = 12.0, 30.0, 38.0, 52.0
NARROWEST = 520.0
"""The heading needs so much."""
MARGIN = 26.0
"""What a cell needs beside its numbers."""
WIDEST = 112.0
"""Numbers of a cell may take so many pixels: "µ −1.235e−12"."""
CELL, ROW = 38.0, 44.0
"""Height of a cell, and from one to the next."""


class Plan(NamedTuple):
    """Where everything stands.

    Attributes:
        about: what was called.
        pieces: what each rank's buffer is cut into; one summed up where there are too many to be read.
        circle: the cards, below the heading.
        card: width and height.
        pairs: who sends to whom, ever.
        exchanged: pairs of ranks that send to each other in one step.
        bends: of the arrow of each pair.
        top: of the cards: the room that heading and arrows take above.
        extent: width and height of the whole.
        hops: all of them, whenever they come.
        steps: the numbers of all steps.
        root: the rank that plays the plan's rank 0.
        most: bytes at the end of a bar.
        wanted: for each rank and piece whose parts are in it at the end, None where anything may be.
    """

    about: CollectiveStarted
    pieces: tuple[Piece, ...]
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
    def crowded(self) -> bool:
        """Whether there is no room for words between the cards."""
        return len(self.circle.centres) > MOST_IN_ROWS

    @property
    def compact(self) -> bool:
        """Whether cards say how many chunks are complete, instead of showing each."""
        return len(self.pieces) > MOST_IN_ROWS

    @property
    def columns(self) -> int:
        """In how many columns the cells of a card stand."""
        return _columns(len(self.pieces))

    @property
    def tag(self) -> float:
        """Room for the name of a chunk before its cell."""
        return _tag(len(self.pieces))

    @property
    def cell(self) -> float:
        """Width of a cell."""
        return _cell(self.card[0], len(self.pieces))

    def place(self, rank: int) -> Point:
        """Left top corner of a card."""
        x, y = self.circle.centres[rank]
        return x - self.card[0] / 2, self.top + y - self.card[1] / 2

    def cell_place(self, rank: int, k: int) -> Point:
        """Left top corner of a cell, without its tag."""
        row, column = divmod(k, self.columns)
        x, y = self.place(rank)
        return x + PAD + column * (self.cell + self.tag + 8) + self.tag, y + TITLE + row * ROW

    def expected(self, rank: int) -> float | None:
        """Bytes that the text-book says a rank sends."""
        about = self.about
        part = paper.share(about.operation, about.algorithm, rank, self.root, about.world_size)
        return None if part is None or not self.alike else part * about.n_bytes


def plan_of(whole: Collective) -> Plan | None:
    """The plan for all that is known of a collective; None while nobody entered."""
    about = whole.about
    if about is None:
        return None
    n, drawn = about.world_size, min(about.world_size, MOST_RANKS)
    cuts = {cut for hop in whole.hops for cut in (hop.start, hop.stop)}
    pieces = pieces_of(cuts | _cuts_on_paper(about.operation, about.algorithm, n, about.n_chunks), about.n_chunks)
    root = root_of(about.operation, about.algorithm, whole.hops)
    pairs = frozenset((hop.src, hop.dst) for hop in whole.hops if max(hop.src, hop.dst) < drawn)
    hub = hub_of(pairs) if 2 < n <= MOST_IN_ROWS else None
    card, gap = _sizes(n, len(pieces), hub)
    card, form = _with_room(card, whole, pieces)
    circle = ring(drawn, card, gap) if hub is None else star(drawn, hub, card, gap)
    exchanged = _exchanged(whole.hops)
    ways = {pair: bends(pair, circle, card, both=frozenset(pair) in exchanged, hub=hub) for pair in pairs}
    outer = [y for way in ways.values() for _, y in way]
    top = HEAD + max(0.0, *(12 - y for y in outer if y < 0), 0.0)
    extent = max(circle.width, NARROWEST), top + max(circle.height, *outer, 0.0)
    aside = (extent[0] - circle.width) / 2
    circle = circle._replace(centres=tuple((x + aside, y) for x, y in circle.centres))
    ways = {pair: tuple((x + aside, top + y) for x, y in way) for pair, way in ways.items()}
    sizes = [event.n_bytes for event in whole.began.values()]
    wanted = {rank: _wanted(about.operation, rank, root, n, pieces) for rank in range(n)}
    return Plan(about, pieces, circle, card, pairs, exchanged, ways, top, extent, whole.hops, whole.steps, root,
                _most(whole, root, n), wanted, form, (min(sizes), max(sizes)))  # fmt: skip


def _exchanged(hops: tuple[ChunkMoved, ...]) -> frozenset[frozenset[int]]:
    """Pairs of ranks that send to each other in the same step."""
    ways = {(hop.step, hop.src, hop.dst) for hop in hops}
    return frozenset(frozenset((src, dst)) for step, src, dst in ways if (step, dst, src) in ways)


def _most(whole: Collective, root: int, n: int) -> float:
    """The most bytes that a rank sends, in the run or by the text-book."""
    sent = np.zeros(max(n, 1), np.int64)
    for hop in whole.hops:
        sent[hop.src] += hop.n_bytes
    about = whole.about
    assert about is not None
    shares = [paper.share(about.operation, about.algorithm, rank, root, n) or 0.0 for rank in range(n)]
    return max(int(sent.max()), *(share * about.n_bytes for share in shares), 1.0)


def _sizes(n: int, n_pieces: int, hub: int | None) -> tuple[Point, Point]:
    """Of a card, and of the gaps between cards."""
    if n > MOST_IN_ROWS or n_pieces > MOST_IN_ROWS:
        return (112.0, TITLE + ROW + FOOT), (34.0, 34.0)
    columns = 1 if n_pieces <= 3 else 2
    rows = -(-n_pieces // columns)
    if n_pieces == 1:
        width = 2 * PAD + (156.0 if n <= 6 else 108.0)
    else:
        width = 2 * PAD + (136.0 if columns == 1 else 2 * (110.0 if n <= 4 else 94.0) + 8)
    gap = (16.0, 96.0) if hub is not None else (116.0 if n <= 4 else 64.0, 62.0)
    return (width, TITLE + rows * ROW + FOOT), gap


def _columns(n_pieces: int) -> int:
    return 1 if n_pieces <= 3 or n_pieces > MOST_IN_ROWS else 2


def _tag(n_pieces: int) -> float:
    return 0.0 if n_pieces == 1 or n_pieces > MOST_IN_ROWS else 24.0


def _cell(width: float, n_pieces: int) -> float:
    """Width of a cell in a card of this width."""
    columns = _columns(n_pieces)
    return (width - 2 * PAD - (columns - 1) * 8) / columns - _tag(n_pieces)


def _with_room(card: Point, whole: Collective, pieces: tuple[Piece, ...]) -> tuple[Point, Form]:
    """The card as wide as its numbers need, and the form of all of them; in a crowd it stays as it is."""
    about = whole.about
    assert about is not None
    room = _cell(card[0], len(pieces)) - MARGIN
    if len(pieces) > MOST_IN_ROWS:
        return card, form_for((), room)[0]
    fixed = about.world_size > MOST_IN_ROWS
    form, need = form_for(values_of(whole, pieces), room if fixed else max(room, WIDEST))
    more = 0.0 if fixed else _columns(len(pieces)) * max(0.0, np.ceil(need - room))
    return (card[0] + float(more), card[1]), form


@lru_cache(maxsize=256)
def _cuts_on_paper(operation: str, algorithm: str, n: int, n_chunks: int) -> frozenset[int]:
    """Where the plan of that name cuts the buffer, so that a live picture need not be redrawn at the first hop."""
    plan = COLLECTIVES.get((operation, algorithm))
    if plan is None or n > MOST_RANKS:
        return frozenset()
    return frozenset(int(cut) for rank in range(n) for cut in compile_plan(plan, rank, n, n_chunks)[:, 3:].flat)


def root_of(operation: str, algorithm: str, hops: tuple[ChunkMoved, ...]) -> int:
    """The rank that plays rank 0 of the plan, as the hops show it: a launch may name any.

    Example:
        >>> root_of("broadcast", "flat", tuple(ChunkMoved(0, dst, 2, dst, 0, 3, False, 8) for dst in (0, 1)))
        2
    """
    if not hops:
        return 0
    if operation == "reduce" or algorithm == "naive":
        return min(hops, key=lambda hop: hop.step).dst
    if operation in {"broadcast", "send_recv"}:
        giving = {hop.src for hop in hops} - {hop.dst for hop in hops}
        return giving.pop() if len(giving) == 1 else 0
    return 0


def _wanted(operation: str, rank: int, root: int, n: int, pieces: tuple[Piece, ...]) -> tuple[Counts | None, ...]:
    """Whose parts are to be in each piece at the end; for an unknown operation all of them, once."""
    if operation not in OPERATIONS or n > MOST_RANKS:
        return ((1,) * n,) * len(pieces)
    promise = _promised(operation, n, pieces[-1].stop)[(rank - root) % n]
    rolled = [np.roll(promise[piece.start], root) for piece in pieces]
    return tuple(None if counts.min() < 0 else tuple(counts.tolist()) for counts in rolled)


@lru_cache(maxsize=64)
def _promised(operation: str, n: int, n_chunks: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return promised(operation, n, n_chunks)
