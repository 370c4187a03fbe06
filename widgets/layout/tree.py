"""Where ranks stand in a tree: level below level, a parent in the middle above its children, so that no lines cross."""

from __future__ import annotations

from collections.abc import Sequence

from widgets.layout.ring import Circle, Point


def slots(parents: Sequence[int]) -> int:
    """How many cards wide a tree is: one for each leaf.

    Args:
        parents: of each rank, -1 of the root.

    Example:
        >>> slots([-1, 0, 0, 2])
        2
    """
    return max(1, len(set(range(len(parents))) - set(parents)))


def depth(parents: Sequence[int]) -> int:
    """How many levels of children are below the root.

    Example:
        >>> depth([-1, 0, 0, 2]), depth([-1])
        (2, 0)
    """
    return max(_levels(parents))


def tree(parents: Sequence[int], card: Point, gap: Point) -> Circle:
    """The root above, each level below the one before, children by rank.

    Args:
        parents: of each rank, -1 of the root; there is one root, and all others are below it.
        card: width and height of a card.
        gap: room between cards, across and down.

    Example:
        >>> tree([-1, 0, 0], (100, 50), (20, 30)).centres
        ((110.0, 25.0), (50.0, 105.0), (170.0, 105.0))
    """
    across, down = card[0] + gap[0], card[1] + gap[1]
    children: list[list[int]] = [[] for _ in parents]
    for rank, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(rank)
    levels, columns, used = _levels(parents), [0.0] * len(parents), 0
    stack = [parents.index(-1)]
    order: list[int] = []
    while stack:  # from the left to the right, parents before children
        order.append(stack.pop())
        stack += reversed(children[order[-1]])
    for rank in order:
        if not children[rank]:
            columns[rank], used = float(used), used + 1
    for rank in reversed(order):
        if children[rank]:
            columns[rank] = (columns[children[rank][0]] + columns[children[rank][-1]]) / 2
    centres = tuple((card[0] / 2 + columns[r] * across, card[1] / 2 + levels[r] * down) for r in range(len(parents)))
    return Circle(centres, used * across - gap[0], (max(levels) + 1) * down - gap[1])


def together(first: Circle, second: Circle, gap: float, *, below: bool = False) -> Circle:
    """Two of them beside or below each other; the places of the second come after those of the first.

    Example:
        >>> one = Circle(((5.0, 5.0),), 10.0, 10.0)
        >>> together(one, one, 4.0)
        Circle(centres=((5.0, 5.0), (19.0, 5.0)), width=24.0, height=10.0)
    """
    right, down = (0.0, first.height + gap) if below else (first.width + gap, 0.0)
    moved = tuple((x + right, y + down) for x, y in second.centres)
    width, height = max(first.width, right + second.width), max(first.height, down + second.height)
    return Circle((*first.centres, *moved), width, height)


def _levels(parents: Sequence[int]) -> list[int]:
    levels = []
    for rank in range(len(parents)):
        level, above = 0, parents[rank]
        while above >= 0:
            level, above = level + 1, parents[above]
        levels.append(level)
    return levels
