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
from lab.errors import ArgumentError
from lab.graph.compiled import compiling
from lab.graph.execute import Replay, replayer
from lab.graph.ir import Graph, Var
from lab.graph.make import is_weak, trace
from lab.transforms.arguments import function, returned, taken


class Cached(NamedTuple):
    """One entry of a jitted function's cache."""

    graph: Graph
    replay: Callable[[Any], list[Any]]
    out_structure: tree.Structure
    passed: tuple[bool, ...]
    """For each result whether it is an input or a constant of the graph: such a one is handed out as a copy."""


def _cached(graph: Graph, out_structure: tree.Structure, execute: Callable[[Graph], Replay]) -> Cached:
    known = set(graph.inputs)
    passed = tuple(not isinstance(a, Var) or a in known for a in graph.outputs)
    return Cached(graph, execute(graph), out_structure, passed)


EXECUTORS: dict[str, Callable[[Graph], Replay]] = {"interpreted": replayer, "compiled": compiling}
"""By name what runs a graph: equation by equation with NumPy, or in fused loops over buffers that are kept."""


def jit(f: Callable[..., Any], *, executor: str = "interpreted") -> Callable[..., Any]:
    """The same function, traced into a Graph at its first call for each combination of structure, shapes and dtypes.

    Args:
        executor: one of EXECUTORS. "compiled" takes seconds at the first call for new shapes of a new function, and
            less time ever after.

    Tensors that f uses from outside become inputs, so that later changes to them are seen; NumPy arrays and what f
    reads by `float()`, `.item()` or as an index are fixed in the graph. Python numbers among the arguments are inputs
    too, and stay weak: float32 * 2.0 is float32. The cache is `f.cache`: key -> Cached; the key also holds what the
    State fixes (kinks, named axes).

    Raises:
        ArgumentError: an executor of another name.
        ConcretizationError: f asks for the value of a traced variable.
        UnsupportedError: an argument or a result that is not made of numbers.

    Example:
        >>> import lab
        >>> f = lab.jit(lambda x: lab.tanh(x) + 1.0)
        >>> f(0.0), f(0.0), len(f.cache)
        (tensor(1.), tensor(1.), 1)
    """
    function(f, "jit")
    if executor not in EXECUTORS:
        raise ArgumentError("no executor has that name", given=repr(executor), hint=" or ".join(EXECUTORS))
    cache: dict[Any, Cached] = {}

    @functools.wraps(f)
    def jitted(*args: Any, **kwargs: Any) -> Any:
        flat, structure = tree.flatten((args, kwargs))
        values = [x if is_weak(x) else taken(x, "jit") for x in flat]
        state = STATE.get()
        kinds = tuple((v.shape, v.dtype) if isinstance(v, Tensor) else type(v) for v in values)
        key = structure, kinds, state.kinks, state.axes
        found = cache.get(key)
        if found is None:
            found = _cached(*trace(f, args, kwargs, weak=True), EXECUTORS[executor])
            if not any(isinstance(c, Tracer) for c in found.graph.captured):
                # A value of an enclosing transform is good for this call only: the next would use a dead tracer.
                cache[key] = found
        return _rebuilt(found, found.replay([*values, *found.graph.captured]))

    jitted.cache = cache  # type: ignore[attr-defined]
    return jitted


def _rebuilt(cached: Cached, outs: list[Any]) -> Any:
    """The results in their container."""
    results = []
    for out, passed in zip(outs, cached.passed, strict=True):
        value = returned(out, "jit")
        copied = passed and type(value) is Tensor and value.node is None
        results.append(wrap(np.array(value.value)) if copied else value)
    return tree.unflatten(cached.out_structure, results)
