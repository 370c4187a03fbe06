"""Decomposition: softmax and its kin are written out in sums and elementwise ops, to be shared and fused in parts.

What one op does in a kernel of its own (the largest entry taken off first, a variance of differences from the mean) is
done step by step here; a fused loop puts the steps together again, with those of the neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.graph.ir import Equation, Graph
from lab.graph.make import trace_specs
from lab.graph.passes.pipeline import graph_pass
from lab.graph.rewriting import Rewriter
from lab.ops import PRIMITIVES as OPS
from lab.shapes import normal_axes

WRITTEN_OUT: dict[str, Callable[..., Any]] = {}
"""By name of the op what it is in other ops: `f(*operands, **params)`, or None where it stays as it is."""


def writes_out(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter how an op is written out."""

    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        WRITTEN_OUT[name] = f
        return f

    return enter


@graph_pass("decomposition")
def decomposition(graph: Graph) -> Graph:
    """Ops that are made of sums and elementwise steps along the last axis are written out.

    Example:
        >>> import lab, numpy as np
        >>> print(decomposition(lab.make_graph(lambda x: lab.mean(x, axis=-1))(np.ones((2, 4)))))
        graph(a:f64[2,4]) { let
            c:f64[2,1] = sum(a, axis=1, keepdims=True)
            d:f64[2,1] = divide(c, 4.0)
            e:f64[2] = reshape(d, shape=(2,))
          in (e) }
    """
    new = Rewriter(graph)
    for e in graph.equations:
        f = WRITTEN_OUT.get(e.op.name)
        now = new.seen(e)
        if f is None or not _fits(now):
            new.keep(e)
            continue
        inner = trace_specs(lambda *xs, f=f, e=e: f(*xs, **e.params), [a.spec for a in now.inputs])
        (out,) = new.insert(inner, now.inputs, like=[e])
        new.stand(e.out, out)
    return new.done()


def _fits(e: Equation) -> bool:
    """Whether it works along the last axis of an array of float32 or float64 that has entries."""
    x = e.inputs[0].spec
    if x.dtype.char not in "fd" or not x.size or not x.shape or e.out.spec.dtype != x.dtype:
        return False
    if e.op.name in ("cross_entropy", "layer_norm"):
        return all(a.spec.dtype in (x.dtype, np.dtype(np.int64)) for a in e.inputs)
    axes = normal_axes(e.params["axis"], len(x.shape))
    if e.op.name in ("sum", "max", "min"):
        last = len(x.shape) - 1
        return axes == (last,) and (e.params["axis"], e.params["keepdims"]) != (last, True)
    whole = e.op.name == "mean" and axes == tuple(range(len(axes)))  # the mean of all, or down the rows
    return whole or axes == (len(x.shape) - 1,)


def _safe_top(x: Any) -> Any:
    """The largest entry along the last axis, 0 where that is no number to take off."""
    top = OPS["max"](x, axis=x.ndim - 1, keepdims=True)
    return OPS["where"](OPS["isfinite"](top), top, 0.0)


def _sum(x: Any) -> Any:
    """Sums along the last axis, which stays with length 1: written in one way, so that equal ones are seen to be."""
    return OPS["sum"](x, axis=x.ndim - 1, keepdims=True)


def _last(x: Any, keepdims: bool) -> Any:
    return x if keepdims else OPS["reshape"](x, shape=tuple(x.shape[:-1]))


@writes_out("softmax")
def _softmax(x: Any, *, axis: int) -> Any:
    e = OPS["exp"](x - _safe_top(x))
    return e / _sum(e)


@writes_out("log_softmax")
def _log_softmax(x: Any, *, axis: int) -> Any:
    shifted = x - _safe_top(x)
    return shifted - OPS["log"](_sum(OPS["exp"](shifted)))


@writes_out("logsumexp")
def _logsumexp(x: Any, *, axis: Any, keepdims: bool) -> Any:
    top = _safe_top(x)
    return _last(OPS["log"](_sum(OPS["exp"](x - top))) + top, keepdims)


@writes_out("cross_entropy")
def _cross_entropy(logits: Any, labels: Any, *, reduction: str) -> Any:
    shifted = logits - _safe_top(logits)
    total = OPS["log"](_sum(OPS["exp"](shifted)))
    losses = _last(total, False) + OPS["nll"](shifted, labels, reduction="none")
    if reduction == "none":
        return losses
    whole = OPS["sum"](losses, axis=None)
    return whole / float(math.prod(labels.shape)) if reduction == "mean" else whole


def _in_one_form(name: str) -> Callable[..., Any]:
    """A reduction along the last axis written in one way, so that equal ones are seen to be equal."""

    def f(x: Any, *, axis: Any, keepdims: bool) -> Any:
        return _last(OPS[name](x, axis=x.ndim - 1, keepdims=True), keepdims)

    return f


for _name in ("sum", "max", "min"):
    writes_out(_name)(_in_one_form(_name))


@writes_out("mean")
def _mean(x: Any, *, axis: Any, keepdims: bool) -> Any:
    if normal_axes(axis, x.ndim) == (x.ndim - 1,):
        return _last(_sum(x) / float(x.shape[-1]), keepdims)
    total = OPS["sum"](x, axis=axis, keepdims=keepdims)
    return total / float(math.prod(x.shape) // math.prod(total.shape))


def _variance(x: Any, divisor: float) -> tuple[Any, Any]:
    """What is left of x without its mean, and its variance, along the last axis."""
    n = float(x.shape[-1])
    centred = x - _sum(x) / n
    return centred, _sum(centred * centred) / divisor


@writes_out("var")
def _var(x: Any, *, axis: Any, ddof: float, keepdims: bool, correction: Any) -> Any:
    divisor = float(x.shape[-1] - (ddof if correction is None else correction))
    return _last(_variance(x, divisor)[1], keepdims)


@writes_out("standardize")
def _standardize(x: Any, *, axis: Any, epsilon: float) -> Any:
    centred, variance = _variance(x, float(x.shape[-1]))
    return centred * OPS["rsqrt"](variance + epsilon)


@writes_out("layer_norm")
def _layer_norm(x: Any, scale: Any, shift: Any, *, epsilon: float) -> Any:
    return _standardize(x, axis=-1, epsilon=epsilon) * scale + shift
