"""Common subexpressions: what is computed twice is computed once."""

from __future__ import annotations

from typing import Any

from lab.graph.ir import Equation, Graph
from lab.graph.passes.pipeline import graph_pass
from lab.graph.rewriting import Rewriter


@graph_pass("common subexpressions")
def sharing(graph: Graph) -> Graph:
    """Of equations with one op, the same operands and the same parameters the first stands for all.

    Random ops are among them: their key is an operand, so the same key draws the same numbers. What meets other ranks
    is not: each call is a meeting.

    Example:
        >>> import lab
        >>> print(sharing(lab.make_graph(lambda x: lab.exp(x) * lab.exp(x))(1.0)))
        graph(a:f64[]) { let
            b:f64[] = exp(a)
            d:f64[] = multiply(b, b)
          in (d) }
    """
    new = Rewriter(graph)
    first: dict[Any, Equation] = {}
    for e in graph.equations:
        now = new.seen(e)
        key = now.key(), tuple(v.spec for v in now.outs)
        known = first.get(key)
        if known is None or e.meets:
            new.keep(e)
            first[key] = e
            continue
        for v, a in zip(e.outs, known.outs, strict=True):
            new.stand(v, a)
        new.marks(new.makers[known.outs[0].number], e)
    return new.done()
