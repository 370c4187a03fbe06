"""What makes a graph legal: a table of rules, each a sentence and a check, asked after every pass and every load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lab.errors import GraphError, LabError
from lab.graph.ir import Equation, Graph, Var
from lab.graph.make import operand_spec
from lab.graph.regions import REGIONS, Region
from lab.graph.values import leaves_of
from lab.graph.views import look_of
from lab.ops.primitive import PRIMITIVES, Op
from lab.shapes import Spec

LEGAL: dict[str, Callable[[Graph], Iterator[str]]] = {}
"""Every rule by its sentence: a generator of what offends against it."""


def op_named(name: str) -> Op | None:
    """The op of this name, of the table or one that holds graphs."""
    return PRIMITIVES.get(name) or REGIONS.get(name)


def verify(graph: Graph, *, after: str = "") -> None:
    """Check that a graph is legal, and every graph inside it.

    Args:
        after: the pass that made it, for the error.

    Raises:
        GraphError: it is not; the text says which rule, and the equation.

    Example:
        >>> import lab
        >>> verify(lab.make_graph(lambda x: x + 1.0)(1.0))
        >>> a, b = Var(0, Spec((), np.dtype(float))), Var(1, Spec((), np.dtype(float)))
        >>> verify(Graph((a,), (), (b,)))
        Traceback (most recent call last):
            ...
        lab.errors.GraphError: a graph is not legal: what is used is defined before
        given: the output b
        hint:  compare it with what lab.make_graph(f)(x) gives
    """
    for inner in graph.walk():
        for sentence, offences in LEGAL.items():
            for offence in offences(inner):
                raise GraphError(
                    f"a graph is not legal{f' after {after}' if after else ''}: {sentence}",
                    given=offence,
                    hint="a mistake of the pass" if after else "compare it with what lab.make_graph(f)(x) gives",
                )


def legal(sentence: str) -> Callable[[Callable[[Graph], Iterator[str]]], Callable[[Graph], Iterator[str]]]:
    """Enter a rule in the table."""

    def enter(offences: Callable[[Graph], Iterator[str]]) -> Callable[[Graph], Iterator[str]]:
        LEGAL[sentence] = offences
        return offences

    return enter


def _first_line(e: Equation) -> str:
    return str(e).splitlines()[0]


@legal("what is used is defined before")
def _defined(graph: Graph) -> Iterator[str]:
    known = set(graph.inputs)
    for e in graph.equations:
        yield from (f"{a} in {_first_line(e)}" for a in e.inputs if isinstance(a, Var) and a not in known)
        known.update(e.outs)
    yield from (f"the output {a}" for a in graph.outputs if isinstance(a, Var) and a not in known)


@legal("a variable is defined once")
def _once(graph: Graph) -> Iterator[str]:
    seen: set[int] = set()
    for v in graph.variables():
        if v.number in seen:
            yield str(v)
        seen.add(v.number)


@legal("every captured value has an input of its shape and dtype")
def _captured(graph: Graph) -> Iterator[str]:
    if len(graph.captured) > len(graph.inputs):
        yield f"{len(graph.captured)} values for {len(graph.inputs)} inputs"
        return
    for v, value in zip(graph.inputs[len(graph.inputs) - len(graph.captured) :], graph.captured, strict=True):
        if (tuple(value.shape), np.dtype(value.dtype)) != v.spec:
            yield f"{v} takes {value.dtype} {tuple(value.shape)}"


@legal("a graph inside another takes all that it needs as operands")
def _closed(graph: Graph) -> Iterator[str]:
    for e in graph.equations:
        yield from (f"{name} of {_first_line(e)}" for name, inner in e.graphs.items() if inner.captured)


@legal("operands and parameters are those of the op")
def _arguments(graph: Graph) -> Iterator[str]:
    for e in graph.equations:
        op = e.op
        if not op.variadic and len(e.inputs) != len(op.arguments):
            yield f"{len(e.inputs)} operands in {_first_line(e)}"
        known = {*op.defaults, *op.fixed}
        if set(e.params) != known:
            yield f"parameters {sorted(e.params)} for {sorted(known)} in {_first_line(e)}"
        for name, value in e.params.items():
            if (isinstance(op, Region) and name in op.graphs) != isinstance(value, Graph):
                yield f"{name} in {_first_line(e)}"
            elif not isinstance(value, Graph):
                yield from (f"{name} in {_first_line(e)}" for leaf in leaves_of(value) if not _holdable(leaf))


def _holdable(value: Any) -> bool:
    """Whether it is a number, a text, an array of numbers, None or "..."."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiub"
    return value is None or value is ... or isinstance(value, bool | int | float | str | np.generic)


@legal("the shape and dtype of a result are what the op makes of its operands")
def _typed(graph: Graph) -> Iterator[str]:
    for e in graph.equations:
        try:
            made = specs_made(e)
        except LabError as why:
            yield f"{_first_line(e)}: {why.problem}"
            continue
        except Exception as why:  # noqa: BLE001 - parameters of any kind may have been read from a file
            yield f"{_first_line(e)}: {why}"
            continue
        if made != tuple(v.spec for v in e.outs):
            yield f"{_first_line(e)} makes {', '.join(f'{s.dtype}{list(s.shape)}' for s in made)}"


def specs_made(e: Equation) -> tuple[Spec, ...]:
    """Shape and dtype of what an equation makes, by the rule of its op."""
    made: Any = e.op.shape(*(operand_spec(e.op, a) for a in e.inputs), **e.params)
    specs = made if e.op.several else (made,)
    return tuple(Spec(tuple(s.shape), np.dtype(s.dtype)) for s in specs)


@legal("a buffer is written only when nobody needs what is in it")
def _buffers(graph: Graph) -> Iterator[str]:
    last: dict[int, int] = {}
    for k, e in enumerate(graph.equations):
        last.update({a.number: k for a in e.inputs if isinstance(a, Var)})
    last.update({a.number: len(graph.equations) for a in graph.outputs if isinstance(a, Var)})
    holds: dict[int, tuple[int, Var]] = {}
    lies: dict[Var, int] = {}
    for k, e in enumerate(graph.equations):
        if len(e.buffer) not in (0, len(e.outs)):
            yield f"{len(e.buffer)} buffers for {len(e.outs)} results in {_first_line(e)}"
        for v, place in zip(e.outs, e.buffer, strict=False):
            if place < 0:
                continue
            until, held = holds.get(place, (-1, v))
            x = e.inputs[0] if e.inputs else None
            if isinstance(x, Var) and lies.get(x) == place and look_of(e) is not None:
                until = max(until, last.get(v.number, k))  # a view: what it looks at is needed as long
                holds[place] = until, v
            else:
                if until > k or (until == k and held in e.outs):
                    yield f"buffer {place} still holds {held} in {_first_line(e)}"
                holds[place] = last.get(v.number, k), v
            lies[v] = place
