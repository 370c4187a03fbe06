"""Running a Graph, equation by equation: with the ops where somebody listens, with bare forwards where nobody does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE
from lab.events.bus import bus
from lab.events.cells import told_place
from lab.graph.dependencies import needs_of
from lab.graph.ir import Atom, Equation, Graph, Var
from lab.graph.keys import drawn, draws
from lab.graph.make import ORIGIN, TRACING
from lab.graph.telling import now, tell

Replay = Callable[[Sequence[Any]], list[Any]]
Progress = Callable[[int, int], None]
"""Told how many parts are done, of how many."""

_log = logging.getLogger("lab.graph")


def run(graph: Graph, args: Sequence[Any]) -> list[Any]:
    """The outputs of a graph for its inputs, by applying each op: for tensors, tracers, under any transform.

    An error gets a note that names the equation and the line that it comes from.

    Args:
        args: one value for each of `graph.inputs`, those that were captured last; a key is drawn for what says so.

    Example:
        >>> import lab
        >>> graph = lab.make_graph(lambda x: lab.tanh(x) * 2.0)(1.0)
        >>> run(graph, [lab.tensor(0.0)])
        [tensor(0.)]
    """
    values: dict[int, Any] = {v.number: a for v, a in zip(graph.inputs, drawn(args), strict=True)}

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
        where = f", made by {told_place(e.origin)}" if e.origin else ""
        why.add_note(f"graph: {str(e).splitlines()[0]}{where}")


def run_arrays(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of a graph for arrays, by bare forwards.

    Example:
        >>> import lab
        >>> run_arrays(lab.make_graph(lambda x: x * 2.0)(1.0), [np.asarray(3.0)])
        [array(6.)]
    """
    return graph.once("steps", _steps)(arrays)


class Call(NamedTuple):
    """An equation, ready to be applied to slots."""

    equation: Equation
    forward: Callable[..., Any]
    inputs: tuple[int, ...]
    params: Mapping[str, Any]
    several: bool
    out: int

    def apply(self, slots: list[Any]) -> None:
        """Fill the slots of its results."""
        result = self.forward(*[slots[i] for i in self.inputs], **self.params)
        if self.several:
            for v, one in zip(self.equation.outs, result, strict=True):
                slots[v.number] = one
        else:
            slots[self.out] = result


class Calls(NamedTuple):
    """A graph as calls over slots: one for each variable, by its number, then those of constants.

    Attributes:
        blank: the slots before a run.
        starts, ends: slots of inputs and of outputs.
    """

    calls: list[Call]
    blank: list[Any]
    starts: list[int]
    ends: list[int]

    def slots(self, args: Sequence[Any]) -> list[Any]:
        """The slots of a run."""
        slots = self.blank.copy()
        for slot, a in zip(self.starts, args, strict=True):
            slots[slot] = a
        return slots


def calls_of(graph: Graph) -> Calls:
    """A graph as a flat list of calls.

    Example:
        >>> import lab
        >>> calls = calls_of(lab.make_graph(lambda x: x * 2.0)(1.0))
        >>> calls.blank, calls.starts, calls.calls[0].inputs, calls.ends
        ([None, None, 2.0], [0], (0, 2), [1])
    """
    n = graph.n_vars
    literals: list[Any] = []

    def place(a: Atom) -> int:
        if isinstance(a, Var):
            return a.number
        literals.append(a.value)
        return n + len(literals) - 1

    calls = [
        Call(e, e.op.forward, tuple(place(a) for a in e.inputs), e.params, e.op.several, e.outs[0].number)
        for e in graph.equations
    ]
    starts, ends = [v.number for v in graph.inputs], [place(a) for a in graph.outputs]
    return Calls(calls, [None] * n + literals, starts, ends)


def _steps(graph: Graph) -> Replay:
    """A graph as a function that makes its calls one by one."""
    made = calls_of(graph)
    calls, ends = made.calls, made.ends

    def replay(args: Sequence[Any]) -> list[Any]:
        slots = made.slots(args)
        for e, forward, inputs, params, several, out in calls:
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


def tell_arrays(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """What `run_arrays` gives, telling of each equation."""
    return graph.once("told", _told)(arrays)


def _told(graph: Graph) -> Replay:
    """The same function with a clock around each call."""
    made, needs = calls_of(graph), needs_of(graph)

    def replay(args: Sequence[Any]) -> list[Any]:
        slots = made.slots(args)
        spans, begun = [], now()
        for k, call in enumerate(made.calls):
            start = now()
            call.apply(slots)
            spans.append((k, 0, start, now()))
        outs = [np.asarray(slots[i]) for i in made.ends]
        tell("interpreted", graph, needs, spans, begun)
        return outs

    return replay


def arrays_of(args: Sequence[Any]) -> list[Any] | None:
    """The arrays and numbers of arguments on which nothing would be recorded; None where one is something else."""
    frozen, arrays = STATE.get().frozen >= 0, []
    for a in args:
        if type(a) is Tensor and (frozen or a.node is None):
            arrays.append(a.value)
        elif type(a) is float or type(a) is int:
            arrays.append(a)
        else:
            return None
    return arrays


def replayer(graph: Graph) -> Replaying:
    """What replays a graph on arrays by bare forwards, prepared once."""
    return Replaying(graph, partial(run_arrays, graph), partial(tell_arrays, graph))


class Replaying:
    """Runs a graph by `arrays` on arrays; by its ops on everything else, where ops are heard, and to say what is wrong.

    Attributes:
        arrays: from arrays to arrays, in silence; an output may be an input itself.
        told: the same, telling of each equation.
        prepare: does what the first run would do first, and says after each part how many are done, of how many.
    """

    __slots__ = ("_draws", "_graph", "_plain", "arrays", "prepare", "told")

    def __init__(
        self, graph: Graph, arrays: Replay, told: Replay, prepare: Callable[[Progress], None] = lambda _: None
    ) -> None:
        self._graph, self.arrays, self.told, self.prepare = graph, arrays, told, prepare
        self._draws = bool(draws(graph))
        self._plain = not any(e.op.collective for inner in graph.walk() for e in inner.equations)

    def ready(self) -> bool:
        """Whether arrays may be given to one of them now: no op meets other ranks, and nobody listens to ops."""
        return self._plain and not bus.operations

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        if self._draws:  # once, whoever runs it in the end
            args = drawn(args)
        arrays = arrays_of(args) if self.ready() else None
        if arrays is None:
            return run(self._graph, args)
        try:
            outs = (self.told if bus.equations else self.arrays)(arrays)
        except Exception as why:  # noqa: BLE001 - the ops say which of them it was, in the lab's words
            results = run(self._graph, args)
            _log.warning("a graph ran by its ops, which found nothing wrong: %s: %s", type(why).__name__, why)
            return results
        return [wrap(out) for out in outs]
