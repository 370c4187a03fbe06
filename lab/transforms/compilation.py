"""jit: trace once for each kind of arguments, replay ever after."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor, wrap
from lab.autograd.training_mode import MODES
from lab.checks import whole
from lab.config import STATE
from lab.errors import ArgumentError
from lab.events import bus
from lab.graph.compiled import compiling
from lab.graph.execute import Progress, Replaying, arrays_of
from lab.graph.executors import Executor, executor_of
from lab.graph.ir import Graph, Var
from lab.graph.keys import Draw, drawn
from lab.graph.make import is_weak, serves_again, trace
from lab.ops.random import keys_known
from lab.transforms.arguments import function, returned, taken
from lab.transforms.guards import closer, opener
from lab.transforms.retraces import Key, Miss, names_of, reason_of, tell_hit, tell_trace
from lab.words import counted

NEW = object()
"""What a short way gives for arguments of another kind."""


class Cached(NamedTuple):
    """One entry of a jitted function's cache."""

    graph: Graph
    replay: Replaying
    out_structure: tree.Structure
    passed: tuple[bool, ...]
    """For each result whether it is an input or a constant of the graph: such a one is handed out as a copy."""
    again: Callable[[Any, Any], Any]
    """The short way: of (args, kwargs) the results, or NEW where they are of another kind."""


def _cached(key: Key, graph: Graph, out_structure: tree.Structure, execute: Executor) -> Cached:
    known, replay = set(graph.inputs), execute(graph)
    passed = tuple(not isinstance(a, Var) or a in known for a in graph.outputs)
    slowly = functools.partial(_rebuilt, out_structure, passed)
    again = _short_way(key, replay, graph.captured, closer(out_structure, passed), slowly)
    return Cached(graph, replay, out_structure, passed, again)


def jit(f: Callable[..., Any], *, executor: str = "interpreted", memory_budget: int | None = None) -> Jitted:
    """The same function, traced into a Graph at its first call for each combination of structure, shapes and dtypes.

    Args:
        executor: "interpreted" runs equation by equation; "compiled" takes seconds at the first call for new shapes of
            a new function, and less time ever after; "parallel" runs large equations beside each other in threads.
        memory_budget: bytes that a compiled run may take beyond its inputs; what does not fit is made again when it
            is needed, see `lab.graph.passes.rematerialization`.

    Tensors that f uses from outside become inputs, so that later changes to them are seen; NumPy arrays and what f
    reads by `float()`, `.item()` or as an index are fixed in the graph. Python numbers among the arguments are inputs
    too, and stay weak: float32 * 2.0 is float32. What it holds can be read: `f.cache` (Key -> Cached; the key also has
    what the State fixes, kinks and named axes), `f.hits`, and in `f.misses` each trace with its reason. What f makes of
    captured parameters alone (`w.T`) is part of the graph, too.

    Random keys that f draws are drawn anew at each call, as f itself does it: the same from the same generators, one by
    one, and nothing while it is traced. What it reads of a generator by itself (`rng.normal()`) is fixed in the graph.
    A module whose `training` f reads has a graph for each mode: `model.eval()` holds from the next call on.

    `f.prepare(*args)` does the slow part of a first call alone, and shows how far it is.

    Where an argument or a captured tensor is recorded (it requires a gradient, outside `no_grad`), a call runs op by
    op, so that `backward()` finds its way: a compiled step takes its gradients inside, and is called in `no_grad`.

    Raises:
        ArgumentError: an executor of another name; a budget that is no whole number, or without "compiled".
        GraphError: at the first call, no memory plan within the budget was found.
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
    execute = executor_of(executor)
    if memory_budget is None:
        return Jitted(f, execute)
    if executor != "compiled":
        raise ArgumentError(
            "only a compiled graph has a memory budget", given=f"executor={executor!r}", hint='executor="compiled"'
        )
    budget = whole("memory_budget", memory_budget, least=0)
    return Jitted(f, functools.partial(compiling, budget=budget))


class Jitted:
    """What `jit` makes of a function.

    Attributes:
        cache: a graph for each Key that was met.
        hits: calls that found theirs.
        misses: every trace, with its reason.
    """

    def __init__(self, f: Callable[..., Any], execute: Executor) -> None:
        self._f, self._execute = f, execute
        self.cache: dict[Key, Cached] = {}
        self.hits = 0
        self.misses: list[Miss] = []
        self._again: Callable[[Any, Any], Any] = lambda _args, _kwargs: NEW
        self._moded: list[weakref.ref[Any]] = []  # modules whose mode a trace has read
        self._modes_of_again: tuple[bool, ...] = ()
        functools.update_wrapper(self, f, updated=())

    def __repr__(self) -> str:
        counts = f"{counted(len(self.cache), 'graph')}, {counted(self.hits, 'hit')}, {len(self.misses)} traced"
        return f"<jitted {getattr(self._f, '__name__', type(self._f).__name__)}: {counts}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method, bound to its object."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        modes = self._modes() if self._moded else ()
        if modes == self._modes_of_again and (again := self._again(args, kwargs)) is not NEW:
            self.hits += 1
            return again
        values, key = _values(args, kwargs, modes)
        found = self.cache.get(key)
        if found is None:
            found = self._traced(key, args, kwargs)
        else:
            self.hits += 1
            self._again, self._modes_of_again = found.again, key.modes
            if bus.listeners:
                tell_hit(self._f, self.cache, key)
        return _rebuilt(found.out_structure, found.passed, found.replay([*values, *found.graph.captured]))

    def prepare(self, *args: Any, progress: Progress | None = None, **kwargs: Any) -> Cached:
        """Trace and compile for arguments like these, without a run: then the first call takes as long as later ones.

        Args:
            progress: told after each compiled loop how many are ready, of how many; prints one line by default.

        Example:
            >>> import lab, numpy as np
            >>> f = lab.jit(lambda x: lab.tanh(x) * 2.0 + x, executor="compiled")
            >>> _ = f.prepare(np.ones(3), progress=lambda ready, of: print(f"{ready} of {of}"))
            1 of 1
            >>> f(np.zeros(3)), f.hits
            (tensor([0., 0., 0.]), 1)
        """
        _, key = _values(args, kwargs, self._modes())
        found = self.cache.get(key) or self._traced(key, args, kwargs)
        found.replay.prepare(_shown if progress is None else progress)
        return found

    def _traced(self, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cached:
        start = perf_counter()
        with self._watching():
            traced = trace(self._f, args, kwargs, weak=True)
        key = key._replace(modes=self._modes())
        made = _cached(key, *traced, self._execute)
        elapsed_ms = 1e3 * (perf_counter() - start)
        kept = serves_again(made.graph)
        reason = reason_of(key, self.cache, names_of(self._f, args, kwargs), first=not self.misses)
        self.misses.append(Miss(reason, len(made.graph.equations), elapsed_ms, kept))
        if kept:
            self.cache[key], self._again, self._modes_of_again = made, made.again, key.modes
        if bus.listeners:
            tell_trace(self._f, self.misses[-1], len(self.cache))
        return made


    def _modes(self) -> tuple[bool, ...]:
        """Whether the modules train that were asked so; a transform around this function hears of them, too."""
        return tuple([module.training for known in self._moded if (module := known()) is not None])

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Take in the modules whose mode is read meanwhile; what was traced before did not depend on theirs."""
        found: dict[int, Any] = {}
        token = MODES.set(lambda module: found.setdefault(id(module), module))
        try:
            yield
        finally:
            MODES.reset(token)
        known = [module for ref in self._moded if (module := ref()) is not None]
        new = [module for module in found.values() if not any(module is one for one in known)]
        self._moded = [weakref.ref(module) for module in (*known, *new)]
        if new:
            more = tuple([module.training for module in new])
            self.cache = {key._replace(modes=key.modes + more): made for key, made in self.cache.items()}


