"""Losses: `(prediction, targets) -> scalar`, the mean over the batch."""

from __future__ import annotations

from typing import Any

from lab import ops
from lab.autograd import Tensor
from lab.errors import ShapeError
from lab.ops import cross_entropy

__all__ = ["cross_entropy", "mse"]


def mse(prediction: Tensor, targets: Any) -> Tensor:
    """Mean of the squared differences.

    Shapes:
        prediction and targets: the same shape; result: ().

    Raises:
        ShapeError: the shapes differ; broadcasting (n, 1) against (n,) would compare every pair.

    Example:
        >>> from lab.autograd import tensor
        >>> mse(tensor([1.0, 3.0]), tensor([1.0, 1.0])).item()
        2.0
    """
    if prediction.shape != targets.shape:
        hint = "reshape one of them: broadcasting would compare every pair"
        raise ShapeError("mse compares equal shapes", given=f"{prediction.shape} and {targets.shape}", hint=hint)
    difference = ops.subtract(prediction, targets)
    found: Tensor = ops.mean(ops.square(difference))
    return found
