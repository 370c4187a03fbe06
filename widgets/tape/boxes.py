"""Where the boxes of a graph stand and how large they are: lines of text in, coordinates out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from widgets.layout.dag import MAX_NODES, layered
from widgets.pictures.measure import text_width
from widgets.tape import wording
from widgets.tape.tape import Entry

Lines = tuple[str, str, str]


class Places(NamedTuple):
    """Boxes by id as x, y, width and height; bends of arrows by id; width and height of the whole."""

    nodes: Mapping[str, tuple[float, float, float, float]]
    bends: Mapping[str, tuple[tuple[float, float], ...]]
    extent: tuple[float, float]


def standing(
    entries: Mapping[int, Entry], called: Mapping[int, str], lines: Callable[[Entry], Lines], direction: str, gap: float
) -> Places:
    """Where the boxes of these entries stand, with those of their constants, "c3.0" for operand 0 of node 3."""
    boxes: dict[str, tuple[float, float]] = {}
    edges = []
    for entry in entries.values():
        for i, (parent, text) in enumerate(zip(entry.parents, wording.operands(entry, called), strict=True)):
            source = str(parent) if parent in entries else f"c{entry.node}.{i}"
            if parent not in entries:
                boxes[source] = size((wording.clipped(text),))
            edges.append((f"{entry.node}.{i}", source, str(entry.node)))
        boxes[str(entry.node)] = size(lines(entry))
    return placed(boxes, edges, direction, gap)


def placed(
    boxes: Mapping[str, tuple[float, float]], edges: list[tuple[str, str, str]], direction: str, gap: float = 84.0
) -> Places:
    """Where boxes of these sizes stand; edges are (id, source, target)."""
    ids = list(boxes)
    if len(ids) > MAX_NODES:  # constants may exceed what the operations left room for
        ids = sorted(ids, key=lambda name: name.startswith("c"))[:MAX_NODES]
    index = {name: k for k, name in enumerate(ids)}
    edges = [e for e in edges if e[1] in index and e[2] in index]
    constants = [k for k, name in enumerate(ids) if name.startswith("c")]
    pairs = [(index[s], index[t]) for _, s, t in edges]
    gap = 50.0 if direction == "down" else gap  # numbers on arrows are wide and low
    found = layered([boxes[name] for name in ids], pairs, direction=direction, layer_gap=gap, light=constants)
    stand = {name: (*found.centres[k], *boxes[name]) for name, k in index.items()}
    bends = {e[0]: found.bends[k] for k, e in enumerate(edges)}
    return Places(stand, bends, (found.width, found.height))


def size(texts: tuple[str, ...]) -> tuple[float, float]:
    """Of a box that holds these lines; widths in steps of 12, so that a changing digit moves nothing."""
    widest = max(text_width(line, 14.0 if k == 0 else 12.0, bold=k != 1) for k, line in enumerate(texts))
    if len(texts) == 1:
        return max(36.0, 12.0 * math.ceil((widest + 16) / 12)), 28.0
    return max(96.0, 12.0 * math.ceil((widest + 28) / 12)), 66.0
