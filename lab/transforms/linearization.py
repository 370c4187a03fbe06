"""linearize: run a function once, keep its derivative as a Graph, and push as many tangents through it as you like.

Only the tangents are traced: the primals are numbers, so what the function did with them stands in the graph as
constants, and what is left is linear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lab import tree
from lab.graph.execute import replayer
from lab.graph.make import trace
from lab.transforms.arguments import fitting, floating, function, returned
from lab.transforms.gradients import jvp


def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of f at the primals, and its derivative there: a function of tangents. With `has_aux` also the rest.

    f runs once, and may look at numbers (`if x > 0`), as under `grad`. The derivative is `jvp` without the work that
    does not depend on the tangents; its attribute `graph` shows what is left.

    Raises:
        TransformError: a primal that is no float.
        ShapeError: later, a tangent of another shape than its primal.

    Example:
        >>> import lab
        >>> out, push = lab.linearize(lambda x: lab.sin(x) * x, 0.0)
        >>> out, push(1.0), push(2.0)
        (tensor(0.), tensor(0.), tensor(0.))
        >>> [e.op.name for e in push.graph.equations]
        ['multiply', 'multiply', 'multiply', 'add']
    """
    function(f, "linearize")
    values = tree.map_leaves(lambda x: floating(x, "linearize"), list(primals))
    seen: list[Any] = []

    def tangent_of(*tangents: Any) -> Any:
        out, tangent, *aux = jvp(f, values, tangents, has_aux=has_aux)
        seen[:] = out, *aux
        return tangent

    graph, structure = trace(tangent_of, values, {}, weak=False, hides=False)
    replay = replayer(graph)

    def push(*tangents: Any) -> Any:
        """The derivative along the tangents, one for each primal."""
        given = tree.map_leaves(lambda v, t: fitting(t, v, "tangent"), values, list(tangents))
        outs = replay([*tree.flatten(given)[0], *graph.captured])
        return tree.unflatten(structure, [returned(o, "linearize") for o in outs])

    push.graph = graph  # type: ignore[attr-defined]
    return (seen[0], push, *seen[1:])
