"""Dead code: what no output needs is not computed."""

from __future__ import annotations

import dataclasses

from lab.graph.ir import Graph
from lab.graph.passes.pipeline import graph_pass
from lab.graph.rewriting import needed


@graph_pass("dead code")
def pruning(graph: Graph) -> Graph:
    """Equations whose results nobody reads are left out; what meets other ranks stays, for they wait for it.

    Example:
        >>> import lab
        >>> def f(x):
        ...     lab.exp(x)
        ...     return x * 2.0
        >>> print(pruning(lab.make_graph(f)(1.0)))
        graph(a:f64[]) { let
            c:f64[] = multiply(a, 2.0)
          in (c) }
    """
    return dataclasses.replace(graph, equations=needed(graph))
