"""How a gradient that is spread over very many paths divides among the entries that all of them go through.

One sweep from an entry to the result counts the paths to each place and adds up their factors; times the gradient there
this is what goes through that place. Where every path goes through a node, its entries add up to the whole gradient.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.paths import Search, rounding, spacing

SWEEP = 5_000
"""So many places are gone through at most, about 0.1 ms each."""
NAMED = 3
"""Entries of a layer that are named; the others are added up."""


class Layer(NamedTuple):
    """What goes through the entries of a node that every path goes through: it adds up to the gradient."""

    op: str
    module: str
    shares: tuple[tuple[int, float], ...]
    """The largest: place along the last axis, with how much goes through all entries there."""
    rest: float
    n_rest: int
    n_axes: int

    @property
    def name(self) -> str:
        """What it is called, as "3: relu"."""
        return f"{self.module}: {self.op}" if self.module else self.op

    def entry(self, k: int) -> str:
        """All entries at a place along the last axis, as NumPy writes them: "[:, 8]"."""
        return f"[{', '.join([*':' * (self.n_axes - 1), str(k)])}]"

    @property
    def total(self) -> float:
        """What all of it adds up to."""
        return sum(share for _, share in self.shares) + self.rest


class Spread(NamedTuple):
    """All the paths of an entry: how many there are, and the layers that all of them go through."""

    n_paths: int
    layers: tuple[Layer, ...]


class _Through(NamedTuple):
    """What goes through a node: its number and, along the last axis, the shares."""

    node: int
    shares: Any


def spread(searches: Sequence[tuple[Search, int, int]], budget: int = SWEEP) -> Spread | None:
    """How the gradient of an entry is spread, over all the (walk, node, entry) that it is the sum of.

    Returns:
        None where more than `budget` places would have to be gone through. No layers where the walks went different
        ways, or where a part of the gradient cannot be followed.
    """
    n_paths, walks = 0, list[list[_Through]]()
    for search, node, entry in searches:
        swept = _swept(search, node, entry, budget)
        if swept is None:
            return None
        n_paths += swept[0]
        walks.append(swept[1])
    named = [[_named(search, through) for through in walk] for (search, *_), walk in zip(searches, walks, strict=True)]
    if not walks or any(names != named[0] for names in named):
        return Spread(n_paths, ())
    sums = [np.sum([t.shares for t in throughs], axis=0) for throughs in zip(*walks, strict=True)]
    return Spread(n_paths, tuple(_layer(*name, shares) for name, shares in zip(named[0], sums, strict=True)))


def _swept(search: Search, node: int, entry: int, budget: int) -> tuple[int, list[_Through]] | None:
    """The number of paths, and what goes through each node that all of them go through."""
    counts, factors = {node: {entry: 1}}, {node: {entry: 1.0}}
    heap, n_paths, spent, found = [node], 0, 0, list[_Through]()
    whole, coarse = float(search.gradient(node).reshape(-1)[entry]), search.gradient(node).dtype
    while heap:
        here = heapq.heappop(heap)  # operands come before what is computed from them
        gradient = search.gradient(here)
        flow = np.zeros(gradient.size)
        places = list(factors[here])
        flow[places] = [factors[here][e] * float(gradient.reshape(-1)[e]) for e in places]
        if here == search.walk.root:
            n_paths += sum(counts[here].values())
            continue
        coarse = max(coarse, gradient.dtype, key=spacing)
        room = rounding(coarse, flow[places], len(places) + spent)
        if here != node and abs(float(flow.sum()) - whole) <= room and gradient.shape:
            _put(found, _Through(here, flow.reshape(-1, gradient.shape[-1]).sum(axis=0)))
        for place in places:
            steps = search.steps((here, place))
            spent += 1
            for to, at, slope in zip(steps.node.tolist(), steps.entry.tolist(), steps.slope.tolist(), strict=True):
                if to not in factors:
                    counts[to], factors[to] = {}, {}
                    heapq.heappush(heap, to)
                counts[to][at] = counts[to].get(at, 0) + counts[here][place]
                factors[to][at] = factors[to].get(at, 0.0) + factors[here][place] * slope
        if spent > budget:
            return None
    return n_paths, found


def _put(found: list[_Through], through: _Through) -> None:
    """One more node; where the same goes through each entry as before, as in an activation, the later one stands."""
    if len(through.shares) < 2:
        return
    if found and found[-1].shares.shape == through.shares.shape and np.allclose(found[-1].shares, through.shares):
        found.pop()
    found.append(through)


def _named(search: Search, through: _Through) -> tuple[str, str, int]:
    operation = search.recorded.operation(through.node)
    assert operation is not None  # its gradient was read
    return operation.op, operation.module, len(operation.shape)


def _layer(op: str, module: str, n_axes: int, shares: Any) -> Layer:
    order = np.argsort(-np.abs(shares), kind="stable")
    named = tuple((int(k), float(shares[k])) for k in order[:NAMED] if shares[k])
    rest = order[len(named) :]
    return Layer(op, module, named, float(shares[rest].sum()), int(np.count_nonzero(shares[rest])), n_axes)
