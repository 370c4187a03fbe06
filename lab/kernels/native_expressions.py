"""Expressions of Python as LLVM, with the types known from the start; the lines around them are `native_lowering.py`.

What is known while a loop is written (numbers of Python, dtypes, functions) is computed then. Functions are written
where they are called, each with its own freedoms of arithmetic.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.kernels import ahead, running, scalars, special
from lab.kernels.kernel import FASTMATH, HELPERS
from lab.kernels.native_frame import Frame, flat, part
from lab.kernels.native_math import asked_for, called, same_bits
from lab.kernels.native_values import (
    KINDS,
    Array,
    Known,
    Number,
    alike,
    arithmetic,
    chosen,
    compared,
    converted,
    number,
    read,
    refused,
)

BY_TYPE = scalars.BY_TYPE | special.BY_TYPE
FREE = dict.fromkeys(running.INLINED, ("nsz", "reassoc"))
"""Functions that may do more than join a product with a sum, and are no helpers."""
SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.Pow: "**", ast.BitOr: "|",
    ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.FloorDiv: "//",
}  # fmt: skip

DTYPES = {kind: np.dtype(name) for name, kind in KINDS.items()}
_FOLDED = {"//": operator.floordiv, "*": operator.mul, "+": operator.add, "-": operator.sub}


def _sign(op: ast.AST) -> str:
    sign = SIGNS.get(type(op))
    if sign is None:
        raise refused(type(op).__name__)
    return sign


@cache
def _functions_of(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(Path(file).read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def tree_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """The source of a function of a module.

    Raises:
        KernelError: it has none.
    """
    try:
        return _functions_of(inspect.getsourcefile(function) or "")[function.__name__]
    except (OSError, KeyError, TypeError):
        raise refused(f"{function!r} has no source") from None


def is_simple(tree: ast.FunctionDef) -> bool:
    """Whether a function has neither loops nor branches, so that each of its names stands for one value."""
    return not any(isinstance(node, ast.For | ast.If) for node in ast.walk(tree))


class Expressions:
    """What the expressions of one function stand for, at the place of a builder.

    Attributes:
        flags: what LLVM may do with its sums and products.
        frame: what it shares with the function that calls it.
        names: what each name stands for that is no number, or has one value only.
        slots: kind and place of each number that may change.
    """

    def __init__(
        self, b: Any, tree: ast.FunctionDef, scope: Mapping[str, Any], flags: Sequence[str] = (),
        frame: Frame | None = None,
    ) -> None:  # fmt: skip
        self.b, self.tree, self.scope, self.flags = b, tree, scope, tuple(sorted(flags))
        self.frame = frame
        self.names: dict[str, Known] = {}
        self.slots: dict[str, tuple[str, Any]] = {}

    def write(self, values: Sequence[Known]) -> Known:
        """The lines of the function, given its arguments; what it returns, None if nothing."""
        raise NotImplementedError

    def value(self, node: ast.expr) -> Known:
        """What an expression stands for."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(value=of, attr=attr):
                return self._attribute(self.value(of), attr)
            case ast.Subscript(value=of, slice=at):
                return self._part(self.value(of), at)
            case ast.Tuple(elts=parts):
                return tuple(self.value(p) for p in parts)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._negated(self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self.value(left), self.value(right))
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self.truth(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._either(self.truth(test), body, orelse)
            case ast.Call(func=func, args=args, keywords=[]):
                return self._call(self.value(func), [self.value(a) for a in args])
        raise refused(ast.unparse(node))

    def truth(self, node: ast.expr) -> Number:
        """Whether something holds."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Number("b1", self.b.not_(self.truth(operand).ir))
            case ast.BoolOp(op=op, values=parts):
                return self._joined("|" if isinstance(op, ast.Or) else "&", [self.truth(p) for p in parts])
            case ast.Compare(left=left, ops=ops, comparators=rights):
                values = [self.value(x) for x in (left, *rights)]
                pairs = zip(map(_sign, ops), values, values[1:], strict=False)
                return self._joined("&", [self._compared(*pair) for pair in pairs])
        return converted(self.b, number(self.value(node)), "b1")

    def _joined(self, sign: str, truths: Sequence[Number]) -> Number:
        first, *rest = truths
        for other in rest:
            first = arithmetic(self.b, sign, first, other, ())
        return first

    def _compared(self, sign: str, x: Known, y: Known) -> Number:
        """One comparison; shapes are equal if all their numbers are."""
        if type(x) is not tuple or type(y) is not tuple:
            return compared(self.b, sign, number(x), number(y))
        if len(x) != len(y) or sign not in ("==", "!="):
            raise refused(f"{len(x)} numbers {sign} {len(y)}")
        pairs = [compared(self.b, sign, number(a), number(b)) for a, b in zip(x, y, strict=True)]
        return self._joined("&" if sign == "==" else "|", pairs)

    def _either(self, test: Number, body: ast.expr, orelse: ast.expr) -> Number:
        """One of two: by a choice of two numbers if both can be computed anyway, else by a branch."""
        if self._is_free(body) and self._is_free(orelse):
            return chosen(self.b, test, number(self.value(body)), number(self.value(orelse)))
        found = []
        with self.b.if_else(test.ir) as branches:
            for branch, node in zip(branches, (body, orelse), strict=True):
                with branch:
                    x = number(self.value(node))
                    found.append((x, self.b.block))
        (x, _), (y, _) = found
        if x.kind != y.kind:
            raise refused(f"{x.kind} or {y.kind} by a branch")
        phi = self.b.phi(x.ir.type)
        for z, block in found:
            phi.add_incoming(z.ir, block)
        return Number(x.kind, phi)

    def _is_free(self, node: ast.expr) -> bool:
        """Whether computing it does no harm and costs little: it reads no entry, and runs no loop."""
        if any(isinstance(inner, ast.Subscript) for inner in ast.walk(node)):
            return False
        functions = [self.value(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)]
        return all(is_simple(tree_of(f)) for f in functions if inspect.isfunction(f))

    def _named(self, name: str) -> Known:
        if name in self.slots:
            kind, slot = self.slots[name]
            return Number(kind, self.b.load(slot))
        for scope in (self.names, self.scope, vars(builtins)):
            if name in scope:
                return scope[name]
        raise refused(f"the name {name}")

    def _part(self, whole: Known, at: ast.expr) -> Known:
        """An entry or a part of an array, or one of several values."""
        if not isinstance(whole, Array):
            return whole[self.value(at)]
        if isinstance(at, ast.Tuple):
            for one in at.elts:
                whole = self._part(whole, one)
            return whole
        if isinstance(at, ast.Slice):
            return part(self.b, whole, *(x and self.value(x) for x in (at.lower, at.upper)))
        return read(self.b, whole, number(self.value(at)))

    def _attribute(self, of: Known, attr: str) -> Known:
        if isinstance(of, Array):
            return self._of_array(of, attr)
        if isinstance(of, Number | tuple) or not hasattr(of, attr):
            raise refused(f"{attr} of {of!r}")
        return getattr(of, attr)

    def _of_array(self, array: Array, attr: str) -> Known:
        shape = tuple(Number("i8", n) for n in array.shape)
        if attr == "reshape":
            return partial(flat, self.b, array)
        if attr in ("dtype", "itemsize"):
            dtype = DTYPES[array.kind]
            return dtype if attr == "dtype" else dtype.itemsize
        if attr not in ("size", "shape") or (attr == "size" and len(shape) > 1):
            raise refused(f"{attr} of an array")
        return shape[0] if attr == "size" else shape

    def _negated(self, x: Known) -> Known:
        if not isinstance(x, Number):
            return -x
        if x.kind[0] != "f":
            return arithmetic(self.b, "-", number(0), x, ())
        return Number(x.kind, self.b.fneg(x.ir, flags=self.flags))

    def _binary(self, op: ast.operator, x: Known, y: Known) -> Known:
        sign = _sign(op)
        if isinstance(x, int) and isinstance(y, int) and sign in _FOLDED:
            return _FOLDED[sign](x, y)
        return arithmetic(self.b, sign, number(x), number(y), self.flags)

    def _call(self, function: Any, values: list[Known]) -> Known:
        if isinstance(function, partial):
            return function(values)
        if function in (np.zeros, np.empty) and self.frame is not None and len(values) == 2:
            return self.frame.array(*values, zeros=function is np.zeros)
        if function in (scalars.bits_to_float, scalars.float_to_bits):
            return same_bits(self.b, number(values[0]))
        if function is ahead.ask_for:
            return asked_for(self.b, values[0], number(values[1]))
        if function in BY_TYPE:
            single, double = BY_TYPE[function]
            function = single if {number(x).kind for x in values} <= {"f4", "i4"} else double
        if inspect.isfunction(function):
            flags = FREE.get(function) or tuple(HELPERS.get(function, FASTMATH))
            return type(self)(self.b, tree_of(function), function.__globals__, flags, self.frame).write(values)
        if all(isinstance(x, int) for x in values) and function in (min, max):
            return function(values)
        numbers = [number(x) for x in values]
        if function in (min, max) and len({x.kind for x in numbers}) > 1:
            numbers = list(alike(self.b, *numbers))
        return called(self.b, function, numbers, self.flags)
