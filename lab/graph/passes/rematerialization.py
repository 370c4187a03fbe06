"""Rematerialisation: a value that is cheap to make is made again late, instead of being kept from early on.

At the place where most is alive, values that lie there unread are looked at: each could be given up and made again
right before it is read, from what is there then. The one that gives most bytes for longest and costs least work goes
first, and so on until the graph fits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from time import perf_counter
from typing import NamedTuple

from lab.checks import whole
from lab.errors import GraphError
from lab.graph.ir import Atom, Equation, Graph, Var
from lab.graph.passes.alive import Uses
from lab.graph.passes.memory import footprint
from lab.graph.passes.pipeline import ORDER, Stage, graph_pass, stages
from lab.graph.rewriting import needed
from lab.graph.verify import verify
from lab.graph.views import look_of

DEEPEST = 8
"""Equations in a row that are run again for one value, at most."""
TRIED = 12
"""Values that are tried at one peak, the best first."""
RANDOM_WORK = 16
"""Of a random number, in elementwise operations; its key is an operand, so that it is the same again."""


@graph_pass("rematerialization")
def rematerialization(graph: Graph) -> Graph:
    """The graph with the lowest peak that making values again leads to, without a budget to stop at.

    Example:
        >>> import lab, numpy as np
        >>> def f(x):
        ...     a = lab.exp(x)
        ...     return a @ ((a @ x) @ (x @ x))
        >>> print(rematerialization(lab.make_graph(f)(np.ones((9, 9)))))
        graph(a:f64[9,9]) { let
            b:f64[9,9] = exp(a)
            c:f64[9,9] = matmul(b, a)
            d:f64[9,9] = matmul(a, a)
            e:f64[9,9] = matmul(c, d)
            g:f64[9,9] = exp(a)
            f:f64[9,9] = matmul(g, e)
          in (f) }
    """
    return lowered(graph, 0)


def rematerialized(graph: Graph, budget: int) -> Graph:
    """The graph with as much made again as it takes to run within a budget; the same bits come out.

    Views, elementwise ops, fused loops and random numbers (their keys are operands) may be made again; products,
    convolutions and what meets other ranks never are. What repeats is greedy: a lower plan than the lowest found may
    exist.

    Args:
        budget: bytes that buffers, outputs and other results may take together, see `footprint`; inputs not counted.

    Raises:
        GraphError: no plan within the budget was found; the lowest that was is told.

    Example:
        >>> import lab, numpy as np
        >>> def f(x):
        ...     a = lab.exp(x)
        ...     return a @ ((a @ x) @ (x @ x))
        >>> graph = lab.make_graph(f)(np.ones((8, 8)))
        >>> rematerialized(graph, 2_048) is not graph
        True
        >>> rematerialized(graph, 10)
        Traceback (most recent call last):
            ...
        lab.errors.GraphError: no memory plan within the budget was found
        given: a budget of 10 bytes; the lowest plan takes 2,048 bytes
        hint:  a larger budget, or smaller batches
    """
    whole("memory_budget", budget, least=0)
    best, size, target = graph, footprint(graph), budget
    tried = graph
    while size > budget:
        tried = lowered(tried, target)
        made = footprint(tried)
        if made < size:
            best, size = tried, made
        if max(Uses(tried).over(range(len(tried.equations))), default=0) > target:  # it goes no lower
            break
        target -= max(1, made - budget)
    if size <= budget:
        return best
    raise GraphError(
        "no memory plan within the budget was found",
        given=f"a budget of {budget:,} bytes; the lowest plan takes {size:,} bytes",
        hint="a larger budget, or smaller batches",
    )


def stages_within(graph: Graph, budget: int) -> list[Stage]:
    """What each pass makes of a graph, as `stages`, with what a budget takes before the memory is planned.

    Raises:
        GraphError: no plan within the budget was found.

    Example:
        >>> import lab
        >>> [s.name for s in stages_within(lab.make_graph(lambda x: x + 1.0)(1.0), 64)][-3:]
        ['ordering', 'rematerialization', 'memory planning']
    """
    path = stages(graph, ORDER[:-1])
    start = perf_counter()
    before = path[-1].graph
    before = dataclasses.replace(before, equations=tuple(dataclasses.replace(e, sources=()) for e in before.equations))
    after = rematerialized(before, budget)
    verify(after, after="rematerialization")
    path.append(Stage("rematerialization", after, 1e3 * (perf_counter() - start)))
    return path + stages(after, ORDER[-1:])[1:]


def lowered(graph: Graph, target: int) -> Graph:
    """The graph with values made again until at most `target` bytes are alive at once, or nothing helps any more."""
    uses = Uses(graph)
    height = _height(uses, len(graph.equations))
    most = 4 * len(graph.equations)
    while height[0] > target and len(graph.equations) < most:
        for change in _changes(graph, uses)[:TRIED]:
            changed = change.made()
            seen = Uses(changed)
            if _height(seen, len(changed.equations)) < height:
                graph, uses, height = changed, seen, _height(seen, len(changed.equations))
                break
        else:
            break
    return graph


def work_of(e: Equation) -> int | None:
    """What it takes to run an equation again, in elementwise operations; None where that is not done.

    Example:
        >>> import lab, numpy as np
        >>> [work_of(e) for e in lab.make_graph(lambda x: lab.exp(x).T @ x)(np.ones((2, 3))).equations]
        [6, 0, None]
    """
    size = sum(v.spec.size for v in e.outs)
    if e.meets:
        return None
    if look_of(e) is not None:
        return 0
    if e.op.name == "fused":
        return sum(max(1, work_of(inner) or 1) for inner in e.params["body"].equations)
    if e.op.name == "random_uniform":
        return RANDOM_WORK * size
    return size if e.op.elementwise else None


def _height(uses: Uses, n: int) -> tuple[int, int]:
    """The peak, and at how many equations it is reached."""
    alive = uses.over(range(n))
    peak = max(alive, default=0)
    return peak, alive.count(peak)


class _Change(NamedTuple):
    """One value made again.

    Attributes:
        graph: before.
        at: the equation before which it is made.
        again: numbers of the equations that run again, in order.
        worth: bytes that it saves times equations for which it does, for each operation of work.
    """

    graph: Graph
    at: int
    again: tuple[int, ...]
    worth: float

    def made(self) -> Graph:
        """The graph after the change."""
        equations, n = self.graph.equations, self.graph.n_vars
        new: dict[Var, Var] = {}
        clones = []
        for k in self.again:
            e = equations[k]
            inputs = tuple(new.get(a, a) if isinstance(a, Var) else a for a in e.inputs)
            outs = tuple(dataclasses.replace(v, number=n + i) for i, v in enumerate(e.outs))
            n += len(outs)
            new.update(zip(e.outs, outs, strict=True))
            sources = e.sources or tuple(v.number for v in e.outs)
            clones.append(dataclasses.replace(e, inputs=inputs, outs=outs, sources=sources))
        later = [
            dataclasses.replace(e, inputs=tuple(new.get(a, a) if isinstance(a, Var) else a for a in e.inputs))
            for e in equations[self.at :]
        ]
        changed = dataclasses.replace(self.graph, equations=(*equations[: self.at], *clones, *later))
        return dataclasses.replace(changed, equations=needed(changed))


def _changes(graph: Graph, uses: Uses) -> list[_Change]:
    """What could be done about the first peak, the best first."""
    return sorted(_Peak(graph, uses).changes(), key=lambda change: -change.worth)


class _Peak:
    """The place where most is alive, and what lies there unread."""

    def __init__(self, graph: Graph, uses: Uses) -> None:
        self.graph, self.uses = graph, uses
        order = range(len(graph.equations))
        alive = uses.over(order)
        self.place = alive.index(max(alive))
        self.last = uses.last(order)
        self.makers = {v.number: k for k, e in enumerate(graph.equations) for v in e.outs}
        self.readers: dict[int, list[int]] = {n: [] for n in uses.n_bytes}
        for k, reads in enumerate(uses.reads):
            for n in reads:
                self.readers[n].append(k)

    def changes(self) -> Iterator[_Change]:
        """A change for each value that lies at the peak unread, and for those together that are made of one other."""
        here = self.uses.reads[self.place]
        idle = [
            n
            for n, readers in self.readers.items()
            if self.makers[n] < self.place and n not in here and n not in self.uses.kept and readers[-1:] > [self.place]
        ]
        together: dict[int, set[int]] = {}
        for n in idle:
            for a in self.graph.equations[self.makers[n]].inputs:
                if isinstance(a, Var):
                    together.setdefault(a.number, set()).add(n)
        groups = dict.fromkeys([*(frozenset([n]) for n in idle), *map(frozenset, together.values())])
        for group in groups:
            later = sorted({k for n in group for k in self.readers[n] if k > self.place})
            again = self._again(group, later)
            if again:
                saved = sum(self.uses.n_bytes[n] for n in group) - self._longer(again)
                before = max(k for n in group for k in [self.makers[n], *self.readers[n]] if k < self.place)
                work = sum(work_of(self.graph.equations[k]) or 0 for k in again)
                if saved > 0:
                    yield _Change(self.graph, later[0], again, saved * (later[0] - before) / (work + 1))

    def _again(self, group: frozenset[int], later: list[int]) -> tuple[int, ...]:
        """Equations that run again so that the later readers need not have these values; () where that cannot be."""
        found: set[int] = set()
        todo = [
            a.number
            for k in later
            for a in self.graph.equations[k].inputs
            if isinstance(a, Var) and self._behind(a) & group and self.makers[a.number] < later[0]
        ]
        while todo:
            k = self.makers[todo.pop()]
            if k in found:
                continue
            if work_of(self.graph.equations[k]) is None or len(found) == DEEPEST:
                return ()
            found.add(k)
            for a in self.graph.equations[k].inputs:
                behind = self._behind(a)
                gone = behind & group or any(self.last[m] < self.place for m in behind)
                if isinstance(a, Var) and gone and (behind & group or self._can(self.makers[a.number])):
                    todo.append(a.number)
        return tuple(sorted(found))

    def _behind(self, a: Atom) -> frozenset[int]:
        return self.uses.behind.get(a.number, frozenset()) if isinstance(a, Var) else frozenset()

    def _can(self, k: int) -> bool:
        return work_of(self.graph.equations[k]) is not None

    def _longer(self, again: tuple[int, ...]) -> int:
        """Bytes at the peak of what must stay longer so that the equations can run again."""
        made = {v.number for k in again for v in self.graph.equations[k].outs}
        operands = [a for k in again for a in self.graph.equations[k].inputs]
        outside = (a for a in operands if isinstance(a, Var) and a.number not in made)
        behind = frozenset[int]().union(*map(self._behind, outside))
        return sum(self.uses.n_bytes[m] for m in behind if self.last[m] < self.place)
