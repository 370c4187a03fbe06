"""The graph made proper: nodes in layers by longest path, long edges cut at every layer that they pass by dummies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lab.errors import ViewError


class Layers(NamedTuple):
    """One part made proper: each link joins neighbouring layers; long edges run through dummies, from n_nodes on."""

    layers: list[list[int]]
    above: dict[int, list[int]]
    """Neighbours in the layer before."""
    below: dict[int, list[int]]
    chains: dict[int, list[int]]
    """The dummies of each edge that has some."""
    n_nodes: int


def proper(
    part: frozenset[int], own: list[int], edges: Sequence[tuple[int, int]], rank: list[int], n_nodes: int
) -> Layers:
    """The layers of one connected part, whose edges are those numbered in `own`."""
    first = min(rank[i] for i in part)
    layers: list[list[int]] = [[] for _ in range(max(rank[i] for i in part) - first + 1)]
    for i in sorted(part):
        layers[rank[i] - first].append(i)
    made = Layers(layers, {}, {}, {}, n_nodes)
    seen: set[tuple[int, int]] = set()
    dummy = n_nodes
    for e in own:
        s, t = edges[e]
        long = rank[t] - rank[s] > 1
        if (s, t) in seen and not long:
            continue  # a short twin adds no link, `routes.apart` bends it
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
