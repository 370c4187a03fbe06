"""Where the reading of a script stands: the open trace, the line, what comes in from outside, graphs to close."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab.autograd.interpreter import Tracer, newest
from lab.autograd.tensor import Tensor
from lab.errors import ScriptError, ShapeError
from lab.graph.cutting import cut
from lab.graph.ir import Atom, Graph, Var
from lab.graph.keys import Region, drawing
from lab.graph.scripting.numbers import ScriptTrace, is_unknown, spec
from lab.graph.scripting.source import NOWHERE, Source
from lab.ops import not_equal, reshape
from lab.ops.primitive import Op

Env = dict[str, Any]
"""Values by the names of a function."""


@dataclass(frozen=True)
class Unset:
    """In the place of a value that a name has in some ways through the code only; who reads it is told why."""

    problem: str
    hint: str


class Desk:
    """The state of one reading.

    Attributes:
        trace: the open trace; inside a branch or a turn that of its graph.
        depth: how many branches and loops are open, whose conditions are known only when the graph runs.
        source, number: the function that is read, and the line.
    """

    def __init__(self) -> None:
        self.trace = ScriptTrace(self.place)
        self.depth = 0
        self.source: Source = NOWHERE
        self.number = 0

    def place(self) -> tuple[str, str]:
        """"file:line", and that line."""
        return self.source.where(self.number), self.source.line(self.number)

    def refused(self, node: ast.AST, problem: str, hint: str) -> ScriptError:
        """The error for a place of the function that is read."""
        return self.source.refused(node, problem, hint)

    @contextmanager
    def inside(self, trace: ScriptTrace) -> Iterator[ScriptTrace]:
        """Read into another trace."""
        outer, number = self.trace, self.number
        self.trace, self.depth = trace, self.depth + 1
        try:
            with drawing(Region()):
                yield trace
        finally:
            self.trace, self.number, self.depth = outer, number, self.depth - 1

    def fresh(self) -> ScriptTrace:
        """A trace for a graph inside."""
        return ScriptTrace(self.place)

    def lift(self, x: Any) -> Any:
        """A value, or a container of values, for the open trace: tensors from outside come in as operands."""
        if isinstance(x, Tensor):
            inside = isinstance(x, Tracer) and x.interp.level >= self.trace.level
            return x if inside else self.trace.lift(x)
        if type(x) in (list, tuple):
            return type(x)(map(self.lift, x))
        return {k: self.lift(v) for k, v in x.items()} if type(x) is dict else x

    def truth(self, x: Any) -> Any:
        """A value as a condition: a bool of Python, or one bool of the graph."""
        if not is_unknown(x):
            return bool(x)
        if x.size != 1:
            raise ShapeError(
                "the truth of a tensor of several entries is ambiguous",
                given=f"shape {x.shape} in {self.place()[1]}",
                hint="reduce it first: lab.any, lab.all",
            )
        x = reshape(x, shape=()) if x.shape else x
        return x if x.dtype == bool else not_equal(x, 0)

    def region(self, op: Op, operands: Sequence[Any], soft: Sequence[bool], **params: Any) -> list[Any]:
        """Write an op that holds graphs; which of its results stand for numbers is said by `soft`."""
        top = newest(operands)
        above = top is not None and top.level > self.trace.level
        outs = op(*operands, **params) if above else self.trace.apply(op, operands, {**op.defaults, **params})
        own = [isinstance(o, Tracer) and o.interp is self.trace for o in outs]
        return [self.trace.soften(o) if s and mine else o for o, s, mine in zip(outs, soft, own, strict=True)]


def closed(
    traces: Sequence[ScriptTrace], own: Sequence[Sequence[Var]], outputs: Sequence[Sequence[Atom]]
) -> tuple[list[Any], list[Graph]]:
    """What graphs inside take from outside, and the graphs: each takes all of that, then its own inputs."""
    pieces = [cut(t, vs, outs) for t, vs, outs in zip(traces, own, outputs, strict=True)]
    fixed = {id(value): value for piece in pieces for value in piece.captured}
    graphs = []
    for t, vs, piece in zip(traces, own, pieces, strict=True):
        known = {id(value): v for v, value in t.captured.values()}
        taken = [known.get(key) or t.new(spec(value)).extra for key, value in fixed.items()]
        graphs.append(Graph((*taken, *vs), piece.equations, piece.outputs))
    return list(fixed.values()), graphs

