"""What each equation of a graph waits for, what it costs, and the longest chain of what waits: no run is shorter.

Numbers in, numbers out: equations are called by their place in the graph, `Needs` names for each those before it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lab.graph.ir import Equation, Graph, Literal, Var
from lab.graph.views import look_of

Needs = tuple[tuple[int, ...], ...]
"""For each equation the numbers of those for which it waits, ascending; all are smaller than its own."""

CALL_MS = 1e-3
"""What a call of NumPy takes that does nothing: 1 us."""
BYTES_PER_MS = 5e6
"""Read and written, from memory and caches together."""
FLOPS_PER_MS = 1e7
"""Of a product by one BLAS thread."""
ENTRIES_PER_MS = 1e6
"""That one elementwise op makes: most take between 0.3 and 10 ns an entry."""


def needs_of(graph: Graph, *, in_buffers: bool = False) -> Needs:
    """What each equation of a graph waits for.

    An equation waits for those whose results it reads; one that meets other ranks for the one before it that does, too,
    since all ranks must meet in one order.

    Args:
        in_buffers: values lie in the buffers of the memory plan, so that who writes into one waits for all that read
            what was in it.

    Example:
        >>> import lab, numpy as np
        >>> chain = lab.make_graph(lambda x: (((x @ x) @ x) @ x, x * 2.0))(np.ones((2, 2)))
        >>> needs_of(chain)
        ((), (0,), (1,), ())
    """
    maker = {v: k for k, e in enumerate(graph.equations) for v in e.outs}
    users: dict[int, set[int]] = {}  # of each buffer: who wrote what is in it, and who read that
    places: dict[Var, frozenset[int]] = {}
    needs: list[tuple[int, ...]] = []
    met = -1
    for k, e in enumerate(graph.equations):
        waits = {maker[a] for a in e.inputs if isinstance(a, Var) and a in maker}
        if e.meets:
            waits |= {met} - {-1}
            met = k
        if in_buffers:
            waits |= _freed(e, k, places, users)
        needs.append(tuple(sorted(waits)))
    return tuple(needs)


def _freed(e: Equation, k: int, places: dict[Var, frozenset[int]], users: dict[int, set[int]]) -> set[int]:
    """For whom an equation waits before it may write into its buffers; it is entered among their users."""
    read = frozenset[int]().union(*(places.get(a, frozenset()) for a in e.inputs if isinstance(a, Var)))
    for buffer in read:
        users[buffer].add(k)
    waits: set[int] = set()
    own = e.buffer if look_of(e) is None else ()
    for i, v in enumerate(e.outs):
        if i < len(own) and own[i] >= 0:
            waits |= users.get(own[i], set())
            users[own[i]] = {k}
            places[v] = frozenset((own[i],))
        else:  # a view, or what an op made that may be one
            places[v] = read
    return waits - {k}


def costs_of(graph: Graph, measured_ms: Mapping[int, float] | None = None) -> tuple[float, ...]:
    """Milliseconds of each equation: measured where that is given, else reckoned from bytes and operations.

    Example:
        >>> import lab, numpy as np
        >>> graph = lab.make_graph(lambda x: (x @ x, x + 1.0))(np.ones((200, 200)))
        >>> [round(cost, 2) for cost in costs_of(graph)], costs_of(graph, {0: 5.0})[0]
        ([1.73, 0.17], 5.0)
    """
    known = measured_ms or {}
    return tuple(known[k] if k in known else _reckoned(e) for k, e in enumerate(graph.equations))


def _reckoned(e: Equation) -> float:
    if look_of(e) is not None:
        return CALL_MS
    operands = [a for a in dict.fromkeys(e.inputs) if not (isinstance(a, Literal) and a.weak)]
    n_bytes = sum(a.spec.size * a.spec.dtype.itemsize for a in (*operands, *e.outs))
    return CALL_MS + n_bytes / BYTES_PER_MS + _work(e)


def _work(e: Equation) -> float:
    """Milliseconds of arithmetic."""
    if e.graphs:
        turns = e.params.get("length", 1)
        inner = sum(_work(x) for graph in e.graphs.values() for x in graph.equations)
        return inner * (turns if isinstance(turns, int) else 1)
    made = sum(v.spec.size for v in e.outs)
    if e.op.name == "matmul":
        return 2.0 * made * e.inputs[0].spec.shape[-1] / FLOPS_PER_MS
    if e.op.name == "contract":
        terms = e.params["subscripts"].partition("->")[0].split(",")
        sizes = {c: n for term, a in zip(terms, e.inputs, strict=True) for c, n in zip(term, a.spec.shape, strict=True)}
        return 2.0 * math.prod(sizes.values()) / FLOPS_PER_MS
    return max([made, *(a.spec.size for a in e.inputs)]) / ENTRIES_PER_MS


def followers_of(needs: Needs) -> Needs:
    """For each equation those that wait for it.

    Example:
        >>> followers_of(((), (0,), (0, 1)))
        ((1, 2), (2,), ())
    """
    after: list[list[int]] = [[] for _ in needs]
    for k, waits in enumerate(needs):
        for j in waits:
            after[j].append(k)
    return tuple(map(tuple, after))


def priorities(needs: Needs, costs: Sequence[float]) -> tuple[float, ...]:
    """For each equation the cost of the longest chain that begins with it: who has most before him goes first.

    Example:
        >>> priorities(((), (), (0, 1)), (1.0, 2.0, 4.0))
        (5.0, 6.0, 4.0)
    """
    longest = list(costs)
    after = followers_of(needs)
    for k in reversed(range(len(needs))):
        longest[k] = costs[k] + max((longest[j] for j in after[k]), default=0.0)
    return tuple(longest)


def critical_path(needs: Needs, costs: Sequence[float]) -> tuple[int, ...]:
    """The longest chain of equations that wait for each other; with any number of threads a run takes as long.

    Example:
        >>> critical_path(((), (), (0, 1)), (1.0, 2.0, 4.0))
        (1, 2)
    """
    longest, after = priorities(needs, costs), followers_of(needs)
    path: list[int] = []
    ahead: Sequence[int] = range(len(needs))
    while ahead:
        path.append(max(ahead, key=lambda k: longest[k]))
        ahead = after[path[-1]]
    return tuple(path)


class Slot(NamedTuple):
    """When and in which lane an equation runs."""

    number: int
    lane: int
    start: float
    stop: float


def on_paper(needs: Needs, costs: Sequence[float], n_lanes: int) -> list[Slot]:
    """The schedule that a number of threads would follow if nothing came between: critical path first, none idle.

    Example:
        >>> [tuple(slot) for slot in on_paper(((), (), (0, 1)), (1.0, 2.0, 4.0), 2)]
        [(1, 0, 0.0, 2.0), (0, 1, 0.0, 1.0), (2, 0, 2.0, 6.0)]
    """
    longest, after = priorities(needs, costs), followers_of(needs)
    missing = [len(waits) for waits in needs]
    ready = [(-longest[k], k) for k, waits in enumerate(needs) if not waits]
    heapq.heapify(ready)
    free, running, slots, now = list(range(n_lanes)), list[tuple[float, int, int]](), list[Slot](), 0.0
    while ready or running:
        while ready and free:
            k, lane = heapq.heappop(ready)[1], heapq.heappop(free)
            slots.append(Slot(k, lane, now, now + costs[k]))
            heapq.heappush(running, (now + costs[k], k, lane))
        now, k, lane = heapq.heappop(running)
        heapq.heappush(free, lane)
        for j in after[k]:
            missing[j] -= 1
            if not missing[j]:
                heapq.heappush(ready, (-longest[j], j))
    return slots
