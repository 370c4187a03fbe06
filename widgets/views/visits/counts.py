"""How often each walk came by each node, folded from a recording."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from lab.events import Event, LeafUsed, NodeVisited, OpRecorded
from widgets.fold import Stretch
from widgets.tape.tape import Tape

ORDERS = {"topological": "in order", "path": "path by path"}
"""The orders of a walk, as a box says them."""
MOST = 60
"""Nodes that are drawn."""
NONE: Mapping[int, int] = MappingProxyType({})


class Counts(NamedTuple):
    """The latest walk of each order, over the graph that was recorded.

    Attributes:
        tape: the graph.
        by_order: visits by order and node. Never changed.
        now: the latest visit.
    """

    tape: Tape
    by_order: Mapping[str, Mapping[int, int]] = MappingProxyType({})
    now: NodeVisited | None = None

    def of(self, order: str) -> Mapping[int, int]:
        """Visits by node in the latest walk of an order; empty if there was none."""
        return self.by_order.get(order, NONE)

    def total(self, order: str) -> int:
        """All visits of a walk so far."""
        return sum(self.of(order).values())

    @property
    def largest(self) -> int:
        """The most visits of one node."""
        return max((n for counts in self.by_order.values() for n in counts.values()), default=1)

    def folded(self, event: Event) -> Counts:
        """These counts after one more event."""
        if not isinstance(event, NodeVisited):
            return self._replace(tape=self.tape.folded(event, MOST))
        before = NONE if event.number == 1 else self.of(event.order)
        counts = {**before, event.node: before.get(event.node, 0) + 1}
        return self._replace(by_order={**self.by_order, event.order: counts}, now=event)

    def folded_many(self, stretch: Stretch) -> Counts:
        """These counts after a stretch of events: visits are counted by columns."""
        made = self
        grown = np.sort(np.concatenate([stretch.positions(LeafUsed), stretch.positions(OpRecorded)]))
        if len(grown):
            made = made._replace(tape=made.tape.folded_many(stretch, MOST))
        visits = stretch.columns(NodeVisited)
        order, number = np.asarray(visits["order"]), np.asarray(visits["number"])
        for name in dict.fromkeys(order.tolist()):
            rows = np.flatnonzero(order == name)
            starts = rows[number[rows] == 1]
            counts = dict(NONE if len(starts) else made.of(name))
            nodes = np.asarray(visits["node"])[rows[rows >= starts[-1]] if len(starts) else rows]
            for node, n in zip(*np.unique(nodes, return_counts=True), strict=True):
                counts[int(node)] = counts.get(int(node), 0) + int(n)
            made = made._replace(by_order={**made.by_order, str(name): counts})
        last = stretch.positions(NodeVisited)[-1:].tolist()
        return made._replace(now=stretch.events[last[0]]) if last else made
