"""Layered layout of an acyclic graph: layers by longest path, order by few crossings, places by least squares.

Numbers in, coordinates out. Only the order is asked of fast-sugiyama, where it is installed; all else is computed here,
so that losing the package costs some crossings and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lab.errors import ViewError
from widgets.layout.layers import Layers, components, proper, ranks
from widgets.layout.order import order_layers
from widgets.layout.places import heights
from widgets.layout.routes import Point, Size, apart, route

MAX_NODES = 500
"""More boxes than this nobody reads, and the layout would keep a live picture waiting: callers group or cut first."""


class Placement(NamedTuple):
    """Where everything is. The top left corner of the whole is (0, 0), y points down."""

    centres: tuple[Point, ...]
    """Of each node, in the order given."""
    bends: tuple[tuple[Point, ...], ...]
    """Of each edge, in the order given, from source to target; empty for a straight one."""
    width: float
    height: float


def layered(
    sizes: Sequence[Size],
    edges: Sequence[tuple[int, int]],
    *,
    direction: str = "right",
    layer_gap: float = 84.0,
    node_gap: float = 22.0,
    light: Collection[int] = (),
    fast: bool = True,
) -> Placement:
    """Place boxes of the given sizes so that every edge runs in `direction`, no boxes overlap and few edges cross.

    The same input gives the same places. Parts that are not connected are stacked; isolated nodes come last, in rows.

    Args:
        sizes: (width, height) of each node, in pixels.
        edges: (source, target) as indices into `sizes`; the same pair may occur twice and then bends apart.
        direction: "right" or "down".
        layer_gap: free space between layers, where the edges run.
        node_gap: free space between neighbours in a layer.
        light: nodes that go along with their neighbours, such as constants.
        fast: order the layers with fast-sugiyama when it is installed.

    Raises:
        ViewError: more than 500 nodes, an edge to nowhere, or a cycle.

    Example:
        >>> layered([(40, 20), (40, 20)], [(0, 1)]).centres
        ((20.0, 10.0), (144.0, 10.0))
    """
    if len(sizes) > MAX_NODES:
        raise ViewError(
            f"a picture shows at most {MAX_NODES} nodes", given=f"{len(sizes)} nodes", hint="group them first"
        )
    bad = [e for e in edges if min(e) < 0 or max(e) >= len(sizes)]
    if bad:
        raise ViewError("an edge names a node that is not there", given=str(bad[0]))
    turned = direction == "down"  # everything below thinks left to right
    boxes = [(float(h), float(w)) if turned else (float(w), float(h)) for w, h in sizes]
    sheet = _Sheet(boxes, edges, layer_gap, node_gap, frozenset(light), fast)
    sheet.fill()
    centres, bends, (width, height) = sheet.centres, sheet.bends, sheet.size
    if not turned:
        return Placement(tuple(centres), tuple(bends), width, height)
    flipped = tuple(tuple((y, x) for x, y in path) for path in bends)
    return Placement(tuple((y, x) for x, y in centres), flipped, height, width)


@dataclass
class _Sheet:
    """The paper on which one layout is drawn, part by part from the top."""

    boxes: list[Size]
    edges: Sequence[tuple[int, int]]
    layer_gap: float
    node_gap: float
    light: frozenset[int]
    fast: bool
    centres: list[Point] = field(init=False)
    bends: list[tuple[Point, ...]] = field(init=False)
    size: Size = (0.0, 0.0)

    def fill(self) -> None:
        self.centres, self.bends = [(0.0, 0.0)] * len(self.boxes), [()] * len(self.edges)
        rank = ranks(len(self.boxes), self.edges)
        parts, alone = components(len(self.boxes), self.edges)
        for part in parts:
            own = [e for e, (s, _) in enumerate(self.edges) if s in part]
            g = proper(part, own, self.edges, rank, len(self.boxes))
            order_layers(g, fast=self.fast)
            self._draw(g, own, self._next_top())
        self._rows(alone, self._next_top())

    def _next_top(self) -> float:
        return self.size[1] + 2 * self.node_gap if self.size[1] else 0.0

    def _grow(self, right: float, bottom: float) -> None:
        self.size = max(self.size[0], right), max(self.size[1], bottom)

    def _draw(self, g: Layers, own: list[int], top: float) -> None:
        """One connected part."""
        half = {i: self.boxes[i][1] / 2 if i < g.n_nodes else 2.0 for layer in g.layers for i in layer}
        y = heights(g, half, self.node_gap, self.light)
        shift = top - min(y[i] - half[i] for i in y)
        place: dict[int, Point] = {}
        thick: dict[int, float] = {}
        left = 0.0
        for layer in g.layers:
            wide = max((self.boxes[i][0] for i in layer if i < g.n_nodes), default=0.0)
            for i in layer:
                place[i], thick[i] = (left + wide / 2, y[i] + shift), wide / 2
            left += wide + self.layer_gap
        for layer in g.layers:
            for i in layer:
                if i < g.n_nodes:
                    self.centres[i] = place[i]
        self._grow(left - self.layer_gap, max(y[i] + half[i] for i in y) + shift)
        self._route(g, own, place, thick)

    def _route(self, g: Layers, own: list[int], place: dict[int, Point], thick: dict[int, float]) -> None:
        """The bends of the edges of one part."""
        beside = {
            i: [(self.centres[j], self.boxes[j]) for j in layer if j < g.n_nodes and j != i]
            for layer in g.layers for i in layer if i < g.n_nodes
        }  # fmt: skip
        twins = apart(own, self.edges, self.boxes, self.centres)
        for e in own:
            s, t = self.edges[e]
            chain = g.chains.get(e, ())  # straight across the layers that it passes, so that it clips no box there
            path = [(place[d][0] + side * thick[d], place[d][1]) for d in chain for side in (-1, 1)]
            if not chain and e in twins:
                path = [twins[e]]
            self.bends[e] = route((place[s], thick[s], beside[s]), path, (place[t], thick[t], beside[t]))

    def _rows(self, alone: list[int], top: float) -> None:
        """Isolated nodes, left to right in rows."""
        width = max(self.size[0], 640.0)
        x, y, tall = 0.0, top, 0.0
        for i in alone:
            w, h = self.boxes[i]
            if x and x + w > width:
                x, y, tall = 0.0, y + tall + self.node_gap, 0.0
            self.centres[i] = (x + w / 2, y + h / 2)
            self._grow(x + w, y + h)
            x, tall = x + w + self.node_gap, max(tall, h)
