"""What is exported: a graph, or the only one of a jitted function, and the values that it captured."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.autograd.interpreter import Tracer
from lab.autograd.tensor import Tensor
from lab.errors import ArgumentError, GraphError
from lab.graph.ir import Graph
from lab.graph.keys import require_no_draws
from lab.graph.verify import verify
from lab.transforms.compilation import Jitted
from lab.words import counted

NO_PLACE = "make the folder, make room, or name another place"
"""What helps where a file cannot be written."""


def graph_of(source: Any) -> Graph:
    """The graph that is to leave: itself, or the only one that a jitted function has.

    Raises:
        ArgumentError: something else, or not one graph.
        GraphError: a graph that is not legal.
    """
    if isinstance(source, Jitted):
        if len(source.cache) != 1:
            raise ArgumentError(
                "a jitted function is exported as its only graph",
                given=f"{counted(len(source.cache), 'graph')}",
                hint="call it for one kind of arguments, or lab.make_graph(f)(x)",
            )
        source = next(iter(source.cache.values())).graph
    if not isinstance(source, Graph):
        raise ArgumentError("what is exported is a Graph", given=type(source).__name__, hint="lab.make_graph(f)(x)")
    verify(source)
    return source


def captured_values(graph: Graph) -> list[Any]:
    """The values from outside, as arrays.

    Raises:
        GraphError: one is a value inside a transform, which is known nowhere else, or a key of a generator.
    """
    require_no_draws(graph, "exported")
    values = []
    for value in graph.captured:
        if isinstance(value, Tracer):
            raise GraphError(
                "a graph that captured a value of a running transform cannot be exported",
                given=f"shape {value.shape}", hint="make the graph outside of grad, vmap and jit",
            )  # fmt: skip
        values.append(np.asarray(value.value if isinstance(value, Tensor) else value))
    return values
