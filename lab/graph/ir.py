"""A Graph is a value: typed variables and equations in order, nothing else.

It has no rules of its own: its ops are those of the op table, and its backward is a trace of the same vjp rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from lab.autograd.display import mimebundle
from lab.ops.primitive import Op
from lab.shapes import Spec

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Var:
    """A value of a graph: number, shape and dtype.

    Attributes:
        weak: a Python number, which takes the dtype of what it meets, as in NumPy.
    """

    number: int
    spec: Spec
    weak: bool = False

    def __str__(self) -> str:
        word, n = "", self.number
        while True:
            word, n = _LETTERS[n % 26] + word, n // 26 - 1
            if n < 0:
                return word


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that stands in the graph itself: a number, or an array that no caller can change."""

    value: Any

    def __str__(self) -> str:
        array = np.asarray(self.value)
        if array.ndim:
            return f"<{_type(Spec(array.shape, array.dtype))}>"
        if array.dtype.kind != "f":
            return str(array.item())
        text = f"{array.item():g}"
        return text if set(text) & set(".en") else f"{text}.0"  # 2.0 and not 2: an integer is another thing


Atom: TypeAlias = Var | Literal


@dataclass(frozen=True, slots=True)
class Equation:
    """One op applied: `out = op(inputs, **params)`.

    Attributes:
        origin: "file:line" of the code that made it, "" where unknown.
        buffer: number of the buffer that a memory plan gave its output; -1 before planning.
    """

    op: Op
    inputs: tuple[Atom, ...]
    out: Var
    params: Mapping[str, Any]
    origin: str = ""
    buffer: int = -1

    def __str__(self) -> str:
        words = [str(a) for a in self.inputs] + [f"{k}={_short(v)}" for k, v in self.params.items()]
        return f"{self.out}:{_type(self.out.spec)} = {self.op.name}({', '.join(words)})"


@dataclass(frozen=True, slots=True, repr=False)
class Graph:
    """Inputs, equations in an order in which they can run, outputs.

    Attributes:
        inputs: variables that the caller gives.
        captured: values from outside that the traced function used, one for each of the last `inputs`.

    Example:
        >>> import lab
        >>> lab.make_graph(lab.grad(lambda x: lab.exp(x)))(1.0)
        graph(a:f64[]) { let
            b:f64[] = exp(a)
            c:f64[] = multiply(1.0, b)
          in (c) }
    """

    inputs: tuple[Var, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]
    captured: tuple[Any, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        head = " ".join(f"{v}:{_number(v) if v.weak else _type(v.spec)}" for v in self.inputs)
        body = "".join(f"\n    {e}" for e in self.equations)
        return f"graph({head}) {{ let{body}\n  in ({', '.join(map(str, self.outputs))}) }}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        return mimebundle(str(self), f"Graph · {len(self.equations)} equations", include, exclude)


def _number(weak: Var) -> str:
    return "float" if weak.spec.dtype.kind == "f" else "int"


def _type(spec: Spec) -> str:
    kind = {"f": "f", "i": "i", "u": "u", "b": "bool"}[spec.dtype.kind]
    bits = "" if kind == "bool" else str(8 * spec.dtype.itemsize)
    return f"{kind}{bits}[{','.join(map(str, spec.shape))}]"


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, np.ndarray) else f"<{value.dtype} {value.shape}>"
    return text if len(text) <= 40 else text[:37] + "..."
