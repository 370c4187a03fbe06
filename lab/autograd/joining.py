"""The op that takes any number of operands, as its users know it: with a list of them."""

from __future__ import annotations

from typing import Any

from lab import ops
from lab.errors import ShapeError
from lab.ops.shape import listed


def concatenate(tensors: Any, axis: int = 0) -> Any:
    """Tensors joined along an existing axis.

    Args:
        tensors: a sequence of tensors or arrays whose shapes agree but for `axis`.

    Example:
        >>> import lab
        >>> lab.concatenate([lab.tensor([1.0]), lab.tensor([2.0, 3.0])])
        tensor([1., 2., 3.])
    """
    parts = listed(tensors, "concatenate")
    if not parts:
        raise ShapeError("concatenate needs at least one tensor", given="an empty list", hint="lab.concatenate([a, b])")
    return ops.concatenate.apply(*parts, axis=axis)
