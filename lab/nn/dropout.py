"""Dropout as a module: random in training, nothing in use."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab import ops
from lab.checks import generator, number
from lab.errors import ArgumentError
from lab.nn.module import Module
from lab.ops.random import random_key


class Dropout(Module):
    """In training each entry is 0 with probability `rate`, the others are divided by 1 - rate (Srivastava et al. 2014).

    After `model.eval()` it gives what it got. A key is drawn at each call, by `lab.jit` as well, and again the same
    under `lab.checkpoint`. In a branch or a loop of a graph it is refused: there a key is given, `lab.dropout(x, key)`.

    Args:
        rate: 0 to 1.
        rng: a seed or a Generator, for the same masks in the same order.

    Raises:
        ArgumentError: a rate that is none.

    Example:
        >>> from lab.autograd import tensor
        >>> layer = Dropout(0.5, rng=1)
        >>> layer(tensor(np.ones(4))).numpy().tolist()
        [2.0, 0.0, 2.0, 0.0]
        >>> layer.eval()(tensor([1.0, 2.0])).numpy().tolist()
        [1.0, 2.0]
    """

    def __init__(self, rate: float = 0.5, *, rng: int | np.random.Generator | None = None) -> None:
        hint = "0 to 1, the share that becomes 0"
        self.rate = number("rate", rate, hint=hint)
        if not 0 <= self.rate <= 1:
            raise ArgumentError("the rate of a dropout is a share", given=f"rate={rate!r}", hint=hint)
        self.rng = generator(rng)

    def forward(self, x: Any) -> Any:
        """Any shape, the same out."""
        return ops.dropout(x, random_key(self.rng), rate=self.rate) if self.training and self.rate else x

    def describe(self) -> str:
        return f"{self.rate:g}"
