"""A formula as LaTeX, for the lessons and the labels: the text that ran, in the form of a textbook."""

from __future__ import annotations

import ast

_SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(5)
"""How tightly a piece holds together; a looser piece inside a tighter one gets parentheses."""

_GREEK = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lambda", "mu", "nu", "pi", "rho", "sigma",
    "tau", "phi", "chi", "psi", "omega",
})  # fmt: skip
_CALLS = {
    "exp": r"e^{{{0}}}", "expm1": r"\left(e^{{{0}}} - 1\right)", "log": r"\ln\left({0}\right)",
    "log1p": r"\ln\left(1 + {0}\right)", "sqrt": r"\sqrt{{{0}}}", "abs": r"\left|{0}\right|",
    "sign": r"\operatorname{{sign}}\left({0}\right)", "floor": r"\left\lfloor {0} \right\rfloor",
    "sigmoid": r"\sigma\left({0}\right)", "maximum": r"\max\left({0}, {1}\right)",
    "minimum": r"\min\left({0}, {1}\right)",
    "where": r"\begin{{cases}} {1} & \text{{if }} {0} \\ {2} & \text{{else}} \end{{cases}}",
    "ceil": r"\left\lceil {0} \right\rceil", "exp2": r"2^{{{0}}}", "log2": r"\log_2\left({0}\right)",
    "log10": r"\log_{{10}}\left({0}\right)", "cbrt": r"\sqrt[3]{{{0}}}", "hypot": r"\left\|{0}, {1}\right\|",
    "logaddexp": r"\ln\left(e^{{{0}}} + e^{{{1}}}\right)", "xlogy": r"{0} \, \ln\left({1}\right)",
    "sinc_slope": r"\operatorname{{sinc}}^{{({1})}}\left({0}\right)",
    "logical_not": r"\lnot {0}", "logical_and": r"{0} \land {1}", "logical_or": r"{0} \lor {1}",
    "logical_xor": r"{0} \oplus {1}",
    **{name: rf"\{name}\left({{0}}\right)" for name in ("tanh", "sinh", "cosh", "sin", "cos", "tan")},
    **{f"arc{name}": rf"\arc{name}\left({{0}}\right)" for name in ("sin", "cos", "tan")},
    **{f"arc{name}": rf"\operatorname{{{{ar{name}}}}}\left({{0}}\right)" for name in ("sinh", "cosh", "tanh")},
    "arctan2": r"\operatorname{{atan2}}\left({0}, {1}\right)",
    **{name: rf"\operatorname{{{{{name}}}}}\left({{0}}\right)"
       for name in ("erf", "erfc", "rint", "trunc", "isnan", "isinf", "isfinite")},
}  # fmt: skip
_LOGIC = ("logical_not", "logical_and", "logical_or", "logical_xor")
_HELD = {
    "exp": _POWER, "exp2": _POWER, "sqrt": _POWER, "cbrt": _POWER, "xlogy": _PRODUCT, **dict.fromkeys(_LOGIC, -1),
}  # fmt: skip
"""How tightly what a function is written as holds together, where that is not like an atom."""
_HOLDS = {
    "log1p": _PRODUCT, "xlogy": _PRODUCT, **dict.fromkeys(_LOGIC, _SUM),
}
"""How tightly the arguments of a function must hold together, where it has no parentheses of its own."""
_CONSTANTS = {
    "ln2": r"\ln 2", "ln10": r"\ln 10", "inf": r"\infty", "sqrt2": r"\sqrt{2}", "sqrtpi": r"\sqrt{\pi}",
    "sqrt2pi": r"\sqrt{2 \pi}",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: r"\le", ast.Gt: ">", ast.GtE: r"\ge", ast.Eq: "=", ast.NotEq: r"\ne",
}  # fmt: skip


def latex(node: ast.expr) -> str:
    r"""LaTeX of a formula's tree.

    Example:
        >>> print(latex(ast.parse("ct * (1 - out ** 2) / sqrt(x)", mode="eval").body))
        \frac{\mathrm{ct} \, \left(1 - \mathrm{out}^{2}\right)}{\sqrt{x}}
    """
    return _write(node)[0]


def _write(node: ast.expr) -> tuple[str, int]:
    match node:
        case ast.Name(id=name):
            return _CONSTANTS.get(name) or (rf"\{name}" if name in _GREEK else _word(name)), _ATOM
        case ast.Constant(value=value):
            return _number(value), _ATOM
        case ast.UnaryOp(operand=operand):
            return f"-{_inside(operand, _PRODUCT)}", _UNARY if _write(operand)[1] > _PRODUCT else _SUM
        case ast.Compare(left=left, ops=ops, comparators=rest):
            parts = [f" {_COMPARE[type(op)]} {latex(right)}" for op, right in zip(ops, rest, strict=True)]
            return latex(left) + "".join(parts), -1
        case ast.Call(func=ast.Name(id=name), args=arguments):
            held = _HELD.get(name, _ATOM)
            inner = [_inside(a, _HOLDS[name]) if name in _HOLDS else latex(a) for a in arguments]
            return _CALLS[name].format(*inner), held
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return rf"\frac{{{latex(left)}}}{{{latex(right)}}}", _PRODUCT
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"{_inside(left, _ATOM)}^{{{latex(right)}}}", _POWER
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            sign = r"\cdot" if isinstance(right, ast.Constant) else r"\,"
            return f"{_inside(left, _PRODUCT)} {sign} {_inside(right, _PRODUCT)}", _PRODUCT
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign, tight = ("+", _PRODUCT) if isinstance(op, ast.Add) else ("-", _PRODUCT)
            return f"{_inside(left, _SUM)} {sign} {_inside(right, tight)}", _SUM
    raise AssertionError(f"a formula holds no {type(node).__name__}")


def _inside(node: ast.expr, tight: int) -> str:
    text, held = _write(node)
    if tight == _PRODUCT and text.startswith("-"):
        held = _SUM  # a - (-b), a (-b)
    return text if held >= tight else rf"\left({text}\right)"


def _word(name: str) -> str:
    return name if len(name) == 1 else rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"


def _number(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else repr(value)
    mantissa, e, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else text
