"""A new graph made from an old one, equation by equation: what every pass is written with.

Equations that a pass leaves alone keep their variables, so that before and after can be laid side by side; what a pass
makes has new ones, and says in `sources` which variables of the graph before it stands for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lab.graph.ir import Atom, Equation, Graph, Literal, Var
from lab.graph.verify import specs_made
from lab.ops.primitive import Op


class Rewriter:
    """A graph under construction.

    Example:
        >>> import lab
        >>> old = lab.make_graph(lambda x: lab.negative(lab.negative(x)))(1.0)
        >>> new = Rewriter(old)
        >>> first, second = old.equations
        >>> new.keep(first)
        >>> new.stand(second.out, first.inputs[0])
        >>> new.done()
        graph(a:f64[]) { let
            b:f64[] = negative(a)
          in (a) }
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.equations: list[Equation] = []
        self.makers: dict[int, Equation] = {}
        self._stands: dict[int, Atom] = {}
        self._next = graph.n_vars

    def read(self, a: Atom) -> Atom:
        """What stands for an operand now."""
        return self._stands.get(a.number, a) if isinstance(a, Var) else a

    def maker(self, a: Atom) -> Equation | None:
        """The new equation that makes a value, None for inputs and constants."""
        return self.makers.get(a.number) if isinstance(a, Var) else None

    def seen(self, e: Equation) -> Equation:
        """An equation of the old graph with the operands that it has now."""
        return dataclasses.replace(e, inputs=tuple(map(self.read, e.inputs)), sources=())

    def keep(self, e: Equation) -> None:
        """Take an equation over."""
        self._add(self.seen(e))

    def emit(
        self, op: Op, inputs: Sequence[Atom], params: Mapping[str, Any] | None = None, *, like: Sequence[Equation]
    ) -> tuple[Var, ...]:
        """A new equation; its results.

        Args:
            like: the old equations that it stands for; the last gives its line.
        """
        params = {**op.defaults, **{n: f() for n, f in op.fixed.items()}, **(params or {})}
        draft = Equation(op, tuple(inputs), (), params)
        outs = []
        for spec in specs_made(draft):
            outs.append(Var(self._next, spec))
            self._next += 1
        sources = tuple(dict.fromkeys(v.number for e in like for v in e.outs))
        self._add(dataclasses.replace(draft, outs=tuple(outs), origin=like[-1].origin, sources=sources))
        return tuple(outs)

    def insert(self, inner: Graph, inputs: Sequence[Atom], *, like: Sequence[Equation]) -> list[Atom]:
        """The equations of another graph with these inputs; its outputs."""
        known: dict[int, Atom] = {v.number: a for v, a in zip(inner.inputs, inputs, strict=True)}

        def read(a: Atom) -> Atom:
            return known[a.number] if isinstance(a, Var) else a

        for e in inner.equations:
            outs = self.emit(e.op, list(map(read, e.inputs)), e.params, like=like)
            known.update({v.number: out for v, out in zip(e.outs, outs, strict=True)})
        return list(map(read, inner.outputs))

    def stand(self, v: Var, a: Atom) -> None:
        """From here on `a` stands for the old variable `v`."""
        self._stands[v.number] = a

    def marks(self, e: Equation, *old: Equation) -> None:
        """Say that an equation which is there already also stands for old ones."""
        sources = (*(e.sources or tuple(v.number for v in e.outs)), *(v.number for o in old for v in o.outs))
        marked = dataclasses.replace(e, sources=tuple(dict.fromkeys(sources)))
        self.equations[self.equations.index(e)] = marked
        self.makers.update({v.number: marked for v in e.outs})

    def done(self) -> Graph:
        """The new graph."""
        outputs = tuple(map(self.read, self.graph.outputs))
        return Graph(self.graph.inputs, tuple(self.equations), outputs, self.graph.captured)

    def _add(self, e: Equation) -> None:
        self.equations.append(e)
        self.makers.update({v.number: e for v in e.outs})


def needed(graph: Graph) -> tuple[Equation, ...]:
    """The equations whose results are read, and those that other ranks wait for.

    Example:
        >>> import lab
        >>> def f(x):
        ...     lab.exp(x)
        ...     return x * 2.0
        >>> [e.op.name for e in needed(lab.make_graph(f)(1.0))]
        ['multiply']
    """
    read = {a.number for a in graph.outputs if isinstance(a, Var)}
    kept = []
    for e in reversed(graph.equations):
        if e.meets or any(v.number in read for v in e.outs):
            kept.append(e)
            read.update(a.number for a in e.inputs if isinstance(a, Var))
    return tuple(reversed(kept))


def renumbered(graph: Graph) -> Graph:
    """The same graph with its variables numbered from 0 in the order of definition: equal graphs become equal texts.

    Example:
        >>> import lab
        >>> graph = lab.make_graph(lambda x: lab.exp(lab.tanh(x)))(1.0)
        >>> renumbered(Graph(graph.equations[0].outs, graph.equations[1:], graph.outputs))
        graph(a:f64[]) { let
            b:f64[] = exp(a)
          in (b) }
    """
    new = {v.number: dataclasses.replace(v, number=i) for i, v in enumerate(graph.variables())}

    def read(a: Atom) -> Atom:
        return new[a.number] if isinstance(a, Var) else a

    equations = [
        dataclasses.replace(e, inputs=tuple(map(read, e.inputs)), outs=tuple(new[v.number] for v in e.outs))
        for e in graph.equations
    ]
    inputs = tuple(new[v.number] for v in graph.inputs)
    return Graph(inputs, tuple(equations), tuple(map(read, graph.outputs)), graph.captured)


def constant(a: Atom) -> float | None:
    """The number that every entry of a constant is, None where it is no constant or has several.

    Example:
        >>> constant(Literal(2.0)), constant(Literal(np.ones((2, 2)))), constant(Literal(np.arange(2)))
        (2.0, 1.0, None)
    """
    if not isinstance(a, Literal):
        return None
    array = np.asarray(a.value)
    if not array.size or array.dtype.kind == "b":
        return None
    first = array.reshape(-1)[0]
    return first.item() if bool(np.all(array == first)) else None
