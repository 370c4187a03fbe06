"""Branches and loops written into a graph: their functions are traced, closed, and held by one equation.

What gives way (Python numbers) becomes an array of the dtype that it meets inside; for that a function may be traced
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.graph.ir import Graph
from lab.graph.make import is_weak, trace
from lab.graph.regions import COND, SCAN, WHILE
from lab.shapes import Spec
from lab.transforms.arguments import returned
from lab.transforms.carrying import firm, gives_way, raw, settled, words
from lab.transforms.closing import closed, standin

Turn = Callable[[list[Any]], list[Any]]
Step = Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]


def same_containers(a: tree.Structure, b: tree.Structure, what: str) -> None:
    """Refuse two results in different containers.

    Raises:
        ArgumentError: they are.
    """
    if a != b:
        paths = [names_of(s) for s in (a, b)]
        raise ArgumentError(
            f"{what} must give results in the same containers",
            given=f"{paths[0]} and {paths[1]}"[:120],
            hint="the same keys, lengths and kinds of containers",
        )


# --- a branch -----------------------------------------------------------------------------------------------------


def branch(
    pred: Any,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    flat: Sequence[Any],
    structure: tree.Structure,
) -> Any:
    """What `lab.cond` gives where only the graph knows the condition."""
    places = [i for i, x in enumerate(flat) if not is_weak(x)]
    shapes: list[tree.Structure] = []

    def traced(f: Callable[..., Any], dtypes: Sequence[Any] = ()) -> Graph:
        def run(*given: Any) -> list[Any]:
            leaves = list(flat)
            for i, x in zip(places, given, strict=True):
                leaves[i] = x
            outs, found = tree.flatten(f(*tree.unflatten(structure, leaves)))
            shapes.append(found)
            outs = [raw(o, "cond") for o in outs]
            return [firm(o, d) if gives_way(o) else o for o, d in zip(outs, dtypes, strict=True)] if dtypes else outs

        return trace(run, [standin(flat[i]) for i in places], {}, weak=True, region=True)[0]

    graphs = [traced(then), traced(otherwise)]
    same_containers(shapes[0], shapes[1], "cond: both branches")
    results = zip(graphs[0].outputs, graphs[1].outputs, names_of(shapes[0]), strict=True)
    dtypes = [agreed(a.spec, b.spec, (a.weak, b.weak), name) for a, b, name in results]
    if any(a.spec.dtype != d for g in graphs for a, d in zip(g.outputs, dtypes, strict=True)):
        graphs = [traced(then, dtypes), traced(otherwise, dtypes)]
    graphs, captured = closed(graphs)
    outs = COND(pred, *captured, *(flat[i] for i in places), then=graphs[0], otherwise=graphs[1])
    return tree.unflatten(shapes[0], [returned(o, "cond") for o in outs])


def agreed(a: Spec, b: Spec, weak: tuple[bool, bool], name: str) -> Any:
    """The dtype of a result of both branches; `weak`: which of them gives way to the other.

    Raises:
        ShapeError, DTypeError: there is none.

    Example:
        >>> agreed(Spec((), np.dtype(float)), Spec((), np.dtype("float32")), (True, False), "")
        dtype('float32')
    """
    given = f"{words(a)} and {words(b)}{f' at {name}' if name else ''}"
    if a.shape != b.shape:
        raise ShapeError(
            "cond: both branches must give the same shapes", given=given, hint="broadcast one of them, or reshape"
        )
    firm_ones = {s.dtype for s, w in zip((a, b), weak, strict=True) if not w}
    found = next(iter(firm_ones)) if firm_ones else np.result_type(a.dtype, b.dtype)
    lost = [s for s, w in zip((a, b), weak, strict=True) if w and s.dtype.kind == "f" and found.kind != "f"]
    if len(firm_ones) > 1 or lost:
        raise DTypeError(
            "cond: both branches must give the same dtypes", given=given, hint="cast one of them: x.astype(dtype)"
        )
    return found


def names_of(structure: tree.Structure) -> list[str]:
    """A readable path for each leaf."""
    return tree.paths(tree.unflatten(structure, [0] * structure.n_leaves))


# --- loops --------------------------------------------------------------------------------------------------------


def firm_carry(turn: Turn, flat: list[Any], names: Sequence[str], what: str) -> list[Any]:
    """The carry with numbers as arrays of the dtype that a turn makes of them."""
    return _firm(lambda leaves, _: (turn(leaves), []), flat, [], names, what)


def _firm(
    step: Step, flat: list[Any], rows: Sequence[Spec], names: Sequence[str], what: str, *, runs: bool = True
) -> list[Any]:
    if not any(map(gives_way, flat)):
        return flat
    graph = _step(step, flat, rows, names, what, runs=runs)
    return [firm(x, a.spec.dtype) if gives_way(x) else x for x, a in zip(flat, graph.outputs, strict=False)]


def _step(
    step: Step, flat: list[Any], rows: Sequence[Spec], names: Sequence[str], what: str, *, runs: bool = True
) -> Graph:
    """The graph of a turn: of the carry and a row."""
    n = len(flat)

    def run(*values: Any) -> list[Any]:
        ys: list[Any] = []

        def turn(leaves: list[Any]) -> list[Any]:
            after, ys[:] = step(leaves, list(values[n:]))
            return after

        return [*settled(turn, list(values[:n]), names, what), *ys]

    return trace(run, [standin(x) for x in (*flat, *rows)], {}, weak=True, region=True, runs=runs)[0]


def loop(go: Callable[[list[Any]], Any], turn: Turn, flat: list[Any], names: Sequence[str]) -> list[Any]:
    """What `lab.while_loop` gives in a graph."""
    flat = firm_carry(turn, flat, names, "while_loop")
    test, _ = trace(lambda *leaves: [go(list(leaves))], [standin(x) for x in flat], {}, weak=True, region=True)
    body = _step(lambda leaves, _: (turn(leaves), []), flat, [], names, "while_loop")
    (test, body), captured = closed([test, body])
    return list(WHILE(*captured, *flat, test=test, body=body, n_fixed=len(captured)))


def scan(
    step: Step, flat: list[Any], rows: list[Any], names: Sequence[str], n: int, *, reverse: bool, what: str
) -> tuple[list[Any], list[Any]]:
    """What `lab.scan` gives in a graph."""
    specs = [Spec(tuple(x.shape[1:]), np.dtype(x.dtype)) for x in rows]
    flat = _firm(step, flat, specs, names, what, runs=n > 0)
    (body,), captured = closed([_step(step, flat, specs, names, what, runs=n > 0)])
    n_carry = len(flat)
    made = SCAN(
        *captured, *flat, *rows, body=body, n_fixed=len(captured), n_carry=n_carry, length=n, reverse=bool(reverse)
    )
    return list(made[:n_carry]), list(made[n_carry:])
