"""Formulas in text: the one source of an elementwise op's forward, rule, tangent, kernel, label and LaTeX.

A formula is a Python expression over a few names and whitelisted functions; it is parsed once and compiled against
whatever namespace gives the functions their meaning: NumPy's, the ops', or scalar functions inside a numba loop.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

from lab.errors import FormulaError

FUNCTIONS: tuple[str, ...] = (
    "abs", "sign", "floor", "ceil", "rint", "trunc", "sqrt", "cbrt", "hypot",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "xlogy",
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinc_slope",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
    "sigmoid", "erf", "erfc", "maximum", "minimum", "where",
    "isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or", "logical_xor",
)  # fmt: skip
"""The functions that a formula may call; `namespaces.py` gives each its NumPy and its scalar meaning."""

ARITY: Mapping[str, int] = {
    "where": 3,
    **dict.fromkeys(
        ("maximum", "minimum", "hypot", "arctan2", "logaddexp", "xlogy", "sinc_slope", "logical_and", "logical_or",
         "logical_xor"), 2,
    ),
}  # fmt: skip
"""How many arguments a function takes, where it is not one."""

CONSTANTS: Mapping[str, float] = {
    "pi": math.pi, "ln2": math.log(2.0), "ln10": math.log(10.0), "inf": math.inf, "nan": math.nan,
    "sqrt2": math.sqrt(2.0), "sqrtpi": math.sqrt(math.pi), "sqrt2pi": math.sqrt(2.0 * math.pi),
}  # fmt: skip
"""Numbers that a formula may name."""

_ALLOWED: tuple[type[ast.AST], ...] = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Name, ast.Load, ast.Constant,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


class Formula:
    """One parsed formula.

    Attributes:
        text: as written.
        names: the names that it mentions, functions and constants not included; what a rule must have saved follows
            from this.
        functions: the functions that it calls.

    Raises:
        FormulaError: not an expression, or something outside the whitelist.

    Example:
        >>> f = Formula("1.0 - out * out")
        >>> sorted(f.names)
        ['out']
        >>> f.compile({}, ("out",))(0.5)
        0.75
    """

    __slots__ = ("functions", "names", "text", "tree")

    def __init__(self, text: str) -> None:
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError as why:
            raise FormulaError("a formula must be one Python expression", given=text, hint=str(why)) from None
        called: set[str] = set()
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED):
                raise FormulaError(
                    "a formula may only use names, numbers, + - * / **, comparisons and known functions",
                    given=f"{text} ({type(node).__name__})",
                )
            if isinstance(node, ast.Call):
                if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
                    raise FormulaError("a formula calls an unknown function", given=text, hint=", ".join(FUNCTIONS))
                called.add(node.func.id)
            if isinstance(node, ast.Constant) and not isinstance(node.value, int | float):
                raise FormulaError("constants of a formula are numbers", given=f"{node.value!r} in {text}")
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        self.text, self.tree = text, tree
        self.functions, self.names = frozenset(called), frozenset(used - called - CONSTANTS.keys())

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"

    @property
    def latex(self) -> str:
        r"""The formula as LaTeX.

        Example:
            >>> print(Formula("1.0 - out * out").latex)
            1 - \mathrm{out} \, \mathrm{out}
        """
        from lab.kernels.latex import latex

        return latex(self.tree.body)

    def compile(self, namespace: Mapping[str, Any], arguments: tuple[str, ...]) -> Callable[..., Any]:
        """A plain function of `arguments` in which the formula's functions mean what `namespace` says.

        Raises:
            FormulaError: the formula mentions a name that is no argument, or an argument has a constant's name.
        """
        clash = CONSTANTS.keys() & set(arguments)
        if clash:
            raise FormulaError("an argument has the name of a constant of formulas", given=", ".join(sorted(clash)))
        unknown = self.names - set(arguments)
        if unknown:
            raise FormulaError(
                "a formula mentions a name that is no argument", given=f"{sorted(unknown)} in {self.text}"
            )
        scope = {name: namespace[name] for name in self.functions}
        function: Callable[..., Any] = eval(  # noqa: S307 - the tree holds whitelisted nodes only
            compile(
                ast.parse(f"lambda {', '.join(arguments)}: {self.text}", mode="eval"), f"<formula {self.text}>", "eval"
            ),
            {"__builtins__": {}, **CONSTANTS, **scope},
        )
        return function
