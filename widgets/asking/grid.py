"""The entries of a gradient as a heat map of boxes, clicked or reached with the arrow keys; a large one in part."""

from __future__ import annotations

from typing import Any

import numpy as np

from widgets.pictures.scene import Mark, Node, Scene
from widgets.pictures.theme import short

GRID = 8
"""At most so many rows and columns at once."""
WIDTH, HEIGHT, LEFT, TOP = 62.0, 28.0, 30.0, 22.0
MOST_TONE = 0.75

Index = tuple[int, ...]


def key_of(index: Index) -> str:
    """The id of an entry's box.

    Example:
        >>> key_of((0, 12)), index_of("0,12"), index_of("")
        ('0,12', (0, 12), ())
    """
    return ",".join(map(str, index))


def index_of(key: str) -> Index:
    """The entry of a box."""
    return tuple(int(part) for part in key.split(",") if part)


def grid(gradient: Any, chosen: Index, title: str) -> Scene:
    """The window of up to 8 x 8 entries around the chosen one; of more than two axes the last two.

    Example:
        >>> scene = grid(np.arange(20.0), (9,), "w")
        >>> [node.id for node in scene.nodes], scene.selected
        (['8', '9', '10', '11', '12', '13', '14', '15'], '9')
    """
    lead, place = chosen[:-2], (0, 0, *chosen)[-2:]
    plane = np.asarray(gradient[lead], np.float64)
    ndim = min(len(chosen), 2)
    plane = plane.reshape((1,) * (2 - plane.ndim) + plane.shape)
    row, column = (i // GRID * GRID for i in place)
    shown = plane[row : row + GRID, column : column + GRID]
    finite = np.abs(gradient[np.isfinite(gradient)])
    largest = float(finite.max()) if finite.size else 0.0
    nodes, marks = [], []
    for i, j in np.ndindex(*shown.shape):
        index = (*lead, *(row + i, column + j)[2 - ndim :])
        nodes.append(_cell(index, float(shown[i, j]), largest, (LEFT + (j + 0.5) * WIDTH, TOP + (i + 0.5) * HEIGHT)))
    if ndim:
        marks += [_head(f"c{j}", column + j, LEFT + (j + 0.5) * WIDTH, TOP / 2) for j in range(shown.shape[1])]
    if ndim == 2:
        marks += [_head(f"r{i}", row + i, LEFT / 2, TOP + (i + 0.5) * HEIGHT) for i in range(shown.shape[0])]
    extent = LEFT + shown.shape[1] * WIDTH + 4, TOP + shown.shape[0] * HEIGHT + 4
    part = "" if shown.size == np.size(gradient) else f", a part of {'×'.join(map(str, np.shape(gradient)))}"
    words = f"Gradient of {title}{part}: choose an entry to see the paths that it is the sum of."
    return Scene(
        tuple(nodes), caption=words, title=f"Entries of the gradient of {title}", selected=key_of(chosen),
        palette="diverging", extent=extent, marks=tuple(marks),
    )  # fmt: skip


def _cell(index: Index, value: float, largest: float, centre: tuple[float, float]) -> Node:
    finite = bool(np.isfinite(value))
    tone = MOST_TONE * value / largest if finite and largest else None
    text = _brief(value)
    entry = f"entry {', '.join(map(str, index))}" if index else "the only entry"
    return Node(
        key_of(index) or "only", *centre, WIDTH - 3, HEIGHT - 3, "", text, kind="constant",
        state="idle" if finite else "trouble", tone=tone, aria=f"{entry}: gradient {short(value)}",
    )  # fmt: skip


def _brief(value: float) -> str:
    """Short enough for a cell."""
    text = short(float(f"{value:.2g}"))
    return text if len(text) <= 7 else short(float(f"{value:.0e}"))


def _head(name: str, number: int, x: float, y: float) -> Mark:
    return Mark(name, "text", x, y, text=str(number), anchor="middle")
