"""Elementwise ops: a node for each step of the formula. What ONNX has no operator for is made of those that it has.

onnxruntime has some operators in float32 alone; in float64 their identities stand in, exact to some units in the last
place also where a plain one would cancel.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.errors import UnsupportedError
from lab.interop.nodes.building import Call, Nodes, only_single
from lab.kernels.formula import CONSTANTS

F64 = np.dtype(np.float64)
BOOL = np.dtype(bool)
DIRECT = {
    "abs": "Abs", "sign": "Sign", "floor": "Floor", "ceil": "Ceil", "rint": "Round", "sqrt": "Sqrt", "exp": "Exp",
    "log": "Log", "sin": "Sin", "tanh": "Tanh", "maximum": "Max", "minimum": "Min",
}  # fmt: skip
BINARY: dict[type[ast.AST], str] = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow"}
COMPARED: dict[type[ast.AST], str] = {
    ast.Lt: "Less", ast.LtE: "LessOrEqual", ast.Gt: "Greater", ast.GtE: "GreaterOrEqual", ast.Eq: "Equal",
    ast.NotEq: "Equal",
}  # fmt: skip
LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
SINGLE = frozenset({"erf", "erfc"})
"""Functions that onnxruntime has in float32 only, and that no identity replaces."""
WITHOUT = frozenset({"sinc_slope"})
"""Functions of formulas that cannot be written."""


def formula(c: Call) -> str:
    """The nodes of an elementwise op."""
    walk = Walk(c)
    name, is_bool = walk.visit(ast.parse(c.e.op.formula, mode="eval").body)
    if c.out.dtype == BOOL:
        return name if is_bool else c.nodes.cast(name, BOOL)
    return c.nodes.cast(name, c.out.dtype) if is_bool or walk.dtype != c.out.dtype else name


def dtype_inside(c: Call) -> np.dtype[Any]:
    """The dtype in which a formula is computed: that of its result, or that in which what it compares can be."""
    if c.out.dtype != BOOL:
        return c.out.dtype
    kinds = [a.spec.dtype.type(1).item() if a.weak else a.spec.dtype for a in c.e.inputs]
    found = np.result_type(*kinds)
    if any(f in c.e.op.formula for f in ("isnan", "isinf", "isfinite")) and found.kind != "f":
        return F64
    return np.dtype(np.int64) if found == BOOL else found


class Walk:
    """One pass over the tree of a formula; each step gives a name, and whether it is a bool."""

    def __init__(self, c: Call) -> None:
        self.c, self.nodes = c, c.nodes
        self.dtype = dtype_inside(c)
        self.math = Functions(c.nodes, self.dtype, c.e.op.name)
        self._operands: dict[str, str] = {}

    def visit(self, node: ast.AST) -> tuple[str, bool]:
        """The nodes of one expression."""
        if isinstance(node, ast.Constant | ast.Name):
            return self._leaf(node)
        if isinstance(node, ast.UnaryOp):
            return self.nodes.node("Neg", self.number(node.operand)), False
        if isinstance(node, ast.BinOp):
            kind = BINARY[type(node.op)]
            return self.nodes.node(kind, self.number(node.left), self.number(node.right)), False
        if isinstance(node, ast.Compare):
            kind = COMPARED[type(node.ops[0])]
            found = self.nodes.node(kind, self.number(node.left), self.number(node.comparators[0]))
            return (self.nodes.node("Not", found) if isinstance(node.ops[0], ast.NotEq) else found), True
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return self._call(node.func.id, node.args)

    def number(self, node: ast.AST) -> str:
        """An expression as a number."""
        name, is_bool = self.visit(node)
        return self.nodes.cast(name, self.dtype) if is_bool else name

    def truth(self, node: ast.AST) -> str:
        """An expression as a bool, as the value it has."""
        if isinstance(node, ast.Name) and node.id in self.c.e.op.arguments:
            i = self.c.e.op.arguments.index(node.id)
            if self.c.spec(i).dtype == BOOL:
                return self.c.x(i)
        name, is_bool = self.visit(node)
        return name if is_bool else self.nodes.cast(name, BOOL)

    def _leaf(self, node: ast.Constant | ast.Name) -> tuple[str, bool]:
        if isinstance(node, ast.Constant):
            return self.nodes.constant(node.value, self.dtype), False
        if node.id in self.c.e.op.arguments:
            if node.id not in self._operands:
                i = self.c.e.op.arguments.index(node.id)
                self._operands[node.id] = self.c.x(i, self.dtype)
            return self._operands[node.id], False
        value = self.c.e.params[node.id] if node.id in self.c.e.params else CONSTANTS[node.id]
        return self.nodes.constant(value, self.dtype), False

    def _call(self, name: str, args: list[ast.expr]) -> tuple[str, bool]:
        node = self.nodes.node
        if name == "where":
            condition, yes, no = args
            return node("Where", self.truth(condition), self.number(yes), self.number(no)), False
        if name == "logical_not":
            return node("Not", self.truth(args[0])), True
        if name in LOGIC:
            return node(LOGIC[name], *map(self.truth, args)), True
        xs = [self.number(a) for a in args]
        if name in ("isnan", "isinf"):
            return node("IsNaN" if name == "isnan" else "IsInf", *xs), True
        if name == "isfinite":
            return self.math.isfinite(xs[0]), True
        if name in DIRECT:
            return node(DIRECT[name], *xs), False
        return self.math.call(name, xs), False


class Functions:
    """Functions that ONNX has not, or not in every dtype, made of operators that it has."""

    def __init__(self, nodes: Nodes, dtype: np.dtype[Any], op: str) -> None:
        self.nodes, self.dtype, self.op = nodes, dtype, op
        self.node = nodes.node

    def call(self, name: str, xs: list[str]) -> str:
        """The nodes of a function by its name in formulas."""
        native = _NATIVE.get(name)
        if native and self.dtype != F64:
            return self.node(native, *xs)
        if name in WITHOUT or not hasattr(self, name):
            raise UnsupportedError(f"{self.op} cannot be written in ONNX", given=f"its formula calls {name}",
                                   hint="export_numpy can write it")  # fmt: skip
        if name in SINGLE:
            only_single(self.dtype, self.op)
        made: Callable[..., str] = getattr(self, name)
        return made(*xs)

    def k(self, value: float) -> str:
        """A number."""
        return self.nodes.constant(value, self.dtype)

    def isfinite(self, x: str) -> str:
        return self.node("Not", self.node("Or", self.node("IsNaN", x), self.node("IsInf", x)))

    def erf(self, x: str) -> str:
        return self.node("Erf", x)

    def erfc(self, x: str) -> str:
        return self.node("Sub", self.k(1), self.node("Erf", x))

    def trunc(self, x: str) -> str:
        down, up = self.node("Floor", x), self.node("Ceil", x)
        return self.node("Where", self.node("Less", x, self.k(0)), up, down)

    def cbrt(self, x: str) -> str:
        return self.node("Mul", self.node("Sign", x), self.node("Pow", self.node("Abs", x), self.k(1 / 3)))

    def exp2(self, x: str) -> str:
        return self.node("Pow", self.k(2), x)

    def expm1(self, x: str) -> str:  # tanh(x / 2) (exp(x) + 1), which does not cancel
        half = self.node("Tanh", self.node("Mul", x, self.k(0.5)))
        return self.node("Mul", half, self.node("Add", self.node("Exp", x), self.k(1)))

    def log2(self, x: str) -> str:
        return self.node("Div", self.node("Log", x), self.k(math.log(2)))

    def log10(self, x: str) -> str:
        return self.node("Div", self.node("Log", x), self.k(math.log(10)))

    def log1p(self, x: str) -> str:
        """Kahan's: with u = 1 + x rounded, log(u) x / (u - 1) makes good what the rounding lost."""
        u = self.node("Add", self.k(1), x)
        exact = self.node("Or", self.node("Equal", u, self.k(1)), self.node("IsInf", u, detect_negative=0))
        gap = self.node("Where", exact, self.k(1), self.node("Sub", u, self.k(1)))
        mended = self.node("Mul", self.node("Log", u), self.node("Div", x, gap))
        return self.node("Where", exact, x, mended)

    def logaddexp(self, x: str, y: str) -> str:
        gap = self.node("Neg", self.node("Abs", self.node("Sub", x, y)))
        apart = self.node("Add", self.node("Max", x, y), self.log1p(self.node("Exp", gap)))
        return self.node("Where", self.node("Equal", x, y), self.node("Add", x, self.k(math.log(2))), apart)

    def xlogy(self, x: str, y: str) -> str:
        none = self.node("And", self.node("Equal", x, self.k(0)), self.node("Not", self.node("IsNaN", y)))
        return self.node("Mul", x, self.node("Log", self.node("Where", none, self.k(1), y)))

    def hypot(self, x: str, y: str) -> str:
        endless = self.node("Or", self.node("IsInf", x), self.node("IsInf", y))  # whatever the other one is
        x, y = self.node("Abs", x), self.node("Abs", y)
        large, small = self.node("Where", endless, self.k(math.inf), self.node("Max", x, y)), self.node("Min", x, y)
        plain = self.node("Or", self.node("Equal", large, self.k(0)), endless)
        ratio = self.node("Div", small, self.node("Where", plain, self.k(1), large))
        root = self.node("Sqrt", self.node("Add", self.k(1), self.node("Mul", ratio, ratio)))
        return self.node("Where", plain, large, self.node("Mul", large, root))

    def tan(self, x: str) -> str:
        return self.node("Div", self.node("Sin", x), self.cos(x))

    def cos(self, x: str) -> str:  # 1 - 2 sin(x / 2)**2
        half = self.node("Sin", self.node("Mul", x, self.k(0.5)))
        return self.node("Sub", self.k(1), self.node("Mul", self.k(2), self.node("Mul", half, half)))

    def cosh(self, x: str) -> str:
        both = self.node("Add", self.node("Exp", x), self.node("Exp", self.node("Neg", x)))
        return self.node("Mul", both, self.k(0.5))

    def sinh(self, x: str) -> str:
        return self.node("Mul", self.node("Tanh", x), self.cosh(x))

    def arcsinh(self, x: str) -> str:
        a = self.node("Abs", x)
        square = self.node("Mul", a, a)
        root = self.node("Sqrt", self.node("Add", square, self.k(1)))
        more = self.node("Div", square, self.node("Add", self.k(1), root))
        found = self._or_of_large(a, self.log1p(self.node("Add", a, more)))
        return self.node("Mul", self.node("Sign", x), found)

    def arccosh(self, x: str) -> str:
        t = self.node("Sub", x, self.k(1))
        root = self.node("Sqrt", self.node("Mul", t, self.node("Add", t, self.k(2))))
        found = self._or_of_large(x, self.log1p(self.node("Add", t, root)))
        return self.node("Where", self.node("Less", x, self.k(1)), self.k(math.nan), found)

    def _or_of_large(self, x: str, found: str) -> str:
        """Of large numbers log(2 x), which both are but for what rounding loses; their squares would overflow."""
        plain = self.node("Add", self.node("Log", x), self.k(math.log(2)))
        return self.node("Where", self.node("Greater", x, self.k(1e9)), plain, found)

    def arctanh(self, x: str) -> str:
        a = self.node("Abs", x)
        ratio = self.node("Div", self.node("Add", a, a), self.node("Sub", self.k(1), a))
        half = self.node("Mul", self.node("Sign", x), self.k(0.5))
        return self.node("Mul", half, self.log1p(ratio))

    def arctan(self, x: str) -> str:
        """In float64 that of float32 and one step of Newton, whose error is that of the cube of 1e-7."""
        if self.dtype != F64:
            return self.node("Atan", x)
        large = self.node("Greater", self.node("Abs", x), self.k(1))
        small = self.node("Where", large, self.node("Div", self.k(1), self.node("Where", large, x, self.k(1))), x)
        first = self.nodes.cast(self.node("Atan", self.nodes.cast(small, np.float32)), F64)
        sin, cos = self.node("Sin", first), self.cos(first)
        above = self.node("Sub", self.node("Mul", small, cos), sin)
        below = self.node("Add", cos, self.node("Mul", small, sin))
        found = self.node("Add", first, self.node("Div", above, below))
        turned = self.node("Sub", self.node("Mul", self.node("Sign", x), self.k(math.pi / 2)), found)
        return self.node("Where", large, turned, found)

    def arcsin(self, x: str) -> str:
        product = self.node("Mul", self.node("Sub", self.k(1), x), self.node("Add", self.k(1), x))
        return self.arctan(self.node("Div", x, self.node("Sqrt", product)))

    def arccos(self, x: str) -> str:
        ratio = self.node("Div", self.node("Sub", self.k(1), x), self.node("Add", self.k(1), x))
        return self.node("Mul", self.k(2), self.arctan(self.node("Sqrt", ratio)))

    def arctan2(self, y: str, x: str) -> str:
        """By the quadrant, in which also zeros have a sign; two infinities count as equally long."""
        left, below = self._is_negative(x), self._is_negative(y)
        both = self.node("And", self.node("IsInf", x), self.node("IsInf", y))
        flat = self.node("And", self.node("Equal", y, self.k(0)), self.node("Not", self.node("IsNaN", x)))
        rise, run = (self.node("Where", both, self.k(1), self.node("Abs", v)) for v in (y, x))
        angle = self.arctan(self.node("Where", flat, self.k(0), self.node("Div", rise, run)))
        angle = self.node("Where", left, self.node("Sub", self.k(math.pi), angle), angle)
        return self.node("Where", below, self.node("Neg", angle), angle)

    def _is_negative(self, x: str) -> str:
        """Whether a number or a zero has a minus: 1 / -0.0 is below 0."""
        zero = self.k(0)
        return self.node("Or", self.node("Less", x, zero), self.node("Less", self.node("Div", self.k(1), x), zero))

    def sigmoid(self, x: str) -> str:
        """In float64 from exp: the operator has few digits of small results."""
        if self.dtype != F64:
            return self.node("Sigmoid", x)
        small = self.node("Exp", self.node("Neg", self.node("Abs", x)))
        above = self.node("Where", self.node("GreaterOrEqual", x, self.k(0)), self.k(1), small)
        return self.node("Div", above, self.node("Add", self.k(1), small))


_NATIVE = {
    "cos": "Cos", "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh", "arcsin": "Asin", "arccos": "Acos", "arcsinh": "Asinh",
    "arccosh": "Acosh", "arctanh": "Atanh",
}  # fmt: skip
"""Operators that onnxruntime has in float32."""
