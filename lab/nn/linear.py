"""The fully connected layer: a matrix product and a bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.checks import generator, whole
from lab.nn.init import Init, init_of
from lab.nn.inputs import refuse_last_axis
from lab.nn.module import Module, parameter


class Linear(Module):
    """`x @ weight + bias`.

    Shapes:
        weight: (n_in, n_out); bias: (n_out,), starts at 0; x: (..., n_in) -> (..., n_out).

    Args:
        init: "kaiming" (for relu), "xavier" (for tanh), or a function (n_in, n_out, rng) -> weight.
        rng: give all layers of a model one Generator: from one seed, layers of one shape would start equal.

    Raises:
        ArgumentError: a size below 1, no such initialisation, or called with what is no array.
        ShapeError: called with another number of features.

    Example:
        >>> layer = Linear(3, 2, rng=0)
        >>> layer
        Linear(3, 2)
        >>> layer.weight.shape, layer.bias.numpy().tolist()
        ((3, 2), [0.0, 0.0])
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        *,
        bias: bool = True,
        init: str | Init = "kaiming",
        rng: int | np.random.Generator | None = None,
    ) -> None:
        self.n_in = whole("n_in", n_in, least=1, hint="Linear(64, 10) takes 64 numbers and gives 10")
        self.n_out = whole("n_out", n_out, least=1, hint="Linear(64, 10) takes 64 numbers and gives 10")
        self.weight = parameter(init_of(init)(self.n_in, self.n_out, generator(rng)))
        self.bias = parameter(np.zeros(self.n_out)) if bias else None

    def forward(self, x: Any) -> Any:
        """(..., n_in) -> (..., n_out)."""
        refuse_last_axis(self, x, self.n_in)
        out = x @ self.weight
        return out if self.bias is None else out + self.bias

    def describe(self) -> str:
        return f"{self.n_in}, {self.n_out}" + (", bias=False" if self.bias is None else "")
