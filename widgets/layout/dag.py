"""Layered layout of an acyclic graph: layers by longest path, order by few crossings, places by least squares.

Numbers in, coordinates out. Crossings are reduced by fast-sugiyama where it is installed and by barycentres where it is
not; ranks, places and bends are computed here in both cases, so that losing the package costs some crossings and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import NamedTuple

from lab.errors import ViewError

Point = tuple[float, float]
Size = tuple[float, float]

MAX_NODES = 500
"""More boxes than this nobody reads, and the layout would keep a live picture waiting: callers group or cut first."""
SWEEPS = 8
"""Passes over the layers, for the order and again for the places; both have settled before that on graphs of 500 nodes."""
LOOSE, LIGHT = 0.02, 1e-5
"""Weights of a node with a single link, and of one that the caller calls light: they follow and do not pull."""


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
    bad = [e for e in edges if not (min(e) >= 0 and max(e) < len(sizes))]
    if bad:
        raise ViewError("an edge names a node that is not there", given=str(bad[0]))
    turned = direction == "down"  # everything below thinks left to right
    boxes = [(h, w) for w, h in sizes] if turned else [(float(w), float(h)) for w, h in sizes]
    rank = ranks(len(boxes), edges)
    centres: list[Point] = [(0.0, 0.0)] * len(boxes)
    bends: list[tuple[Point, ...]] = [()] * len(edges)
    top = width = 0.0
    parts, alone = components(len(boxes), edges)
    for part in parts:
        own = [i for i, (s, _) in enumerate(edges) if s in part]
        wide, tall = _place(
            part, own, boxes, edges, rank, (layer_gap, node_gap), (0.0, top), frozenset(light), fast, centres, bends
        )
        width, top = max(width, wide), top + tall + 2 * node_gap
    wide, tall = _rows(alone, boxes, node_gap, max(width, 640.0), top, centres)
    width, height = max(width, wide), max(0.0, top + tall - (0 if alone else 2 * node_gap))
    if turned:
        return Placement(
            tuple((y, x) for x, y in centres), tuple(tuple((y, x) for x, y in b) for b in bends), height, width
        )
    return Placement(tuple(centres), tuple(bends), width, height)


def ranks(n_nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each node: longest path from a source, then sources pulled up to just before their first use.

    Example:
        >>> ranks(4, [(0, 1), (1, 2), (3, 2)])
        [0, 1, 2, 1]
    """
    after: list[list[int]] = [[] for _ in range(n_nodes)]
    missing = [0] * n_nodes
    for s, t in edges:
        after[s].append(t)
        missing[t] += 1
    sources = [i for i in range(n_nodes) if not missing[i]]
    rank, ready, seen = [0] * n_nodes, list(sources), 0
    while ready:
        s = ready.pop()
        seen += 1
        for t in after[s]:
            rank[t] = max(rank[t], rank[s] + 1)
            missing[t] -= 1
            if not missing[t]:
                ready.append(t)
    if seen < n_nodes:
        raise ViewError("a graph with a cycle has no layers", given=f"{n_nodes - seen} nodes in or after a cycle")
    for s in sources:
        rank[s] = min((rank[t] - 1 for t in after[s]), default=0)
    return rank


def components(n_nodes: int, edges: Sequence[tuple[int, int]]) -> tuple[list[frozenset[int]], list[int]]:
    """The connected parts in order of their first node, and the nodes that no edge touches.

    Example:
        >>> components(4, [(2, 0)])
        ([frozenset({0, 2})], [1, 3])
    """
    root = list(range(n_nodes))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for s, t in edges:
        root[max(find(s), find(t))] = min(find(s), find(t))
    groups: dict[int, set[int]] = {}
    for i in range(n_nodes):
        groups.setdefault(find(i), set()).add(i)
    return [frozenset(g) for g in groups.values() if len(g) > 1], [min(g) for g in groups.values() if len(g) == 1]


class _Layers(NamedTuple):
    """One part made proper: every link joins neighbouring layers; long edges run through dummies (numbers from n_nodes on)."""

    layers: list[list[int]]
    above: dict[int, list[int]]
    """Neighbours in the layer before."""
    below: dict[int, list[int]]
    chains: dict[int, list[int]]
    """The dummies of each edge that has some."""
    n_nodes: int


