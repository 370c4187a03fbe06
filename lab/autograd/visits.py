"""Why backward goes in topological order: the same gradient, walked with it and without, and every visit counted.

Without an order each path is walked by itself: a node that k paths reach is visited k times, and a chain of n squarings
has 2 to the power of n paths. In reverse topological order each node is visited once, when its gradient is complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.backward import Walk, edges, fitted, seed_of
from lab.autograd.tape import AnyNode, Leaf, Node
from lab.autograd.tensor import Tensor
from lab.errors import ArgumentError, GradientError
from lab.events.bus import bus
from lab.events.catalogue import NodeVisited

ORDERS = ("topological", "path")
MOST = 10_000
"""Visits that a walk may take unless it is told otherwise: some 10 us each."""


class Visits(NamedTuple):
    """What a walk did.

    Attributes:
        order: "topological" or "path".
        by_node: how often each node was visited, by its number, newest first.
        gradients: of the leaves, by number; the same for both orders, except for rounding.
    """

    order: str
    by_node: Mapping[int, int]
    gradients: Mapping[int, Any]

    @property
    def total(self) -> int:
        """All visits."""
        return sum(self.by_node.values())


def count_visits(tensor: Tensor, order: str = "topological", *, most: int = MOST) -> Visits:
    """Walk back through the graph of a number, by its rules, and count how often each node is visited.

    The graph stays as it is: no `.grad` is touched, nothing is freed, no hook runs. While somebody records, each visit
    is a NodeVisited; VisitsView draws them.

    Args:
        tensor: a result of one entry whose graph has not been freed by a backward.
        order: "topological": a node waits until all that comes back to it is summed; "path": every contribution goes
            on by itself, as in a naive recursion.
        most: refuse a walk of more visits than this.

    Raises:
        ArgumentError: another order, or too many visits.
        GradientError: the tensor has no graph, or several entries.

    Example:
        >>> import lab
        >>> y = lab.tensor(1.0, requires_grad=True)
        >>> for _ in range(10):
        ...     y = y * y
        >>> count_visits(y).total, count_visits(y, "path").total
        (11, 2047)
    """
    if order not in ORDERS:
        raise ArgumentError("count_visits knows no such order", given=repr(order)[:60], hint=f"one of {ORDERS}")
    if type(tensor) is not Tensor or tensor.node is None:
        raise GradientError(
            "count_visits walks the graph of a tensor, and this has none", given=repr(tensor)[:60],
            hint="compute it from a tensor with requires_grad=True, outside of transforms",
        )  # fmt: skip
    walk, seed = Walk(tensor.node), seed_of(tensor, None)
    paths = _paths(walk)
    needed = len(paths) if order == "topological" else sum(paths.values())
    if needed > most:
        raise ArgumentError(
            "count_visits would take too long", given=f"{needed:,} visits of {len(paths):,} nodes, most={most:,}",
            hint="fewer operations, or a larger most=",
        )  # fmt: skip
    return _in_order(walk, seed) if order == "topological" else _path_by_path(walk, seed)


def _paths(walk: Walk) -> Counter[int]:
    """How many paths lead from the root to each node: so often a walk without order comes by."""
    paths = Counter({walk.root.id: 1})
    for node in walk.nodes:
        for i, parent in enumerate(node.parents):
            if parent is not None and node.op.rule(i) is not None:
                paths[parent.id] += paths[node.id]
    return +paths


def _in_order(walk: Walk, seed: Any) -> Visits:
    tally = _Tally("topological")
    came = {walk.root.id: (seed, -1, -1)}
    nodes: list[AnyNode] = [*walk.nodes, *sorted(walk.leaves.values(), key=lambda leaf: -leaf.id)]
    for node in nodes:
        if node.id in came:
            ct, source, argument = came.pop(node.id)
            tally.visit(node, source, argument, ct)
            for i, parent, c in _sent(walk, node, ct):
                before = came.get(parent.id)
                came[parent.id] = (c if before is None else before[0] + c), node.id, i
    return tally.result()


def _path_by_path(walk: Walk, seed: Any) -> Visits:
    tally = _Tally("path")
    stack: list[tuple[AnyNode, int, int, Any]] = [(walk.root, -1, -1, seed)]
    while stack:
        node, source, argument, ct = stack.pop()
        tally.visit(node, source, argument, ct)
        stack += [(parent, node.id, i, c) for i, parent, c in reversed([*_sent(walk, node, ct)])]
    return tally.result()


def _sent(walk: Walk, node: AnyNode, ct: Any) -> list[tuple[int, AnyNode, Any]]:
    if not isinstance(node, Node):
        return []
    with np.errstate(all="ignore"):
        return [*fitted(node, ct, edges(node, ct, general=False), guard=node.id in walk.guarded)]


class _Tally:
    """Counts visits, tells them, and sums what arrives at leaves."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.by_node: Counter[int] = Counter()
        self.gradients: dict[int, Any] = {}
        self.n = 0

    def visit(self, node: AnyNode, source: int, argument: int, ct: Any) -> None:
        self.n += 1
        self.by_node[node.id] += 1
        if isinstance(node, Leaf):
            self.gradients[node.id] = self.gradients[node.id] + ct if node.id in self.gradients else ct
        if bus.operations:
            bus.emit_row(NodeVisited, node.id, source, argument, self.order, self.n)

    def result(self) -> Visits:
        counts = {node: self.by_node[node] for node in sorted(self.by_node, reverse=True)}
        return Visits(self.order, counts, self.gradients)
