"""symbolic: the second of the three ways. A function's graph as one expression, and what differentiating that costs.

The formulas are those of the op table, the ones that ran. An expression is a tree: what the graph computes once and
uses twice is written twice, so derivatives swell; counting with and without shared parts shows it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from lab.autograd.display import mimebundle
from lab.errors import ArgumentError, UnsupportedError
from lab.graph.ir import Graph, Literal, Var
from lab.graph.keys import require_no_draws
from lab.graph.make import trace
from lab.kernels.formula import Formula
from lab.ops.primitive import Op
from lab.transforms.arguments import floating, function
from lab.transforms.symbols import added, built, exact, integer

Env = dict[int, Any]


def symbolic(f: Callable[..., Any], *like: Any) -> Expression:
    """A function that returns one number as an expression of sympy, built from the formulas of its graph.

    Args:
        f: made of ops; `if` and `float()` cannot be traced.
        like: arguments of the shapes that it takes; without them every parameter is a number. Entries of an array x are
            called x_0, x_1 and so on.

    Raises:
        ConcretizationError: f looks at numbers.
        UnsupportedError: an op that has no formula and does not run on expressions.
        ArgumentError: f does not return one number.

    Example:
        >>> import lab
        >>> e = lab.symbolic(lambda x: lab.sin(x * x))
        >>> e, e.diff(), e.diff()(0.0)
        (sin(x**2), 2*x*cos(x**2), 0.0)
    """
    import sympy

    function(f, "symbolic")
    names = _names(f, len(like))
    args = list(like) or [1.0] * len(names)
    arrays = [np.asarray(floating(a, "symbolic").numpy()) for a in args]
    graph = trace(f, [np.ones(a.shape) for a in arrays], {}, weak=False)[0]
    require_no_draws(graph, "written as an expression")
    if len(graph.outputs) != 1 or np.size(_shaped(graph.outputs[0])) != 1:
        raise ArgumentError(
            "symbolic needs a function that returns one number",
            given=" and ".join(f"shape {np.shape(_shaped(a))}" for a in graph.outputs[:4]) or "nothing",
            hint="one entry of the result, or its sum",
        )
    inputs, symbols = [], []
    for name, a in zip(names, arrays, strict=True):
        words = [name] if a.ndim == 0 else [f"{name}_{'_'.join(map(str, at))}" for at in np.ndindex(a.shape)]
        made = sympy.symbols(words, real=True)
        symbols += made
        inputs.append(_objects(made, a.shape))
    inputs += [_objects([exact(v) for v in np.ravel(c.numpy())], c.shape) for c in graph.captured]
    env: Env = {v.number: x for v, x in zip(graph.inputs, inputs, strict=True)}
    for e in graph.equations:
        if e.graphs:
            raise UnsupportedError(
                f"{e.op.name} cannot be written as an expression",
                given="a branch or a loop, which no single formula stands for",
                hint="lab.grad goes through it; or take the branch, or write the turns out, in plain code",
            )
        env[e.out.number] = _applied(e.op, [_read(a, env) for a in e.inputs], e.params)
    return Expression(_read(graph.outputs[0], env).reshape(-1)[0], tuple(symbols), graph, env)


class Expression:
    """An expression of some symbols.

    Attributes:
        expression: of sympy.
        symbols: of sympy, one for each entry of each argument.
        graph: what it was made from; None for a derivative.
    """

    def __init__(
        self, expression: Any, symbols: tuple[Any, ...], graph: Graph | None = None, env: Env | None = None
    ) -> None:
        self.expression, self.symbols, self.graph, self._env = expression, symbols, graph, env

    def diff(self, *by: int | str) -> Expression:
        """The derivative by symbols, by number or name, one after the other; by the first if none is named.

        Example:
            >>> import lab
            >>> lab.symbolic(lambda x, y: x ** 3 * y).diff("x", "y")
            3*x**2
        """
        found = self.expression
        for symbol in by or (0,):
            found = found.diff(self._symbol(symbol))
        return Expression(found, self.symbols)

    def chain(self, by: int | str = 0) -> Expression:
        """The derivative by the chain rule alone: the rules of the op table inserted, nothing shared or simplified.

        Raises:
            UnsupportedError: an op whose rule is no formula, or an expression that is a derivative already.

        Example:
            >>> import lab
            >>> e = lab.symbolic(lambda x: lab.sin(lab.sin(lab.sin(x))))
            >>> e.chain(), e.chain().n_ops, e.chain().n_ops_shared
            ((cos(x)*cos(sin(x)))*cos(sin(sin(x))), 8, 7)
        """
        if self.graph is None or self._env is None:
            raise UnsupportedError("a derivative has no graph", given=repr(self)[:60], hint=".diff() goes on from here")
        symbol, env = self._symbol(by), self._env
        tangents: Env = {
            v.number: np.vectorize(lambda s: integer(s == symbol), otypes=[object])(env[v.number])
            for v in self.graph.inputs
        }
        for e in self.graph.equations:
            primals = [_read(a, env) for a in e.inputs]
            slopes = [tangents[a.number] if isinstance(a, Var) else None for a in e.inputs]
            tangents[e.out.number] = _tangent(e.op, env[e.out.number], primals, slopes, e.params)
        out = self.graph.outputs[0]
        slope = tangents[out.number].reshape(-1)[0] if isinstance(out, Var) else integer(0)
        return Expression(slope, self.symbols)

    @property
    def n_ops(self) -> int:
        """Operations in the expression, as a tree."""
        import sympy

        return int(sympy.count_ops(self.expression))

    @property
    def n_ops_shared(self) -> int:
        """Operations, if what occurs several times is computed once: what a graph needs."""
        import sympy

        parts, rest = sympy.cse(self.expression)
        return int(sum(sympy.count_ops(e) for _, e in parts) + sum(map(sympy.count_ops, rest)))

    @property
    def latex(self) -> str:
        """As LaTeX."""
        import sympy

        return str(sympy.latex(self.expression))

    def __call__(self, *args: Any) -> float:
        """Its value for these arguments, in the order and shapes of the function's.

        Raises:
            ArgumentError: another number of entries than there are symbols.
        """
        numbers = [float(v) for a in args for v in np.ravel(np.asarray(a))]
        if len(numbers) != len(self.symbols):
            raise ArgumentError(
                "an expression needs a number for each symbol",
                given=f"{len(numbers)} for {', '.join(map(str, self.symbols))}",
                hint="the arguments of the function, in order",
            )
        return float(self.expression.evalf(17, subs=dict(zip(self.symbols, numbers, strict=True))))

    def __repr__(self) -> str:
        return str(self.expression)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        made = {**mimebundle(str(self)), "text/latex": f"$\\displaystyle {self.latex}$"}
        return {k: v for k, v in made.items() if (include is None or k in include) and k not in (exclude or ())}

    def _symbol(self, by: int | str) -> Any:
        names = [str(s) for s in self.symbols]
        if isinstance(by, str) and by in names:
            return self.symbols[names.index(by)]
        if isinstance(by, int) and -len(names) <= by < len(names):
            return self.symbols[by]
        raise ArgumentError("the expression has no such symbol", given=repr(by)[:40], hint=", ".join(names))


# --- graphs on expressions ----------------------------------------------------------------------------------------


def _names(f: Callable[..., Any], n_given: int) -> list[str]:
    parameters = [p for p in inspect.signature(f).parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    return [p.name for p in (parameters[:n_given] if n_given else [p for p in parameters if p.default is p.empty])]


def _shaped(a: Any) -> Any:
    return np.broadcast_to(0.0, a.spec.shape) if isinstance(a, Var) else a.value


def _objects(values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    made = np.empty(len(values), object)
    made[:] = values
    return made.reshape(shape)


def _read(a: Var | Literal, env: Env) -> Any:
    if isinstance(a, Var):
        return env[a.number]
    array = np.asarray(a.value)
    return _objects([exact(v) for v in array.ravel().tolist()], array.shape)


def _applied(op: Op, inputs: list[Any], params: Mapping[str, Any]) -> Any:
    """An op on arrays of expressions: its formula entry by entry, or its own forward where that only moves and adds."""
    if op.elementwise:
        return _by_formula(op.formula, op.arguments, inputs, params, plain=False)
    if op.name in ("cast", "stop_gradient"):
        return inputs[0]
    try:
        out = np.asarray(op.forward(*inputs, **params), object)
    except (TypeError, ValueError, AttributeError) as why:
        raise UnsupportedError(
            f"{op.name} cannot be written as an expression",
            given=str(why)[:80],
            hint="elementwise ops, sums, products of matrices and what moves entries can",
        ) from None
    return out


def _tangent(op: Op, out: Any, primals: list[Any], slopes: list[Any], params: Mapping[str, Any]) -> Any:
    """The derivative of an op's result by its rules: the same that the tape runs, as expressions."""
    total = None
    for i, slope in enumerate(slopes):
        rule = op.rule(i)
        if slope is None or rule is None or not np.any(slope != 0):
            continue
        if op.elementwise:
            names, values = ("ct", "out", *op.arguments), [slope, out, *primals]
            term = _by_formula(rule.text, names, values, params, plain=True)
        elif op.linear == "joint":
            zeros = [slope if j == i else np.zeros_like(p) for j, p in enumerate(primals)]
            term = _applied(op, zeros, params)
        elif op.linear or op.name == "cast":
            term = _applied(op, [slope if j == i else p for j, p in enumerate(primals)], params)
        else:
            raise UnsupportedError(
                f"the rule of {op.name} is no formula", given=rule.text, hint=".diff() differentiates the expression"
            )
        total = term if total is None else _each(added, [total, term])
    return np.full(np.shape(out), integer(0), object) if total is None else total


def _by_formula(
    text: str, names: Sequence[str], values: Sequence[Any], params: Mapping[str, Any], *, plain: bool
) -> Any:
    tree, more = Formula(text).tree.body, {name: exact(v) for name, v in params.items()}
    return _each(lambda *xs: built(tree, {**dict(zip(names, xs, strict=True)), **more}, plain=plain), values)


def _each(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    shape = np.broadcast_shapes(*(np.shape(a) for a in arrays))
    flat = zip(*(np.broadcast_to(a, shape).ravel() for a in arrays), strict=True)
    return _objects([function(*row) for row in flat], shape)
