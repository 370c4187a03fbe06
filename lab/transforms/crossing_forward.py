"""Forward mode at a region: the same region below, which carries the tangents along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.autograd.forward import Forward
from lab.autograd.interpreter import Tracer, newest
from lab.graph.execute import run
from lab.graph.ir import Graph
from lab.graph.regions import COND, SCAN, WHILE, Region
from lab.transforms.retracing import floats, is_of, lowered, push, retraced, spec_of, zeros


def cond(top: Forward, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A branch that chooses between values with their tangents."""
    primals, (_, *operands) = lowered(args, top), args
    live = [i for i, v in enumerate(operands) if is_of(v, top)]
    n = len(operands)

    def pushed(graph: Graph) -> Graph:
        def both(*values: Any) -> list[Any]:
            outs, slopes = push(graph, values[:n], dict(zip(live, values[n:], strict=True)))
            return outs + slopes

        return retraced(both, [*graph.inputs, *(graph.inputs[i].spec for i in live)])

    given = [*primals, *(operands[i].extra for i in live)]
    made = COND(*given, **{name: pushed(graph) for name, graph in params.items()})
    n_outs = len(params["then"].outputs)
    return _joined(top, COND, primals, params, given, made[:n_outs], made[n_outs:])


def _joined(
    top: Forward,
    op: Region,
    primals: Sequence[Any],
    params: dict[str, Any],
    given: Sequence[Any],
    outs: Sequence[Any],
    slopes: Sequence[Any],
) -> list[Any]:
    """Results with their tangents."""
    # Where the tangents are traced and the values are those of a level below, as in `linearize`, they stay there.
    made = list(outs if newest(primals) is newest(given) else op(*primals, **params))
    for k, slope in zip(floats(made), slopes, strict=True):
        made[k] = Tracer(top, made[k], slope)
    return made


def while_loop(top: Forward, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A loop that carries the tangents of what it carries."""
    test, body, n_fixed = params["test"], params["body"], params["n_fixed"]
    primals = lowered(args, top)
    live = [i for i in range(n_fixed) if is_of(args[i], top)]
    carry = primals[n_fixed:]
    slots = floats(carry)
    n, n_live = len(carry), len(live)

    def split(values: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
        """The inputs of the graphs inside, and the tangents of some of them."""
        fixed, ts, rest, slopes = parts(values, n_fixed, n_live, n)
        return [*fixed, *rest], {**dict(zip(live, ts, strict=True)), **_at(slots, slopes, n_fixed)}

    def going(*values: Any) -> list[Any]:
        return run(test, split(values)[0])

    def turn(*values: Any) -> list[Any]:
        outs, slopes = push(body, *split(values))
        return outs + slopes

    given = [*primals[:n_fixed], *(args[i].extra for i in live), *carry, *tangents_of(top, args[n_fixed:], slots)]
    specs = inner_specs(body.inputs[:n_fixed], live, body.inputs[n_fixed:], slots)
    made = WHILE(*given, test=retraced(going, specs), body=retraced(turn, specs), n_fixed=n_fixed + n_live)
    return _joined(top, WHILE, primals, params, given, made[:n], made[n:])


def scan(top: Forward, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A scan that carries tangents, and gives a row of them for each row."""
    body, n_fixed, n_carry = params["body"], params["n_fixed"], params["n_carry"]
    n = n_fixed + n_carry
    primals = lowered(args, top)
    live = [i for i in range(n_fixed) if is_of(args[i], top)]
    scanned = [i for i in range(n, len(args)) if is_of(args[i], top)]
    slots, n_rows = floats(primals[n_fixed:n]), len(args) - n
    n_live, n_slots = len(live), len(slots)

    def turn(*values: Any) -> list[Any]:
        fixed, ts, carry, slopes, rows, steps = parts(values, n_fixed, n_live, n_carry, n_slots, n_rows)
        tangents = {**dict(zip([*live, *scanned], [*ts, *steps], strict=True)), **_at(slots, slopes, n_fixed)}
        outs, made = push(body, [*fixed, *carry, *rows], tangents)
        return [*outs[:n_carry], *made[:n_slots], *outs[n_carry:], *made[n_slots:]]

    given = [*primals[:n_fixed], *(args[i].extra for i in live)]
    given += [*primals[n_fixed:n], *tangents_of(top, args[n_fixed:n], slots)]
    given += [*primals[n:], *(args[i].extra for i in scanned)]
    specs = inner_specs(body.inputs[:n_fixed], live, body.inputs[n_fixed:n], slots)
    specs += [*body.inputs[n:], *(body.inputs[i].spec for i in scanned)]
    inner = {**params, "body": retraced(turn, specs), "n_fixed": n_fixed + n_live, "n_carry": n_carry + n_slots}
    made = SCAN(*given, **inner)
    carry, slopes, rows, steps = parts(made, n_carry, n_slots, len(body.outputs) - n_carry)
    return _joined(top, SCAN, primals, params, given, [*carry, *rows], [*slopes, *steps])


def parts(values: Sequence[Any], *lengths: int) -> list[list[Any]]:
    """Values cut into parts of these lengths, and the rest.

    Example:
        >>> parts([1, 2, 3, 4], 1, 2)
        [[1], [2, 3], [4]]
    """
    found, start = [], 0
    for length in lengths:
        found.append(list(values[start : start + length]))
        start += length
    return [*found, list(values[start:])]


def _at(slots: Sequence[int], slopes: Sequence[Any], start: int) -> dict[int, Any]:
    return {start + k: slope for k, slope in zip(slots, slopes, strict=True)}


def tangents_of(top: Forward, values: Sequence[Any], slots: Sequence[int]) -> list[Any]:
    """The tangent of each of these, zeros where it has none: a turn may give it one."""
    lower = lowered(values, top)
    return [values[k].extra if is_of(values[k], top) else zeros(spec_of(lower[k]), lower) for k in slots]


def inner_specs(fixed: Sequence[Any], live: Sequence[int], carry: Sequence[Any], slots: Sequence[int]) -> list[Any]:
    """What a turn takes: the fixed, the tangents of some, the carry, the tangents of its floats."""
    return [*fixed, *(fixed[i].spec for i in live), *carry, *(carry[k].spec for k in slots)]
