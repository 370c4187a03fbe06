"""Running a Graph, equation by equation: with the ops where somebody listens, with bare forwards where nobody does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE
from lab.events.bus import bus
from lab.graph.ir import Graph, Literal, Var


def run(graph: Graph, args: Sequence[Any]) -> list[Any]:
    """The outputs of a graph for its inputs, by applying each op: for tensors, tracers, under any transform.

    Args:
        args: one value for each of `graph.inputs`, those that were captured last.

    Example:
        >>> import lab
        >>> graph = lab.make_graph(lambda x: lab.tanh(x) * 2.0)(1.0)
        >>> run(graph, [lab.tensor(0.0)])
        [tensor(0.)]
    """
    values: dict[int, Any] = {v.number: a for v, a in zip(graph.inputs, args, strict=True)}

    def read(a: Var | Literal) -> Any:
        return values[a.number] if isinstance(a, Var) else a.value

    for e in graph.equations:
        values[e.out.number] = e.op(*(read(a) for a in e.inputs), **e.params)
    return [read(a) for a in graph.outputs]


def _is_plain(a: Any) -> bool:
    """A number, or a tensor on which nothing would be recorded."""
    return type(a) is float or type(a) is int or (type(a) is Tensor and (a.node is None or STATE.get().frozen >= 0))


def replayer(graph: Graph) -> Callable[[Sequence[Any]], list[Any]]:
    """A function that replays a graph on arrays, as a flat list of calls prepared once; other inputs go to `run`."""
    n = 1 + max([v.number for v in graph.inputs] + [e.out.number for e in graph.equations], default=-1)
    literals: list[Any] = []

    def place(a: Var | Literal) -> int:
        if isinstance(a, Var):
            return a.number
        literals.append(a.value)
        return n + len(literals) - 1

    steps = [(e.op.forward, tuple(place(a) for a in e.inputs), e.params, e.out.number) for e in graph.equations]
    plain = not any(e.op.collective for e in graph.equations)
    starts, ends = [v.number for v in graph.inputs], [place(a) for a in graph.outputs]

    def replay(args: Sequence[Any]) -> list[Any]:
        if not plain or not all(map(_is_plain, args)) or bus.operations:
            return run(graph, args)
        slots: list[Any] = [None] * n + literals
        for slot, a in zip(starts, args, strict=True):
            slots[slot] = a.value if isinstance(a, Tensor) else a
        try:
            for forward, inputs, params, out in steps:
                slots[out] = forward(*[slots[i] for i in inputs], **params)
        except Exception:  # noqa: BLE001 - the ops say which of them it was, in the lab's words
            return run(graph, args)
        return [wrap(np.asarray(slots[i])) for i in ends]

    return replay
