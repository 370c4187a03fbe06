"""Fusion: equations that can run in one loop over rows become one, which reads and writes each array once.

Elementwise chains, their sums, a bias with its activation, softmax, layer norm, a loss with its gradient: all follow
from one question, whether the values lie along the rows and columns of one space (`graph/rows.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from lab.graph.ir import Atom, Equation, Graph, Var
from lab.graph.passes.constants import Constants
from lab.graph.passes.pipeline import graph_pass
from lab.graph.regions import FUSED
from lab.graph.rewriting import renumbered
from lab.graph.rows import ALIASES, Part
from lab.graph.spaces import Space, space_of

LONG = 4096
"""Entries from which on a sum over several axes is a loop of its own."""


@graph_pass("fusion")
def fusion(graph: Graph) -> Graph:
    """Equations that lie along the same rows and columns are put into one `fused` equation each.

    Sums may be taken in another order than before.

    Example:
        >>> import lab, numpy as np
        >>> print(fusion(lab.make_graph(lambda x, b: lab.tanh(x + b))(np.ones((2, 3)), np.ones(3))))
        graph(a:f64[2,3] b:f64[3]) { let
            d:f64[2,3] = fused(a, b, kind='elementwise') {
                body = graph(a:f64[2,3] b:f64[3]) { let
                    c:f64[2,3] = add(a, b)
                    d:f64[2,3] = tanh(c)
                  in (d) }
            }
          in (d) }
    """
    constants = Constants(graph)
    named = constants.named()
    parts = _Parts(named)
    for k in range(len(named.equations)):
        parts.place(k)
    return constants.unnamed(_written(named, parts))


class _Node:
    """One vertex of the graph of parts: a part, or an equation that stands alone.

    Attributes:
        members: numbers of its equations.
        part: None for one that stands alone.
    """

    def __init__(self, members: list[int], part: Part | None) -> None:
        self.members, self.part = members, part


class _Parts:
    """Which equation stands in which part, as far as the graph has been read."""

    def __init__(self, graph: Graph) -> None:
        self.equations = graph.equations
        self.makers = {v.number: e for e in graph.equations for v in e.outs}
        self._index = {v.number: k for k, e in enumerate(graph.equations) for v in e.outs}
        self._readers: dict[Var, list[int]] = {}
        self.node: list[_Node] = []

    def place(self, k: int) -> None:
        """Put equation k into a part, or let it stand alone."""
        e = self.equations[k]
        alone = _Node([k], None)
        self.node.append(alone)
        if e.op.name in ALIASES or e.op.several or e.op.collective:
            return
        for node in self._candidates(k):
            if node.part is not None:
                longer = node.part.copy()
                if longer.take(e) and not self._is_between(node, self._outside(longer)):
                    node.part = longer
                    node.members.append(k)
                    self.node[k] = node
                    break
        else:
            part = Part(space_of(e, self.makers), self.makers)
            if part.take(e):
                alone.part = part
        self._merge(k)
        for a in e.inputs:
            if isinstance(a, Var):
                self._readers.setdefault(a, []).append(k)

    def _candidates(self, k: int) -> Iterator[_Node]:
        """Parts that equation k may join: those that make its operands, youngest first, then those that share one."""
        seen: set[int] = set()
        makers = sorted(self._made_by(k), reverse=True)
        readers = [j for a in self.equations[k].inputs if isinstance(a, Var) for j in self._readers.get(a, ())]
        for j in [*makers, *reversed(readers)]:
            node = self.node[j]
            if id(node) not in seen:
                seen.add(id(node))
                yield node

    def _made_by(self, k: int) -> set[int]:
        """Equations that make the operands of k, seen through those that only say how they lie."""
        found: set[int] = set()
        todo: list[Atom] = list(self.equations[k].inputs)
        while todo:
            a = todo.pop()
            j = self._index.get(a.number) if isinstance(a, Var) else None
            if j is None:
                continue
            found.add(j)
            if self.equations[j].op.name in ALIASES:
                todo += self.equations[j].inputs
        return found

    def above(self, k: int) -> list[int]:
        """Equations that make the operands of k."""
        numbers = [a.number for a in self.equations[k].inputs if isinstance(a, Var)]
        return [self._index[n] for n in numbers if n in self._index]

    def _outside(self, part: Part) -> list[int]:
        """Equations that make what a part reads."""
        return [self._index[v.number] for v in part.operands if v.number in self._index]

    def depends_on(self, node: _Node) -> list[int]:
        """Equations that make what a node reads."""
        if node.part is None:
            return self.above(node.members[0])
        return self._outside(node.part)

    def _is_between(self, node: _Node, above: list[int]) -> bool:
        """Whether a way leads from the node over equations outside it to one of these: then they cannot be one."""
        seen: set[int] = set()
        todo = [self.node[j] for j in above if self.node[j] is not node]
        while todo:
            other = todo.pop()
            if id(other) in seen:
                continue
            seen.add(id(other))
            for j in self.depends_on(other):
                if self.node[j] is node:
                    return True
                if self.node[j] is not other:
                    todo.append(self.node[j])
        return False

    def _merge(self, k: int) -> None:
        """Join the part of k with the parts of its operands, where they lie in the same space."""
        node = self.node[k]
        for j in sorted(self._made_by(k), reverse=True):
            other = self.node[j]
            if other is node or other.part is None or node.part is None:
                continue
            spaces = dict.fromkeys([node.part.space, other.part.space])
            if len({space.shape for space in spaces}) == 1:
                node = next((both for space in spaces if (both := self._joined(node, other, space))), node)

    def _joined(self, node: _Node, other: _Node, space: Space) -> _Node | None:
        """Two parts as one, if they fit that space."""
        members = sorted([*other.members, *node.members])
        part = Part(space, self.makers)
        if not all(part.take(self.equations[m]) for m in members):
            return None
        both, before = _Node(members, part), list(self.node)
        for m in members:
            self.node[m] = both
        if self._is_between(both, self._outside(part)):
            self.node = before
            return None
        return both


def _written(graph: Graph, parts: _Parts) -> Graph:
    """The graph with each part of two or more equations, or of one sum of many entries, as one."""
    done: set[int] = set()
    ordered: list[_Node] = []

    def visit(node: _Node) -> None:
        if id(node) in done:
            return
        done.add(id(node))
        for j in sorted(parts.depends_on(node)):
            visit(parts.node[j])
        ordered.append(node)

    for k in range(len(graph.equations)):
        visit(parts.node[k])
    needed = {a for a in graph.outputs if isinstance(a, Var)}
    made: list[Equation] = []
    for node in reversed(ordered):
        for e in reversed(_equations(node, graph, needed)):
            if any(v in needed for v in e.outs) or e.meets:
                made.append(e)
                needed.update(a for a in e.inputs if isinstance(a, Var))
    return dataclasses.replace(graph, equations=tuple(reversed(made)))


def _equations(node: _Node, graph: Graph, needed: set[Var]) -> list[Equation]:
    members = [graph.equations[m] for m in sorted(node.members)]
    part = node.part
    if part is None or (len(members) == 1 and not _is_long_sum(members[0])):
        return members
    outs = tuple(e.out for e in members if e.out in needed)
    if not outs:
        return []
    inputs = tuple(part.operands)
    within = _ordered([*members, *part.aliases], set(inputs))
    body = renumbered(Graph(inputs, tuple(dataclasses.replace(e, sources=()) for e in within), outs))
    sources = tuple(v.number for e in members for v in e.outs)
    params = {"body": body, "kind": _kind(members, part)}
    return [Equation(FUSED, inputs, outs, params, members[-1].origin, (), sources)]


def _is_long_sum(e: Equation) -> bool:
    """Whether a loop for this equation alone is worth it: NumPy takes three times as long over several axes."""
    axes = e.params.get("axis") or ()
    return e.op.name == "sum" and isinstance(axes, tuple) and len(axes) > 1 and e.inputs[0].spec.size >= LONG


def _ordered(equations: list[Equation], known: set[Var]) -> list[Equation]:
    """The equations in an order in which they can run."""
    left, ordered = list(equations), []
    while left:
        ready = next(e for e in left if all(a in known for a in e.inputs if isinstance(a, Var)))
        left.remove(ready)
        ordered.append(ready)
        known.update(ready.outs)
    return ordered


def _kind(members: list[Equation], part: Part) -> str:
    """A word for the pattern, for who reads the graph."""
    sums = {layout for layout in part.layouts.values() if layout != "full"}
    if not sums:
        return "elementwise"
    return "rows" if "column" in sums else "elementwise with sums"
