"""Differences: a derivative from values of the function alone, the first of the three ways and the judge of the others.

A step that is too long sees the curve, one that is too short sees only rounding; each method has its best step, and
one of them, the complex step, has no such floor at all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor
from lab.errors import ArgumentError, GradientError, LabError
from lab.graph.ir import Graph, Literal
from lab.graph.keys import drawn
from lab.graph.make import trace
from lab.graph.regions import Region
from lab.kernels.formula import Formula
from lab.ops.random import repeating
from lab.transforms.arguments import floating, function, returned

Array = np.ndarray[Any, np.dtype[Any]]

ORDERS: dict[str, float] = {"forward": 1 / 2, "central": 1 / 3, "richardson": 1 / 5}
"""Best step of a method: eps to this power, where rounding, eps / h, and truncation, h, h^2 or h^4, are equal.

Source: Nocedal and Wright 2006, "Numerical Optimization", section 8.1; for Richardson the same balance with h^4.
"""
METHODS: tuple[str, ...] = (*ORDERS, "complex")
COMPLEX_STEP = 1e-20
"""Nothing is subtracted, so nothing cancels: as short as you like (Squire and Trapp 1998, SIAM Review 40:110)."""

NOT_ANALYTIC = frozenset({"abs", "sign", "hypot", "arctan2"})
"""Functions in formulas that NumPy extends to complex numbers in a way that is no derivative's."""


def numeric_gradient(f: Callable[[Any], Any], x: Any, method: str = "central", h: float | None = None) -> Any:
    """The gradient of a function of one argument that returns one number, by differences; two runs for each entry.

    Args:
        f: takes what x is, returns one number.
        x: floats; a number, an array or a container of them. f is evaluated in its dtype.
        method: "forward", (f(x + h) - f(x)) / h; "central", (f(x + h) - f(x - h)) / 2h; "richardson", two central
            differences from which the error of order h^2 is eliminated; "complex", Im f(x + ih) / h, for functions of
            analytic ops (no abs): f itself runs on complex arrays, or its graph does.
        h: the step; by default the best one for the method and dtype, times max(1, |x|).

    Returns:
        Arrays of float64 in the shapes of x.

    Raises:
        GradientError: f does not return one number; or cannot run on complex numbers.
        ArgumentError: an unknown method, or a step that is none.

    Example:
        >>> import lab
        >>> lab.numeric_gradient(lambda x: (x ** 3).sum(), np.array([1.0, 2.0])).round(6).tolist()
        [3.0, 12.0]
        >>> float(lab.numeric_gradient(lambda x: lab.exp(x), 0.0, method="complex"))
        1.0
    """

    def one(out: Any) -> None:
        if np.size(out) != 1:
            raise GradientError(
                "numeric_gradient needs a function that returns one number",
                given=f"shape {np.shape(out)}",
                hint="lab.numeric_jacobian takes any shape",
            )

    slopes, shape = _differences(f, x, method, h, "numeric_gradient", one)
    return tree.map_leaves(lambda columns: columns.reshape(columns.shape[len(shape):]), slopes)


