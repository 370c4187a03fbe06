"""Functions that take a list of tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lab import ops
from lab.errors import ShapeError, UnsupportedError


def concatenate(tensors: Any, axis: int = 0) -> Any:
    """Tensors joined along an existing axis.

    Args:
        tensors: a sequence of tensors or arrays whose shapes agree but for `axis`.

    Example:
        >>> import lab
        >>> lab.concatenate([lab.tensor([1.0]), lab.tensor([2.0, 3.0])])
        tensor([1., 2., 3.])
    """
    parts = _sequence(tensors, "concatenate")
    if not parts:
        raise ShapeError("concatenate needs at least one tensor", given="an empty list", hint="lab.concatenate([a, b])")
    return ops.concatenate.apply(*parts, axis=axis)


def stack(tensors: Any, axis: int = 0) -> Any:
    """Tensors of one shape joined along a new axis.

    Example:
        >>> import lab
        >>> lab.stack([lab.tensor(1.0), lab.tensor(2.0)])
        tensor([1., 2.])
    """
    parts = _sequence(tensors, "stack")
    shapes = {np.shape(p) for p in parts}
    if len(shapes) != 1:
        raise ShapeError(
            "stack needs tensors of one shape",
            given=str(sorted(shapes)) if shapes else "an empty list",
            hint="lab.concatenate joins along an axis; reshape brings them to one shape",
        )
    return ops.concatenate.apply(*(ops.expand_dims.apply(p, axis=axis) for p in parts), axis=axis)


def _sequence(tensors: Any, word: str) -> list[Any]:
    if not isinstance(tensors, Iterable):
        raise UnsupportedError(
            f"{word} needs a sequence of tensors", given=type(tensors).__name__, hint=f"lab.{word}([a, b])"
        )
    return list(tensors)
