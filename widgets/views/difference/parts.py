"""Boxes and words of two columns of events: what both did, row beside row, until they part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from lab.events import Difference, Side
from lab.events.telling import shown, told
from widgets.pictures.measure import clip
from widgets.pictures.scene import Mark, Node

WIDTH, HEIGHT, ROW = 420.0, 56.0, 68.0
LEFT, GAP, TOP = 12.0, 76.0, 74.0
TOTAL = 2 * LEFT + 2 * WIDTH + GAP


class Row(NamedTuple):
    """What both runs did there; one that had ended has None."""

    a: Side | None
    b: Side | None
    unlike: bool


def rows_of(sides: tuple[Sequence[Side], Sequence[Side]], found: Difference) -> list[Row]:
    """Rows of what both did: as many before the difference, the difference, then what each did next."""
    (before_a, after_a), (before_b, after_b) = map(_parted, sides, (found.a, found.b))
    shared = min(len(before_a), len(before_b))
    rows = [
        Row(x, y, unlike=False)
        for x, y in zip(before_a[len(before_a) - shared :], before_b[len(before_b) - shared :], strict=True)
    ]
    rows.append(Row(_there(found.a), _there(found.b), unlike=True))
    rows += [Row(x, y, unlike=False) for x, y in zip_longest(after_a, after_b)]
    return rows


def _there(side: Side) -> Side | None:
    return None if side.event is None else side


def _parted(sides: Sequence[Side], mine: Side) -> tuple[list[Side], list[Side]]:
    """What one run did before the difference, and after it."""
    if mine.position < 0:
        return list(sides), []
    return [s for s in sides if s.position < mine.position], [s for s in sides if s.position > mine.position]


def nodes_of(rows: Sequence[Row], found: Difference, position: int) -> list[Node]:
    """A box for each event; those of the first run before `position` have happened."""
    at = next(k for k, row in enumerate(rows) if row.unlike)
    nodes = []
    for k, row in enumerate(rows):
        happened = row.a is None or row.a.position < position
        for name, side, column in (("a", row.a, 0), ("b", row.b, 1)):
            if side is None and not row.unlike:
                continue
            state = "trouble" if row.unlike else "idle" if k > at else "done" if happened else "waiting"
            nodes.append(_node(name, k, column, side, found, state))
    return nodes


def _node(name: str, k: int, column: int, side: Side | None, found: Difference, state: str) -> Node:
    x, y = LEFT + WIDTH / 2 + column * (WIDTH + GAP), TOP + HEIGHT / 2 + k * ROW
    if side is None or side.event is None:
        words = f"{name} has ended"
        return Node(f"{name}{k}", x, y, WIDTH, HEIGHT, words, kind="constant", state=state, aria=words)
    line = told(side.event, side.place)
    below = side.place.where
    if state == "trouble" and found.field:
        value = found.a.value if name == "a" else found.b.value
        below = " · ".join(filter(None, (f"{found.field} {shown(value)}", below)))
    room = WIDTH - 56
    said = f"{name}: {line}{f', {below}' * bool(below)}"
    return Node(
        f"{name}{k}", x, y, WIDTH, HEIGHT, clip(line, room, 14.0, bold=True), clip(below, room, 12.0), kind="op",
        state=state, aria=said,
    )  # fmt: skip


def marks_of(rows: Sequence[Row], found: Difference, names: tuple[str, str]) -> list[Mark]:
    """The names above the columns, how much went before, and a sign between the boxes of each row."""
    marks = [
        Mark(f"name{k}", "heading", LEFT + k * (WIDTH + GAP), 18, WIDTH, text=clip(name, WIDTH - 8, 14.0, bold=True))
        for k, name in enumerate(names)
    ]
    n = sum(not row.unlike for row in rows[: next(k for k, row in enumerate(rows) if row.unlike)])
    earlier = found.agreed - n
    words = f"{earlier:,} events of rank {found.rank} before these agree" if earlier > 0 else "from the beginning"
    marks.append(Mark("before", "text", TOTAL / 2, 48, text=words, anchor="middle"))
    at = next(k for k, row in enumerate(rows) if row.unlike)
    for k in range(at + 1):
        y = TOP + HEIGHT / 2 + k * ROW
        kind, sign = ("warning", "≠") if rows[k].unlike else ("text", "=")
        marks.append(Mark(f"sign{k}", kind, LEFT + WIDTH + GAP / 2, y, text=sign, anchor="middle"))
    return marks


def extent_of(rows: Sequence[Row]) -> tuple[float, float]:
    """Width and height of the whole."""
    return TOTAL, TOP + ROW * len(rows) + 8