def numeric_jacobian(f: Callable[[Any], Any], x: Any, method: str = "central", h: float | None = None) -> Any:
    """The Jacobian of a function of one argument that returns one array: (*output, *input) for each leaf of x.

    Example:
        >>> import lab
        >>> lab.numeric_jacobian(lambda x: x * x, np.array([1.0, 2.0])).round(6).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    return _differences(f, x, method, h, "numeric_jacobian", lambda out: None)[0]


def _differences(
    f: Callable[[Any], Any], x: Any, method: str, h: float | None, what: str, check: Callable[[Any], None]
) -> tuple[Any, tuple[int, ...]]:
    """(derivatives by each leaf, shape of the output)."""
    f = repeating(function(f, what))
    if method not in METHODS:
        raise ArgumentError(f"{what} does not know this method", given=repr(method)[:40], hint=", ".join(METHODS))
    if h is not None and not 0 < h < np.inf:
        raise ArgumentError("a step is a positive number", given=repr(h)[:40], hint="h=1e-6, or leave it to the method")
    leaves, structure = tree.flatten(x)
    arrays = [np.array(floating(leaf, what).numpy()) for leaf in leaves]

    def at(values: list[Array]) -> Array:
        out = returned(f(tree.unflatten(structure, values)), what)
        return np.asarray(out.numpy(), np.float64)

    here = at(arrays)
    check(here)
    run = _complexly(f, structure, arrays, what) if method == "complex" else at
    slopes = []
    for i, a in enumerate(arrays):
        columns = np.empty((*here.shape, a.size))
        for k, moved in enumerate(_moved(arrays, i)):
            columns[..., k] = _slope(run, moved, a.reshape(-1)[k], method, h, here)
        slopes.append(columns.reshape((*here.shape, *a.shape)))
    return tree.unflatten(structure, slopes), here.shape


def _moved(arrays: list[Array], i: int) -> Iterator[Callable[[Any], list[Array]]]:
    """For each entry of an array a function: all arrays, with another number in its place."""
    for k in range(arrays[i].size):

        def moved(value: Any, k: int = k) -> list[Array]:
            kind = np.result_type(arrays[i].dtype, np.complex64) if isinstance(value, complex) else arrays[i].dtype
            full = arrays[i].astype(kind)
            full.reshape(-1)[k] = value
            return [full if j == i else a for j, a in enumerate(arrays)]

        yield moved


def _slope(run: Any, moved: Any, x: Any, method: str, h: float | None, here: Array) -> Any:
    """The derivative along one entry."""
    if method == "complex":
        step = COMPLEX_STEP if h is None else h
        return np.imag(run(moved(complex(x, step)))) / step
    step = best_step(method, x) if h is None else h

    def central(step: float) -> Any:
        above, below = x + x.dtype.type(step), x - x.dtype.type(step)  # the step that is taken is the one divided by
        return (run(moved(above)) - run(moved(below))) / (np.float64(above) - np.float64(below))

    if method == "forward":
        above = x + x.dtype.type(step)
        return (run(moved(above)) - here) / (np.float64(above) - np.float64(x))
    if method == "central":
        return central(step)
    return (4.0 * central(step / 2.0) - central(step)) / 3.0


def best_step(method: str, x: Any) -> float:
    """The step at which truncation and rounding of a method are about equal, for a function of ordinary curvature.

    Example:
        >>> f"{best_step('forward', np.float64(1.0)):.1e}, {best_step('central', np.float32(1.0)):.1e}"
        '1.5e-08, 4.9e-03'
    """
    return float(np.finfo(x.dtype).eps ** ORDERS[method] * max(1.0, abs(float(x))))


# --- the complex step ---------------------------------------------------------------------------------------------


def _complexly(
    f: Callable[[Any], Any], structure: tree.Structure, arrays: list[Array], what: str
) -> Callable[[list[Array]], Any]:
    """A function on complex arrays: by the graph of f, or where its numbers are looked at by f itself."""

    def itself(values: list[Array]) -> Any:
        out = f(tree.unflatten(structure, values))
        if np.asarray(out).dtype.kind != "c":
            raise TypeError("it made real numbers of complex ones, as abs() and float() do")
        return out

    try:
        graph = trace(f, (tree.unflatten(structure, arrays),), {}, weak=False)[0]

        def run(values: list[Array]) -> Any:
            captured = [c.numpy() if isinstance(c, Tensor) else c for c in drawn(graph.captured)]
            return _on_complex(graph, [*values, *captured])[0]

    except LabError:  # it looks at numbers, or is written in NumPy functions that no tensor knows
        run = itself

    def checked(values: list[Array]) -> Any:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            try:
                return run(values)
            except (LabError, TypeError, ValueError, AttributeError, Warning) as why:
                raise GradientError(
                    f"{what} cannot run the function on complex numbers",
                    given=str(why).partition("\n")[0],
                    hint='the complex step is for analytic functions in NumPy or lab ops; method="central" is for all',
                ) from None

    return checked


def _on_complex(graph: Graph, args: Sequence[Any]) -> list[Any]:
    """A graph run on complex arrays by the bare forwards of its ops."""
    values: dict[int, Any] = {v.number: a for v, a in zip(graph.inputs, args, strict=True)}

    def read(a: Any) -> Any:
        return a.value if isinstance(a, Literal) else values[a.number]

    for e in graph.equations:
        inputs = [read(a) for a in e.inputs]
        if isinstance(e.op, Region):
            values.update(zip([v.number for v in e.outs], e.op.follow(_on_complex, inputs, **e.params), strict=True))
            continue
        out = np.asarray(e.op.forward(*inputs, **e.params))
        if any(np.iscomplexobj(a) for a in inputs) and e.out.spec.dtype.kind == "f":
            if e.op.elementwise and Formula(e.op.formula).functions & NOT_ANALYTIC:
                raise TypeError(f"{e.op.name} is {e.op.formula}, which is not analytic")
            if out.dtype.kind != "c":
                raise TypeError(f"{e.op.name} makes real numbers of complex ones")
        values[e.out.number] = out
    return [read(a) for a in graph.outputs]
