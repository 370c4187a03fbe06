"""jit: trace once for each kind of arguments, replay ever after."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.interpreter import Tracer
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE
from lab.graph.execute import replayer, run
from lab.graph.ir import Graph
from lab.graph.make import trace
from lab.transforms.gradients import raised


class Cached(NamedTuple):
    """One entry of a jitted function's cache."""

    graph: Graph
    replay: Callable[[Any], list[Any]]
    out_structure: tree.Structure


def jit(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, traced into a Graph at its first call for each combination of structure, shapes and dtypes.

    Tensors that f uses from outside become inputs, so that later changes to them are seen. The cache is `f.cache`:
    key -> Cached; the key also holds what the State fixes (kinks, named axes).

    Raises:
        ConcretizationError: f asks for the value of a traced variable.

    Example:
        >>> import lab
        >>> f = lab.jit(lambda x: lab.tanh(x) + 1.0)
        >>> f(0.0), f(0.0), len(f.cache)
        (tensor(1.), tensor(1.), 1)
    """
    cache: dict[Any, Cached] = {}

    @functools.wraps(f)
    def jitted(*args: Any) -> Any:
        flat, structure = tree.flatten(list(args))
        values = [x if isinstance(x, Tensor) else wrap(np.asarray(x)) for x in flat]
        state = STATE.get()
        key = structure, tuple((v.shape, v.dtype) for v in values), state.kinks, state.axes
        found = cache.get(key)
        if found is None:
            graph, out_structure = trace(f, args)
            if any(isinstance(c, Tracer) for c in graph.captured):
                # A value of an enclosing transform is good for this call only: the next would use a dead tracer.
                return tree.unflatten(out_structure, [raised(o) for o in run(graph, [*values, *graph.captured])])
            found = cache[key] = Cached(graph, replayer(graph), out_structure)
        outs = found.replay([*values, *found.graph.captured])
        return tree.unflatten(found.out_structure, [raised(o) for o in outs])

    jitted.cache = cache  # type: ignore[attr-defined]
    return jitted
