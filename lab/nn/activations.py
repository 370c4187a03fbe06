"""Activations as modules: a function that has no parameters, with a place in the model."""

from __future__ import annotations

from typing import Any

from lab import ops
from lab.nn.module import Module


class ReLU(Module):
    """`max(x, 0)`, elementwise."""

    def forward(self, x: Any) -> Any:
        """Any shape, the same out."""
        return ops.relu(x)


class Tanh(Module):
    """Hyperbolic tangent, elementwise: between -1 and 1."""

    def forward(self, x: Any) -> Any:
        """Any shape, the same out."""
        return ops.tanh(x)


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`, elementwise: between 0 and 1."""

    def forward(self, x: Any) -> Any:
        """Any shape, the same out."""
        return ops.sigmoid(x)


class Softmax(Module):
    """Positive numbers with sum 1 along an axis. Not before `cross_entropy`, which takes the logits.

    Example:
        >>> from lab.autograd import tensor
        >>> Softmax()(tensor([[0.0, 0.0]])).numpy().tolist()
        [[0.5, 0.5]]
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """Any shape, the same out."""
        return ops.softmax(x, axis=self.axis)

    def describe(self) -> str:
        return "" if self.axis == -1 else f"axis={self.axis}"
