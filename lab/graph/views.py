"""Equations that compute nothing: their result is their operand, looked at in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.graph.ir import Equation

Look = Callable[[Any], Any]


def look_of(e: Equation) -> Look | None:
    """What makes the view from the operand's array, None where the equation computes something.

    Example:
        >>> import lab
        >>> (e,) = lab.make_graph(lambda x: x.T)(np.ones((2, 3))).equations
        >>> look_of(e)(np.ones((2, 3))).shape
        (3, 2)
    """
    shape = e.outs[0].spec.shape
    if e.op.name in ("reshape", "expand_dims"):
        return lambda x: x.reshape(shape)
    if e.op.name == "broadcast_to":
        return lambda x: np.broadcast_to(x, shape)
    if e.op.name == "transpose":
        axes = e.params["axes"]
        return lambda x: np.transpose(x, axes)
    if e.op.name == "stop_gradient":
        return lambda x: x
    if e.op.name == "getitem" and _is_basic(e.params["index"]):
        index = _open(e.params["index"])
        return lambda x: x[index]
    return None


def text_of_look(e: Equation, x: str) -> str:
    """The same as source."""
    shape = tuple(e.outs[0].spec.shape)
    if e.op.name in ("reshape", "expand_dims"):
        return f"{x}.reshape({shape})"
    if e.op.name == "broadcast_to":
        return f"np_broadcast_to({x}, {shape})"
    if e.op.name == "transpose":
        return f"{x}.transpose({e.params['axes']})"
    return x if e.op.name == "stop_gradient" else f"{x}[{_index_text(_open(e.params['index']))}]"


def is_contiguous_look(e: Equation) -> bool:
    """Whether the view of a contiguous operand is contiguous: only the shape is another."""
    return e.op.name in ("reshape", "expand_dims", "stop_gradient")


def _open(index: Any) -> Any:
    """The same index so that NumPy gives a view: numbers alone would give one entry, read once and for all."""
    parts = index if isinstance(index, tuple) else (index,)
    return index if any(p is ... for p in parts) else (*parts, ...)


def _is_basic(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    kinds = (int, np.integer, slice, type(None), type(...))
    return all(isinstance(p, kinds) and not isinstance(p, bool | np.bool_) for p in parts)


def _index_text(index: Any) -> str:
    parts = index if isinstance(index, tuple) else (index,)
    words = ["..." if p is ... else repr(p) if not isinstance(p, np.integer) else str(int(p)) for p in parts]
    return ", ".join(words) + ("," if isinstance(index, tuple) and len(words) == 1 else "") if words else "()"
