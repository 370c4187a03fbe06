"""Reverse mode at a region: one node on the tape, whose rule is a region again that goes the same way backwards.

What happened inside is run again by the rule, from the operands: a branch once; a scan turn by turn, from carries that
the forward stacks; a while_loop, which has no place for its carries, from its start for each turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.autograd.reverse import Reverse
from lab.config import STATE
from lab.graph.execute import run
from lab.graph.ir import Graph
from lab.graph.regions import COND, SCAN, WHILE, Region
from lab.shapes import Spec
from lab.transforms.crossing_forward import parts
from lab.transforms.retracing import floats, is_of, lowered, pull, retraced, spec_of, zeros
from lab.transforms.several import Back, recorded

COUNT = Spec((), np.dtype(np.int64))


def _called(
    top: Reverse,
    op: Region,
    args: Sequence[Any],
    params: dict[str, Any],
    forward: Callable[..., tuple[list[Any], Any]],
    backward: Back,
) -> list[Any]:
    """The results of a region: `forward(*operands) -> (results, kept)`, and `backward` as the rule of its node."""
    lower = lowered(args, top)
    if STATE.get().frozen >= top.level:
        return list(op(*lower, **params))
    outs, kept = forward(*lower)
    return recorded(op, top, args, lower, outs, kept, backward)


def _wanted(top: Reverse, args: Sequence[Any], start: int, stop: int | None = None) -> list[int]:
    """The places of operands whose cotangent is asked for."""
    return [i for i in range(start, len(args) if stop is None else stop) if is_of(args[i], top)]


def _filled(cotangents: dict[int, Any], places: Sequence[int], atoms: Sequence[Any], among: Sequence[Any]) -> list[Any]:
    """The cotangents of some results, zeros for those that nothing came back to."""
    beside = [*among, *cotangents.values()]
    return [cotangents[k] if k in cotangents else zeros(spec_of(atoms[k]), beside) for k in places]


# --- a branch -----------------------------------------------------------------------------------------------------


def cond(top: Reverse, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A branch; backwards the branch between both ways back."""
    wanted = _wanted(top, args, 1)
    outs = params["then"].outputs
    slots, n = floats(outs), len(args) - 1

    def forward(*lower: Any) -> tuple[list[Any], Any]:
        return list(COND(*lower, **params)), lower

    def pulled(graph: Graph) -> Graph:
        def back(*values: Any) -> list[Any]:
            return pull(graph, values[:n], [i - 1 for i in wanted], values[n:])

        return retraced(back, [*graph.inputs, *(outs[k].spec for k in slots)])

    def backward(lower: Any, cotangents: dict[int, Any]) -> dict[int, Any]:
        both = {name: pulled(graph) for name, graph in params.items()}
        return dict(zip(wanted, COND(*lower, *_filled(cotangents, slots, outs, lower), **both), strict=True))

    return _called(top, COND, args, params, forward, backward)


# --- a scan -------------------------------------------------------------------------------------------------------


