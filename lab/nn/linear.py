"""The fully connected layer: a matrix product and a bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.nn.init import Init, init_of
from lab.nn.module import Module, parameter


class Linear(Module):
    """`x @ weight + bias`.

    Shapes:
        weight: (n_in, n_out); bias: (n_out,), starts at 0; x: (..., n_in) -> (..., n_out).

    Args:
        init: "kaiming" (for relu), "xavier" (for tanh), or a function (n_in, n_out, rng) -> weight.
        rng: give all layers of a model one Generator: from one seed, layers of one shape would start equal.

    Raises:
        ArgumentError: a size below 1, or no such initialisation.
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
        if n_in < 1 or n_out < 1:
            raise ArgumentError("a layer has at least one input and one output", given=f"n_in={n_in}, n_out={n_out}")
        self.n_in, self.n_out = n_in, n_out
        self.weight = parameter(init_of(init)(n_in, n_out, np.random.default_rng(rng)))
        self.bias = parameter(np.zeros(n_out)) if bias else None

    def forward(self, x: Any) -> Any:
        """(..., n_in) -> (..., n_out)."""
        if not x.shape or x.shape[-1] != self.n_in:
            where = f" {self.path!r}" if self.path else ""
            hint = f"its last axis must have {self.n_in} entries"
            raise ShapeError(f"layer{where} {self!r} cannot take this input", given=f"shape {x.shape}", hint=hint)
        out = x @ self.weight
        return out if self.bias is None else out + self.bias

    def describe(self) -> str:
        return f"{self.n_in}, {self.n_out}" + (", bias=False" if self.bias is None else "")
