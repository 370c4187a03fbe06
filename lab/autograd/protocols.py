"""NumPy's protocols: np.sin(t) and np.sum(t) are ops of the table.

What the lab does not support raises with the lab's name for it; nothing falls back to an array without gradient.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from lab import ops
from lab.autograd.attach import attach, kinds
from lab.autograd.interpreter import Tracer
from lab.autograd.joining import concatenate
from lab.autograd.tensor import Tensor
from lab.errors import UnsupportedError
from lab.ops.composite import Composite
from lab.ops.primitive import PRIMITIVES, Op

_UFUNCS: dict[Any, Op] = {
    getattr(np, name): op for name, op in PRIMITIVES.items() if isinstance(getattr(np, name, None), np.ufunc)
}


_MASKS: dict[Any, Callable[..., Any]] = {
    np.bitwise_and: Tensor.__and__,
    np.bitwise_or: Tensor.__or__,
    np.bitwise_xor: Tensor.__xor__,
    np.invert: Tensor.__invert__,
}


def _array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    op = _UFUNCS.get(ufunc)
    if ufunc in _MASKS and method == "__call__" and not kwargs:
        return _MASKS[ufunc](*inputs)
    if method == "reduce" and ufunc in _REDUCED and not set(kwargs) - {"axis", "keepdims"}:
        return _REDUCED[ufunc].apply(inputs[0], axis=kwargs.get("axis", 0), keepdims=bool(kwargs.get("keepdims")))
    if method == "accumulate" and ufunc in _ACCUMULATED and not set(kwargs) - {"axis"}:
        return _ACCUMULATED[ufunc].apply(inputs[0], axis=kwargs.get("axis", 0))
    if method != "__call__" or op is None:
        word = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise UnsupportedError(
            f"np.{word} does not work on a tensor",
            given=kinds(inputs),
            hint=_near(ufunc.__name__),
        )
    if kwargs:
        raise UnsupportedError(
            f"np.{ufunc.__name__} on a tensor takes no {', '.join(kwargs)}",
            given=kinds(kwargs.values()),
            hint=f"use lab.{op.name}",
        )
    return op.apply(*inputs)


_REDUCED: dict[Any, Op] = {
    np.add: ops.sum, np.maximum: ops.max, np.minimum: ops.min, np.multiply: ops.prod, np.logical_and: ops.all,
    np.logical_or: ops.any,
}  # fmt: skip
_ACCUMULATED: dict[Any, Op] = {np.add: ops.cumsum, np.multiply: ops.cumprod}


def _near(name: str) -> str:
    import difflib

    # 0.7 tells a slip or another spelling (abs, true_divide) from another function: argmax is not max.
    close = difflib.get_close_matches(name, ops.NAMES, n=1, cutoff=0.7)
    other = f"np.{name}(x.numpy()) where no gradient is wanted"
    return f"lab has lab.{close[0]}, or use {other}" if close else f"use {other}"


def _spelled(record: Op | Composite, function: Any, own: Callable[..., Any] | None) -> Callable[..., Any]:
    """NumPy's call of a function turned into ours: the operands first, then what both have a parameter for."""
    if own is not None:
        return own
    signature = inspect.signature(function)
    n = len(record.arguments)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        operands = [given.pop(p) for p in list(signature.parameters)[:n] if p in given]
        unknown = [p for p, value in given.items()
                   if p not in record.defaults and value is not signature.parameters[p].default]  # fmt: skip
        if unknown:
            raise UnsupportedError(
                f"np.{function.__name__} on a tensor takes no {', '.join(unknown)}",
                given=kinds(given[p] for p in unknown),
                hint=f"use lab.{record.name}",
            )
        return record.apply(*operands, **{p: value for p, value in given.items() if p in record.defaults})

    return call


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    function: _spelled(record, function, own)
    for record in ops.records()
    for function, own in record.numpy.items()
} | {
    np.concatenate: concatenate,
    np.where: ops.where.apply,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.result_type: lambda *xs: np.result_type(*(x.dtype if isinstance(x, Tensor) else x for x in xs)),
}


def _array_function(self: Tensor, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = _FUNCTIONS.get(function)
    name = getattr(function, "__name__", str(function))
    if found is None:
        module = getattr(function, "__module__", "numpy").replace("numpy", "np", 1)
        raise UnsupportedError(
            f"{module}.{name} does not work on a tensor",
            given=kinds(args),
            hint=_near(name),
        )
    try:
        return found(*args, **kwargs)
    except TypeError as why:
        if "argument" not in str(why):
            raise
        raise UnsupportedError(
            f"np.{name} on a tensor was called in an unsupported way", given=str(why), hint=_near(name)
        ) from None


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    if isinstance(self, Tracer) and self.dtype.kind in "iub":
        raise UnsupportedError(
            f"a value inside {self.interp.word} is not made an array",
            given=repr(self),
            hint="as an index of an array a: lab.take(a, index, axis=0); else use lab's functions",
        )
    if self.requires_grad or isinstance(self, Tracer):
        raise UnsupportedError(
            "a tensor that requires a gradient is not made an array in silence",
            given=repr(self),
            hint="use lab's functions (lab.stack for a list), or .detach().numpy()",
        )
    if copy is False:
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError("a copy is needed to change the dtype")
        return self.numpy()
    return np.array(self.value, dtype=dtype)


attach(__array_ufunc__=_array_ufunc, __array_function__=_array_function, __array__=_array)
