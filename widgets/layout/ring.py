"""Where ranks stand: on a ring, clockwise from the left top, or in a row below the one that talks to all others.

Arrows run level, upright or across one gap between two rows, whatever the number of ranks; a card is never in the way.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

Point = tuple[float, float]
Pair = tuple[int, int]

MOST_IN_ROWS = 8
"""So many cards fit the width of a page in two rows; more go around an open middle."""
DETOUR = 40.0
"""How far outside its row an arrow runs that would cross the cards between its ends."""
LANE = 24.0
"""How far apart two such arrows run that go there and back at the same time."""
FALL = 34.0
"""How far above a row an arrow that comes from the hub turns down to its card."""


class Circle(NamedTuple):
    """Centres of the cards by rank, and the size of the whole, from (0, 0) on."""

    centres: tuple[Point, ...]
    width: float
    height: float


def ring(n: int, card: Point, gap: Point) -> Circle:
    """`n` cards clockwise; neighbours stand beside or below each other.

    Args:
        card: width and height of a card.
        gap: room between cards, across and down.

    Example:
        >>> ring(4, (100, 50), (20, 30)).centres
        ((50.0, 25.0), (170.0, 25.0), (170.0, 105.0), (50.0, 105.0))
    """
    (w, h), (across, down) = card, (card[0] + gap[0], card[1] + gap[1])
    if n > MOST_IN_ROWS:
        rows = max(3, round((n + 4) / 5))
        columns = -(-(n + 4) // 2) - rows
        places = tuple(islice(_around(columns, rows), n))
    elif n > 2:
        top = -(-n // 2)  # the shorter row stands in the middle below the longer one
        columns, rows = top, 2
        places = (*((k, 0) for k in range(top)), *((k + (2 * top - n) / 2, 1) for k in reversed(range(n - top))))
    else:
        columns, rows, places = n, 1, tuple((k, 0) for k in range(n))
    centres = tuple((w / 2 + x * across, h / 2 + y * down) for x, y in places)
    return Circle(centres, columns * across - gap[0], rows * down - gap[1])


def _around(columns: int, rows: int) -> Iterator[tuple[float, float]]:
    """The places at the border of a grid, clockwise from the left top."""
    yield from ((x, 0) for x in range(columns))
    yield from ((columns - 1, y) for y in range(1, rows))
    yield from ((x, rows - 1) for x in reversed(range(columns - 1)))
    yield from ((0, y) for y in reversed(range(1, rows - 1)))


def star(n: int, hub: int, card: Point, gap: Point) -> Circle:
    """`hub` above, all others in a row below it, by rank.

    Example:
        >>> star(3, 1, (100, 50), (20, 30)).centres
        ((50.0, 105.0), (110.0, 25.0), (170.0, 105.0))
    """
    (w, h), (across, down) = card, (card[0] + gap[0], card[1] + gap[1])
    width = max(1, n - 1) * across - gap[0]
    centres: list[Point] = [(w / 2 + k * across, h / 2 + down) for k in range(n - 1)]
    centres.insert(hub, (width / 2, h / 2))
    return Circle(tuple(centres), width, h + down)


def hub_of(pairs: Collection[Pair]) -> int | None:
    """The rank that is an end of every hop, if there are hops to several others; else None.

    Example:
        >>> hub_of({(1, 0), (0, 2)}), hub_of({(0, 1), (1, 2), (2, 0)}), hub_of({(0, 1), (1, 0)})
        (0, None, None)
    """
    if len({frozenset(pair) for pair in pairs}) < 2:
        return None
    common = set.intersection(*map(set, pairs))
    return min(common) if common else None


def bends(pair: Pair, circle: Circle, card: Point, *, both: bool = False, hub: int | None = None) -> tuple[Point, ...]:
    """Where the arrow between two ranks bends so that it crosses no card, and aside if one runs back at the same time.

    Args:
        both: something moves the other way at the same time.
        hub: the rank above, if this is a star.

    Example:
        >>> six = ring(6, (100, 50), (20, 30))
        >>> bends((0, 1), six, (100, 50)), bends((0, 2), six, (100, 50))
        ((), ((80.0, -40.0), (125.0, -40.0), (170.0, -40.0), (215.0, -40.0), (260.0, -40.0)))
    """
    (ax, ay), (bx, by) = (circle.centres[rank] for rank in pair)
    dx, dy = bx - ax, by - ay
    others = [c for rank, c in enumerate(circle.centres) if rank not in pair]
    clear = not any(_crosses((ax, ay), (bx, by), c, card) for c in others)
    if both and clear:
        length = math.hypot(dx, dy) or 1.0
        aside = 14.0 + 26.0 * abs(dy) / length  # words on upright arrows need more room beside each other
        return (((ax + bx) / 2 - dy / length * aside, (ay + by) / 2 + dx / length * aside),)
    if clear:
        return ()
    if hub in pair:
        below, inwards = (bx, -dx) if hub == pair[0] else (ax, dx)
        return ((below + math.copysign(10.0, inwards), circle.height - card[1] - FALL),)
    lane = LANE * (both and pair[0] > pair[1])
    if abs(dy) > 1:
        return along(ax, bx, (ay + by) / 2 + lane)
    outside = -DETOUR - lane if ay <= circle.height / 2 else circle.height + DETOUR + lane
    inwards = math.copysign(card[0] * (0.2 if lane else 0.3), dx)
    return along(ax + inwards, bx - inwards, outside)


def along(start: float, stop: float, y: float, stride: float = 45.0) -> tuple[Point, ...]:
    """Points on a level way, close enough that the smooth line through them does not swing out at its ends.

    Example:
        >>> along(0.0, -90.0, 5.0)
        ((0.0, 5.0), (-45.0, 5.0), (-90.0, 5.0))
    """
    n = max(1, math.ceil(abs(stop - start) / stride))
    return tuple((start + (stop - start) * k / n, y) for k in range(n + 1))


def _crosses(a: Point, b: Point, centre: Point, card: Point) -> bool:
    """Whether the line from `a` to `b` goes through the card at `centre`: the part of it between the card's sides."""
    low, high = 0.0, 1.0
    for k in (0, 1):
        near, far = centre[k] - card[k] / 2 - a[k], centre[k] + card[k] / 2 - a[k]
        way = b[k] - a[k]
        if abs(way) < 1e-9:
            if near > 0 or far < 0:
                return False
            continue
        low, high = max(low, min(near / way, far / way)), min(high, max(near / way, far / way))
    return low < high
