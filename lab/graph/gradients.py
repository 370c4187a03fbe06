"""Gradients inside a graph that is being built: the rules of the ops write more equations into it.

The forward is not written again: a tape is laid over the equations that are there, and its walk back is traced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab import tree
from lab.autograd.interpreter import Tracer
from lab.autograd.reverse import Reverse
from lab.autograd.tape import record
from lab.errors import ArgumentError, GradientError
from lab.graph.building import Building, current
from lab.graph.cutting import cut
from lab.graph.ir import Atom, Equation, Var
from lab.graph.keys import Draw
from lab.ops import add, broadcast_to
from lab.ops.primitive import PRIMITIVES


def gradients(y: Tracer, xs: Any) -> Any:
    """The gradient of y, a value of one entry of the open graph, by each of xs, values of the same graph.

    Args:
        xs: placeholders, variables or anything computed from them; one, or a container.

    Returns:
        A value of the graph for each of xs, in the same container; zeros where y does not depend on it.

    Raises:
        GradientError: y is not one float, or one of xs is no float.
        GraphError: no `with lab.Graph()` block is open.

    Example:
        >>> import lab
        >>> with lab.Graph() as g:
        ...     x = lab.placeholder((), "float64", name="x")
        ...     slope = lab.gradients(lab.sin(x), x)
        >>> print(g.graph(slope))
        graph(a:f64[]) { let
            c:f64[] = cos(a)
            d:f64[] = multiply(1.0:f64[], c)
          in (d) }
    """
    g = current("lab.gradients")
    leaves, structure = tree.flatten(xs)
    for x in (y, *leaves):
        _check(g, x)
    if y.size != 1:
        raise GradientError(
            "gradients are those of one number", given=f"a value of shape {y.shape}", hint="lab.sum or lab.mean of it"
        )
    over = _Over(g, leaves)
    out = over.walk(y.extra)
    numbers = list(over.starts)
    cts = over.tape.gradients(out, np.ones(y.shape, y.dtype), [over.starts[n] for n in numbers])
    found = dict(zip(numbers, cts, strict=True))
    return tree.unflatten(structure, [_value(g, x, found.get(x.extra.number)) for x in leaves])


def _check(g: Building, x: Any) -> None:
    if not (isinstance(x, Tracer) and x.interp is g.trace):
        raise ArgumentError(
            "gradients are of values and by values of the open graph",
            given=repr(x)[:60],
            hint="placeholders, variables and what is computed from them in its block",
        )
    if x.dtype.kind != "f":
        raise GradientError(
            "gradients need floats", given=f"{x.dtype} of shape {x.shape}", hint='a placeholder of dtype "float32"'
        )


def _value(g: Building, x: Tracer, ct: Any) -> Any:
    """A cotangent as a value of the graph; it may be a constant, or None where nothing came back."""
    if isinstance(ct, Tracer):
        return ct
    constant = np.zeros((), x.dtype) if ct is None else ct
    return g.trace.apply(broadcast_to, (constant,), {"shape": x.shape})


class _Over:
    """A tape over the equations of a graph.

    Attributes:
        starts: the leaves of the tape, by the number of the variable by which is differentiated.
    """

    def __init__(self, g: Building, xs: list[Tracer]) -> None:
        self.g, self.tape = g, Reverse()
        self.wanted = {x.extra.number: x for x in xs}
        self.starts: dict[int, Tracer] = {}
        self.tracked: dict[int, Tracer] = {}
        self.outside = {v.number: value for v, value in g.trace.captured.values() if type(value) is not Draw}

    def walk(self, y: Var) -> Any:
        """Lay the tape over all that y is computed from; y as a value of the tape, if it depends on what is wanted."""
        graph = cut(self.g.trace, self.g.inputs, [y])
        for v in graph.inputs:
            self._start(v)
        for e in graph.equations:
            if any(isinstance(a, Var) and a.number in self.tracked for a in e.inputs):
                self._lay(e)
            for v in e.outs:
                self._start(v)
        return self.tracked.get(y.number)

    def _start(self, v: Var) -> None:
        """Where v is wanted: a leaf; where it is on the tape already, a leaf of nothing that is added to it."""
        if v.number not in self.wanted:
            return
        if v.number not in self.tracked:
            self.tracked[v.number] = self.starts[v.number] = self.tape.leaf(self.wanted[v.number])
            return
        self.starts[v.number] = self.tape.leaf(np.zeros(v.spec.shape, v.spec.dtype))
        self.tracked[v.number] = add.apply(self.tracked[v.number], self.starts[v.number])

    def _lay(self, e: Equation) -> None:
        args = [self._read(a) for a in e.inputs]
        if PRIMITIVES.get(e.op.name) is not e.op:  # it holds graphs, or brings a rule of its own: applied once more
            outs = e.op(*args, **e.params)
            for v, out in zip(e.outs, outs if e.op.several else (outs,), strict=True):
                if isinstance(out, Tracer) and out.interp is self.tape:
                    self.tracked[v.number] = out
            return
        parents = tuple(
            a.extra if isinstance(a, Tracer) and a.interp is self.tape and e.op.rule(i) else None
            for i, a in enumerate(args)
        )
        if e.out.spec.dtype.kind == "f" and any(p is not None for p in parents):
            lower = tuple(a.value if isinstance(a, Tracer) and a.interp is self.tape else a for a in args)
            out = Tracer(self.g.trace, e.out.spec, e.out)
            self.tracked[e.out.number] = Tracer(self.tape, out, record(e.op, parents, lower, out, dict(e.params)))

    def _read(self, a: Atom) -> Any:
        if not isinstance(a, Var):
            return a.value
        if a.number in self.tracked:
            return self.tracked[a.number]
        return self.outside.get(a.number, Tracer(self.g.trace, a.spec, a))
