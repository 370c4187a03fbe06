"""Graphs as nodes, and what holds graphs: a branch becomes If, a loop Loop, and what was fused its equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.errors import UnsupportedError
from lab.graph.ir import Atom, Equation, Graph, Var
from lab.graph.verify import op_named
from lab.interop.nodes import picking, sliding
from lab.interop.nodes.building import Call, Nodes, require_dtype
from lab.interop.nodes.formulas import formula
from lab.interop.nodes.table import EMITTERS, REFUSED
from lab.interop.plain.text import place, remark
from lab.shapes import Spec

FILES = (picking, sliding)
"""Each enters its ops in the table by being imported."""


def write(nodes: Nodes, graph: Graph, operands: Sequence[str]) -> list[str]:
    """Add the nodes of a graph whose inputs have these names; the names of its outputs."""
    names = dict(zip((v.number for v in graph.inputs), operands, strict=True))

    def name(a: Atom) -> str:
        return names[a.number] if isinstance(a, Var) else nodes.constant(a.value)

    for e in graph.equations:
        refuse(e)
        nodes.origin = place(e.origin)
        if e.op.name in REGIONS:
            outs = REGIONS[e.op.name](nodes, e, [name(a) for a in e.inputs])
        else:
            call = Call(nodes, e, name)
            outs = [formula(call) if e.op.formula else EMITTERS[e.op.name](call)]
        names.update(zip((v.number for v in e.outs), outs, strict=True))
    return [name(a) for a in graph.outputs]


def refuse(e: Equation) -> None:
    """Refuse an equation that cannot be written.

    Raises:
        UnsupportedError: by name, and why.
    """
    name, known = e.op.name, op_named(e.op.name) is e.op
    if known and name in REFUSED:
        why = REFUSED[name]
    elif e.op.formula or (known and (name in REGIONS or name in EMITTERS)):
        for a in (*e.inputs, *e.outs):
            require_dtype(a.spec, name)
        return
    else:
        why = "it has no formula, and no operator of ONNX is known for it"
    raise UnsupportedError(
        f"{remark(name)} cannot be written in ONNX", given=why, hint="write what it does in ops of the table"
    )


def _body(nodes: Nodes, inside: Sequence[Any], inputs: Sequence[Any], outs: Sequence[tuple[str, Spec]]) -> Any:
    """The graph of a branch or a turn; its results get names of their own, as they may be values of outside."""
    ends, extra = [], []
    for out, spec in outs:
        own = nodes.fresh()
        extra.append(nodes.helper.make_node("Identity", [out], [own], name=nodes.fresh("Identity_")))
        ends.append(nodes.info(own, spec))
    return nodes.helper.make_graph([*inside, *extra], nodes.fresh("graph_"), list(inputs), ends)


def _fused(nodes: Nodes, e: Equation, given: Sequence[str]) -> list[str]:
    return write(nodes, e.params["body"], given)


def _cond(nodes: Nodes, e: Equation, given: Sequence[str]) -> list[str]:
    bodies = []
    for graph in (e.params["then"], e.params["otherwise"]):
        with nodes.scope() as inside:
            outs = write(nodes, graph, given[1:])
        bodies.append(_body(nodes, inside, (), [(o, v.spec) for o, v in zip(outs, e.outs, strict=True)]))
    return nodes.several("If", len(e.outs), given[0], then_branch=bodies[0], else_branch=bodies[1])


def _while(nodes: Nodes, e: Equation, given: Sequence[str]) -> list[str]:
    fixed, carry = given[: e.params["n_fixed"]], given[e.params["n_fixed"] :]
    goes_on = write(nodes, e.params["test"], given)[0]
    specs = [v.spec for v in e.outs]
    turn, before, names = nodes.fresh(), nodes.fresh(), [nodes.fresh() for _ in specs]
    with nodes.scope() as inside:
        outs = write(nodes, e.params["body"], [*fixed, *names])
        again = write(nodes, e.params["test"], [*fixed, *outs])[0]
    body = _body(nodes, inside, _inputs(nodes, turn, before, names, specs),
                 [(again, _ONE_BOOL), *zip(outs, specs, strict=True)])  # fmt: skip
    return nodes.several("Loop", len(specs), "", goes_on, *carry, body=body)


_ONE_BOOL = Spec((), np.dtype(bool))


def _inputs(nodes: Nodes, turn: str, before: str, names: Sequence[str], specs: Sequence[Spec]) -> list[Any]:
    """What each turn of a Loop is given: its number, whether it goes on, and what is carried."""
    first = [nodes.info(turn, Spec((), np.dtype(np.int64))), nodes.info(before, _ONE_BOOL)]
    return [*first, *(nodes.info(name, spec) for name, spec in zip(names, specs, strict=True))]


def _scan(nodes: Nodes, e: Equation, given: Sequence[str]) -> list[str]:
    p, n = e.params, e.params["n_fixed"]
    k, length = p["n_carry"], int(p["length"])
    carry, rows = given[n : n + k], given[n + k :]
    if not length:
        return [*carry, *(nodes.constant(np.zeros(v.spec.shape, v.spec.dtype)) for v in e.outs[k:])]
    specs = [v.spec for v in e.outs[:k]]
    turn, before, names = nodes.fresh(), nodes.fresh(), [nodes.fresh() for _ in specs]
    with nodes.scope() as inside:
        last = nodes.constant(length - 1, np.int64)
        at = nodes.node("Sub", last, turn) if p["reverse"] else turn
        seen = [nodes.node("Gather", x, at, axis=0) for x in rows]
        outs = write(nodes, p["body"], [*given[:n], *names, *seen])
    ends = [*specs, *(Spec(v.spec.shape[1:], v.spec.dtype) for v in e.outs[k:])]
    body = _body(nodes, inside, _inputs(nodes, turn, before, names, specs),
                 [(before, _ONE_BOOL), *zip(outs, ends, strict=True)])  # fmt: skip
    made = nodes.several("Loop", len(e.outs), nodes.constant(length, np.int64), "", *carry, body=body)
    if not p["reverse"]:
        return made
    back = nodes.constant(np.arange(length)[::-1])
    return [*made[:k], *(nodes.node("Gather", x, back, axis=0) for x in made[k:])]


REGIONS: dict[str, Callable[[Nodes, Equation, Sequence[str]], list[str]]] = {
    "fused": _fused, "cond": _cond, "while_loop": _while, "scan": _scan,
}  # fmt: skip
