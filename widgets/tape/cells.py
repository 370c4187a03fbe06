"""A shape as a row of cells, one for each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from widgets.pictures.scene import Node

BETWEEN = 8.0


class Cell(NamedTuple):
    """One axis: its length, a word about it, and how it is drawn."""

    label: str
    word: str = ""
    aria: str = ""
    state: str = "idle"
    kind: str = "constant"


def row_of(name: str, cells: Sequence[Cell], left: float, y: float, pitch: float, high: float = 44.0) -> list[Node]:
    """The cells side by side from `left` on, called "name.0", "name.1", ...

    Example:
        >>> [(n.id, n.x, n.label) for n in row_of("x", [Cell("4"), Cell("2")], 10.0, 0.0, 60.0)]
        [('x.0', 40.0, '4'), ('x.1', 100.0, '2')]
    """
    return [
        Node(
            f"{name}.{k}", left + pitch * (k + 0.5), y, pitch - BETWEEN, high, c.label, c.word,
            kind=c.kind, state=c.state, aria=c.aria,
        )
        for k, c in enumerate(cells)
    ]  # fmt: skip