def _proper(
    part: frozenset[int], own: list[int], edges: Sequence[tuple[int, int]], rank: list[int], n_nodes: int
) -> _Layers:
    first = min(rank[i] for i in part)
    layers: list[list[int]] = [[] for _ in range(max(rank[i] for i in part) - first + 1)]
    for i in sorted(part):
        layers[rank[i] - first].append(i)
    made = _Layers(layers, {}, {}, {}, n_nodes)
    seen: set[tuple[int, int]] = set()
    dummy = n_nodes
    for e in own:
        s, t = edges[e]
        long = rank[t] - rank[s] > 1
        if (s, t) in seen and not long:
            continue  # a short twin adds no link, `_apart` bends it
        seen.add((s, t))
        chain = list(range(dummy, dummy + rank[t] - rank[s] - 1))
        dummy += len(chain)
        if chain:
            made.chains[e] = chain
        for k, d in enumerate(chain):
            layers[rank[s] + 1 + k - first].append(d)
        for a, b in zip([s, *chain], [*chain, t], strict=True):
            made.below.setdefault(a, []).append(b)
            made.above.setdefault(b, []).append(a)
    return made


def _place(
    part: frozenset[int],
    own: list[int],
    boxes: list[Size],
    edges: Sequence[tuple[int, int]],
    rank: list[int],
    gaps: tuple[float, float],
    origin: Point,
    light: frozenset[int],
    fast: bool,
    centres: list[Point],
    bends: list[tuple[Point, ...]],
) -> Size:
    """Write the places of one connected part into `centres` and `bends`; its own width and height come back."""
    g = _proper(part, own, edges, rank, len(boxes))
    order_layers(g, fast=fast)
    half = {i: boxes[i][1] / 2 if i < g.n_nodes else 2.0 for layer in g.layers for i in layer}
    y = _heights(g, half, gaps[1], light)
    low = min(y[i] - half[i] for i in y)
    x, half_thick, left = {}, {}, origin[0]
    for layer in g.layers:
        thick = max((boxes[i][0] for i in layer if i < g.n_nodes), default=0.0)
        for i in layer:
            x[i], half_thick[i] = left + thick / 2, thick / 2
        left += thick + gaps[0]
    for i in part:
        centres[i] = (x[i], y[i] - low + origin[1])
    beside = {i: [j for j in layer if j < g.n_nodes and j != i] for layer in g.layers for i in layer if i < g.n_nodes}
    apart = _apart(own, edges, boxes, centres)
    for e in own:
        s, t = edges[e]
        chain = g.chains.get(e, [])  # straight across the layers that it passes, so that it clips no box there
        path = [(x[d] + side * half_thick[d], y[d] - low + origin[1]) for d in chain for side in (-1, 1)]
        if not chain and e in apart:
            path = [apart[e]]
        rims_s, rims_t = ([_rim(j, boxes, centres) for j in beside[i]] for i in (s, t))
        leaves, enters = (x[s] + half_thick[s], centres[s][1]), (x[t] - half_thick[t], centres[t][1])
        for _ in range(2):  # a bend at one end can turn the line at the other
            if leaves not in path and _clips(centres[s], (path or [centres[t]])[0], rims_s):
                path.insert(0, leaves)
            if enters not in path and _clips((path or [centres[s]])[-1], centres[t], rims_t):
                path.append(enters)
        bends[e] = _straightened(path, centres[s], centres[t])
    return left - gaps[0] - origin[0], max(y[i] + half[i] for i in y) - low


def order_layers(g: _Layers, *, fast: bool) -> None:
    """Sort each layer in place so that few links cross."""
    if fast and _sugiyama_order(g):
        return
    best, fewest = [list(layer) for layer in g.layers], crossings(g)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        steps = range(1, len(g.layers)) if down else range(len(g.layers) - 2, -1, -1)
        for k in steps:
            _by_barycentre(g.layers[k], g.layers[k - 1 if down else k + 1], g.above if down else g.below)
        now = crossings(g)
        if now < fewest:
            best, fewest = [list(layer) for layer in g.layers], now
    for layer, wanted in zip(g.layers, best, strict=True):
        layer[:] = wanted


def _by_barycentre(layer: list[int], beside: list[int], links: dict[int, list[int]]) -> None:
    where = {i: k for k, i in enumerate(beside)}
    old = {i: float(k) for k, i in enumerate(layer)}
    mean = {i: sum(where[j] for j in links[i]) / len(links[i]) if links.get(i) else old[i] for i in layer}
    layer.sort(key=lambda i: (mean[i], old[i]))


def crossings(g: _Layers) -> int:
    """How many pairs of links cross: inversions of the targets' order, counted by insertion."""
    from bisect import bisect_right, insort

    total = 0
    for layer, following in zip(g.layers, g.layers[1:], strict=False):
        where = {i: k for k, i in enumerate(following)}
        seen: list[int] = []
        for i in layer:
            targets = sorted(where[t] for t in g.below.get(i, ()))
            total += sum(len(seen) - bisect_right(seen, t) for t in targets)
            for t in targets:
                insort(seen, t)
    return total


