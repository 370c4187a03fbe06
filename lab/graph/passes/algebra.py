"""Algebraic simplification, by a table of rules: each says what it does and under which condition it is allowed.

Exact rules keep every bit, nan and inf included. The others hold for real numbers, and not for all floats; they are
applied only where somebody calls `relaxed_algebra`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.graph.ir import Atom, Equation, Graph, Literal
from lab.graph.passes.pipeline import graph_pass
from lab.graph.rewriting import Rewriter, constant
from lab.ops import PRIMITIVES

Simplify = Callable[[Rewriter, Equation], "Atom | Equation | None"]
"""What an equation becomes: a value that is there already, an equation with other operands, or None: it stays."""


@dataclasses.dataclass(frozen=True)
class Rule:
    """One simplification.

    Attributes:
        ops: names of the ops that it looks at.
        says: what becomes what.
        allowed: under which condition.
        exact: no bit of any result changes.
        simplify: the rule.
    """

    ops: tuple[str, ...]
    says: str
    allowed: str
    exact: bool
    simplify: Simplify


RULES: list[Rule] = []
"""Every rule, in the order in which they are tried."""


def rule(*ops: str, says: str, allowed: str = "always", exact: bool = True) -> Callable[[Simplify], Simplify]:
    """Enter a rule in the table."""

    def enter(simplify: Simplify) -> Simplify:
        RULES.append(Rule(ops, says, allowed, exact, simplify))
        return simplify

    return enter


def _simplified(graph: Graph, *, relaxed: bool) -> Graph:
    """The graph with every rule applied where it can be."""
    by_op: dict[str, list[Rule]] = {}
    for r in RULES:
        if r.exact != relaxed:
            for name in r.ops:
                by_op.setdefault(name, []).append(r)
    new = Rewriter(graph)
    for e in graph.equations:
        _enter(new, e, by_op)
    return new.done()


def _enter(new: Rewriter, e: Equation, by_op: dict[str, list[Rule]]) -> None:
    now = new.seen(e)
    for r in by_op.get(e.op.name, ()):
        found = r.simplify(new, now)
        if found is None:
            continue
        if isinstance(found, Equation):
            (out,) = new.emit(found.op, found.inputs, found.params, like=[e])
            new.stand(e.out, out)
            return
        if isinstance(found, Literal) and not found.spec.shape and found.spec.dtype == e.out.spec.dtype:
            found = Literal(np.broadcast_to(found.value, e.out.spec.shape))
        if found.spec == e.out.spec and not found.weak:
            made = new.maker(found)
            if made is not None:
                new.marks(made, e)
            new.stand(e.out, found)
            return
    new.keep(e)


@graph_pass("algebra")
def algebra(graph: Graph) -> Graph:
    """Simplifications that keep every bit.

    Example:
        >>> import lab
        >>> print(algebra(lab.make_graph(lambda x: (x * 1.0).reshape((1, 1)).reshape((1,)))(lab.tensor([2.0]))))
        graph(a:f64[1]) { let
            c:f64[1,1] = reshape(a, shape=(1, 1))
          in (a) }
    """
    return _simplified(graph, relaxed=False)


def relaxed_algebra(graph: Graph) -> Graph:
    """Simplifications that hold for real numbers; nan, inf, the sign of zero and the last digits may differ.

    Example:
        >>> import lab
        >>> print(relaxed_algebra(lab.make_graph(lambda x: x * 2.0 * 3.0 + 0.0)(1.0)))
        graph(a:f64[]) { let
            b:f64[] = multiply(a, 2.0)
            e:f64[] = multiply(a, 6.0:f64[])
          in (e) }
    """
    return _simplified(graph, relaxed=True)


def like(e: Equation, op: str, *inputs: Atom, **params: Any) -> Equation:
    """An equation for the same result."""
    return dataclasses.replace(e, op=PRIMITIVES[op], inputs=inputs, params=params)


def made_by(new: Rewriter, a: Atom, op: str) -> Equation | None:
    """The equation that made a value, if it is of this op."""
    e = new.maker(a)
    return e if e is not None and e.op.name == op else None


# --- neutral elements ---------------------------------------------------------------------------------------------


@rule("multiply", says="x * 1 -> x", allowed="the 1 changes neither shape nor dtype")
def _times_one(_: Rewriter, e: Equation) -> Atom | None:
    a, b = e.inputs
    return a if constant(b) == 1 else b if constant(a) == 1 else None


@rule("divide", says="x / 1 -> x", allowed="the 1 changes neither shape nor dtype")
def _over_one(_: Rewriter, e: Equation) -> Atom | None:
    return e.inputs[0] if constant(e.inputs[1]) == 1 else None


@rule("subtract", says="x - 0 -> x", allowed="the zero is +0, and changes neither shape nor dtype")
def _less_zero(_: Rewriter, e: Equation) -> Atom | None:
    zero = constant(e.inputs[1])
    return e.inputs[0] if zero == 0 and math.copysign(1.0, zero) > 0 else None


@rule("add", says="x + (-0) -> x", allowed="the zero is -0 or an integer; x + 0 changes the sign of -0")
def _plus_negative_zero(_: Rewriter, e: Equation) -> Atom | None:
    for x, zero in (e.inputs, e.inputs[::-1]):
        c = constant(zero)
        if c == 0 and (e.out.spec.dtype.kind in "iu" or math.copysign(1.0, c) < 0):
            return x
    return None


@rule("power", says="x ** 1 -> x")
def _first_power(_: Rewriter, e: Equation) -> Atom | None:
    return e.inputs[0] if constant(e.inputs[1]) == 1 else None


@rule("power", says="x ** 2 -> x * x", allowed="floats; NumPy squares, too")
def _second_power(_: Rewriter, e: Equation) -> Equation | None:
    x, n = e.inputs
    fits = constant(n) == 2 and x.spec == e.out.spec and e.out.spec.dtype.kind == "f"
    return like(e, "multiply", x, x) if fits else None


# --- signs --------------------------------------------------------------------------------------------------------


@rule("negative", says="-(-x) -> x", allowed="floats, for which it only flips a bit")
def _twice_negative(new: Rewriter, e: Equation) -> Atom | None:
    inner = made_by(new, e.inputs[0], "negative")
    return inner.inputs[0] if inner and e.out.spec.dtype.kind == "f" else None


@rule("multiply", says="x * (-1) -> -x", allowed="floats; the -1 changes neither shape nor dtype")
def _times_minus_one(_: Rewriter, e: Equation) -> Equation | None:
    for x, one in (e.inputs, e.inputs[::-1]):
        if constant(one) == -1 and x.spec == e.out.spec and e.out.spec.dtype.kind == "f" and not x.weak:
            return like(e, "negative", x)
    return None


@rule("add", says="x + (-y) -> x - y", allowed="floats")
def _plus_negative(new: Rewriter, e: Equation) -> Equation | None:
    for x, y in (e.inputs, e.inputs[::-1]):
        inner = made_by(new, y, "negative")
        if inner and e.out.spec.dtype.kind == "f":
            return like(e, "subtract", x, inner.inputs[0])
    return None


@rule("subtract", says="x - (-y) -> x + y", allowed="floats")
def _less_negative(new: Rewriter, e: Equation) -> Equation | None:
    inner = made_by(new, e.inputs[1], "negative")
    return like(e, "add", e.inputs[0], inner.inputs[0]) if inner and e.out.spec.dtype.kind == "f" else None


@rule("multiply", "divide", says="(-x) * (-y) -> x * y", allowed="floats; a nan keeps being one")
def _both_negative(new: Rewriter, e: Equation) -> Equation | None:
    x, y = (made_by(new, a, "negative") for a in e.inputs)
    return like(e, e.op.name, x.inputs[0], y.inputs[0]) if x and y and e.out.spec.dtype.kind == "f" else None


@rule("divide", says="x / 2**k -> x * 2**-k", allowed="floats, and 2**-k is a normal number of the result's dtype")
def _over_power_of_two(_: Rewriter, e: Equation) -> Equation | None:
    x, c = e.inputs[0], constant(e.inputs[1])
    dtype = e.out.spec.dtype
    if not c or not math.isfinite(c) or dtype.kind != "f" or math.frexp(abs(c))[0] != 0.5 or x.spec != e.out.spec:
        return None
    about = np.finfo(dtype.name)
    if not float(about.tiny) <= abs(1.0 / c) <= float(about.max) or not float(about.tiny) <= abs(c) <= float(about.max):
        return None
    return like(e, "multiply", x, Literal(_fixed(1.0 / c, dtype)))


# --- what is there already ----------------------------------------------------------------------------------------


@rule("maximum", "minimum", says="max(x, x) -> x")
def _same_twice(_: Rewriter, e: Equation) -> Atom | None:
    return e.inputs[0] if e.inputs[0] == e.inputs[1] else None


@rule("where", says="where(c, x, x) -> x; where(True, x, y) -> x", allowed="neither shape nor dtype changes")
def _one_choice(_: Rewriter, e: Equation) -> Atom | None:
    c, x, y = e.inputs
    if x == y:
        return x
    if isinstance(c, Literal) and np.size(c.value):
        return x if np.all(c.value) else None if np.any(c.value) else y
    return None


@rule("logical_and", says="x and False -> False", allowed="bools")
def _never(_: Rewriter, e: Equation) -> Atom | None:
    never = any(isinstance(a, Literal) and a.spec.dtype.kind == "b" and not np.any(a.value) for a in e.inputs)
    return Literal(_filled(False, e)) if never and e.out.spec.size else None


# --- not for every float ------------------------------------------------------------------------------------------


@rule("add", says="x + 0 -> x", allowed="the sign of -0 is lost", exact=False)
def _plus_zero(_: Rewriter, e: Equation) -> Atom | None:
    a, b = e.inputs
    return a if constant(b) == 0 else b if constant(a) == 0 else None


@rule("subtract", says="x - x -> 0", allowed="x is finite", exact=False)
def _less_itself(_: Rewriter, e: Equation) -> Atom | None:
    return Literal(_filled(0.0, e)) if e.inputs[0] == e.inputs[1] else None


@rule("multiply", says="x * 0 -> 0", allowed="x is finite, and no -0 is wanted", exact=False)
def _times_zero(_: Rewriter, e: Equation) -> Atom | None:
    return Literal(_filled(0.0, e)) if 0 in map(constant, e.inputs) else None


@rule("multiply", "add", says="(x * a) * b -> x * (a b)", allowed="rounding and overflow may differ", exact=False)
def _constants_together(new: Rewriter, e: Equation) -> Equation | None:
    for x, outer in (e.inputs, e.inputs[::-1]):
        inner = made_by(new, x, e.op.name)
        b = constant(outer)
        if inner is None or b is None:
            continue
        for y, a in (inner.inputs, inner.inputs[::-1]):
            c = constant(a)
            if c is not None and y.spec == e.out.spec and e.out.spec.dtype.kind == "f":
                both = c * b if e.op.name == "multiply" else c + b
                return like(e, e.op.name, y, Literal(_fixed(both, e.out.spec.dtype)))
    return None


def _fixed(number: float, dtype: Any) -> Any:
    value = np.asarray(number, dtype)
    value.flags.writeable = False
    return value


def _filled(number: float | bool, e: Equation) -> Any:
    return np.broadcast_to(np.asarray(number, e.out.spec.dtype), e.out.spec.shape)
