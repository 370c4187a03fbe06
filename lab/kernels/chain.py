"""A chain of elementwise steps as a value, and the Python source of the one loop that computes it.

The source is written step by step from the formulas of the op table, with NumPy's dtype rules: every intermediate has
the dtype that NumPy would give it, and numbers in a formula take the dtype of what they meet.
"""

from __future__ import annotations

import ast
import keyword
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lab.errors import KernelError
from lab.kernels.formula import ARITY, CONSTANTS, FUNCTIONS, Formula

LAYOUTS: tuple[str, ...] = ("full", "single", "row", "column")
"""How an input lies along the result: entry by entry, one number, one number per column, or one number per row."""

DTYPES: tuple[str, ...] = ("float32", "float64", "bool")
"""What a chain can hold; other dtypes stay with NumPy."""


class Step(NamedTuple):
    """One step: `name` = `formula`, whose `parameters` stand for the chain's values `arguments`.

    An argument is the name of an input or of an earlier step, a plain number that takes the dtype of what it meets, or,
    in a program over rows, a number of NumPy's that keeps its own.

    Example:
        >>> Step("ct_a", Formula("ct * y"), ("ct", "y"), ("ct_out", "b")).name
        'ct_a'
    """

    name: str
    formula: Formula
    parameters: tuple[str, ...]
    arguments: tuple[str | float | np.floating[Any], ...]


@dataclass(frozen=True)
class Chain:
    """Elementwise steps over arrays of one shape.

    Attributes:
        inputs: (name, dtype) of each input, dtype one of DTYPES.
        steps: in order; a step may use inputs and earlier steps.
        outputs: names of the values that are written.
        layouts: one of LAYOUTS for each input; () means all "full".

    Raises:
        KernelError: a dtype, a name or a formula that a loop cannot hold.

    Example:
        >>> c = Chain((("x", "float32"),), (Step("y", Formula("1.0 - x * x"), ("x",), ("x",)),), ("y",))
        >>> print(source_of(c))
        def fused(in_x, out_y):
            for k in range(out_y.size):
                x = in_x[k]
                y = (f4(1.0) - (x * x))
                out_y[k] = y
    """

    inputs: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    layouts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        layouts = self.layouts or ("full",) * len(self.inputs)
        object.__setattr__(self, "layouts", layouts)
        names = [name for name, _ in self.inputs] + [step.name for step in self.steps]
        bad = [name for name in names if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii()]
        if bad or len(set(names)) != len(names):
            raise KernelError("names in a chain are different identifiers", given=", ".join(names))
        if any(dtype not in DTYPES for _, dtype in self.inputs):
            raise KernelError(
                "a chain holds float32, float64 and bool", given=str(self.inputs), hint="NumPy runs other dtypes"
            )
        if len(layouts) != len(self.inputs) or not set(layouts) <= set(LAYOUTS):
            raise KernelError("a chain needs one layout for each input", given=str(layouts), hint=", ".join(LAYOUTS))
        if not self.outputs or not set(self.outputs) <= set(names) or len(set(self.outputs)) != len(self.outputs):
            raise KernelError("the outputs of a chain are different names of its values", given=", ".join(self.outputs))
        object.__setattr__(self, "_lines", _lines(self))

    @property
    def output_dtypes(self) -> tuple[str, ...]:
        """The dtype of each output, as NumPy would give it."""
        dtypes: dict[str, str] = self._lines[1]  # type: ignore[attr-defined]
        return tuple(dtypes[name] for name in self.outputs)


class Value(NamedTuple):
    """A piece of source: its dtype, or for a plain number None and the number."""

    text: str
    dtype: str | None
    number: float = 0.0


def _number(value: float) -> Value:
    return Value(repr(value), None, value)


TAKEN: set[str] = {
    *FUNCTIONS, "absolute", "f4", "f8", "inf", "nan", "k", "row", "column", "bool", "range", "fused", "n_rows",
    "n_columns",
}  # fmt: skip


RESERVED = ("in_", "out_", "v_", "row_", "to_", "kept_", "parts_", "part_", "sums_", "total_")
"""How names begin that the sources of loops use themselves."""


def local(name: str) -> str:
    """The name of a chain's value in the source: itself, or with "v_" in front where it would hide something."""
    return f"v_{name}" if name in TAKEN or name.startswith(RESERVED) else name


def source_of(chain: Chain) -> str:
    """The Python source of a function `fused(inputs..., outputs...)` over flat arrays.

    Inputs "single" have one entry; "row" has the length of a row, "column" the number of rows.
    """
    lines, _ = chain._lines  # type: ignore[attr-defined]
    layout = {name: kind for (name, _), kind in zip(chain.inputs, chain.layouts, strict=True)}
    nested = [name for name, kind in layout.items() if kind in ("row", "column")]
    out = [f"def fused({', '.join([*(f'in_{n}' for n in layout), *(f'out_{n}' for n in chain.outputs)])}):"]
    total = f"out_{chain.outputs[0]}.size"
    for name, kind in layout.items():
        if kind == "single":
            out.append(f"    {local(name)} = in_{name}[0]")
    pad = " " * 8
    if nested:
        rows = [name for name in nested if layout[name] == "row"]
        if rows:
            out += [f"    n_columns = in_{rows[0]}.size", f"    n_rows = {total} // n_columns if n_columns else 0"]
        else:
            out += [f"    n_rows = in_{nested[0]}.size", f"    n_columns = {total} // n_rows if n_rows else 0"]
        out.append("    for row in range(n_rows):")
        out += [f"        {local(name)} = in_{name}[row]" for name in nested if layout[name] == "column"]
        out += ["        for column in range(n_columns):", "            k = row * n_columns + column"]
        pad = " " * 12
        out += [f"{pad}{local(name)} = in_{name}[column]" for name in rows]
    else:
        out.append(f"    for k in range({total}):")
    out += [f"{pad}{local(name)} = in_{name}[k]" for name, kind in layout.items() if kind == "full"]
    out += [pad + line for line in lines]
    out += [f"{pad}out_{name}[k] = {local(name)}" for name in chain.outputs]
    return "\n".join(out)


