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
    turns = _Turns(top, args, params)
    return _called(top, SCAN, args, params, turns.forward, turns.backward)


class _Turns:
    """A scan taken apart.

    Attributes:
        fixed, rows: places of operands whose cotangent is asked for.
        carried, made: places of the floats among the results: those carried, those with a row for each turn.
    """

    def __init__(self, top: Reverse, args: Sequence[Any], params: dict[str, Any]) -> None:
        self.params, self.body = params, params["body"]
        self.n_fixed, self.n_carry = params["n_fixed"], params["n_carry"]
        self.start = self.n_fixed + self.n_carry
        self.fixed, self.rows = _wanted(top, args, 0, self.n_fixed), _wanted(top, args, self.start)
        slots = floats(self.body.outputs)
        self.carried = [k for k in slots if k < self.n_carry]
        self.made = slots[len(self.carried) :]
        self.results = SCAN.fit([spec_of(a) for a in args], **params)

    def forward(self, *lower: Any) -> tuple[list[Any], Any]:
        """(results, (operands, the carries with which the turns began))."""
        body = self.body
        stacking = Graph(body.inputs, body.equations, (*body.outputs, *body.inputs[self.n_fixed : self.start]))
        made = SCAN(*lower, **{**self.params, "body": stacking})
        return list(made[: len(body.outputs)]), (lower, made[len(body.outputs) :])

    def backward(self, kept: Any, cotangents: dict[int, Any]) -> dict[int, Any]:
        """The cotangents of operands; those of fixed ones are summed up over the turns."""
        lower, stacks = kept
        beside, body = [*lower, *stacks, *cotangents.values()], self.body
        sums = [zeros(body.inputs[i].spec, beside) for i in self.fixed]
        carried, made = (_filled(cotangents, places, self.results, beside) for places in (self.carried, self.made))
        given = [*lower[: self.n_fixed], *carried, *sums, *stacks, *lower[self.start :], *made]
        specs = [*body.inputs[: self.n_fixed], *(body.outputs[k].spec for k in self.carried)]
        specs += [*(body.inputs[i].spec for i in self.fixed), *body.inputs[self.n_fixed :]]
        specs += [body.outputs[k].spec for k in self.made]
        inner = {**self.params, "body": retraced(self.back, specs), "n_carry": len(carried) + len(sums)}
        found = SCAN(*given, **{**inner, "reverse": not self.params["reverse"]})
        return dict(zip([*(self.n_fixed + k for k in self.carried), *self.fixed, *self.rows], found, strict=True))

    def back(self, *values: Any) -> list[Any]:
        """One turn: from the cotangents of its results to those of what it took."""
        lengths = self.n_fixed, len(self.carried), len(self.fixed), len(self.body.inputs) - self.n_fixed
        fixed, carried, sums, inputs, made = parts(values, *lengths)
        wanted = [*(self.n_fixed + k for k in self.carried), *self.fixed, *self.rows]
        found = pull(self.body, [*fixed, *inputs], wanted, [*carried, *made])
        to_carry, to_fixed, to_rows = parts(found, len(carried), len(sums))
        return [*to_carry, *added(sums, to_fixed), *to_rows]


def added(sums: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    """Sums with one more of each."""
    return [s + c for s, c in zip(sums, more, strict=True)]


# --- a loop of unknown length -------------------------------------------------------------------------------------


def while_loop(top: Reverse, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """A loop that counts its turns; backwards as many, each from the carry that is computed again from the start."""
    loop = _Loop(top, args, params)
    return _called(top, WHILE, args, params, loop.forward, loop.backward)


class _Loop:
    """A while_loop taken apart.

    Attributes:
        fixed: places of operands whose cotangent is asked for, of those that are the same in every turn.
        slots: places of floats in the carry.
    """

    def __init__(self, top: Reverse, args: Sequence[Any], params: dict[str, Any]) -> None:
        self.test, self.body, self.n_fixed = params["test"], params["body"], params["n_fixed"]
        self.fixed = _wanted(top, args, 0, self.n_fixed)
        self.first, self.carry = self.body.inputs[: self.n_fixed], self.body.inputs[self.n_fixed :]
        self.slots = floats(self.carry)
        self.wanted = [*(self.n_fixed + k for k in self.slots), *self.fixed]

    def forward(self, *lower: Any) -> tuple[list[Any], Any]:
        """(results, (operands, number of turns))."""

        def going(*values: Any) -> list[Any]:
            fixed, _, carry = parts(values, self.n_fixed, 1)
            return run(self.test, [*fixed, *carry])

        fixed, carry = parts(lower, self.n_fixed)
        n_turns, *outs = self._counting(going, fixed, carry)
        return outs, (lower, n_turns)

    def _counting(
        self, going: Callable[..., list[Any]], fixed: Sequence[Any], carry: Sequence[Any], *limit: Any
    ) -> tuple[Any, ...]:
        """(number of turns, last carry) of the loop, as long as `going(*limit, *fixed, number, *carry)`."""
        n_fixed = len(limit) + self.n_fixed

        def turn(*values: Any) -> list[Any]:
            fixed, (n,), carry = parts(values[len(limit) :], self.n_fixed, 1)
            return [n + 1, *run(self.body, [*fixed, *carry])]

        specs = [*(COUNT for _ in limit), *self.first, COUNT, *self.carry]
        given = [*limit, *fixed, np.zeros((), COUNT.dtype), *carry]
        return tuple(WHILE(*given, test=retraced(going, specs), body=retraced(turn, specs), n_fixed=n_fixed))

    def backward(self, kept: Any, cotangents: dict[int, Any]) -> dict[int, Any]:
        """The cotangents of operands; those of fixed ones are summed up over the turns."""
        lower, n_turns = kept
        beside, n = [*lower, n_turns, *cotangents.values()], len(lower)
        sums = [zeros(self.first[i].spec, beside) for i in self.fixed]
        specs = [*self.body.inputs, COUNT, *(self.body.inputs[i].spec for i in self.wanted)]
        given = [*lower, n_turns, *_filled(cotangents, self.slots, self.carry, beside), *sums]
        left = retraced(lambda *values: [values[n] > 0], specs)
        found = WHILE(*given, test=left, body=retraced(self.back, specs), n_fixed=n)
        return dict(zip(self.wanted, found[1:], strict=True))

    def back(self, *values: Any) -> list[Any]:
        """One turn: from the cotangents of the carry after it to those of the carry before it."""
        operands, (n,), cts, sums = parts(values, len(self.body.inputs), 1, len(self.slots))
        fixed, start = parts(operands, self.n_fixed)
        before = n - 1
        _, *here = self._counting(lambda *v: [v[1 + self.n_fixed] < v[0]], fixed, start, before)
        to_carry, to_fixed = parts(pull(self.body, [*fixed, *here], self.wanted, cts), len(cts))
        return [before, *to_carry, *added(sums, to_fixed)]
