"""Functions as closed graphs: what they use from outside becomes operands, the first ones, shared by all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lab.graph.ir import Atom, Graph, Literal, Var
from lab.graph.make import is_weak
from lab.graph.rewriting import needed, renumbered
from lab.shapes import Spec


def standin(like: Any) -> Any:
    """What a function is traced at, in place of a value of this shape and dtype; a number for a weak one."""
    if is_weak(like):
        return like
    spec = like.spec if hasattr(like, "spec") else like
    one = np.ones((), spec.dtype)
    if getattr(like, "weak", False):
        return one.item()
    return np.broadcast_to(one, spec.shape)


def closed(graphs: Sequence[Graph]) -> tuple[list[Graph], list[Any]]:
    """The graphs with all that any of them captured as their first inputs, and those values.

    Example:
        >>> import lab
        >>> w = lab.tensor(2.0)
        >>> graphs = [lab.make_graph(f)(1.0) for f in (lambda x: x * w, lambda x: x)]
        >>> graphs, captured = closed(graphs); captured
        [tensor(2.)]
        >>> print(graphs[0])
        graph(a:f64[] b:f64[]) { let
            c:f64[] = multiply(b, a)
          in (c) }
    """
    captured = list({id(c): c for g in graphs for c in g.captured}.values())
    return [renumbered(_opened(g, captured)) for g in graphs], captured


def _opened(graph: Graph, captured: Sequence[Any]) -> Graph:
    """A graph whose first inputs are all of these values."""
    n = len(graph.inputs) - len(graph.captured)
    known = {id(c): v for c, v in zip(graph.captured, graph.inputs[n:], strict=True)}
    fresh = graph.n_vars
    shared = []
    for k, c in enumerate(captured):
        spec = Spec(tuple(c.shape), np.dtype(c.dtype))
        shared.append(known.get(id(c)) or Var(fresh + k, spec, weak=getattr(c, "weak", False)))
    return Graph((*shared, *graph.inputs[:n]), graph.equations, graph.outputs)


def tidied(graph: Graph, constants: Mapping[Var, Literal]) -> Graph:
    """The same graph with constants in the place of some inputs, and without what nobody reads."""

    def named(a: Atom) -> Any:
        return constants.get(a, a) if isinstance(a, Var) else a

    inputs = tuple(v for v in graph.inputs if v not in constants)
    equations = tuple(dataclasses.replace(e, inputs=tuple(map(named, e.inputs))) for e in needed(graph))
    return renumbered(Graph(inputs, equations, tuple(map(named, graph.outputs))))
