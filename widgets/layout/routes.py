"""Where edges bend: straight across the layers that they pass, around the boxes beside their ends, apart from twins."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float]
Size = tuple[float, float]


def apart(
    own: list[int], edges: Sequence[tuple[int, int]], boxes: list[Size], centres: list[Point]
) -> dict[int, Point]:
    """A bend for each of several edges between the same two nodes, so that each can carry its own token and label."""
    twins: dict[tuple[int, int], list[int]] = {}
    for e in own:
        twins.setdefault(edges[e], []).append(e)
    bends: dict[int, Point] = {}
    for (s, t), same in twins.items():
        (x0, y0), (x1, y1) = centres[s], centres[t]
        x = (x0 + boxes[s][0] / 2 + x1 - boxes[t][0] / 2) / 2  # the middle of the free space
        for k, e in enumerate(same if len(same) > 1 else ()):
            bends[e] = x, (y0 + y1) / 2 + (k - (len(same) - 1) / 2) * 36.0
    return bends


End = tuple[Point, float, list[tuple[Point, Size]]]
"""Of an edge: its node's centre, half the thickness of its layer, and the other boxes of that layer."""


def route(source: End, path: list[Point], target: End) -> tuple[Point, ...]:
    """The bends of an edge that shall run along `path`, and one more where it would go through a box beside an end."""
    (start, out, left), (end, into, right) = source, target
    leaves, enters = (start[0] + out, start[1]), (end[0] - into, end[1])
    path = list(path)
    for _ in range(2):  # a bend at one end can turn the line at the other
        if leaves not in path and _clips(start, (path or [end])[0], left):
            path.insert(0, leaves)
        if enters not in path and _clips((path or [start])[-1], end, right):
            path.append(enters)
    return _straightened(path, start, end)


def _clips(a: Point, b: Point, boxes: list[tuple[Point, Size]], room: float = 6.0) -> bool:
    """Whether the line from a to b, which runs to the right, goes through a box or too near to one."""
    slope = (b[1] - a[1]) / (b[0] - a[0])
    for (x, y), (w, h) in boxes:
        first, last = max(x - w / 2 - room, a[0]), min(x + w / 2 + room, b[0])
        if first < last:
            ends = a[1] + slope * (first - a[0]), a[1] + slope * (last - a[0])
            if min(ends) < y + h / 2 + room and max(ends) > y - h / 2 - room:
                return True
    return False


def _straightened(bends: list[Point], source: Point, target: Point) -> tuple[Point, ...]:
    """Without the bends that lie on the straight line between their neighbours: the fewer, the calmer."""
    path = [source, *bends, target]
    kept = [source]
    for k in range(1, len(path) - 1):
        (x0, y0), (x1, y1), (x2, y2) = kept[-1], path[k], path[k + 1]
        on_line = y0 + (y2 - y0) * (x1 - x0) / (x2 - x0) if x2 != x0 else y0
        if abs(on_line - y1) > 1.0:
            kept.append(path[k])
    return tuple(kept[1:])
