"""Plans of memory for one graph: without reuse, with it, reordered, within budgets; and what runs really hold.

The plans are computed from shapes; runs are measured with tracemalloc, so that the two can be laid beside each other.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor
from lab.checks import whole
from lab.errors import ArgumentError
from lab.events import Recording, bus, record
from lab.events.catalogue import MemoryPlanBegun, MemoryPlanMade, RunHeld, ValuePlaced
from lab.graph.compiled import Compiled
from lab.graph.execute import run_arrays
from lab.graph.ir import Equation, Graph, Var
from lab.graph.keys import drawn
from lab.graph.make import trace
from lab.graph.passes import ORDER, PASSES, stages
from lab.graph.passes.alive import alive
from lab.graph.passes.memory import buffer_sizes, footprint, last_reads, with_buffers
from lab.graph.passes.rematerialization import lowered, rematerialized
from lab.graph.views import look_of
from lab.transforms.arguments import function
from lab.words import shown

KINDS = (MemoryPlanBegun, ValuePlaced, MemoryPlanMade, RunHeld)
APART, REUSED, ORDERED = "a place for each value", "places reused", "reordered"
INTERPRETED = "equation by equation"
NAMED = 4
"""Ops inside a fused equation that are named."""


class Plan(NamedTuple):
    """One plan; fields as of the event MemoryPlanMade."""

    plan: str
    budget: int
    n_equations: int
    n_again: int
    n_values: int
    n_bytes: int
    peak_bytes: int
    peak_at: int
    alive_bytes: tuple[int, ...]


class Plans(NamedTuple):
    """What `measure_plan` found.

    Attributes:
        rows: a place for each value, places reused, reordered, then one for each budget.
        held: by way of running what a run held beyond its inputs, in bytes.
        recording: of the experiment, for MemoryPlanView.
    """

    rows: tuple[Plan, ...]
    held: dict[str, int]
    recording: Recording

    def __repr__(self) -> str:
        return f"<{'; '.join(f'{row.plan} {row.n_bytes:,} bytes' for row in self.rows)}>"


def measure_plan(f: Callable[..., Any], *args: Any, budgets: Sequence[int] | None = None) -> Plans:
    """Plan the memory of a function's graph in several ways, and measure what runs hold; MemoryPlanView draws it.

    Args:
        f: as for `lab.jit`.
        args: its arguments, arrays or containers of them; their shapes are those of the graph.
        budgets: in bytes, as for `lab.jit(..., memory_budget=)`; by default the lowest plan that making values again
            leads to, and one half way down to it, where that is lower at all.

    Raises:
        ConcretizationError: f asks for the value of a traced variable.
        ArgumentError: f is no function, or a budget no whole number.
        GraphError: no plan within a budget was found.

    Example:
        >>> import lab, numpy as np
        >>> def f(x):
        ...     a = lab.exp(x)
        ...     return a @ ((a @ x) @ (x @ x))
        >>> found = lab.measure_plan(f, np.ones((64, 64)))
        >>> [(row.plan, row.n_bytes // (8 * 64 * 64)) for row in found.rows]
        [('a place for each value', 5), ('places reused', 5), ('reordered', 5), ('within 131,072 bytes', 4)]
    """
    function(f, "measure_plan")
    wanted = _checked(budgets)
    told = bus.operations
    graph = trace(f, args, {}, weak=False)[0]
    given = [*tree.flatten((args, {}))[0], *drawn(graph.captured)]
    arrays = [x.numpy() if isinstance(x, Tensor) else np.asarray(x) for x in given]
    fused = stages(graph, ORDER[: ORDER.index("ordering")])[-1].graph
    ordered = PASSES["ordering"](fused)
    wanted = _budgets(ordered) if budgets is None else wanted
    sheets = [_Sheet(APART, -1, fused, fused), _Sheet(REUSED, -1, fused, fused), _Sheet(ORDERED, -1, ordered, ordered)]
    sheets += [_Sheet(within(b), b, rematerialized(ordered, b), ordered) for b in wanted]
    with record(kinds=KINDS) as rec:
        name = getattr(f, "__name__", type(f).__name__)
        rec.meta["title"] = name
        most = max(sheet.row().n_bytes for sheet in sheets), max(len(sheet.graph.equations) for sheet in sheets)
        bus.emit(MemoryPlanBegun(name, tuple(sheet.name for sheet in sheets), *most, told))
        for sheet in sheets:
            for value in sheet.values():
                bus.emit(value)
            bus.emit(MemoryPlanMade(*sheet.row()))
        held = {}
        run_arrays(graph, arrays)
        held[INTERPRETED] = _peak(lambda: run_arrays(graph, arrays))
        bus.emit(RunHeld(INTERPRETED, held[INTERPRETED], _all(graph)))
        for sheet in sheets[2:]:
            held[sheet.name] = _compiled(graph, sheet.budget, arrays)
            bus.emit(RunHeld(sheet.name, held[sheet.name], sheet.row().n_bytes))
    return Plans(tuple(sheet.row() for sheet in sheets), held, rec)


def within(budget: int) -> str:
    """A plan's name."""
    return f"within {budget:,} bytes"


def _checked(budgets: object) -> list[int]:
    if isinstance(budgets, str) or not isinstance(budgets, Iterable | None):
        given, hint = f"budgets={shown(budgets)}", "for example budgets=[1_000_000]"
        raise ArgumentError("budgets are some numbers of bytes", given=given, hint=hint)
    return [whole("budgets", budget, least=0) for budget in budgets or ()]


def _budgets(ordered: Graph) -> list[int]:
    """The lowest that is reached, and half way down to it."""
    size, lowest = footprint(ordered), footprint(lowered(ordered, 0))
    if lowest >= size:
        return []
    half = footprint(rematerialized(ordered, (size + lowest) // 2))
    return [half, lowest] if lowest < half < size else [lowest]


class _Sheet:
    """One plan, worked out."""

    def __init__(self, name: str, budget: int, graph: Graph, before: Graph) -> None:
        self.name, self.budget, self.graph = name, budget, with_buffers(graph)
        self._before = {v.number for v in before.variables()}

    def values(self) -> list[ValuePlaced]:
        """Each value that takes memory, and where it lies."""
        n, last = len(self.graph.equations), last_reads(self.graph)
        sizes = buffer_sizes(self.graph)
        offsets = {b: sum(size for other, size in sizes.items() if other < b) for b in sizes}
        above = 0 if self.name == APART else sum(sizes.values())
        found: list[ValuePlaced] = []
        for k, e in enumerate(self.graph.equations):
            again = not any(v.number in self._before for v in e.outs)
            for i, v in enumerate(e.outs if look_of(e) is None else ()):
                n_bytes, buffer = v.spec.size * v.spec.dtype.itemsize, e.buffer[i] if e.buffer else -1
                stop = last.get(v, k) if buffer >= 0 else n
                offset = offsets.get(buffer, above) if self.name != APART else above
                above += n_bytes if buffer < 0 or self.name == APART else 0
                place = len(found) if buffer >= 0 and self.name == APART else buffer
                found.append(
                    ValuePlaced(self.name, str(v), op_words(e), e.origin, k, stop, n_bytes, place, offset, again)
                )
        return found

    def row(self) -> Plan:
        """The plan in numbers."""
        over = alive(self.graph)
        peak = max(over, default=0)
        n_again = sum(not any(v.number in self._before for v in e.outs) for e in self.graph.equations)
        values = [v for e in self.graph.equations if look_of(e) is None for v in e.outs]
        n_bytes = _all(self.graph) if self.name == APART else footprint(self.graph)
        at = over.index(peak) if over else 0
        return Plan(self.name, self.budget, len(over), n_again, len(values), n_bytes, peak, at, tuple(over))


def op_words(e: Equation) -> str:
    """The op of an equation; of a fused one those inside.

    Example:
        >>> import lab
        >>> (e,) = PASSES["fusion"](lab.make_graph(lambda x: lab.exp(lab.tanh(x)))(np.ones(2))).equations
        >>> op_words(e)
        'fused tanh, exp'
    """
    if e.op.name != "fused":
        return e.op.name
    names = list(dict.fromkeys(inner.op.name for inner in e.params["body"].equations))
    return f"fused {', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''}"


def _all(graph: Graph) -> int:
    """Bytes of all values, as if each were kept; views and inputs left out."""
    own = [v for e in graph.equations if look_of(e) is None for v in e.outs]
    copies = [a for a in graph.outputs if isinstance(a, Var) and a not in own]
    return sum(v.spec.size * v.spec.dtype.itemsize for v in [*own, *copies])


def _compiled(graph: Graph, budget: int, arrays: Sequence[Any]) -> int:
    """What a run of the compiled graph holds: the buffers that its function keeps, and the most beyond them."""
    compiled = Compiled(graph, None if budget < 0 else budget)
    compiled.compile()
    compiled.code.function()(*arrays)  # what is only made once is made; the next function has buffers of its own
    with _traced():
        before = _in_arrays()
        step = compiled.code.function()
        kept = _in_arrays() - before
        return kept + _peak(lambda: step(*arrays))


def _in_arrays() -> int:
    """Bytes of all arrays of NumPy that were made while tracemalloc looked."""
    domain = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([domain]).traces)


def _peak(run: Callable[[], Any]) -> int:
    """The most that a run holds beyond what was there, in bytes."""
    with _traced():
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        run()
        return tracemalloc.get_traced_memory()[1] - before


@contextmanager
def _traced() -> Iterator[None]:
    """While tracemalloc looks; it goes on if it did before."""
    began = not tracemalloc.is_tracing()
    if began:
        tracemalloc.start()
    try:
        yield
    finally:
        if began:
            tracemalloc.stop()
