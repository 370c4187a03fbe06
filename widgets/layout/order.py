"""The order within each layer, chosen for few crossings: by fast-sugiyama where installed, else by barycentres."""

from __future__ import annotations

import logging
from bisect import bisect_right, insort
from typing import Any

from widgets.layout.layers import Layers

SWEEPS = 8
"""Passes over the layers; the order has settled before that on graphs of 500 nodes."""


def order_layers(g: Layers, *, fast: bool) -> None:
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


def crossings(g: Layers) -> int:
    """How many pairs of links cross: inversions of the targets' order, counted by insertion."""
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


def _sugiyama_order(g: Layers) -> bool:
    """Take the order of fast-sugiyama; False where it is missing or saw other layers than ours."""
    try:
        import fast_sugiyama
    except ImportError:
        return False
    logging.getLogger("rust-sugiyama").setLevel(logging.WARNING)  # it reports every phase of every layout
    links = [(a, b) for a in sorted(g.below) for b in dict.fromkeys(g.below[a])]
    layouts: Any = fast_sugiyama.from_edges(links, check_layout=False)
    placed = layouts.to_dict()
    if any(len({placed[i][1] for i in layer}) > 1 for layer in g.layers):
        return False
    for layer in g.layers:
        layer.sort(key=lambda i: (placed[i][0], i))
    return True
