"""What each op that is no formula becomes in ONNX: shapes, sums, products and losses.

`REFUSED` says which ops of the lab cannot be written, and why; `SINGLE` those that onnxruntime has in float32 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.interop.nodes.building import Call, only_single
from lab.interop.nodes.formulas import Functions
from lab.ops import PRIMITIVES
from lab.shapes import normal_axes

Emit = Callable[[Call], str]

EMITTERS: dict[str, Emit] = {}
"""By op what makes its nodes."""

_MATRICES = "ONNX has no decomposition of matrices"
REFUSED: dict[str, str] = {
    **{op.name: "it meets other ranks, and the model runs alone" for op in PRIMITIVES.values() if op.collective},
    "cholesky": _MATRICES, "cofactors": _MATRICES, "det_slope": _MATRICES, "inv": _MATRICES, "solve": _MATRICES,
    "det_sign": "of a determinant that overflows ONNX does not know the sign",
    "logabsdet": "of a determinant that overflows ONNX does not know the logarithm",
    "random_uniform": "ONNX has no random numbers that a key decides",
    "round_to": "rounding by way of bfloat16 is done otherwise by each runtime",
    "sinc_slope": "ONNX has no derivatives of sinc",
}  # fmt: skip
"""Ops of the table that are not written, and why."""

SINGLE = ("det", "erf", "erfc", "gelu_erf")
"""Ops that are written in float32 alone."""


def emits(*names: str) -> Callable[[Emit], Emit]:
    """Enter a function that makes the nodes of ops."""

    def enter(emit: Emit) -> Emit:
        EMITTERS.update(dict.fromkeys(names, emit))
        return emit

    return enter


def axes_of(c: Call, i: int = 0) -> tuple[int, ...]:
    """The axes of an op, counted from the front; all of them for None."""
    return tuple(normal_axes(c.e.params["axis"], len(c.spec(i).shape), op=c.e.op.name))


# --- shapes -------------------------------------------------------------------------------------------------------


@emits("reshape", "expand_dims")
def _reshape(c: Call) -> str:
    return c.nodes.reshape(c.x(), c.out.shape)


@emits("transpose")
def _transpose(c: Call) -> str:
    n, axes = len(c.out.shape), c.e.params["axes"]
    order = [int(a) % n for a in axes] if axes is not None else list(range(n))[::-1]
    return c.nodes.node("Identity", c.nodes.transpose(c.x(), order))


@emits("broadcast_to")
def _broadcast_to(c: Call) -> str:
    return c.nodes.expand(c.x(), c.out.shape)


@emits("concatenate")
def _concatenate(c: Call) -> str:
    return c.nodes.node("Concat", *c.xs(c.out.dtype), axis=int(c.e.params["axis"]))


@emits("cast")
def _cast(c: Call) -> str:
    return c.nodes.cast(c.x(), c.out.dtype)


@emits("stop_gradient")
def _stop_gradient(c: Call) -> str:
    return c.nodes.node("Identity", c.x())


# --- along axes ---------------------------------------------------------------------------------------------------


@emits("sum", "mean", "max", "min", "prod")
def _reduction(c: Call) -> str:
    kind = c.e.op.name.capitalize()
    if c.out.dtype == bool:  # the largest of bools
        found = c.nodes.reduce(kind, c.x(0, np.int64), axes_of(c), c.e.params["keepdims"])
        return c.nodes.cast(found, bool)
    return c.nodes.reduce(kind, c.x(0, c.out.dtype), axes_of(c), c.e.params["keepdims"])


@emits("add_rows")
def _add_rows(c: Call) -> str:
    return c.nodes.reduce("Sum", c.x(0, c.out.dtype), (0,), keepdims=False)


@emits("any", "all", "count_nonzero")
def _counted(c: Call) -> str:
    nodes, name = c.nodes, c.e.op.name
    truth = c.x(0, bool)
    counted = nodes.node("Not", truth) if name == "all" else truth
    total = nodes.reduce("Sum", nodes.cast(counted, np.int64), axes_of(c), c.e.params["keepdims"])
    if name == "count_nonzero":
        return total
    return nodes.node("Equal" if name == "all" else "Greater", total, nodes.constant(0, np.int64))


@emits("argmax", "argmin")
def _place(c: Call) -> str:
    kind = "ArgMax" if c.e.op.name == "argmax" else "ArgMin"
    x = c.x(0, np.int64) if c.spec().dtype == bool else c.x()
    if c.e.params["axis"] is None:
        flat = c.nodes.reshape(x, (-1,))
        return c.nodes.reshape(c.nodes.node(kind, flat, axis=0, keepdims=0), c.out.shape)
    return c.nodes.node(kind, x, axis=axes_of(c)[0], keepdims=int(c.e.params["keepdims"]))


def shifted(c: Call, x: str, axes: Sequence[int]) -> tuple[str, str]:
    """Values less the largest along axes, or less 0 where that is infinite; and what was taken away."""
    functions = Functions(c.nodes, c.out.dtype, c.e.op.name)
    top = c.nodes.reduce("Max", x, axes)
    top = c.nodes.node("Where", functions.isfinite(top), top, functions.k(0))
    return c.nodes.node("Sub", x, top), top


@emits("logsumexp")
def _logsumexp(c: Call) -> str:
    nodes, axes = c.nodes, axes_of(c)
    if 0 in c.spec().shape:
        return nodes.constant(np.full(c.out.shape, -np.inf, c.out.dtype))
    less, top = shifted(c, c.x(0, c.out.dtype), axes)
    total = nodes.reduce("Sum", nodes.node("Exp", less), axes)
    return nodes.reshape(nodes.node("Add", nodes.node("Log", total), top), c.out.shape)


@emits("softmax", "log_softmax")
def _softmax(c: Call) -> str:
    kind = "Softmax" if c.e.op.name == "softmax" else "LogSoftmax"
    return c.nodes.node(kind, c.x(0, c.out.dtype), axis=int(c.e.params["axis"]))


@emits("vector_norm")
def _vector_norm(c: Call) -> str:
    x = c.x(0, c.out.dtype)
    total = c.nodes.reduce("Sum", c.nodes.node("Mul", x, x), axes_of(c), c.e.params["keepdims"])
    return c.nodes.node("Sqrt", total)


@emits("var", "std")
def _var(c: Call) -> str:
    p, nodes, axes = c.e.params, c.nodes, axes_of(c)
    x = c.x(0, c.out.dtype)
    less = nodes.node("Sub", x, nodes.reduce("Mean", x, axes))
    n = int(np.prod([c.spec().shape[a] for a in axes], dtype=np.int64))
    divisor = max(n - (p["ddof"] if p.get("correction") is None else p["correction"]), 0)
    total = nodes.reduce("Sum", nodes.node("Mul", less, less), axes, p["keepdims"])
    found = nodes.node("Div", total, nodes.constant(divisor, c.out.dtype))
    return nodes.node("Sqrt", found) if c.e.op.name == "std" else found


@emits("standardize")
def _standardize(c: Call) -> str:
    return _evened(c, axes_of(c))


def _evened(c: Call, axes: Sequence[int]) -> str:
    nodes, x = c.nodes, c.x(0, c.out.dtype)
    less = nodes.node("Sub", x, nodes.reduce("Mean", x, axes))
    variance = nodes.reduce("Mean", nodes.node("Mul", less, less), axes)
    spread = nodes.node("Add", variance, nodes.constant(c.e.params["epsilon"], c.out.dtype))
    return nodes.node("Div", less, nodes.node("Sqrt", spread))


@emits("layer_norm")
def _layer_norm(c: Call) -> str:
    epsilon = float(c.e.params["epsilon"])
    if c.out.dtype == np.float32:
        return c.nodes.node("LayerNormalization", *c.xs(np.float32), axis=-1, epsilon=epsilon)
    rows = _evened(c, [len(c.out.shape) - 1])  # the operator has its epsilon in float32
    scaled = c.nodes.node("Mul", rows, c.x(1, c.out.dtype))
    return c.nodes.node("Add", scaled, c.x(2, c.out.dtype))


@emits("cumsum")
def _cumsum(c: Call) -> str:
    x, axis = c.x(0, c.out.dtype), c.e.params["axis"]
    if axis is None:
        x, axis = c.nodes.reshape(x, (-1,)), 0
    return c.nodes.node("CumSum", x, c.nodes.constant(axis, np.int64))


def _behind(c: Call, x: str, axis: int, steps: int, fill: float) -> str:
    """Entries moved on along an axis, with a number in the places that become free."""
    n, ndim = c.out.shape[axis], len(c.out.shape)
    pads = np.zeros(2 * ndim, np.int64)
    pads[axis], pads[axis + ndim] = steps, -steps
    assert steps < n
    return c.nodes.node("Pad", x, c.nodes.constant(pads), c.nodes.constant(fill, c.out.dtype))


@emits("cumprod")
def _cumprod(c: Call) -> str:
    """Products of twice as many entries in each round."""
    x, axis = c.x(0, c.out.dtype), c.e.params["axis"]
    if axis is None:
        x = c.nodes.reshape(x, (-1,))
    axis, steps = 0 if axis is None else axis % len(c.out.shape), 1
    while steps < c.out.shape[axis]:
        x = c.nodes.node("Mul", x, _behind(c, x, axis, steps, 1))
        steps *= 2
    return c.nodes.node("Identity", x)


@emits("linear_recurrence")
def _linear_recurrence(c: Call) -> str:
    """Steps x -> a x + b are put together two by two: twice as many in each round."""
    node = c.nodes.node
    a, b = (c.nodes.expand(x, c.out.shape) for x in c.xs(c.out.dtype))
    axis, steps = c.e.params["axis"] % len(c.out.shape), 1
    while steps < c.out.shape[axis]:
        b = node("Add", b, node("Mul", a, _behind(c, b, axis, steps, 0)))
        a = node("Mul", a, _behind(c, a, axis, steps, 1))
        steps *= 2
    return b


# --- products and losses --------------------------------------------------------------------------------------------


@emits("matmul")
def _matmul(c: Call) -> str:
    return c.nodes.node("MatMul", *c.xs(c.out.dtype))


@emits("contract")
def _contract(c: Call) -> str:
    """Einsum, in which an axis of length 1 that broadcasts is left out: older runtimes do not know it."""
    terms, out = c.e.params["subscripts"].split("->")
    shapes = [a.spec.shape for a in c.e.inputs]
    lengths: dict[str, int] = {}
    for term, shape in zip(terms.split(","), shapes, strict=True):
        lengths |= {k: max(n, lengths.get(k, n)) if n else 0 for k, n in zip(term, shape, strict=True)}
    operands, words = [], []
    for x, term, shape in zip(c.xs(c.out.dtype), terms.split(","), shapes, strict=True):
        kept = [(k, n) for k, n in zip(term, shape, strict=True) if n == lengths[k]]
        operands.append(x if len(kept) == len(term) else c.nodes.reshape(x, [n for _, n in kept]))
        words.append("".join(k for k, _ in kept))
    return c.nodes.node("Einsum", *operands, equation=f"{','.join(words)}->{out}")


@emits("det")
def _det(c: Call) -> str:
    only_single(c.out.dtype, "det")
    return c.nodes.node("Det", c.x(0, c.out.dtype))


@emits("one_hot")
def _one_hot(c: Call) -> str:
    labels = c.nodes.reshape(c.x(0, np.int64), (*c.spec().shape, 1))
    numbers = c.nodes.constant(np.arange(int(c.e.params["n"])))
    return c.nodes.cast(c.nodes.node("Equal", labels, numbers), c.out.dtype)


@emits("nll", "cross_entropy")
def _nll(c: Call) -> str:
    nodes, x = c.nodes, c.x(0, c.out.dtype)
    if c.e.op.name == "cross_entropy":
        x = nodes.node("LogSoftmax", x, axis=-1)
    labels = nodes.reshape(c.x(1, np.int64), (*c.spec(1).shape, 1))
    picked = nodes.node("Neg", nodes.node("GatherElements", x, labels, axis=-1))
    rows, reduction = nodes.reshape(picked, c.spec(1).shape), c.e.params["reduction"]
    if reduction == "none":
        return rows
    kind: Any = "Sum" if reduction == "sum" else "Mean"
    return nodes.reduce(kind, rows, range(len(c.spec(1).shape)), keepdims=False)