def _values(args: Any, kwargs: Any, modes: tuple[bool, ...]) -> tuple[list[Any], Key]:
    """The leaves of some arguments, and the key of their graph."""
    flat, structure = tree.flatten((args, kwargs))
    values = [x if type(x) is Tensor or is_weak(x) else taken(x, "jit") for x in flat]
    state = STATE.get()
    return values, Key(structure, tuple([_kind(v) for v in values]), state.kinks, state.axes, modes)


def _shown(ready: int, of: int) -> None:
    """One line that grows older: a terminal and a notebook go back to its beginning."""
    sys.stdout.write(f"\rcompiled {ready} of {counted(of, 'loop')}" + ("\n" if ready == of else ""))
    sys.stdout.flush()


def _short_way(
    key: Key,
    replay: Replaying,
    captured: Sequence[Any],
    give: Callable[[Sequence[Any]], Any],
    slowly: Callable[[Sequence[Any]], Any],
) -> Callable[[Any, Any], Any]:
    """See `Cached.again`; whoever listens hears of each call on the long way.

    Args:
        give: puts arrays into the container of the results.
        slowly: the same for whatever ops return.
    """
    take = opener(key.structure, key.kinds)
    fixed = [c for c in captured if type(c) is not Draw]
    draws = len(fixed) < len(captured)

    def again(args: Any, kwargs: Any) -> Any:
        state = STATE.get()
        if take is None or bus.listeners or state.kinks != key.kinks or state.axes != key.axes or not replay.ready():
            return NEW
        arrays = take(args, kwargs, state.frozen >= 0)
        more = arrays_of(fixed)
        if arrays is None or more is None or (draws and not keys_known()):
            return NEW
        if draws:
            more = arrays_of(drawn(captured)) or []
        try:
            outs = replay.arrays([*arrays, *more])
        except Exception:  # noqa: BLE001 - run once more, by ops that say what is wrong; with the same keys
            if not draws:
                return NEW
        else:
            return give(outs)
        return slowly(replay([a if is_weak(a) else wrap(a) for a in (*arrays, *more)]))

    return again


def _kind(v: Any) -> Any:
    if type(v) is Tensor:
        return v.value.shape, v.value.dtype
    return (v.shape, v.dtype) if isinstance(v, Tensor) else type(v)


def _rebuilt(out_structure: tree.Structure, copies: Sequence[bool], outs: Sequence[Any]) -> Any:
    """The results in their container."""
    results = []
    for out, passed in zip(outs, copies, strict=True):
        value = out if type(out) is Tensor else returned(out, "jit")
        copied = passed and type(value) is Tensor and value.node is None
        results.append(wrap(np.array(value.value)) if copied else value)
    return tree.rebuilt(out_structure, iter(results))
