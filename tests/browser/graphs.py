"""Graphs of real size, recorded from runs, with places for their boxes: columns by depth, folded into strips."""

from __future__ import annotations

from collections import Counter

import numpy as np

import lab
from lab import nn
from lab.events import LeafUsed, OpRecorded, Recording
from widgets.pictures.scene import Edge, Node, Scene

STRIP = 60
"""Columns before the next strip begins."""


def deep_network() -> Recording:
    """About 500 nodes: a network of 100 layers, and one step of its training."""
    layers = [layer for i in range(100) for layer in (nn.Linear(8, 8, rng=i), nn.Tanh())]
    model = nn.Sequential(*layers)
    with lab.record() as rec:
        model(lab.tensor(np.ones((4, 8), np.float32))).sum().backward()
    return rec


def unrolled_loop(n_steps: int) -> Recording:
    """A recurrent network, five nodes a step."""
    rng = np.random.default_rng(0)
    shapes = (4, 8), (8, 8), (8,)
    wx, wh, b = (lab.tensor(rng.normal(0, 0.3, s).astype(np.float32), requires_grad=True) for s in shapes)
    h = lab.tensor(np.zeros((2, 8), np.float32))
    with lab.record() as rec:
        for x in rng.normal(size=(n_steps, 2, 4)).astype(np.float32):
            h = (lab.tensor(x) @ wx + h @ wh + b).tanh()
        h.sum().backward()
    return rec


def scene_of(rec: Recording) -> Scene:
    """Every node of the tape that was recorded, in columns by depth."""
    n = len(rec)
    leaves, ops = rec.columns(LeafUsed, 0, n), rec.columns(OpRecorded, 0, n)
    depth: dict[int, int] = {int(node): 0 for node in leaves["node"]}
    named = zip(leaves["node"], leaves["name"], strict=True)
    words = {int(node): ("leaf", str(name) or "leaf") for node, name in named}
    edges: list[Edge] = []
    for node, op, parents in zip(ops["node"], ops["op"], ops["parents"], strict=True):
        known = [int(p) for p in parents if int(p) in depth]
        depth[int(node)] = 1 + max((depth[p] for p in known), default=0)
        words[int(node)] = ("op", str(op))
        edges += [Edge(f"{p}-{node}-{k}", str(p), str(node)) for k, p in enumerate(known)]
    first_use = {int(e.source): int(e.target) for e in reversed(edges)}
    for node in sorted(depth, reverse=True):  # what is made of leaves only stands beside its first use
        if depth[node] <= 1 and node in first_use:
            depth[node] = max(depth[node], depth[first_use[node]] - 1)
    rows: Counter[int] = Counter()
    nodes = []
    for node in sorted(depth):
        column = depth[node]
        row = rows[column]
        rows[column] += 1
        x, y = (column % STRIP) * 150.0, (column // STRIP) * 320.0 + row * 74.0
        nodes.append(Node(str(node), x, y, 96.0, 52.0, words[node][1], f"node {node}", kind=words[node][0]))
    return Scene(tuple(nodes), tuple(edges), title="a recorded graph", caption="Run: frames are counted.")
