"""What each pass of the compiler does to a graph: what it merges, fuses and leaves out, and what a run takes then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor
from lab.checks import whole
from lab.events import Recording, bus, record
from lab.events.catalogue import GraphMade, PassesBegun, PassFinished
from lab.experiments.plan import op_words
from lab.graph.compiled import Compiled
from lab.graph.execute import run_arrays
from lab.graph.ir import Equation, Graph, Literal, Var
from lab.graph.keys import drawn
from lab.graph.make import trace
from lab.graph.views import look_of
from lab.transforms.arguments import function

KINDS = (PassesBegun, GraphMade, PassFinished)
TRACED, COMPILED = "as traced", "compiled"
SHORTEST_US = 2_000.0
"""A repeat of a measurement lasts at least this long: short runs are made several times in it."""


class PassMade(NamedTuple):
    """What one pass did; fields as of the event PassFinished."""

    number: int
    name: str
    n_kernels: int
    n_equations: int
    n_bytes: int
    run_us: float
    pass_ms: float
    n_made: int
    n_merged: int
    n_gone: int
    text: str


class Passes(NamedTuple):
    """What `measure_passes` found.

    Attributes:
        rows: the graph as traced, then each pass, then the compiled function.
        compiled: what runs at last: its `stages`, its `source`.
        told: whether single operations were recorded meanwhile, which makes every run slower.
        recording: of the experiment, for PassesView.
    """

    rows: tuple[PassMade, ...]
    compiled: Compiled
    told: bool
    recording: Recording

    def __repr__(self) -> str:
        first, last = self.rows[0], self.rows[-1]
        return (
            f"<{first.n_kernels} kernels in {first.run_us:.3g} us became {last.n_kernels} in {last.run_us:.3g} us,"
            f" {len(self.rows) - 2} passes>"
        )


def measure_passes(f: Callable[..., Any], *args: Any, repeats: int = 7) -> Passes:
    """Trace a function, send its graph through the passes, and run what each of them made; PassesView draws it.

    Args:
        f: as for `lab.jit`.
        args: its arguments, arrays or containers of them; their shapes are those of the graph.
        repeats: the median of so many is taken; one more, before them, is not counted.

    Raises:
        ConcretizationError: f asks for the value of a traced variable.
        ArgumentError: f is no function.

    Example:
        >>> import lab, numpy as np
        >>> found = lab.measure_passes(lambda x: lab.exp(x) * lab.exp(x) * 1.0, np.ones(3), repeats=1)
        >>> [(r.name, r.n_kernels) for r in found.rows if r.n_made + r.n_merged + r.n_gone]
        [('algebra', 3), ('common subexpressions', 2), ('fusion', 1)]
    """
    function(f, "measure_passes")
    repeats, told = whole("repeats", repeats, least=1), bus.operations
    graph = trace(f, args, {}, weak=False)[0]
    given = [*tree.flatten((args, {}))[0], *drawn(graph.captured)]
    arrays = [x.numpy() if isinstance(x, Tensor) else np.asarray(x) for x in given]
    compiled = Compiled(graph)
    with record(kinds=KINDS) as rec:
        name = getattr(f, "__name__", type(f).__name__)
        rec.meta["title"] = name
        path = compiled.stages
        names = (TRACED, *(stage.name for stage in path[1:]), COMPILED)
        bus.emit(PassesBegun(name, names, repeats, told))
        rows: list[PassMade] = []

        def add(made: PassMade) -> None:
            rows.append(made)
            bus.emit(PassFinished(*made))

        before = path[0].graph
        for number, stage in enumerate(path):
            after = stage.graph
            run_us = _timed(lambda after=after: run_arrays(after, arrays), repeats)  # type: ignore[misc]
            bus.emit(graph_made(number, names[number], after))
            counts = changes(before, after)
            add(PassMade(number, names[number], *_size(after), run_us, stage.elapsed_ms, *counts, str(after)))
            before = after
        start = perf_counter()
        compiled.compile()
        elapsed_ms = 1e3 * (perf_counter() - start)
        run_us = _timed(lambda: compiled.arrays(arrays), repeats)
        size = _size(compiled.optimized)
        add(PassMade(len(path), COMPILED, *size, run_us, elapsed_ms, 0, 0, 0, compiled.source))
    return Passes(tuple(rows), compiled, told, rec)


def graph_made(number: int, name: str, graph: Graph) -> GraphMade:
    """A graph as an event.

    Example:
        >>> import lab
        >>> made = graph_made(0, TRACED, lab.make_graph(lambda x: lab.exp(x) + 1.0)(1.0))
        >>> made.words, made.outs, made.reads
        (('b:f64[] = exp(a)', 'c:f64[] = add(b, 1.0)'), (1, 2), (0, 1))
    """
    equations = graph.equations
    reads = [tuple(a.number for a in e.inputs if isinstance(a, Var)) for e in equations]
    outs = [tuple(v.number for v in e.outs) for e in equations]
    return GraphMade(
        number, name, tuple(v.number for v in graph.inputs),
        tuple(a.number for a in graph.outputs if isinstance(a, Var)),
        tuple(str(e).splitlines()[0].removesuffix(" {") for e in equations), tuple(map(op_words, equations)),
        tuple(e.origin for e in equations), tuple(map(len, outs)), tuple(chain(*outs)),
        tuple(map(len, reads)), tuple(chain(*reads)),
        tuple(len(e.sources) for e in equations), tuple(n for e in equations for n in e.sources),
    )  # fmt: skip


def changes(before: Graph, after: Graph) -> tuple[int, int, int]:
    """How many equations a pass made, how many it put others in the place of, and how many it left out.

    Example:
        >>> import lab
        >>> from lab.graph.passes import sharing
        >>> graph = lab.make_graph(lambda x: lab.exp(x) * lab.exp(x))(1.0)
        >>> changes(graph, sharing.sharing(graph))
        (0, 1, 0)
    """
    old = {v.number for e in before.equations for v in e.outs}
    new = {v.number for e in after.equations for v in e.outs}
    stood_for = {number for e in after.equations for number in e.sources}
    gone = old - new
    made = sum(1 for e in after.equations if (e.sources and not any(v.number in old for v in e.outs)) or _fuses(e, old))
    return made, len(gone & stood_for), len(gone - stood_for)


def _fuses(e: Equation, old: set[int]) -> bool:
    """Whether it is a fused equation that was not there as one before."""
    return e.op.name == "fused" and len(e.sources) > 1


def _size(graph: Graph) -> tuple[int, int, int]:
    """Kernels, equations with those inside fused ones, and bytes that the kernels read and write."""
    kernels = [e for e in graph.equations if look_of(e) is None]
    inside = sum(len(inner.equations) for e in graph.equations if e.op.name == "fused" for inner in e.graphs.values())
    fused = sum(1 for e in graph.equations if e.op.name == "fused")
    return len(kernels), len(graph.equations) - fused + inside, sum(map(_bytes, kernels))


def _bytes(e: Equation) -> int:
    operands: Sequence[Any] = [a for a in dict.fromkeys(e.inputs) if not (isinstance(a, Literal) and a.weak)]
    return sum(a.spec.size * a.spec.dtype.itemsize for a in (*operands, *e.outs))


def _timed(run: Callable[[], Any], repeats: int) -> float:
    """Median microseconds of one run."""
    run()
    start = perf_counter()
    run()
    n = max(1, int(SHORTEST_US / max(1e6 * (perf_counter() - start), 0.1)))
    times = []
    for _ in range(repeats):
        start = perf_counter()
        for _ in range(n):
            run()
        times.append(1e6 * (perf_counter() - start) / n)
    return median(times)
