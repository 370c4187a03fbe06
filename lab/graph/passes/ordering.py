"""Ordering: equations run in an order in which less is alive at once.

Finding the best order is as hard as the travelling salesman's; two cheap ones are tried, and the one that was given is
kept where neither is better.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Sequence

from lab.graph.ir import Graph, Var
from lab.graph.passes.alive import Uses
from lab.graph.passes.memory import footprint
from lab.graph.passes.pipeline import graph_pass


@graph_pass("ordering")
def ordering(graph: Graph) -> Graph:
    """The order with the lowest peak of what is alive, of those tried: as given, greedy, and branch by branch.

    Another order is taken only if its peak is lower and its memory plan takes no more. What meets other ranks stays in
    its order.

    Example:
        >>> import lab, numpy as np
        >>> def f(x):
        ...     a, b = lab.exp(x @ x), lab.tanh(x @ x)
        ...     return lab.sum(a), lab.sum(b)
        >>> print(ordering(lab.make_graph(f)(np.ones((2, 2)))))
        graph(a:f64[2,2]) { let
            b:f64[2,2] = matmul(a, a)
            c:f64[2,2] = exp(b)
            f:f64[] = sum(c, axis=None, keepdims=False)
            d:f64[2,2] = matmul(a, a)
            e:f64[2,2] = tanh(d)
            g:f64[] = sum(e, axis=None, keepdims=False)
          in (f, g) }
    """
    uses, above = Uses(graph), needs(graph)
    best, lowest = graph, max(uses.over(range(len(above))), default=0)
    most = None
    for way in WAYS:
        order = way(uses, above)
        peak = max(uses.over(order), default=0)
        if peak < lowest:
            most = footprint(graph) if most is None else most
            tried = dataclasses.replace(graph, equations=tuple(graph.equations[k] for k in order))
            if footprint(tried) <= most:
                best, lowest = tried, peak
    return best


def needs(graph: Graph) -> list[list[int]]:
    """For each equation those that must run before it, by number.

    Example:
        >>> import lab
        >>> needs(lab.make_graph(lambda x: lab.exp(x) * lab.tanh(x))(1.0))
        [[], [], [0, 1]]
    """
    makers = {v.number: k for k, e in enumerate(graph.equations) for v in e.outs}
    above: list[list[int]] = []
    met = -1
    for k, e in enumerate(graph.equations):
        found = {makers[a.number] for a in e.inputs if isinstance(a, Var) and a.number in makers}
        if e.meets:
            found |= {met} - {-1}
            met = k
        above.append(sorted(found))
    return above


def greedy(uses: Uses, above: Sequence[Sequence[int]]) -> list[int]:
    """Of all that can run now, what frees most beyond what it makes; the first of equals."""
    run = _Greedy(uses, above)
    while run.ready:
        run.take(heapq.heappop(run.ready)[1])
    return run.order


class _Greedy:
    """A run on paper: what can run now, with the bytes that it adds."""

    def __init__(self, uses: Uses, above: Sequence[Sequence[int]]) -> None:
        self.uses = uses
        self.order: list[int] = []
        self.below: list[list[int]] = [[] for _ in above]
        self.missing = [len(before) for before in above]
        self.readers: dict[int, set[int]] = {n: set() for n in uses.n_bytes}
        for k, before in enumerate(above):
            for j in before:
                self.below[j].append(k)
            for n in uses.reads[k]:
                self.readers[n].add(k)
        self.done: set[int] = set()
        self.ready = [self.entry(k) for k, n in enumerate(self.missing) if not n]
        heapq.heapify(self.ready)

    def entry(self, k: int) -> tuple[int, int]:
        uses = self.uses
        made = sum(uses.n_bytes[n] for n in uses.made[k])
        freed = sum(uses.n_bytes[n] for n in uses.reads[k] if len(self.readers[n]) == 1 and n not in uses.kept)
        return made - freed, k

    def take(self, k: int) -> None:
        if k in self.done:  # it was entered again when it began to free more
            return
        self.done.add(k)
        self.order.append(k)
        now = []
        for n in self.uses.reads[k]:
            self.readers[n].discard(k)
            if len(self.readers[n]) == 1:
                now += [last for last in self.readers[n] if not self.missing[last]]
        for j in self.below[k]:
            self.missing[j] -= 1
            if not self.missing[j]:
                now.append(j)
        for j in now:
            heapq.heappush(self.ready, self.entry(j))


def branch_by_branch(uses: Uses, above: Sequence[Sequence[int]]) -> list[int]:
    """Each result is made whole before the next is begun, and of its operands first the one that needs most room.

    Of trees this is Sethi and Ullman's rule for registers (1970).
    """
    made = [sum(uses.n_bytes[n] for n in values) for values in uses.made]
    room: list[int] = []
    turns: list[list[int]] = []
    for k, before in enumerate(above):
        turn = sorted(before, key=lambda j: made[j] - room[j])
        held = most = 0
        for j in turn:
            most, held = max(most, held + room[j]), held + made[j]
        room.append(max(most, held + made[k]))
        turns.append(turn)
    inner = {j for before in above for j in before}
    order: list[int] = []
    done: set[int] = set()
    todo = [k for k in reversed(range(len(above))) if k not in inner]
    while todo:
        k = todo[-1]
        left = [j for j in turns[k] if j not in done]
        if left:
            todo += reversed(left)
            continue
        todo.pop()
        if k not in done:
            done.add(k)
            order.append(k)
    return order


Way = Callable[[Uses, Sequence[Sequence[int]]], list[int]]
WAYS: tuple[Way, ...] = (greedy, branch_by_branch)
"""How an order may be found."""
