"""How each op that is no formula is written in NumPy: a function from its equation to an expression.

What stands in no table here and has no formula is refused by name; `REFUSED` says of which ops of the lab, and why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.graph.ir import Equation
from lab.graph.values import KINDS
from lab.interop.plain.text import dtype_text, index_text, parameter_text
from lab.ops import PRIMITIVES
from lab.ops.fitting import plan_back, plan_of, plan_weight
from lab.ops.windows import Windows, windows

Write = Callable[..., str]
"""`write(call, e, *operands) -> expression`; `call(name)` is asked for a function that the file brings along."""

WRITERS: dict[str, Write] = {}
"""By op what writes it."""

REFUSED: dict[str, str] = {
    **{op.name: "it meets other ranks, and the file runs alone" for op in PRIMITIVES.values() if op.collective},
    "round_to": "NumPy has no bfloat16",
}
"""Ops of the table that are not written."""

WIDE = frozenset(
    {"contract", "matmul", "conv", "conv_transpose", "conv_weight", "inv", "solve", "det", "cofactors", "det_slope",
     "det_sign", "logabsdet", "cholesky", "sum", "mean", "logsumexp", "softmax", "log_softmax", "vector_norm",
     "cumsum", "cumprod", "prod", "var", "std", "median", "standardize", "layer_norm", "cross_entropy", "nll",
     "linear_recurrence"}
)  # fmt: skip
"""Ops that compute float16 in float32, as sums must."""


class Tools:
    """What a writer may ask for.

    Attributes:
        helper: `helper(name)`: the name of a function of `plain`, which the file then brings along.
        keep: `keep(array)`: the name of a constant of the file.
    """

    def __init__(self, helper: Callable[[str], str], keep: Callable[[Any], str]) -> None:
        self.helper, self.keep = helper, keep

    def call(self, name: str, operands: tuple[str, ...], **params: Any) -> str:
        """A call, parameters by name; of NumPy if the name has a dot, else of a function of `plain`."""
        words = [*operands, *(f"{k}={self.text(v)}" for k, v in params.items())]
        return f"{name if '.' in name else self.helper(name)}({', '.join(words)})"

    def text(self, value: Any) -> str:
        """A parameter."""
        return parameter_text(value, self.keep)


def _writes(*names: str) -> Callable[[Write], Write]:
    def enter(write: Write) -> Write:
        WRITERS.update(dict.fromkeys(names, write))
        return write

    return enter


def _axes(params: Any) -> dict[str, Any]:
    """The parameters, an axis as NumPy takes it."""
    return {k: tuple(v) if k in ("axis", "axes") and isinstance(v, list) else v for k, v in params.items()}


def _of_numpy(name: str) -> Write:
    return lambda tools, e, *xs: tools.call(name, xs, **_axes(e.params))


def _of_plain(name: str) -> Write:
    return lambda tools, e, *xs: tools.call(name, xs, **_axes(e.params))


for _name in ("transpose", "sum", "mean", "max", "min", "prod", "any", "all", "count_nonzero", "argmax", "argmin",
              "cumsum", "cumprod", "median", "expand_dims"):  # fmt: skip
    WRITERS[_name] = _of_numpy(f"np.{_name}")
for _name in ("logsumexp", "softmax", "log_softmax", "vector_norm", "standardize", "linear_recurrence", "argsort",
              "sort", "scatter_add", "setitem", "segment_sum", "put_along_axis", "embedding", "wrap_index", "nll",
              "cross_entropy", "cofactors", "det_slope"):  # fmt: skip
    WRITERS[_name] = _of_plain(_name)
for _name in ("inv", "solve", "det"):
    WRITERS[_name] = _of_numpy(f"np.linalg.{_name}")


@_writes("reshape", "broadcast_to")
def _shape(_tools: Tools, e: Equation, x: str) -> str:
    return f"np.{e.op.name}({x}, {e.out.spec.shape})"


@_writes("add_rows")
def _add_rows(_tools: Tools, _e: Equation, x: str) -> str:
    return f"np.sum({x}, axis=0)"


@_writes("concatenate")
def _concatenate(_tools: Tools, e: Equation, *xs: str) -> str:
    return f"np.concatenate(({', '.join(xs)},), axis={int(e.params['axis'])})"


@_writes("cast")
def _cast(_tools: Tools, e: Equation, x: str) -> str:
    return f"np.asarray({x}).astype({dtype_text(e.out.spec.dtype)})"


@_writes("stop_gradient")
def _stop_gradient(_tools: Tools, _e: Equation, x: str) -> str:
    return f"np.asarray({x})"


@_writes("getitem")
def _getitem(tools: Tools, e: Equation, x: str) -> str:
    base = x if x.isidentifier() else f"np.asarray({x})"
    return f"{base}[{index_text(e.params['index'], tools.keep)}]"


@_writes("take")
def _take(tools: Tools, e: Equation, *xs: str) -> str:
    if not e.params["batch"]:
        return tools.call("np.take", xs, axis=e.params["axis"])
    ndim = e.inputs[0].spec.ndim
    return tools.call("take", xs, axis=e.params["axis"] % ndim, batch=e.params["batch"])


@_writes("contract")
def _contract(tools: Tools, e: Equation, *xs: str) -> str:
    return f"np.einsum({tools.text(e.params['subscripts'])}, {', '.join(xs)}, optimize=True)"


@_writes("matmul")
def _matmul(_tools: Tools, _e: Equation, a: str, b: str) -> str:
    return f"{a} @ {b}"


@_writes("var", "std")
def _spread(tools: Tools, e: Equation, x: str) -> str:
    p = _axes(e.params)
    ddof = p["ddof"] if p.get("correction") is None else p["correction"]
    return tools.call(f"np.{e.op.name}", (x,), axis=p["axis"], ddof=ddof, keepdims=p["keepdims"])


@_writes("layer_norm")
def _layer_norm(tools: Tools, e: Equation, x: str, scale: str, shift: str) -> str:
    return f"{tools.call('standardize', (x,), axis=-1, epsilon=e.params['epsilon'])} * {scale} + {shift}"


@_writes("det_sign", "logabsdet")
def _slogdet(_tools: Tools, e: Equation, a: str) -> str:
    return f"np.linalg.slogdet({a})[{int(e.op.name == 'logabsdet')}]"


@_writes("cholesky")
def _cholesky(tools: Tools, _e: Equation, a: str) -> str:
    return f"np.linalg.cholesky({tools.call('symmetric', (a,))})"


@_writes("one_hot")
def _one_hot(tools: Tools, e: Equation, labels: str) -> str:
    return f"{tools.helper('one_hot')}({labels}, {int(e.params['n'])}, {dtype_text(e.out.spec.dtype)})"


@_writes("random_uniform")
def _random_uniform(tools: Tools, e: Equation, key: str) -> str:
    return f"{tools.helper('random_uniform')}({key}, {e.out.spec.shape}, {dtype_text(e.out.spec.dtype)})"


def _around(plan: Windows) -> tuple[tuple[int, int], ...]:
    return tuple(zip(plan.before, plan.after, strict=True))


def _groups(params: Any) -> int:
    groups = params["groups"]
    return int(groups[0] if isinstance(groups, tuple | list) else groups)


@_writes("conv", "conv_transpose", "conv_weight")
def _convolution(tools: Tools, e: Equation, a: str, b: str) -> str:
    p = e.params
    first, second = (np.asarray(a.spec.shape).tolist() for a in e.inputs)
    tail = p["groups"], p["stride"], p["padding"], p["dilation"]
    own: dict[str, Any] = {}
    if e.op.name == "conv":
        plan = plan_of(tuple(first), tuple(second), *tail)
    elif e.op.name == "conv_transpose":
        plan = plan_back(tuple(first), tuple(second), p["size"], *tail)
        own = {"size": plan.size}
    else:
        plan = plan_weight(tuple(first), tuple(second), p["kernel"], *tail)
        own = {"kernel": plan.kernel}
    return tools.call(e.op.name, (a, b), **own, stride=plan.stride, dilation=plan.dilation, around=_around(plan),
                      groups=_groups(p))  # fmt: skip


@_writes("max_pool", "argmax_pool", "max_pool_back")
def _pool(tools: Tools, e: Equation, *xs: str) -> str:
    p = e.params
    stride = p["kernel"] if p["stride"] is None else p["stride"]
    plan = windows("max_pool", e.inputs[-1].spec.shape[2:], p["kernel"], stride, p["padding"])
    return tools.call(e.op.name, xs, kernel=plan.kernel, stride=plan.stride, around=_around(plan))


def writable(dtype: Any) -> bool:
    """Whether plain NumPy has this dtype."""
    return np.dtype(dtype).kind in KINDS
