"""A formula as an expression of sympy: the text that ran, in the form that algebra can work on.

Numbers are exact, as they are written; sympy is imported when the first expression is made.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lab.errors import UnsupportedError


def exact(value: Any) -> Any:
    """A number as written: 0.5 is 1/2, 0.1 is 1/10."""
    import sympy

    if isinstance(value, bool | np.bool_):
        return sympy.true if value else sympy.false
    number = float(value)
    return sympy.Rational(repr(number)) if np.isfinite(number) else sympy.Float(number)


def integer(value: Any) -> Any:
    """0, 1 and their like."""
    import sympy

    return sympy.Integer(int(value))


def built(node: ast.expr, names: Mapping[str, Any], *, plain: bool) -> Any:
    """The expression of a formula's tree; `plain`: products and sums as they are written, not simplified."""
    import sympy

    def inside(child: ast.expr) -> Any:
        return built(child, names, plain=plain)

    match node:
        case ast.Constant(value=value):
            return exact(value)
        case ast.Name(id=name):
            return names[name] if name in names else _constants()[name]
        case ast.UnaryOp(operand=operand):
            return _product(integer(-1), inside(operand)) if plain else -inside(operand)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _relation(op)(inside(left), inside(right))
        case ast.Call(func=ast.Name(id="where"), args=[condition, then, other]):
            return _where(inside(condition), lambda: inside(then), lambda: inside(other))
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in functions():
            return functions()[name](*map(inside, arguments))
        case ast.BinOp(left=left, op=op, right=right):
            a, b = inside(left), inside(right)
            if isinstance(op, ast.Pow):
                return sympy.Pow(a, b)
            if isinstance(op, ast.Mult | ast.Div):
                b = b if isinstance(op, ast.Mult) else sympy.Pow(b, -1)
                return _product(a, b) if plain else a * b
            b = b if isinstance(op, ast.Add) else -b
            return added(a, b) if plain else a + b
    raise UnsupportedError("a formula cannot be written as an expression", given=ast.unparse(node), hint="use .diff()")


def _product(a: Any, b: Any) -> Any:
    """A product with nothing simplified but 0 and 1."""
    import sympy

    if 0 in (a, b):
        return integer(0)
    return b if a == 1 else a if b == 1 else sympy.Mul(a, b, evaluate=False)


def added(a: Any, b: Any) -> Any:
    """A sum with nothing simplified but 0."""
    import sympy

    return b if a == 0 else a if b == 0 else sympy.Add(a, b, evaluate=False)


def _where(condition: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """A choice; a branch that is known not to be taken is not built."""
    import sympy

    if condition in (True, False) or condition in (sympy.true, sympy.false):
        return then() if condition else other()
    return sympy.Piecewise((then(), condition), (other(), True))


def _relation(op: ast.cmpop) -> Callable[[Any, Any], Any]:
    import sympy

    names = {ast.Lt: "Lt", ast.LtE: "Le", ast.Gt: "Gt", ast.GtE: "Ge", ast.Eq: "Eq", ast.NotEq: "Ne"}
    found: Callable[[Any, Any], Any] = getattr(sympy, names[type(op)])
    return found


def _constants() -> dict[str, Any]:
    import sympy

    return {"pi": sympy.pi, "ln2": sympy.log(2), "ln10": sympy.log(10), "inf": sympy.oo, "nan": sympy.nan,
            "sqrt2": sympy.sqrt(2), "sqrtpi": sympy.sqrt(sympy.pi), "sqrt2pi": sympy.sqrt(2 * sympy.pi)}  # fmt: skip


def functions() -> dict[str, Callable[..., Any]]:
    """What the functions of formulas mean here; the symbols are real and finite."""
    import sympy

    inverse = {f"arc{n}": getattr(sympy, f"a{n}") for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
    words = ["sign", "floor", "sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "erfc"]
    same = {n: getattr(sympy, n) for n in words}
    return {
        **same, **inverse, "abs": sympy.Abs, "ceil": sympy.ceiling, "arctan2": sympy.atan2, "maximum": sympy.Max,
        "minimum": sympy.Min, "logical_not": sympy.Not, "logical_and": sympy.And, "logical_or": sympy.Or,
        "logical_xor": sympy.Xor, "isnan": lambda x: sympy.false, "isinf": lambda x: sympy.false,
        "isfinite": lambda x: sympy.true,
        "cbrt": lambda x: sympy.sign(x) * sympy.Abs(x) ** sympy.Rational(1, 3),
        "hypot": lambda x, y: sympy.sqrt(x**2 + y**2),
        "exp2": lambda x: 2**x,
        "expm1": lambda x: sympy.exp(x) - 1,
        "log2": lambda x: sympy.log(x) / sympy.log(2),
        "log10": lambda x: sympy.log(x) / sympy.log(10),
        "log1p": lambda x: sympy.log(1 + x),
        "logaddexp": lambda x, y: sympy.log(sympy.exp(x) + sympy.exp(y)),
        "xlogy": lambda x, y: x * sympy.log(y),
        "sigmoid": lambda x: 1 / (1 + sympy.exp(-x)),
    }  # fmt: skip
