"""Constant folding: what depends on constants alone is computed now and not in every run."""

from __future__ import annotations

import numpy as np

from lab.graph.ir import Graph, Literal
from lab.graph.passes.pipeline import graph_pass
from lab.graph.rewriting import Rewriter

LARGEST = 4096
"""Results with more entries than this stay to be computed, unless an operand had as many: a graph is no store."""


@graph_pass("constant folding")
def folding(graph: Graph) -> Graph:
    """Equations of constants become constants.

    Example:
        >>> import lab
        >>> print(folding(lab.make_graph(lambda x: x * lab.exp(lab.tensor(0.0).numpy()))(1.0)))
        graph(a:f64[]) { let
            b:f64[] = multiply(a, 1.0:f64[])
          in (b) }
    """
    new = Rewriter(graph)
    for e in graph.equations:
        now = new.seen(e)
        literals = [a for a in now.inputs if isinstance(a, Literal)]
        if len(literals) < len(now.inputs) or not literals or e.op.several or e.op.collective:
            new.keep(e)
            continue
        with np.errstate(all="ignore"):
            value = np.array(e.op.forward(*(a.value for a in literals), **e.params))
        if value.size > max(LARGEST, *(np.size(a.value) for a in literals)):
            new.keep(e)
            continue
        value.flags.writeable = False
        new.stand(e.out, Literal(value))
    return new.done()
