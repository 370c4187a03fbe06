"""Where ranks stand: on a ring, clockwise from the left top, or around one of them that talks to all others.

Eight and fewer stand in two rows, so that their arrows run level, upright or across one gap; more stand on an ellipse.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

Point = tuple[float, float]
Pair = tuple[int, int]

MOST_IN_ROWS = 8
"""More cards than this do not fit the width of a page in two rows."""
DETOUR = 40.0
"""How far outside its row an arrow runs that would cross the cards between its ends."""


class Circle(NamedTuple):
    """Centres of the cards by rank, and the size of the whole, from (0, 0) on."""

    centres: tuple[Point, ...]
    width: float
    height: float


def ring(n: int, card: Point, gap: Point) -> Circle:
    """`n` cards clockwise: the first half in a row, the others below it from right to left; neighbours are adjacent.

    Args:
        card: width and height of a card.
        gap: room between cards, across and down.

    Example:
        >>> ring(4, (100, 50), (20, 30)).centres
        ((50.0, 25.0), (170.0, 25.0), (170.0, 105.0), (50.0, 105.0))
    """
    if n > MOST_IN_ROWS:
        return _ellipse(n, card, gap)
    top = n if n <= 2 else -(-n // 2)
    (w, h), (across, down) = card, (card[0] + gap[0], card[1] + gap[1])
    inset = (2 * top - n) * across / 2 if n > 2 else 0.0  # the shorter row stands in the middle
    upper = [(w / 2 + k * across, h / 2) for k in range(top)]
    lower = [(w / 2 + inset + k * across, h / 2 + down) for k in reversed(range(n - top))]
    return Circle((*upper, *lower), top * across - gap[0], h + (down if lower else 0.0))


def star(n: int, hub: int, card: Point, gap: Point) -> Circle:
    """`hub` above, all others in a row below it, by rank.

    Example:
        >>> star(3, 1, (100, 50), (20, 30)).centres
        ((50.0, 105.0), (110.0, 25.0), (170.0, 105.0))
    """
    if n > MOST_IN_ROWS:
        return _ellipse(n, card, gap)
    (w, h), (across, down) = card, (card[0] + gap[0], card[1] + gap[1])
    width = max(1, n - 1) * across - gap[0]
    centres: list[Point] = [(w / 2 + k * across, h / 2 + down) for k in range(n - 1)]
    centres.insert(hub, (width / 2, h / 2))
    return Circle(tuple(centres), width, h + down)


def _ellipse(n: int, card: Point, gap: Point) -> Circle:
    """So wide and high that neighbours keep their gap across at the top and down at the sides; then none overlap."""
    a, b = ((card[k] + gap[k]) * n / (2 * math.pi) for k in (0, 1))
    turns = [2 * math.pi * (k / n - 3 / 8) for k in range(n)]
    centres = tuple((card[0] / 2 + a * (1 + math.cos(t)), card[1] / 2 + b * (1 + math.sin(t))) for t in turns)
    return Circle(centres, 2 * a + card[0], 2 * b + card[1])


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


def bends(pair: Pair, circle: Circle, card: Point, pairs: Collection[Pair]) -> tuple[Point, ...]:
    """Where the arrow between two ranks bends: aside if there is one back, outside its row if cards stand between.

    Example:
        >>> six = ring(6, (100, 50), (20, 30))
        >>> bends((0, 1), six, (100, 50), {(0, 1)}), bends((0, 2), six, (100, 50), {(0, 2)})
        ((), ((80.0, -40.0), (260.0, -40.0)))
    """
    (ax, ay), (bx, by) = (circle.centres[rank] for rank in pair)
    others = [c for rank, c in enumerate(circle.centres) if rank not in pair]
    if any(_crosses((ax, ay), (bx, by), c, card) for c in others):
        return _around((ax, ay), (bx, by), circle, card)
    if (pair[1], pair[0]) not in pairs:
        return ()
    dx, dy = bx - ax, by - ay
    length = math.hypot(dx, dy) or 1.0
    aside = 14.0 + 26.0 * abs(dy) / length  # words on upright arrows need more room beside each other
    return (((ax + bx) / 2 - dy / length * aside, (ay + by) / 2 + dx / length * aside),)


def _around(a: Point, b: Point, circle: Circle, card: Point) -> tuple[Point, ...]:
    if abs(a[1] - b[1]) > 1:
        middle = (a[1] + b[1]) / 2
        return (a[0], middle), (b[0], middle)
    outside = -DETOUR if a[1] <= circle.height / 2 else circle.height + DETOUR
    inwards = math.copysign(card[0] * 0.3, b[0] - a[0])
    return (a[0] + inwards, outside), (b[0] - inwards if abs(b[0] - a[0]) > card[0] else b[0], outside)


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

