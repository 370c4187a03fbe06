"""Ops that write their result into a place given, with the room that they need meanwhile: convolutions, pooling, sums.

A graph that runs again and again keeps that room, so no run waits for fresh pages of the system: for images of 28 x 28
those take longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lab import kernels
from lab.graph.ir import Equation, Var
from lab.ops.fitting import plan_back, plan_of, plan_weight
from lab.ops.index import is_basic
from lab.ops.pooling import plan_of_pooling
from lab.ops.sliding import Columns, correlate_into, correlate_weight_into, spread_back_into
from lab.ops.windows import Windows, entries, per_axis

Run = Callable[..., None]
_add: Callable[..., Any] = np.add.reduce  # NumPy's stubs take a literal keepdims only


class Placed(NamedTuple):
    """How an equation writes into a place.

    Attributes:
        n_bytes: the room that it needs while it runs.
        make: from that room to `run(*operands, out)`; all are arrays, `out` is contiguous.
    """

    n_bytes: int
    make: Callable[[Any], Run]


Placing = Callable[[Equation], Placed | None]

PLACED: dict[str, Placing] = {}
"""By name of the op."""


def places(*names: str) -> Callable[[Placing], Placing]:
    """Enter how equations of these ops write into places, or None for one that does not."""

    def enter(f: Placing) -> Placing:
        PLACED.update(dict.fromkeys(names, f))
        return f

    return enter


def placed(e: Equation) -> Placed | None:
    """How an equation writes into a place; None where its op does not.

    Example:
        >>> import lab, numpy as np
        >>> (e,) = lab.make_graph(lambda x: lab.max_pool(x))(np.ones((1, 1, 2))).equations
        >>> out = np.empty((1, 1, 1))
        >>> placed(e).make(None)(np.array([[[1.0, 3.0]]]), out)
        >>> out
        array([[[3.]]])
    """
    dtypes = {a.spec.dtype for a in (*e.inputs, *e.outs)}
    fits = len(dtypes) == 1 and next(iter(dtypes)).char in kernels.FLOAT_CHARS and all(a.spec.size for a in e.inputs)
    if e.op.name not in PLACED or not fits or not all(isinstance(a, Var) for a in e.inputs) or not e.out.spec.size:
        return None
    return PLACED[e.op.name](e)


def _with_columns(plan: Windows, e: Equation, n_channels: int, run: Callable[..., None]) -> Placed:
    """A convolution: `run` with room for the columns of some examples."""
    (groups,) = per_axis(e.op.name, "groups", e.params["groups"], 1)
    shape = (plan, e.inputs[0].spec.shape[0], groups, n_channels // groups, e.out.spec.dtype)

    def make(room: Any) -> Run:
        columns = Columns(*shape, room)
        return lambda a, b, out: run(columns, a, b, out)

    return Placed(Columns.n_bytes(*shape), make)


@places("conv")
def _conv(e: Equation) -> Placed:
    x, weight = (a.spec.shape for a in e.inputs)
    return _with_columns(plan_of(x, weight, **e.params), e, x[1], correlate_into)


@places("conv_transpose")
def _conv_transpose(e: Equation) -> Placed:
    y, weight = (a.spec.shape for a in e.inputs)
    return _with_columns(plan_back(y, weight, **e.params), e, e.out.spec.shape[1], spread_back_into)


@places("conv_weight")
def _conv_weight(e: Equation) -> Placed:
    x, y = (a.spec.shape for a in e.inputs)
    return _with_columns(plan_weight(x, y, **e.params), e, x[1], correlate_weight_into)


@places("scatter_add")
def _scatter_add(e: Equation) -> Placed | None:
    index = e.params["index"]
    if not is_basic(index):
        return None

    def run(x: Any, out: Any) -> None:
        out[...] = 0
        out[index] = x

    return Placed(0, lambda _room: run)


@places("sum")
def _sum(e: Equation) -> Placed:
    axes, keepdims = e.params["axis"], e.params["keepdims"]
    axes = tuple(axes) if isinstance(axes, list) else axes
    if e.out.spec.size == 1:  # of a column NumPy would make a loop for each entry, seven times as slow
        return Placed(0, lambda _room: lambda x, out: _add(x, axis=None, out=out.reshape(())))
    return Placed(0, lambda _room: lambda x, out: _add(x, axis=axes, keepdims=keepdims, out=out))


@places("max_pool", "max_pool_back")
def _pooling(e: Equation) -> Placed:
    plan = plan_of_pooling("max_pool", e.inputs[-1].spec.shape, **e.params)
    kernel = kernels.max_pool if e.op.name == "max_pool" else kernels.max_pool_gradient
    flat = [(s.shape[0] * s.shape[1], entries(s.shape[2:])) for s in (a.spec for a in (*reversed(e.inputs), e.out))]

    def run(*arrays: Any) -> None:
        *operands, out = arrays
        images = [a.reshape(shape) for a, shape in zip((*reversed(operands), out), flat, strict=True)]
        kernel(*images, *plan.numbers)

    return Placed(0, lambda _room: run)
