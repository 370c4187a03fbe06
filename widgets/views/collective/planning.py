"""How a collective is laid out: decided once from all that was recorded of it, so that nothing jumps while it plays."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lab.events import ChunkMoved
from lab.parallel import COLLECTIVES, OPERATIONS, compile_plan
from lab.parallel.paper.operations import promised
from widgets.layout.ring import MOST_IN_ROWS, Circle, Pair, Point, bends, hub_of, ring, star
from widgets.layout.tree import slots, together, tree
from widgets.views.collective import paper
from widgets.views.collective.grid import grid_of
from widgets.views.collective.plan import (
    FOOT,
    HEAD,
    MOST_RANKS,
    NARROW,
    PAD,
    ROW,
    TITLE,
    Plan,
    cell,
    columns,
    is_compact,
)
from widgets.views.collective.state import Collective, Counts, Piece, pieces_of, values_of
from widgets.views.collective.trees import chosen, root_of, trees_of
from widgets.views.collective.words import FORMS, Form, form_for

NARROWEST = 570.0
"""The heading needs so much."""
MARGIN = 26.0
"""What a cell needs beside its numbers."""
WIDEST = 112.0
"""Numbers of a cell may take so many pixels: "µ −1.235e−12"."""
FEW_SLOTS = 4
"""So many cards of full width stand beside each other in trees."""
MOST_BESIDE = 10
"""So many narrow cards; a second tree of more stands below the first."""
BETWEEN = 56.0
"""Two trees."""


class Ground(NamedTuple):
    """The cards, and the ways between them."""

    circle: Circle
    card: Point
    pairs: frozenset[Pair]
    exchanged: frozenset[frozenset[int]]
    bends: dict[Pair, tuple[Point, ...]]
    top: float
    extent: Point
    form: Form


def plan_of(whole: Collective, layout: str = "auto") -> Plan | None:
    """The plan for all that is known of a collective; None while nobody entered.

    Args:
        layout: one of LAYOUTS.
    """
    about = whole.about
    if about is None:
        return None
    n = about.world_size
    cuts = {cut for hop in whole.hops for cut in (hop.start, hop.stop)}
    pieces = pieces_of(cuts | _cuts_on_paper(about.operation, about.algorithm, n, about.n_chunks), about.n_chunks)
    root = _root(about.operation, whole.hops, n)
    found = () if layout in ("ring", "matrix") or n > MOST_RANKS else trees_of(whole.hops, n, pieces)
    drawn_as = chosen(layout, whole.hops, n, found)
    trees = found if drawn_as == "tree" else ()
    sizes = [event.n_bytes for event in whole.began.values()]
    wanted = {rank: _wanted(about.operation, rank, root, n, pieces) for rank in range(n)}
    empty = Circle((), 0.0, 0.0), (0.0, 0.0)
    plan = Plan(drawn_as, about, pieces, trees, *empty, frozenset(), frozenset(), {}, HEAD, (0.0, 0.0), whole.hops,
                whole.steps, root, _most(whole, root, n), wanted, FORMS[0], (min(sizes), max(sizes)))  # fmt: skip
    ground = _grid(plan, whole) if drawn_as == "matrix" else _ground(plan, whole)
    return plan._replace(**ground._asdict())


def _grid(plan: Plan, whole: Collective) -> Ground:
    """Without cards: what grids take."""
    grid = grid_of(plan.drawn, len(plan.pieces))
    form, _ = form_for(values_of(whole, plan.pieces), grid.piece[0] - MARGIN + 8) if grid.roomy else (plan.form, 0.0)
    pairs = frozenset(pair for hop in plan.hops for pair in plan.seats_of(hop))
    return Ground(plan.circle, plan.card, pairs, frozenset(), {}, HEAD, (max(grid.width, NARROWEST), grid.height), form)


def _ground(plan: Plan, whole: Collective) -> Ground:
    """Cards around a ring, below one that talks to all, or in trees; and how arrows run between them."""
    n = plan.about.world_size
    pairs = frozenset(pair for hop in plan.hops for pair in plan.seats_of(hop))
    hub = hub_of(pairs) if 2 < n <= MOST_IN_ROWS and not plan.trees else None
    card, gap = _sizes(n, plan.per_card, hub) if not plan.trees else _tree_sizes(plan)
    card, form = _with_room(card, whole, plan)
    circle = _circle(plan, hub, card, gap)
    exchanged = _exchanged(plan)
    ways = {pair: bends(pair, circle, card, both=frozenset(pair) in exchanged, hub=hub) for pair in pairs}
    outer = [y for way in ways.values() for _, y in way]
    top = HEAD + 24.0 * (len(plan.trees) > 1) + max(0.0, *(12 - y for y in outer if y < 0), 0.0)
    extent = max(circle.width, NARROWEST), top + max(circle.height, *outer, 0.0)
    aside = (extent[0] - circle.width) / 2
    circle = circle._replace(centres=tuple((x + aside, y) for x, y in circle.centres))
    ways = {pair: tuple((x + aside, top + y) for x, y in way) for pair, way in ways.items()}
    return Ground(circle, card, pairs, exchanged, ways, top, extent, form)


def _circle(plan: Plan, hub: int | None, card: Point, gap: Point) -> Circle:
    if plan.trees:
        first, *others = (tree(grown.parents, card, gap) for grown in plan.trees)
        below = sum(slots(grown.parents) for grown in plan.trees) > MOST_BESIDE
        return together(first, others[0], BETWEEN, below=below) if others else first
    return ring(plan.drawn, card, gap) if hub is None else star(plan.drawn, hub, card, gap)


def _exchanged(plan: Plan) -> frozenset[frozenset[int]]:
    """Pairs of seats that send to each other in the same step."""
    ways = {(hop.step, *pair) for hop in plan.hops for pair in plan.seats_of(hop)}
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
        return (NARROW, TITLE + ROW + FOOT), (34.0, 34.0)
    across = columns(n_pieces)
    rows = -(-n_pieces // across)
    if n_pieces == 1:
        width = 2 * PAD + (156.0 if n <= 6 else 108.0)
    else:
        width = 2 * PAD + (136.0 if across == 1 else 2 * (110.0 if n <= 4 else 94.0) + 8)
    gap = (16.0, 96.0) if hub is not None else (116.0 if n <= 4 else 64.0, 62.0)
    return (width, TITLE + rows * ROW + FOOT), gap


def _tree_sizes(plan: Plan) -> tuple[Point, Point]:
    """The same for trees; cards of many are narrow."""
    wide = sum(slots(grown.parents) for grown in plan.trees)
    if wide > FEW_SLOTS or is_compact(plan.per_card, 2 * NARROW):
        return (NARROW, TITLE + ROW + FOOT), (18.0, 58.0)
    across = columns(plan.per_card)
    width = 2 * PAD + (156.0 if plan.per_card == 1 else 136.0 if across == 1 else 2 * 94.0 + 8)
    return (width, TITLE + -(-plan.per_card // across) * ROW + FOOT), (32.0, 66.0)


def _with_room(card: Point, whole: Collective, plan: Plan) -> tuple[Point, Form]:
    """The card as wide as its numbers need, and the form of all of them; in a crowd it stays as it is."""
    room = cell(card[0], plan.per_card) - MARGIN
    if is_compact(plan.per_card, card[0]):
        return card, form_for((), room)[0]
    fixed = card[0] <= NARROW
    form, need = form_for(values_of(whole, plan.pieces), room if fixed else max(room, WIDEST))
    more = 0.0 if fixed else columns(plan.per_card) * max(0.0, np.ceil(need - room))
    return (card[0] + float(more), card[1]), form


@lru_cache(maxsize=256)
def _cuts_on_paper(operation: str, algorithm: str, n: int, n_chunks: int) -> frozenset[int]:
    """Where the plan of that name cuts the buffer, so that a live picture need not be redrawn at the first hop."""
    plan = COLLECTIVES.get((operation, algorithm))
    if plan is None or n > MOST_RANKS:
        return frozenset()
    rows = np.concatenate([compile_plan(plan, rank, n, n_chunks) for rank in range(n)])
    start, stop, at = rows[:, 3:].T
    return frozenset(int(cut) for cut in np.concatenate([start, stop, at, at + stop - start]))


def _root(operation: str, hops: tuple[ChunkMoved, ...], n: int) -> int:
    """The rank that plays rank 0 of the plan; where all are alike it is rank 0."""
    senders = {hop.src for hop in hops}
    only = {"send_recv": senders, "gather": set(range(n)) - senders}.get(operation, set())
    if len(only) == 1:
        return only.pop()
    return root_of(hops, n) if operation in ("all_reduce", "reduce", "broadcast", "scatter") else 0


def _wanted(operation: str, rank: int, root: int, n: int, pieces: tuple[Piece, ...]) -> tuple[Counts | None, ...]:
    """Whose parts are to be in each piece at the end; for an unknown operation all of them, once.

    A permutation promises nothing that its name would tell: its pairs are known to the program alone.
    """
    if operation == "permute":
        return (None,) * len(pieces)
    if operation not in OPERATIONS or n > MOST_RANKS:
        return ((1,) * n,) * len(pieces)
    promise = _promised(operation, n, pieces[-1].stop)[(rank - root) % n]
    rolled = [np.roll(promise[piece.start], root) for piece in pieces]
    return tuple(None if counts.min() < 0 else tuple(counts.tolist()) for counts in rolled)


@lru_cache(maxsize=64)
def _promised(operation: str, n: int, n_chunks: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return promised(operation, n, n_chunks)
