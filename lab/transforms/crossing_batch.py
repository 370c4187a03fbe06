"""vmap at a region: the same region below, of graphs that do it for all members at once.

Where members may go different ways both branches run and each member's values are chosen, and a loop goes on as long
as any member does, while those that are done keep their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.autograd.batch import Batch
from lab.autograd.interpreter import Tracer
from lab.graph.execute import run
from lab.graph.ir import Graph, Var
from lab.graph.regions import COND, SCAN, WHILE
from lab.ops import broadcast_to, transpose
from lab.ops.counts import any_
from lab.shapes import Spec
from lab.transforms.retracing import Members, is_of, lowered, retraced, spec_of
from lab.transforms.unknown import chosen, shielded


def _specs(inputs: Sequence[Var], mapped: Sequence[bool], size: int) -> list[Any]:
    """What a graph takes for all members at once."""
    return [Spec((size, *v.spec.shape), v.spec.dtype) if m else v for v, m in zip(inputs, mapped, strict=True)]


def _spread(values: Sequence[Any], top: Batch, mapped: Sequence[bool]) -> list[Any]:
    """Operands one level below; with the axis of the members where the graphs inside want it."""
    lower = lowered(values, top)
    return [
        broadcast_to(v, shape=(top.size, *spec_of(v).shape)) if m and not is_of(x, top) else v
        for x, v, m in zip(values, lower, mapped, strict=True)
    ]


def cond(top: Batch, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The branch of all members where they share the condition, else both."""
    then, otherwise = params["then"], params["otherwise"]
    if is_of(args[0], top):
        return both(args[0], then, otherwise, args[1:])
    mapped = [is_of(v, top) for v in args[1:]]

    def for_all(graph: Graph) -> Graph:
        def branch(*values: Any) -> list[Any]:
            members = Members(top)
            return [members.off(o) for o in members.run(graph, members.on(values, mapped))]

        return retraced(branch, _specs(graph.inputs, mapped, top.size))

    made = COND(*lowered(args, top), then=for_all(then), otherwise=for_all(otherwise))
    return [Tracer(top, o) for o in made]


def both(condition: Any, then: Graph, otherwise: Graph, operands: Sequence[Any]) -> list[Any]:
    """What each member takes of two branches, both of which run."""
    yes = run(then, shielded(condition, True, operands, then))
    return chosen(condition, yes, run(otherwise, shielded(condition, False, operands, otherwise)))


def _settled(body: Graph, top: Batch, mapped: list[bool], n_fixed: int, n_carry: int) -> list[bool]:
    """Which inputs of a turn are mapped, when a carry that a turn makes mapped is so from the start."""
    while True:
        found: list[bool] = []

        def look(*values: Any, mapped: Sequence[bool] = tuple(mapped), found: list[bool] = found) -> list[Any]:
            members = Members(top)
            outs = members.run(body, members.on(values, mapped))[:n_carry]
            found += map(members.is_mapped, outs)
            return [members.off(o, mapped=False) for o in outs]

        retraced(look, _specs(body.inputs, mapped, top.size))
        carry = [m or f for m, f in zip(mapped[n_fixed : n_fixed + n_carry], found, strict=True)]
        after = [*mapped[:n_fixed], *carry, *mapped[n_fixed + n_carry :]]
        if after == mapped:
            return mapped
        mapped = after


def while_loop(top: Batch, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A loop over the turns of all members."""
    test, body, n_fixed = params["test"], params["body"], params["n_fixed"]
    n_carry = len(args) - n_fixed
    mapped = _settled(body, top, [is_of(v, top) for v in args], n_fixed, n_carry)
    different: list[bool] = []

    def going(*values: Any) -> list[Any]:
        members = Members(top)
        (go,) = members.run(test, members.on(values, mapped))
        different[:] = [members.is_mapped(go)]
        return [any_(go.value, axis=0) if different[0] else go]

    retraced(going, _specs(test.inputs, mapped, top.size))
    if different[0]:  # a carry that is the same for all becomes each member's own: some are done earlier
        mapped = [*mapped[:n_fixed], *([True] * n_carry)]

    def turn(*values: Any) -> list[Any]:
        members = Members(top)
        inside = members.on(values, mapped)
        if not different[0]:
            outs = members.run(body, inside)
        else:
            (go,) = members.run(test, inside)
            outs = chosen(go, members.run(body, shielded(go, True, inside, body)), inside[n_fixed:])
        return [members.off(o, m) for o, m in zip(outs, mapped[n_fixed:], strict=True)]

    specs = _specs(body.inputs, mapped, top.size)
    given = _spread(args, top, mapped)
    made = WHILE(*given, test=retraced(going, specs), body=retraced(turn, specs), n_fixed=n_fixed)
    return [Tracer(top, o) if m else o for o, m in zip(made, mapped[n_fixed:], strict=True)]


def scan(top: Batch, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A scan whose rows hold those of all members."""
    body, n_fixed, n_carry = params["body"], params["n_fixed"], params["n_carry"]
    n = n_fixed + n_carry
    mapped = _settled(body, top, [is_of(v, top) for v in args], n_fixed, n_carry)
    given = _spread(args[:n], top, mapped[:n])
    given += [_swapped(x.value) if is_of(x, top) else x for x in args[n:]]
    n_rows = len(body.outputs) - n_carry
    shared = [*mapped[n_fixed:n], *([True] * n_rows)]

    def turn(*values: Any) -> list[Any]:
        members = Members(top)
        outs = members.run(body, members.on(values, mapped))
        return [members.off(o, m) for o, m in zip(outs, shared, strict=True)]

    made = SCAN(*given, **{**params, "body": retraced(turn, _specs(body.inputs, mapped, top.size))})
    carry = [Tracer(top, o) if m else o for o, m in zip(made[:n_carry], shared, strict=False)]
    return [*carry, *(Tracer(top, _swapped(o)) for o in made[n_carry:])]


def _swapped(x: Any) -> Any:
    """The first two axes in the place of each other: rows of members, and members of rows."""
    return transpose(x, axes=(1, 0, *range(2, len(x.shape))))
