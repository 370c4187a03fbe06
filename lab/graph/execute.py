"""Running a Graph, equation by equation: with the ops where somebody listens, with bare forwards where nobody does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE
from lab.events.bus import bus
from lab.graph.ir import Atom, Equation, Graph, Var
from lab.graph.make import ORIGIN, TRACING

Replay = Callable[[Sequence[Any]], list[Any]]


def run(graph: Graph, args: Sequence[Any]) -> list[Any]:
    """The outputs of a graph for its inputs, by applying each op: for tensors, tracers, under any transform.

    An error gets a note that names the equation and the line that it comes from.

    Args:
        args: one value for each of `graph.inputs`, those that were captured last.

    Example:
        >>> import lab
        >>> graph = lab.make_graph(lambda x: lab.tanh(x) * 2.0)(1.0)
        >>> run(graph, [lab.tensor(0.0)])
        [tensor(0.)]
    """
    values: dict[int, Any] = {v.number: a for v, a in zip(graph.inputs, args, strict=True)}

    def read(a: Atom) -> Any:
        return values[a.number] if isinstance(a, Var) else a.value

    before, traced = ORIGIN.get(), TRACING.get()
    try:
        for e in graph.equations:
            if traced and e.origin:
                ORIGIN.set(e.origin)
            try:
                result = e.op(*(read(a) for a in e.inputs), **e.params)
            except Exception as why:
                note(why, e)
                raise
            for v, out in zip(e.outs, result if e.op.several else (result,), strict=True):
                values[v.number] = out
    finally:
        ORIGIN.set(before)
    return [read(a) for a in graph.outputs]


def note(why: BaseException, e: Equation) -> None:
    """Add to an error where in a graph it came up: the innermost equation, and no other."""
    if not any(text.startswith("graph: ") for text in getattr(why, "__notes__", ())):
        where = f", made by {e.origin}" if e.origin else ""
        why.add_note(f"graph: {str(e).splitlines()[0]}{where}")


def run_arrays(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of a graph for arrays, by bare forwards.

    Example:
        >>> import lab
        >>> run_arrays(lab.make_graph(lambda x: x * 2.0)(1.0), [np.asarray(3.0)])
        [array(6.)]
    """
    return graph.once("steps", _steps)(arrays)


def _steps(graph: Graph) -> Replay:
    """A graph as a flat list of calls, prepared once."""
    n = graph.n_vars
    literals: list[Any] = []

    def place(a: Atom) -> int:
        if isinstance(a, Var):
            return a.number
        literals.append(a.value)
        return n + len(literals) - 1

    steps = [
        (e, e.op.forward, tuple(place(a) for a in e.inputs), e.params, e.op.several, e.outs[0].number)
        for e in graph.equations
    ]
    starts, ends = [v.number for v in graph.inputs], [place(a) for a in graph.outputs]

    def replay(args: Sequence[Any]) -> list[Any]:
        slots: list[Any] = [None] * n + literals
        for slot, a in zip(starts, args, strict=True):
            slots[slot] = a
        for e, forward, inputs, params, several, out in steps:
            try:
                result = forward(*[slots[i] for i in inputs], **params)
            except Exception as why:
                note(why, e)
                raise
            if several:
                for v, one in zip(e.outs, result, strict=True):
                    slots[v.number] = one
            else:
                slots[out] = result
        return [np.asarray(slots[i]) for i in ends]

    return replay


def is_plain(a: Any) -> bool:
    """A number, or a tensor on which nothing would be recorded."""
    return type(a) is float or type(a) is int or (type(a) is Tensor and (a.node is None or STATE.get().frozen >= 0))


def replayer(graph: Graph) -> Replay:
    """A function that replays a graph on arrays, prepared once; other inputs go to `run`."""
    plain = not any(e.op.collective for inner in graph.walk() for e in inner.equations)

    def replay(args: Sequence[Any]) -> list[Any]:
        if not plain or not all(map(is_plain, args)) or bus.operations:
            return run(graph, args)
        try:
            outs = run_arrays(graph, [a.value if isinstance(a, Tensor) else a for a in args])
        except Exception:  # noqa: BLE001 - the ops say which of them it was, in the lab's words
            return run(graph, args)
        return [wrap(out) for out in outs]

    return replay


