"""The table of passes and their order; every graph between two passes is kept, so that each pass can be looked at."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

from lab.errors import ArgumentError, GraphError
from lab.graph.ir import Equation, Graph
from lab.graph.verify import verify
from lab.words import shown

Pass = Callable[[Graph], Graph]

PASSES: dict[str, Pass] = {}
"""Every pass by name. A new one enters by being defined under `@graph_pass`."""


ORDER: tuple[str, ...] = (
    "constant folding",
    "algebra",
    "decomposition",
    "constant folding",
    "algebra",
    "common subexpressions",
    "transposes into products",
    "dead code",
    "fusion",
    "dead code",
    "ordering",
    "memory planning",
)
"""The passes of a compilation, in their order."""


class Stage(NamedTuple):
    """One graph on the way, and the pass that made it.

    Attributes:
        name: of the pass, "" for the graph that was given.
        graph: after the pass.
        elapsed_ms: what the pass took.
    """

    name: str
    graph: Graph
    elapsed_ms: float


def graph_pass(name: str) -> Callable[[Pass], Pass]:
    """Enter a function from a Graph to a Graph in the table.

    Graphs inside branches and loops are passed through it, too. The result is checked to be legal and to take and give
    what the graph before took and gave.

    Raises:
        ArgumentError: a name that is no text, or what is no function.
        GraphError: later, when the pass makes what is no graph, or one that is not legal.

    Example:
        >>> import lab
        >>> @graph_pass("nothing")
        ... def nothing(graph):
        ...     return graph
        >>> nothing(lab.make_graph(lambda x: x + 1.0)(1.0)) == lab.make_graph(lambda x: x + 1.0)(1.0)
        True
        >>> del PASSES["nothing"]
    """
    hint = '@graph_pass("name") above a function from a Graph to a Graph'
    if not isinstance(name, str):
        raise ArgumentError("a pass has a name", given=shown(name), hint=hint)

    def enter(change: Pass) -> Pass:
        if not callable(change):
            raise ArgumentError("a pass is a function", given=shown(change), hint=hint)

        def checked(graph: Graph) -> Graph:
            after = change(_inside(graph, checked))
            _require_graph(after, name)
            verify(after, after=name)
            _same_ends(graph, after, name)
            return after

        for word in ("__name__", "__qualname__", "__module__", "__doc__"):  # of the module: its examples are tests
            setattr(checked, word, getattr(change, word, name))
        PASSES[name] = checked
        return checked

    return enter


def _inside(graph: Graph, change: Pass) -> Graph:
    """The graph with `change` made to the graphs inside its equations, and nothing said of sources yet.

    What is fused is left alone: it runs as one, so there is nothing in it to be shared, ordered or given a place.
    """

    def renewed(e: Equation) -> Equation:
        params = e.params
        if e.graphs and e.op.name != "fused":
            params = {k: change(v) if isinstance(v, Graph) else v for k, v in e.params.items()}
        return dataclasses.replace(e, params=params, sources=())

    return dataclasses.replace(graph, equations=tuple(map(renewed, graph.equations)))


def _require_graph(made: object, name: str) -> None:
    if not isinstance(made, Graph):
        raise GraphError(f"{name} made no graph", given=shown(made), hint="return graph, or replace(graph, ...)")
    equations: Sequence[object] = made.equations  # a learner's pass may put anything there
    strange = [e for e in equations if not isinstance(e, Equation)]
    if strange:
        raise GraphError(f"{name} made an equation that is none", given=shown(strange[0]),
                         hint="equations of the graph before, or replace(e, ...)")  # fmt: skip


def _same_ends(before: Graph, after: Graph, name: str) -> None:
    outs = [[(a.spec, a.weak) for a in g.outputs] for g in (before, after)]
    if before.inputs != after.inputs or outs[0] != outs[1]:
        raise GraphError(
            f"{name} made a graph that takes or gives something else",
            given=f"{len(after.inputs)} inputs, {len(after.outputs)} outputs",
            hint="a pass changes what is between them",
        )


def stages(graph: Graph, passes: Sequence[str] | None = None) -> list[Stage]:
    """The graph and what each pass makes of it, in order.

    Args:
        passes: names in PASSES; those in ORDER by default.

    Raises:
        ArgumentError: a name that no pass has.

    Example:
        >>> import lab
        >>> graph = lab.make_graph(lab.grad(lambda x: lab.exp(x) * 1.0))(1.0)
        >>> [(s.name, len(s.graph.equations)) for s in stages(graph, ["algebra", "dead code"])]
        [('', 3), ('algebra', 1), ('dead code', 1)]
    """
    unknown = [name for name in passes or () if name not in PASSES]
    if unknown:
        raise ArgumentError("no pass has that name", given=", ".join(unknown), hint=", ".join(PASSES))
    made = [Stage("", graph, 0.0)]
    for name in ORDER if passes is None else passes:
        start = perf_counter()
        after = PASSES[name](made[-1].graph)
        made.append(Stage(name, after, 1e3 * (perf_counter() - start)))
    return made


def optimized(graph: Graph, passes: Sequence[str] | None = None) -> Graph:
    """What is left after the passes."""
    return stages(graph, passes)[-1].graph
