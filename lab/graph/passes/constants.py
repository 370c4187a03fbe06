"""Constant arrays while a graph is fused: inputs that parts read, equal ones once, and labels instead of their ones.

A loop over long rows waits for memory, so each array that it need not read counts.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np

from lab.graph.ir import Atom, Equation, Graph, Literal, Var
from lab.graph.rewriting import constant
from lab.ops import PRIMITIVES as OPS
from lab.shapes import Spec

LARGE = 4096
"""Entries from which on a constant is looked into."""


class Constants:
    """The constant arrays of one graph, and the inputs that stand for them meanwhile.

    Example:
        >>> import lab
        >>> graph = lab.make_graph(lambda x: x * np.arange(2.0) + np.arange(2.0))(np.ones(2))
        >>> constants = Constants(graph)
        >>> len(constants.named().inputs), constants.unnamed(constants.named()) == graph
        (2, True)
    """

    def __init__(self, graph: Graph) -> None:
        self._graph, self._next = graph, graph.n_vars
        self._names: dict[Any, Var] = {}
        self._arrays: dict[Var, Literal] = {}
        self._ones: dict[Var, Literal] = {}

    def named(self) -> Graph:
        """The graph with each of its constant arrays as an input, or as `one_hot` of one."""
        made: list[Equation] = []
        for e in self._graph.equations:
            inputs = tuple(self._read(a, made, e) for a in e.inputs)
            made.append(dataclasses.replace(e, inputs=inputs))
        return dataclasses.replace(self._graph, inputs=(*self._graph.inputs, *self._arrays), equations=tuple(made))

    def unnamed(self, graph: Graph) -> Graph:
        """The constants back in a graph made of that one; ones that no loop makes are a constant again."""
        known: dict[Any, Atom] = {**self._arrays, **self._ones}
        alone = {e.out for e in graph.equations if e.op.name == "one_hot"} & self._ones.keys()

        def read(a: Atom) -> Atom:
            return known[a] if a in self._arrays or a in alone else a

        left = [e for e in graph.equations if e.outs[0] not in alone]
        equations = [dataclasses.replace(e, inputs=tuple(map(read, e.inputs))) for e in left]
        return dataclasses.replace(graph, inputs=self._graph.inputs, equations=tuple(equations))

    def _read(self, a: Atom, made: list[Equation], e: Equation) -> Atom:
        if isinstance(a, Var) or not np.ndim(a.value) or constant(a) is not None:
            return a
        labels = _labels_of(a.value) if e.op.formula and np.size(a.value) > LARGE else None
        if labels is None:
            return self._name(a)
        out = self._new(a.spec)  # for each reader its own, so that no part has to write it for another
        self._ones[out] = a
        params = {**OPS["one_hot"].defaults, "n": a.spec.shape[-1], "dtype": a.spec.dtype.name}
        made.append(Equation(OPS["one_hot"], (self._name(Literal(labels)),), (out,), params, e.origin))
        return out

    def _name(self, a: Literal) -> Var:
        key = a.spec, hashlib.sha256(np.ascontiguousarray(a.value).tobytes()).digest()
        if key not in self._names:
            self._names[key] = self._new(a.spec)
            self._arrays[self._names[key]] = a
        return self._names[key]

    def _new(self, spec: Spec) -> Var:
        self._next += 1
        return Var(self._next - 1, spec)


def _labels_of(value: Any) -> Any:
    """The columns of the ones, if a matrix of floats is 1 in one column of each row and 0 elsewhere; else None."""
    if value.ndim != 2 or value.dtype.char not in "fd" or np.count_nonzero(value) != len(value):
        return None
    rows, labels = np.nonzero(value)
    fits = np.array_equal(rows, np.arange(len(value))) and np.all(value[rows, labels] == 1)
    if not fits:
        return None
    labels = labels.astype(np.int64)
    labels.flags.writeable = False
    return labels