def _sugiyama_order(g: _Layers) -> bool:
    """Take the order of fast-sugiyama; False where it is missing or saw other layers than ours."""
    try:
        from fast_sugiyama import from_edges
    except ImportError:
        return False
    logging.getLogger("rust-sugiyama").setLevel(logging.WARNING)  # it reports every phase of every layout
    links = [(a, b) for a in sorted(g.below) for b in dict.fromkeys(g.below[a])]
    placed = dict(from_edges(links, check_layout=False).to_dict())
    if any(len({placed[i][1] for i in layer}) > 1 for layer in g.layers):
        return False
    for layer in g.layers:
        layer.sort(key=lambda i: (placed[i][0], i))
    return True


def _heights(g: _Layers, half: dict[int, float], gap: float, light: frozenset[int]) -> dict[int, float]:
    """Places across the layers: each node as near to the mean of its neighbours as order and sizes allow.

    Every layer is an isotonic regression (pool adjacent violators). Dummies weigh more, which keeps long edges straight;
    nodes with one link weigh little: they go along with their neighbour and do not bend the main line.
    """
    y: dict[int, float] = {}
    for layer in g.layers:
        at = 0.0
        for k, i in enumerate(layer):
            at += (half[layer[k - 1]] + half[i] + gap) if k else 0.0
            y[i] = at
        middle = at / 2
        for i in layer:
            y[i] -= middle
    n = len(g.layers)
    mass = {i: LIGHT if i in light else 1.0 for i in y}
    for i in y:
        if i < g.n_nodes and i not in light and len(g.above.get(i, ())) + len(g.below.get(i, ())) == 1:
            mass[i] = LOOSE
    for sweep in range(SWEEPS):
        for k in range(n) if sweep % 2 == 0 else range(n - 1, -1, -1):
            layer = g.layers[k]
            sides = (g.above, g.below) if sweep >= SWEEPS // 2 else ((g.above,) if sweep % 2 == 0 else (g.below,))
            wanted = []
            for i in layer:
                near = [(y[j], mass[j]) for side in sides for j in side.get(i, ())]
                wanted.append(sum(at * w for at, w in near) / sum(w for _, w in near) if near else y[i])
            weight = [4.0 if i >= g.n_nodes else mass[i] for i in layer]
            for i, at in zip(layer, _spaced(wanted, weight, [half[i] for i in layer], gap), strict=True):
                y[i] = at
    return y


def _spaced(wanted: list[float], weight: list[float], half: list[float], gap: float) -> list[float]:
    """The places nearest to `wanted` (weighted squares) with neighbours at least half + gap + half apart, in this order."""
    offset = [0.0] * len(wanted)
    for k in range(1, len(wanted)):
        offset[k] = offset[k - 1] + half[k - 1] + gap + half[k]
    blocks: list[list[float]] = []  # [mean, weight, how many]
    for target, w, shift in zip(wanted, weight, offset, strict=True):
        blocks.append([target - shift, w, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, heavy, many = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * heavy) / (last[1] + heavy)
            last[1] += heavy
            last[2] += many
    flat = [mean for mean, _, many in blocks for _ in range(int(many))]
    return [base + shift for base, shift in zip(flat, offset, strict=True)]


def _rim(i: int, boxes: list[Size], centres: list[Point]) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a box with a little room around it."""
    (x, y), (w, h) = centres[i], boxes[i]
    return x - w / 2 - 6, y - h / 2 - 6, x + w / 2 + 6, y + h / 2 + 6


def _clips(a: Point, b: Point, rims: list[tuple[float, float, float, float]]) -> bool:
    """Whether the line from a to b, which runs to the right, goes through one of the boxes."""
    slope = (b[1] - a[1]) / (b[0] - a[0])
    for left, top, right, bottom in rims:
        first, last = max(left, a[0]), min(right, b[0])
        if first < last:
            ends = a[1] + slope * (first - a[0]), a[1] + slope * (last - a[0])
            if min(ends) < bottom and max(ends) > top:
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


def _apart(
    own: list[int], edges: Sequence[tuple[int, int]], boxes: list[Size], centres: list[Point]
) -> dict[int, Point]:
    """A bend for each of several edges that join the same two nodes, so that each can carry its own token and label."""
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


def _rows(alone: list[int], boxes: list[Size], gap: float, width: float, top: float, centres: list[Point]) -> Size:
    """Isolated nodes, left to right in rows no wider than `width`."""
    x, y, tall, widest = 0.0, top, 0.0, 0.0
    for i in alone:
        w, h = boxes[i]
        if x and x + w > width:
            x, y, tall = 0.0, y + tall + gap, 0.0
        centres[i] = (x + w / 2, y + h / 2)
        x, tall = x + w + gap, max(tall, h)
        widest = max(widest, x - gap)
    return widest, y + tall - top if alone else 0.0