def _lines(chain: Chain) -> tuple[list[str], dict[str, str]]:
    """One assignment per step, and the dtype of every value."""
    dtypes = dict(chain.inputs)
    lines = []
    for step in chain.steps:
        scope: dict[str, Value] = {}
        for parameter, argument in zip(step.parameters, step.arguments, strict=True):
            if isinstance(argument, str):
                if argument not in dtypes:
                    raise KernelError("a step uses a value that is not there yet", given=f"{argument} in {step.name}")
                scope[parameter] = Value(local(argument), dtypes[argument])
            else:
                scope[parameter] = _number(float(argument) if isinstance(argument, np.floating) else argument)
        value = Writer(step.formula, scope).write(step.formula.tree.body)
        if value.dtype is None:
            raise KernelError("a step of a chain depends on no array", given=f"{step.name} = {step.formula.text}")
        dtypes[step.name] = value.dtype
        lines.append(f"{local(step.name)} = {value.text}")
    return lines, dtypes


_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv), ast.Pow: ("**", operator.pow),
}  # fmt: skip
_TRUTHS = ("isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or", "logical_xor")
"""Functions whose result is a bool."""
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


class Writer:
    """Writes one formula as source, with every number and conversion made explicit."""

    def __init__(self, formula: Formula, scope: dict[str, Value]) -> None:
        self.formula, self.scope = formula, scope

    def refuse(self, why: str) -> KernelError:
        return KernelError(f"a formula cannot become a loop: {why}", given=self.formula.text, hint="NumPy can run it")

    def write(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name):
                if name not in self.scope and name in CONSTANTS:
                    return _number(CONSTANTS[name])
                if name not in self.scope:
                    raise self.refuse(f"{name} is no parameter")
                return self.scope[name]
            case ast.Constant(value=int() | float() as number):
                return _number(number)
            case ast.UnaryOp(operand=operand):
                value = self.write(operand)
                if value.dtype is None:
                    return _number(-value.number)
                self.floating(value.dtype)
                return Value(f"(-{value.text})", value.dtype)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.write(left), self.write(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                (a, b), _ = self.promoted(self.write(left), self.write(right))
                return Value(f"({a} {_COMPARE[type(op)]} {b})", "bool")
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.call(name, [self.write(a) for a in arguments])
        raise self.refuse(type(node).__name__)

    def floating(self, dtype: str) -> None:
        if dtype == "bool":
            raise self.refuse("arithmetic on bools only")

    def promoted(self, *values: Value) -> tuple[list[str], str]:
        """The sources converted to their common dtype, and that dtype."""
        dtype = str(np.result_type(*(v.number if v.dtype is None else np.dtype(v.dtype) for v in values)))
        if dtype not in DTYPES:
            raise self.refuse(f"it has an intermediate of {dtype}")
        cast = {"float32": "f4", "float64": "f8", "bool": "bool"}[dtype]
        return [v.text if v.dtype == dtype else f"{cast}({v.text})" for v in values], dtype

    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        sign, compute = _BINARY[type(op)]
        if a.dtype is None and b.dtype is None:
            return _number(compute(a.number, b.number))
        if sign == "**" and b.dtype is None and a.dtype in ("float32", "float64"):
            # NumPy has shortcuts for -1, 0.5 and 2 as well; pow costs 20 times a product
            if b.number in (1, 2, 3, 4):
                return Value(f"({' * '.join([a.text] * int(b.number))})", a.dtype)
            if b.number == 0.5:
                return Value(f"sqrt({a.text})", a.dtype)
            if b.number == -1:
                b, a, sign = a, _number(1.0), "/"
        (left, right), dtype = self.promoted(a, b)
        self.floating(dtype)
        return Value(f"({left} {sign} {right})", dtype)

    def call(self, name: str, values: list[Value]) -> Value:
        if len(values) != ARITY.get(name, 1):
            raise self.refuse(f"{name} has another number of arguments")
        scalar = "absolute" if name == "abs" else name
        if name == "where":
            condition, *values = values
            test = condition.text if condition.dtype == "bool" else f"({condition.text} != 0)"
            (a, b), dtype = self.promoted(*values)
            return Value(f"where({test}, {a}, {b})", dtype)
        if all(v.dtype is None for v in values):
            raise self.refuse(f"{name} of plain numbers")
        texts, dtype = self.promoted(*values)
        if name not in ("maximum", "minimum", *_TRUTHS):
            self.floating(dtype)
        call = f"{scalar}({', '.join(texts)})"
        if name == "sinc_slope":  # computed in float64
            call = f"{'f4' if dtype == 'float32' else 'f8'}({call})"
        return Value(call, "bool" if name in _TRUTHS else dtype)
