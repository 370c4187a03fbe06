"""The first call of a jitted function against later ones: it traces, sends the graph through the passes, compiles.

All of that is paid once for each kind of arguments. The function as it is pays nothing before, and more in every call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import inf
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from lab.errors import ArgumentError
from lab.events import Event, Recording, bus, record
from lab.events.catalogue import CallMeasured, CallsBegun, CallsPaid
from lab.graph.compiled import Compiled
from lab.graph.execute import Replaying
from lab.graph.executors import executor_of
from lab.graph.ir import Graph
from lab.kernels import have_compiler
from lab.transforms.arguments import function
from lab.transforms.compilation import Jitted
from lab.words import counted

KINDS: tuple[type[Event], ...] = (CallsBegun, CallMeasured, CallsPaid)
COMPILER = "lab.kernels.native"
"""What has loaded the compiler of loops once it is there."""
PARTS = ("trace", "passes", "code", "compiler", "loops", "run")
"""Of a call, in their order."""


class Part(NamedTuple):
    """What a part of a call took; fields as of the event CallMeasured."""

    number: int
    way: str
    part: str
    elapsed_ms: float
    words: str


class Calls(NamedTuple):
    """What `measure_calls` found.

    Attributes:
        parts: in order.
        paid: the number of calls from which on jit has paid, inf for never.
        seen: whether that was reached among the calls; else it is computed from medians.
        jitted: the function, with its cache.
        recording: of the experiment, for CallsView.
    """

    parts: tuple[Part, ...]
    paid: float
    seen: bool
    jitted: Jitted
    recording: Recording

    def __repr__(self) -> str:
        first, later = self.took("jit")[0], _hits(self.parts)
        words = f"<first call {first:.3g} ms"
        words += f", later {median(later):.3g} ms" if later else ""
        paid = "never" if self.paid == inf else f"from call {self.paid:,.0f} on"
        return f"{words}, as it is {median(self.took('eager')):.3g} ms: jit has paid {paid}>"

    def took(self, way: str) -> list[float]:
        """Milliseconds of each call, "eager" or "jit"."""
        return _totals(self.parts, way)


def measure_calls(f: Callable[..., Any], *calls: Any, executor: str = "compiled") -> Calls:
    """Make calls one after the other, of a function as it is and of the same function jitted; CallsView draws it.

    Of a call that traces its parts are timed: tracing, the passes, generating code, loading numba where it was not
    needed before, compiling the loops or loading them from the cache of earlier sessions, and the run. A round of the
    function as it is comes before, and is not counted.

    Args:
        f: as for `lab.jit`.
        calls: the arguments of each call, a tuple; what is no tuple is one argument.
        executor: as of `lab.jit`.

    Raises:
        ArgumentError: no call, or an executor of another name.
        ConcretizationError: f asks for the value of a traced variable.

    Example:
        >>> import lab, numpy as np
        >>> found = lab.measure_calls(lab.tanh, np.ones(3), np.ones(3), np.ones(4), executor="interpreted")
        >>> [(p.number, p.part) for p in found.parts if p.way == "jit"]
        [(1, 'trace'), (1, 'run'), (2, 'run'), (3, 'trace'), (3, 'run')]
    """
    function(f, "measure_calls")
    executor_of(executor)
    if not calls:
        raise ArgumentError("measure_calls needs calls", given="none", hint="lab.measure_calls(f, (x, y), (x, y))")
    given = [c if isinstance(c, tuple) else (c,) for c in calls]
    told = bus.operations
    eager = [Part(n, "eager", "run", ms, "") for n, ms in enumerate(_eager(f, given), 1)]
    timed = _Timed(executor)
    jitted = Jitted(f, timed.prepare)
    parts = [*eager, *(part for n, args in enumerate(given, 1) for part in timed.call(jitted, n, args))]
    paid, seen = breakeven(_totals(parts, "eager"), _totals(parts, "jit"), _hits(parts))
    with record(kinds=KINDS) as rec:
        name = getattr(f, "__name__", type(f).__name__)
        rec.meta["title"] = name
        bus.emit(CallsBegun(name, executor, len(given), told))
        for part in sorted(parts, key=lambda part: part.number):
            bus.emit(CallMeasured(*part))
        bus.emit(CallsPaid(paid, seen))
    return Calls(tuple(parts), paid, seen, jitted, rec)


def breakeven(eager: Sequence[float], jit: Sequence[float], hits: Sequence[float]) -> tuple[float, bool]:
    """From how many calls on the second has taken less in all, and whether that was seen; inf for never.

    What was not seen is computed: what is behind so far, divided by what the median of its hits is less.

    Example:
        >>> breakeven([4.0, 4.0, 4.0], [9.0, 1.0, 1.0], [1.0, 1.0])
        (3, True)
        >>> breakeven([4.0, 4.0], [15.0, 1.0], [1.0]), breakeven([1.0, 1.0], [15.0, 1.0], [1.0])
        ((5.0, False), (inf, False))
    """
    ahead = [a - b for a, b in zip(accumulate(eager), accumulate(jit), strict=True)]
    behind = [n for n, lead in enumerate(ahead, 1) if lead <= 0]
    if not behind or behind[-1] < len(ahead):
        return (behind[-1] + 1 if behind else 1), True
    gain = median(eager) - median(hits or jit)
    return (float(len(ahead) + -(ahead[-1] // gain)) if gain > 0 else inf), False


def _totals(parts: Sequence[Part], way: str) -> list[float]:
    took: dict[int, float] = {}
    for p in parts:
        if p.way == way:
            took[p.number] = took.get(p.number, 0.0) + p.elapsed_ms
    return list(took.values())


def _hits(parts: Sequence[Part]) -> list[float]:
    """Milliseconds of the jitted calls that found their graph."""
    traced = {p.number for p in parts if p.part == "trace"}
    return [p.elapsed_ms for p in parts if p.way == "jit" and p.number not in traced]


def _eager(f: Callable[..., Any], given: Sequence[tuple[Any, ...]]) -> list[float]:
    """Milliseconds of each call, after a round that is not counted."""
    for args in given:
        f(*args)
    return [_timed(lambda args=args: f(*args))[0] for args in given]  # type: ignore[misc]


class _Timed:
    """An executor that tells what its preparations take."""

    def __init__(self, executor: str) -> None:
        self.execute = executor_of(executor)
        self.compiles = executor == "compiled"
        self.steps: list[tuple[str, float, str]] = []

    def prepare(self, graph: Graph) -> Replaying:
        """As the table of executors has it, with everything done that they leave to the first run."""
        if self.compiles:
            self._compile(graph.once("compiled", Compiled))
        return self.execute(graph)

    def _compile(self, compiled: Compiled) -> None:
        took, stages = _timed(lambda: compiled.stages)
        self.steps.append(("passes", took, f"{counted(len(stages) - 1, 'pass', 'passes')}"))
        took, code = _timed(lambda: compiled.code)
        self.steps.append(("code", took, f"{counted(len(code.source.splitlines()), 'line')}"))
        loops = [*code.loops.values()]
        if loops and COMPILER not in sys.modules:
            took, there = _timed(have_compiler)
            self.steps.append(("compiler", took, "loaded, once in a session" if there else "is not there"))
        there = sum(bool(loop.loaded) for loop in loops)
        loaded = -sum(loop.loaded == "loaded" for loop in loops)
        took, _ = _timed(compiled.compile)
        loaded += sum(loop.loaded == "loaded" for loop in loops)
        words = f"{counted(len(loops), 'loop')}: {loaded} from the cache, {there} there before"
        self.steps.append(("loops", took, words))

    def call(self, jitted: Jitted, number: int, args: tuple[Any, ...]) -> list[Part]:
        """The parts of one call."""
        self.steps, n_misses = [], len(jitted.misses)
        took, _ = _timed(lambda: jitted(*args))
        parts = []
        if len(jitted.misses) > n_misses:
            miss = jitted.misses[-1]
            took -= miss.elapsed_ms
            trace_ms = miss.elapsed_ms - sum(ms for _, ms, _ in self.steps)
            words = f"{counted(miss.n_equations, 'equation')}: {miss.reason}"
            parts = [("trace", trace_ms, words), *self.steps]
        return [Part(number, "jit", *part) for part in (*parts, ("run", took, ""))]


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds, and what it gave."""
    start = perf_counter()
    out = run()
    return 1e3 * (perf_counter() - start), out