def scan(top: Reverse, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A scan that stacks its carries, too; backwards a scan from the last row to the first."""
    body, n_fixed, n_carry = params["body"], params["n_fixed"], params["n_carry"]
    n, n_outs = n_fixed + n_carry, len(body.outputs)
    fixed, rows = _wanted(top, args, 0, n_fixed), _wanted(top, args, n)
    slots = floats(body.outputs)
    carried = [k for k in slots if k < n_carry]
    made_specs = SCAN.fit([spec_of(a) for a in args], **params)
    stacking = Graph(body.inputs, body.equations, (*body.outputs, *body.inputs[n_fixed:n]))

    def forward(*lower: Any) -> tuple[list[Any], Any]:
        made = SCAN(*lower, **{**params, "body": stacking})
        return list(made[:n_outs]), (lower, made[n_outs:])

    def turn(*values: Any) -> list[Any]:
        first, cts, sums, carry, xs, steps = parts(
            values, n_fixed, len(carried), len(fixed), n_carry, len(body.inputs) - n
        )
        inputs = [*first, *carry, *xs]
        found = pull(body, inputs, [*fixed, *(n_fixed + k for k in carried), *rows], [*cts, *steps])
        to_fixed, to_carry, to_rows = parts(found, len(fixed), len(carried))
        return [*to_carry, *(s + c for s, c in zip(sums, to_fixed, strict=True)), *to_rows]

    def backward(kept: Any, cotangents: dict[int, Any]) -> dict[int, Any]:
        lower, stacks = kept
        beside = [*lower, *stacks, *cotangents.values()]
        cts = _filled(cotangents, slots, made_specs, beside)
        sums = [zeros(body.inputs[i].spec, beside) for i in fixed]
        given = [*lower[:n_fixed], *cts[: len(carried)], *sums, *stacks, *lower[n:], *cts[len(carried) :]]
        specs = [*body.inputs[:n_fixed], *(body.outputs[k].spec for k in carried)]
        specs += [*(body.inputs[i].spec for i in fixed), *body.inputs[n_fixed:]]
        specs += [body.outputs[k].spec for k in slots[len(carried) :]]
        inner = {"body": retraced(turn, specs), "n_fixed": n_fixed, "n_carry": len(carried) + len(fixed)}
        made = SCAN(*given, **inner, length=params["length"], reverse=not params["reverse"])
        places = [*(n_fixed + k for k in carried), *fixed, *rows]
        return dict(zip(places, made, strict=True))

    return _called(top, SCAN, args, params, forward, backward)


# --- a loop of unknown length -------------------------------------------------------------------------------------


def while_loop(top: Reverse, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A loop that counts its turns; backwards as many, each from the carry that is computed again from the start."""
    test, body, n_fixed = params["test"], params["body"], params["n_fixed"]
    fixed, slots = _wanted(top, args, 0, n_fixed), floats(args[n_fixed:])
    first, carry = body.inputs[:n_fixed], body.inputs[n_fixed:]

    def counting(*values: Any) -> list[Any]:
        start, (k, *rest) = values[:n_fixed], values[n_fixed:]
        return [k + 1, *run(body, [*start, *rest])]

    def going(*values: Any) -> list[Any]:
        return run(test, [*values[:n_fixed], *values[n_fixed + 1 :]])

    def forward(*lower: Any) -> tuple[list[Any], Any]:
        specs = [*first, COUNT, *carry]
        given = [*lower[:n_fixed], np.zeros((), np.int64), *lower[n_fixed:]]
        n_turns, *outs = WHILE(*given, test=retraced(going, specs), body=retraced(counting, specs), n_fixed=n_fixed)
        return outs, (lower, n_turns)

    def before(*values: Any) -> list[Any]:
        """Whether the carry of turn `stop` is not reached yet."""
        return [values[n_fixed + 1] < values[n_fixed]]

    def nearer(*values: Any) -> list[Any]:
        start, (_, k, *rest) = values[:n_fixed], values[n_fixed:]
        return [k + 1, *run(body, [*start, *rest])]

    again = [*first, COUNT, COUNT, *carry]
    n_in = n_fixed + len(carry)

    def left(*values: Any) -> list[Any]:
        return [values[n_in] > 0]

    def turn(*values: Any) -> list[Any]:
        operands, (k, *rest) = values[:n_in], values[n_in:]
        cts, sums = parts(rest, len(slots))
        start, stop = operands[:n_fixed], k - 1
        loop = {"test": retraced(before, again), "body": retraced(nearer, again), "n_fixed": n_fixed + 1}
        _, *here = WHILE(*start, stop, np.zeros((), np.int64), *operands[n_fixed:], **loop)
        found = pull(body, [*start, *here], [*fixed, *(n_fixed + k for k in slots)], cts)
        to_fixed, to_carry = parts(found, len(fixed))
        return [stop, *to_carry, *(s + c for s, c in zip(sums, to_fixed, strict=True))]

    def backward(kept: Any, cotangents: dict[int, Any]) -> dict[int, Any]:
        lower, n_turns = kept
        beside = [*lower, n_turns, *cotangents.values()]
        sums = [zeros(spec_of(lower[i]), beside) for i in fixed]
        specs = [*body.inputs, COUNT, *(carry[k].spec for k in slots), *(first[i].spec for i in fixed)]
        given = [*lower, n_turns, *_filled(cotangents, slots, carry, beside), *sums]
        made = WHILE(*given, test=retraced(left, specs), body=retraced(turn, specs), n_fixed=n_in)
        return dict(zip([*(n_fixed + k for k in slots), *fixed], made[1:], strict=True))

    return _called(top, WHILE, args, params, forward, backward)
