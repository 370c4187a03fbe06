"""Layers that normalise each example by itself: over its last axis, or over groups of its channels.

The functions are `lab.layer_norm`, `lab.rms_norm` and `lab.group_norm`; a layer keeps what they scale and shift by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab import ops
from lab.checks import whole
from lab.errors import ArgumentError
from lab.nn.inputs import refuse_last_axis, unfit
from lab.nn.module import Module, parameter


class LayerNorm(Module):
    """`(x - mean) / sqrt(variance + epsilon) * scale + shift` over the last axis (Ba et al., arXiv:1607.06450).

    Shapes:
        x: (..., n) -> (..., n); scale, shift: (n,), at first 1 and 0. The variance is that of all n entries.

    Example:
        >>> from lab.autograd import tensor
        >>> LayerNorm(2)(tensor([[1.0, 3.0]])).numpy().round(3).tolist()
        [[-1.0, 1.0]]
    """

    def __init__(self, n: int, *, epsilon: float = 1e-5) -> None:
        self.n, self.epsilon = whole("n", n, least=1, hint="LayerNorm(64) takes rows of 64 numbers"), epsilon
        self.scale, self.shift = parameter(np.ones(self.n)), parameter(np.zeros(self.n))

    def forward(self, x: Any) -> Any:
        """(..., n) -> (..., n)."""
        refuse_last_axis(self, x, self.n)
        return ops.layer_norm(x, self.scale, self.shift, epsilon=self.epsilon)

    def describe(self) -> str:
        return str(self.n)


class RMSNorm(Module):
    """`x / sqrt(mean(x**2) + epsilon) * scale` over the last axis (Zhang and Sennrich, arXiv:1910.07467).

    Shapes:
        x: (..., n) -> (..., n); scale: (n,), at first 1.

    Example:
        >>> from lab.autograd import tensor
        >>> RMSNorm(2)(tensor([[1.0, 7.0]])).numpy().round(3).tolist()
        [[0.2, 1.4]]
    """

    def __init__(self, n: int, *, epsilon: float = 1e-5) -> None:
        self.n, self.epsilon = whole("n", n, least=1, hint="RMSNorm(64) takes rows of 64 numbers"), epsilon
        self.scale = parameter(np.ones(self.n))

    def forward(self, x: Any) -> Any:
        """(..., n) -> (..., n)."""
        refuse_last_axis(self, x, self.n)
        return ops.rms_norm(x, self.scale, epsilon=self.epsilon)

    def describe(self) -> str:
        return str(self.n)


class GroupNorm(Module):
    """The channels of each example in equal groups, each with mean 0 and variance 1 (Wu and He, arXiv:1803.08494).

    Shapes:
        x: (batch, n_channels, ...) -> the same; scale, shift: (n_channels,), at first 1 and 0.

    Args:
        n_groups: 1 is layer normalisation over all channels, n_channels instance normalisation.

    Raises:
        ArgumentError: the groups do not divide the channels.

    Example:
        >>> from lab.autograd import tensor
        >>> GroupNorm(2, 4)(tensor([[1.0, 3.0, 10.0, 30.0]])).numpy().round(3).tolist()
        [[-1.0, 1.0, -1.0, 1.0]]
    """

    def __init__(self, n_groups: int, n_channels: int, *, epsilon: float = 1e-5) -> None:
        hint = "GroupNorm(4, 32) makes 4 groups of 8 channels"
        self.n_groups = whole("n_groups", n_groups, least=1, hint=hint)
        self.n, self.epsilon = whole("n_channels", n_channels, least=1, hint=hint), epsilon
        if self.n % self.n_groups:
            given = f"{self.n} channels, {self.n_groups} groups"
            raise ArgumentError("the groups of a GroupNorm divide its channels", given=given, hint=hint)
        self.scale, self.shift = parameter(np.ones(self.n)), parameter(np.zeros(self.n))

    def forward(self, x: Any) -> Any:
        """(batch, n_channels, ...) -> the same."""
        shape: tuple[int, ...] = getattr(x, "shape", ())
        if len(shape) < 2 or shape[1] != self.n:
            raise unfit(self, x, f"(batch, {self.n} channels, ...)")
        return ops.group_norm(x, self.scale, self.shift, n_groups=self.n_groups, epsilon=self.epsilon)

    def describe(self) -> str:
        return f"{self.n_groups}, {self.n}"
