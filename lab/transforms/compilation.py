"""jit: trace once for each kind of arguments, replay ever after."""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE
from lab.errors import ArgumentError
from lab.graph.compiled import compiling
from lab.graph.execute import Replay, replayer
from lab.graph.ir import Graph, Var
from lab.graph.make import is_weak, serves_again, trace
from lab.transforms.arguments import function, returned, taken
from lab.transforms.retraces import Key, Miss, names_of, reason_of
from lab.words import counted


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


def jit(f: Callable[..., Any], *, executor: str = "interpreted") -> Jitted:
    """The same function, traced into a Graph at its first call for each combination of structure, shapes and dtypes.

    Args:
        executor: one of EXECUTORS. "compiled" takes seconds at the first call for new shapes of a new function, and
            less time ever after.

    Tensors that f uses from outside become inputs, so that later changes to them are seen; NumPy arrays and what f
    reads by `float()`, `.item()` or as an index are fixed in the graph. Python numbers among the arguments are inputs
    too, and stay weak: float32 * 2.0 is float32. What it holds can be read: `f.cache` (Key -> Cached; the key also has
    what the State fixes, kinks and named axes), `f.hits`, and in `f.misses` each trace with its reason. What f makes of
    captured parameters alone (`w.T` before it meets an argument) is made while tracing, so such a graph is not kept.

    Raises:
        ArgumentError: an executor of another name.
        ConcretizationError: f asks for the value of a traced variable.
        UnsupportedError: an argument or a result that is not made of numbers.

    Example:
        >>> import lab
        >>> f = lab.jit(lambda x: lab.tanh(x) + 1.0)
        >>> f(0.0), f(0.0), len(f.cache)
        (tensor(1.), tensor(1.), 1)
        >>> f.hits, [miss.reason for miss in f.misses]
        (1, ['the first call'])
    """
    function(f, "jit")
    if executor not in EXECUTORS:
        raise ArgumentError("no executor has that name", given=repr(executor), hint=" or ".join(EXECUTORS))
    return Jitted(f, EXECUTORS[executor])


class Jitted:
    """What `jit` makes of a function.

    Attributes:
        cache: a graph for each Key that was met.
        hits: calls that found theirs.
        misses: every trace, with its reason.
    """

    def __init__(self, f: Callable[..., Any], execute: Callable[[Graph], Replay]) -> None:
        self._f, self._execute = f, execute
        self.cache: dict[Key, Cached] = {}
        self.hits = 0
        self.misses: list[Miss] = []
        functools.update_wrapper(self, f, updated=())

    def __repr__(self) -> str:
        counts = f"{counted(len(self.cache), 'graph')}, {counted(self.hits, 'hit')}, {len(self.misses)} traced"
        return f"<jitted {getattr(self._f, '__name__', type(self._f).__name__)}: {counts}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method, bound to its object."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        flat, structure = tree.flatten((args, kwargs))
        values = [x if is_weak(x) else taken(x, "jit") for x in flat]
        state = STATE.get()
        kinds = tuple((v.shape, v.dtype) if isinstance(v, Tensor) else type(v) for v in values)
        key = Key(structure, kinds, state.kinks, state.axes)
        found = self.cache.get(key)
        if found is None:
            found = self._traced(key, args, kwargs)
        else:
            self.hits += 1
        return _rebuilt(found, found.replay([*values, *found.graph.captured]))

    def _traced(self, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cached:
        start = perf_counter()
        made = _cached(*trace(self._f, args, kwargs, weak=True), self._execute)
        elapsed_ms = 1e3 * (perf_counter() - start)
        kept = serves_again(made.graph)
        reason = reason_of(key, self.cache, names_of(self._f, args, kwargs))
        self.misses.append(Miss(reason, len(made.graph.equations), elapsed_ms, kept))
        if kept:
            self.cache[key] = made
        return made


def _rebuilt(cached: Cached, outs: list[Any]) -> Any:
    """The results in their container."""
    results = []
    for out, passed in zip(outs, cached.passed, strict=True):
        value = returned(out, "jit")
        copied = passed and type(value) is Tensor and value.node is None
        results.append(wrap(np.array(value.value)) if copied else value)
    return tree.unflatten(cached.out_structure, results)
