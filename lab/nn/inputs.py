"""What a layer says of an input that it cannot take: which layer, what it was given, what it takes."""

from __future__ import annotations

from typing import Any

from lab.errors import ArgumentError, ShapeError
from lab.nn.module import Module


def unfit(layer: Module, x: object, takes: str) -> ShapeError | ArgumentError:
    """The error to raise.

    Example:
        >>> from lab.autograd import tensor
        >>> from lab.nn import Tanh
        >>> print(unfit(Tanh(), tensor([1.0]), "(batch, 2)"))
        layer Tanh() cannot take this input
        given: shape (1,)
        hint:  (batch, 2)
    """
    path = f" {layer.path!r}" if layer.path else ""
    problem = f"layer{path} {type(layer).__name__}({layer.describe()}) cannot take this input"
    shape = getattr(x, "shape", None)
    if shape is None:
        return ArgumentError(problem, given=repr(x)[:60], hint=f"give it a tensor or an array: {takes}")
    return ShapeError(problem, given=f"shape {tuple(shape)}", hint=takes)


def refuse_last_axis(layer: Module, x: Any, n: int) -> None:
    """Refuse what has not n entries along its last axis.

    Raises:
        ArgumentError: it is no array.
        ShapeError: so it is.
    """
    shape = getattr(x, "shape", None)
    if not shape or shape[-1] != n:
        raise unfit(layer, x, f"its last axis must have {n} entries")
