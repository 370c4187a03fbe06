"""What an executor tells of a run: which equation ran when and where. Made after the run, from times alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from time import perf_counter_ns
from typing import TYPE_CHECKING

from lab.events.bus import bus
from lab.events.catalogue import EquationRan, GraphRunBegun, GraphRunFinished

if TYPE_CHECKING:
    from lab.graph.dependencies import Needs
    from lab.graph.ir import Graph

Span = tuple[int, int, int, int]
"""Number of an equation, its lane, start and stop of `now`."""
now = perf_counter_ns


def tell(executor: str, graph: Graph, needs: Needs, spans: Iterable[Span], begun: int, n_threads: int = 1) -> None:
    """Emit the events of a run that has just come to its end; call it where `bus.equations`.

    Args:
        graph: as the executor ran it.
        needs: of its equations.
        spans: of those that ran.
        begun: when it began.

    Example:
        >>> import lab
        >>> from lab.events import EquationRan
        >>> graph = lab.make_graph(lambda x: x * 2.0)(1.0)
        >>> with lab.record(kinds=[EquationRan]) as rec:
        ...     tell("interpreted", graph, ((),), [(0, 0, 1000, 4000)], 1000)
        >>> rec[0].text, rec[0].start_ns, rec[0].stop_ns
        ('b:f64[] = multiply(a, 2.0)', 0, 3000)
    """
    elapsed = now() - begun
    known = graph.once("words", _words)
    ran = sorted(spans, key=lambda span: span[3])
    needs = seen_through(needs, {span[0] for span in ran})
    bus.emit(GraphRunBegun(executor, len(ran), n_threads))
    for number, lane, start, stop in ran:
        bus.emit(EquationRan(number, *known[number], needs[number], lane, start - begun, stop - begun))
    bus.emit(GraphRunFinished(executor, elapsed, sum(stop - start for _, _, start, stop in ran)))


def _words(graph: Graph) -> list[tuple[str, str, str]]:
    """Text, op and origin of each equation; a fused one is called by what is fused in it."""
    lines = [str(e).splitlines()[0].removesuffix(" {") for e in graph.equations]
    ops = [str(e.params["kind"]) if e.op.name == "fused" else e.op.name for e in graph.equations]
    return [(line, op, e.origin) for line, op, e in zip(lines, ops, graph.equations, strict=True)]


def seen_through(needs: Needs, there: Collection[int]) -> Needs:
    """What equations wait for, where some cost nothing and are not told: who waits for such waits for what it needs.

    Example:
        >>> seen_through(((), (0,), (1,)), {0, 2})
        ((), (0,), (0,))
    """
    seen: list[tuple[int, ...]] = []
    for waits in needs:
        through = {i for j in waits for i in ((j,) if j in there else seen[j])}
        seen.append(tuple(sorted(through)))
    return tuple(seen)
