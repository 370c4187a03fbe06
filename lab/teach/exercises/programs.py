"""Small graphs by name, for the passes of lesson 08: each has something that a careless pass gets wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lab.graph.ir import Equation, Graph, Literal
from lab.graph.make import make_graph
from lab.ops import PRIMITIVES
from lab.transforms.control import while_loop

UNARY = ("exp", "tanh", "negative", "square")
BINARY = ("add", "subtract", "multiply", "maximum")
N_LINES = 12


exp, tanh, total = (PRIMITIVES[name].apply for name in ("exp", "tanh", "sum"))


def _unread(value: Any, *others: Any) -> Any:
    """The value alone: nobody reads the others."""
    del others
    return value


def _count(x: Any, y: Any) -> Any:
    def test(carry: Any) -> Any:
        return total(carry[1]) < 3.0

    def body(carry: Any) -> Any:
        return carry[0] * x, carry[1] + 1.0

    return while_loop(test, body, (y, 0.0 * y.sum()))[1]


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "exp(x) * y": lambda x, y: exp(x) * y,
    "exp(x) * y, and tanh(x) unread": lambda x, y: _unread(exp(x) * y, tanh(x)),
    "x + y, and a chain unread": lambda x, y: _unread(x + y, tanh(exp(x) * y) - 1.0),
    "two outputs": lambda x, y: (_unread(exp(x), x * y), tanh(y)),
    "x itself, and a product unread": lambda x, y: _unread((x, tanh(x)), x * y),
    "the count of a loop": _count,
    "exp(x) * exp(x)": lambda x, y: exp(x) * exp(x),
    "exp(x) + exp(y)": lambda x, y: exp(x) + exp(y),
    "tanh(exp(x)) * tanh(exp(x))": lambda x, y: tanh(exp(x)) * tanh(exp(x)),
    "exp(x), given twice": lambda x, y: (exp(x), exp(x)),
    "exp(x) * tanh(x)": lambda x, y: exp(x) * tanh(x),
    "(x - y) * (y - x)": lambda x, y: (x - y) * (y - x),
    "sums by rows and by columns": lambda x, y: total(x * y, axis=0) - total(x * y, axis=1),
    "1 / (x * 0) and 1 / (x * -0)": lambda x, y: (1.0 / (x * 0.0), 1.0 / (x * -0.0)),
    "random numbers by two keys": lambda x, y: x * exp(x) + y * exp(y),
}
"""By name: a function of two arrays of shape (3, 3)."""


def _drawn(graph: Graph) -> Graph:
    """The graph with random numbers in the place of each exp, each by a key of its own, which is a constant."""

    def changed(number: int, e: Equation) -> Equation:
        key = Literal(np.array([number, 0], np.uint64))
        params = {"shape": e.out.spec.shape, "dtype": "float64"}
        return replace(e, op=PRIMITIVES["random_uniform"], inputs=(key,), params=params) if e.op.name == "exp" else e

    return replace(graph, equations=tuple(changed(k, e) for k, e in enumerate(graph.equations)))


def _random(seed: int) -> Callable[[Any, Any], Any]:
    """A program of some lines, each an op of two or one of the few values before it, so that lines repeat."""

    def program(x: Any, y: Any) -> Any:
        rng, values = np.random.default_rng(seed), [x, y]
        for _ in range(N_LINES):
            a, b = (values[k] for k in rng.integers(0, min(len(values), 4), 2))
            name = str(rng.choice([*UNARY, *BINARY]))
            op = PRIMITIVES[name].apply
            values.append(op(a) if name in UNARY else op(a, b))
        return values[-1], values[len(values) // 2]

    return program


def graph_of(name: str) -> Graph:
    """The graph of a program.

    Example:
        >>> graph_of("exp(x) * y")
        graph(a:f64[3,3] b:f64[3,3]) { let
            c:f64[3,3] = exp(a)
            d:f64[3,3] = multiply(c, b)
          in (d) }
    """
    first, _, last = name.rpartition(" ")
    f = _random(int(last)) if first == "random program" else PROGRAMS[name]
    graph = make_graph(f)(*(np.ones((3, 3)) for _ in range(2)))
    return _drawn(graph) if first == "random numbers by two" else graph


def numbers() -> list[list[Any]]:
    """Two pairs of arrays for x and y, one with nan, inf and both zeros in it."""
    rng = np.random.default_rng(0)
    special = np.array([[0.0, -0.0, 1.0], [np.nan, np.inf, -np.inf], [0.5, -1.0, 3.0]])
    return [[rng.normal(size=(3, 3)), rng.normal(size=(3, 3))], [special, np.linspace(-1.0, 1.0, 9).reshape(3, 3)]]
