"""Where edges run: from border to border, smoothly through their bends; the twin of `frontend/geometry.js`.

A browser test draws the same scene with both and compares the paths letter by letter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from widgets.pictures.scene import Edge, Node

Point = tuple[float, float]


class EdgeShape(NamedTuple):
    """Path of the line, path of the arrow head, place of the label."""

    line: str
    head: str
    middle: Point


def rounded(value: float) -> float:
    """One decimal, halves up as JavaScript does.

    Example:
        >>> rounded(0.25), rounded(-0.25)
        (0.3, -0.2)
    """
    return math.floor(value * 10 + 0.5) / 10


def number(value: float) -> str:
    """A coordinate as JavaScript prints it.

    Example:
        >>> number(12.04), number(-0.0)
        ('12', '0')
    """
    value = rounded(value)
    return str(int(value)) if value == int(value) else repr(value)


def _point(p: Point) -> str:
    return f"{number(p[0])} {number(p[1])}"


def corner_radius(kind: str, height: float) -> float:
    """Radius of a node's corners."""
    if kind == "op":
        return min(height / 2, 20.0)
    small = {"group": 6.0, "constant": 2.0, "forward_span": 2.0, "backward_span": 2.0}
    return small.get(kind, 8.0)


def hatch(width: float, height: float, step: float = 6.0) -> str:
    """Slanted lines that fill a box whose left top corner is (0, 0), as one path.

    Example:
        >>> hatch(8.0, 4.0)
        'M2 4L6 0'
    """
    path, x = "", step - height
    while x < width:
        left, right = max(x, 0.0), min(x + height, width)
        path += f"M{_point((left, height - (left - x)))}L{_point((right, height - (right - x)))}"
        x += step
    return path


def border(node: Node, toward: Point, gap: float) -> Point:
    """Where the ray from the centre of `node` to `toward` leaves it, `gap` pixels outside."""
    dx, dy = toward[0] - node.x, toward[1] - node.y
    distance = math.hypot(dx, dy)
    if distance < 1e-6:
        return node.x, node.y
    ux, uy = dx / distance, dy / distance
    a, b = node.width / 2, node.height / 2
    if node.kind == "rank":
        reach = 1 / math.hypot(ux / a, uy / b)
    else:
        reach = min(a / abs(ux) if abs(ux) > 1e-9 else math.inf, b / abs(uy) if abs(uy) > 1e-9 else math.inf)
        r = min(corner_radius(node.kind, node.height), a, b)
        cx, cy, px, py = a - r, b - r, abs(ux), abs(uy)
        if reach * px > cx and reach * py > cy:
            along = px * cx + py * cy
            reach = along + math.sqrt(max(0.0, along * along - (cx * cx + cy * cy - r * r)))
    return node.x + ux * (reach + gap), node.y + uy * (reach + gap)


def lanes(edges: Sequence[Edge]) -> dict[str, float]:
    """Sideways offset of each edge that shares both its nodes with another one."""
    groups: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        if not edge.bends:
            groups.setdefault((min(edge.source, edge.target), max(edge.source, edge.target)), []).append(edge.id)
    return {
        key: (i - (len(keys) - 1) / 2) * 28 for keys in groups.values() if len(keys) > 1 for i, key in enumerate(keys)
    }


def edge_shape(edge: Edge, nodes: Mapping[str, Node], lane: float = 0.0) -> EdgeShape:
    """The paths of one edge."""
    source, target = nodes[edge.source], nodes[edge.target]
    bends = _loop(source) if edge.source == edge.target else list(edge.bends) or _arc(edge, source, target, lane)
    size = 6 + 1.5 * edge.width
    start = border(source, bends[0] if bends else (target.x, target.y), 2)
    end = border(target, bends[-1] if bends else (source.x, source.y), 2)
    back = edge.state == "backward"
    tip = start if back else end
    origin = (bends[0] if bends else end) if back else (bends[-1] if bends else start)
    base = tip if edge.state == "none" else _towards(tip, origin, size * 0.8)
    points = [base, *bends, end] if back else [start, *bends, base]
    return EdgeShape(_smooth(points), _arrow(tip, origin, size), _halfway(points))


def _arc(edge: Edge, source: Node, target: Node, lane: float) -> list[Point]:
    if not lane:
        return []
    sign = 1 if edge.source < edge.target else -1
    dx, dy = (target.x - source.x) * sign, (target.y - source.y) * sign
    distance = math.hypot(dx, dy) or 1.0
    return [((source.x + target.x) / 2 - dy / distance * lane, (source.y + target.y) / 2 + dx / distance * lane)]


def _loop(node: Node) -> list[Point]:
    right = node.x + node.width / 2
    return [(right + 18, node.y - 13), (right + 30, node.y), (right + 18, node.y + 13)]


def _towards(a: Point, b: Point, length: float) -> Point:
    dx, dy = b[0] - a[0], b[1] - a[1]
    distance = math.hypot(dx, dy) or 1.0
    return a[0] + dx / distance * length, a[1] + dy / distance * length


def _arrow(tip: Point, origin: Point, size: float) -> str:
    base = _towards(tip, origin, size)
    nx, ny = (tip[1] - base[1]) * 0.42, (base[0] - tip[0]) * 0.42
    return f"M{_point(tip)}L{_point((base[0] + nx, base[1] + ny))}L{_point((base[0] - nx, base[1] - ny))}Z"


def _smooth(points: Sequence[Point]) -> str:
    path = f"M{_point(points[0])}"
    if len(points) == 2:
        return f"{path}L{_point(points[1])}"
    for i, (p, q) in enumerate(pairwise(points)):
        before, after = points[max(i - 1, 0)], points[min(i + 2, len(points) - 1)]
        c1 = p[0] + (q[0] - before[0]) / 6, p[1] + (q[1] - before[1]) / 6
        c2 = q[0] - (after[0] - p[0]) / 6, q[1] - (after[1] - p[1]) / 6
        path += f"C{_point(c1)} {_point(c2)} {_point(q)}"
    return path


def _halfway(points: Sequence[Point]) -> Point:
    lengths = [math.hypot(q[0] - p[0], q[1] - p[1]) for p, q in pairwise(points)]
    rest = sum(lengths) / 2
    for p, q, length in zip(points, points[1:], lengths, strict=False):
        if length > 0 and rest <= length:
            place = _towards(p, q, rest)
            return rounded(place[0]), rounded(place[1])
        rest -= length
    return rounded(points[0][0]), rounded(points[0][1])
