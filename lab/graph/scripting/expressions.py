"""Expressions of a script: computed by Python itself, on the values of the open trace.

Only what asks for the truth of a value that is not known yet is done in another way: and, or, not, a choice.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor
from lab.graph.scripting.desk import Desk, Env, Unset
from lab.graph.scripting.joining import MismatchError, choose
from lab.graph.scripting.numbers import is_soft, is_unknown
from lab.graph.scripting.source import is_own
from lab.ops import floor, logical_and, logical_not, logical_or
from lab.ops.positions import select

BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.MatMult: operator.matmul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}  # fmt: skip
UNARY: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
COMPARED: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
DECIDES: Final[dict[Any, str]] = {
    float: 'x.astype("float64")', int: "x.astype(int)", bool: "the comparison itself", min: "lab.minimum",
    max: "lab.maximum", sorted: "lab.sort", round: "lab.round", str: "the value itself", repr: "the value itself",
    format: "the value itself", any: "lab.any", all: "lab.all", divmod: "lab.floor",
}  # fmt: skip
"""Functions of Python that need numbers, each with what a graph has instead."""
EFFECTS: Final[dict[Any, str]] = dict.fromkeys(
    (print, input, open, exec, eval, compile, setattr, delattr, globals, locals, vars, super, iter, next, map, filter,
     __import__), "do it outside the script"
)  # fmt: skip
READING: Final = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})
"""Methods of containers that leave them as they are."""


class Expressions(Desk):
    """Reads expressions. `inlined` reads a function of the user, and is a matter of statements."""

    def inlined(self, f: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function returns, its source read into the open trace."""
        raise TypeError(f"{type(self).__name__} does not read functions")

    def outside(self, node: ast.Name) -> Any:
        """The value of a name that is none of the function's own."""
        raise TypeError(f"{type(self).__name__} does not read functions")

    def evaluate(self, node: ast.expr, env: Env) -> Any:
        """The value of an expression, for the open trace."""
        self.number = node.lineno
        read = getattr(self, f"_{type(node).__name__}", None)
        if read is None:
            raise self.refused(node, f"lab.script cannot read {ast.unparse(node)}", "write it with operators and calls")
        return self.lift(read(node, env))

    # --- names and constants ---

    def _Constant(self, node: ast.Constant, env: Env) -> Any:  # noqa: N802 - the names of Python's grammar
        return node.value

    def _Name(self, node: ast.Name, env: Env) -> Any:  # noqa: N802
        value = env[node.id] if node.id in env else self.outside(node)
        if isinstance(value, Unset):
            raise self.refused(node, value.problem, value.hint)
        return value

    def _Attribute(self, node: ast.Attribute, env: Env) -> Any:  # noqa: N802
        owner = self.evaluate(node.value, env)
        if isinstance(owner, list | dict | set) and node.attr not in READING:
            hint = "make a new one: a + [b]"
            raise self.refused(node, f"a script cannot change a container, as by {node.attr}", hint)
        return getattr(owner, node.attr)

    def _JoinedStr(self, node: ast.JoinedStr, env: Env) -> str:  # noqa: N802
        parts = [v.value if isinstance(v, ast.FormattedValue) else v for v in node.values]
        return "".join(str(self.evaluate(p, env)) for p in parts)

    # --- containers ---

    def _Tuple(self, node: ast.Tuple, env: Env) -> tuple[Any, ...]:  # noqa: N802
        return tuple(self.evaluate(e, env) for e in node.elts)

    def _List(self, node: ast.List, env: Env) -> list[Any]:  # noqa: N802
        return [self.evaluate(e, env) for e in node.elts]

    def _Dict(self, node: ast.Dict, env: Env) -> dict[Any, Any]:  # noqa: N802
        pairs = zip(node.keys, node.values, strict=True)
        return {self.evaluate(k, env): self.evaluate(v, env) for k, v in pairs if k is not None}

    def _Slice(self, node: ast.Slice, env: Env) -> slice:  # noqa: N802
        return slice(*(None if n is None else self.evaluate(n, env) for n in (node.lower, node.upper, node.step)))

    def _Subscript(self, node: ast.Subscript, env: Env) -> Any:  # noqa: N802
        owner, index = self.evaluate(node.value, env), self.evaluate(node.slice, env)
        parts = index if isinstance(index, tuple) else (index,)
        if isinstance(owner, np.ndarray) and any(isinstance(p, Tensor) for p in parts):
            return select(owner, index)
        return owner[index]

    # --- arithmetic ---

    def _BinOp(self, node: ast.BinOp, env: Env) -> Any:  # noqa: N802
        return self.combined(type(node.op), self.evaluate(node.left, env), self.evaluate(node.right, env))

    def combined(self, op: type[ast.operator], a: Any, b: Any) -> Any:
        """Two values under an operator; // and % of whole numbers, which tensors do not have, by ops."""
        whole = op in (ast.FloorDiv, ast.Mod) and (is_unknown(a) or is_unknown(b)) and is_soft(a) and is_soft(b)
        if not whole or any(np.dtype(getattr(x, "dtype", type(x))).kind == "f" for x in (a, b)):
            return BINARY[op](a, b)
        times = self.trace.soften(floor(a / b).astype("int64"))
        return times if op is ast.FloorDiv else a - b * times

    def _UnaryOp(self, node: ast.UnaryOp, env: Env) -> Any:  # noqa: N802
        x = self.evaluate(node.operand, env)
        if not isinstance(node.op, ast.Not):
            return UNARY[type(node.op)](x)
        test = self.truth(x)
        return logical_not(test) if is_unknown(test) else not test

    def _Compare(self, node: ast.Compare, env: Env) -> Any:  # noqa: N802
        values = [self.evaluate(n, env) for n in (node.left, *node.comparators)]
        found = []
        for op, a, b in zip(node.ops, values, values[1:], strict=False):
            if isinstance(op, ast.In | ast.NotIn) and any(map(is_unknown, (a, *tree.flatten(b)[0]))):
                raise self.refused(node, "in needs values that are known", "lab.any(x == a)")
            found.append(COMPARED[type(op)](a, b))
        if len(found) == 1:
            return found[0]
        tests = [self.truth(x) for x in found]
        return functools.reduce(logical_and, tests) if any(map(is_unknown, tests)) else all(tests)

    # --- what is chosen ---

    def _BoolOp(self, node: ast.BoolOp, env: Env) -> Any:  # noqa: N802
        value = self.evaluate(node.values[0], env)
        ends = isinstance(node.op, ast.Or)
        for other in node.values[1:]:
            if is_unknown(value):
                value = self._either(node, value, other, env)
            elif bool(value) is ends:
                return value
            else:
                value = self.evaluate(other, env)
        return value

    def _either(self, node: ast.BoolOp, value: Any, other: ast.expr, env: Env) -> Any:
        """`value and other`: by one op where other cannot fail, else by a branch that reads it if it is needed."""
        trial = self.fresh()
        with self.inside(trial):
            found = self.evaluate(other, env)
        is_or, one = isinstance(node.op, ast.Or), (value.dtype, value.shape) == (bool, ())
        if one and all(e.op.elementwise for e in trial.equations) and _is_bool(found):
            return (logical_or if is_or else logical_and)(value, self.evaluate(other, env))
        ways = (lambda: self.evaluate(other, env)), (lambda: self.lift(value))
        return self._chosen(node, self.truth(value), *(ways[::-1] if is_or else ways))

    def _IfExp(self, node: ast.IfExp, env: Env) -> Any:  # noqa: N802
        test = self.truth(self.evaluate(node.test, env))
        if not is_unknown(test):
            return self.evaluate(node.body if test else node.orelse, env)
        return self._chosen(
            node, test, lambda: self.evaluate(node.body, env), lambda: self.evaluate(node.orelse, env)
        )

    def _chosen(self, node: ast.expr, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        try:
            return choose(self, test, then, otherwise)
        except MismatchError as why:
            problem = f"both sides of {ast.unparse(node)} must be of one kind: {why}"
            raise self.refused(node, problem, "the same shape and dtype, as by lab.broadcast_to or .astype") from None

    # --- calls ---

    def _Call(self, node: ast.Call, env: Env) -> Any:  # noqa: N802
        f = self.evaluate(node.func, env)
        args = tuple(self.evaluate(a, env) for a in node.args)
        kwargs = {str(k.arg): self.evaluate(k.value, env) for k in node.keywords}
        self.number = node.lineno
        return self.called(node, getattr(f, "script_of", f), args, kwargs)

    def called(self, node: ast.Call, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call: a function of the user is read as well, any other gets the values of the trace."""
        if isinstance(f, MethodType) and is_own(f.__func__):
            f, args = f.__func__, (f.__self__, *args)
        if is_own(f):
            return self.inlined(f, args, kwargs)
        unknown = any(map(is_unknown, tree.flatten((args, kwargs))[0]))
        if isinstance(f, type | BuiltinFunctionType) and f in EFFECTS:
            raise self.refused(node, f"a script cannot call {f.__name__}", EFFECTS[f])
        if unknown and isinstance(f, type | BuiltinFunctionType) and f in DECIDES:
            problem = f"{f.__name__}() needs numbers that are known only when the graph runs"
            raise self.refused(node, problem, f"{DECIDES[f]} instead")
        return f(*map(self._readable, args), **{k: self._readable(v) for k, v in kwargs.items()})

    def _readable(self, x: Any) -> Any:
        """A function of the user that is handed on to one of the lab: it is read when it is called."""
        if not is_own(x):
            return x

        @functools.wraps(x)
        def read(*args: Any, **kwargs: Any) -> Any:
            return self.inlined(x, args, kwargs)

        return read


def _is_bool(x: Any) -> bool:
    return isinstance(x, bool) or (isinstance(x, Tensor) and (x.dtype, x.shape) == (bool, ()))
