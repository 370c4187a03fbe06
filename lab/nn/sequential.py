"""Modules one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from lab.checks import generator
from lab.errors import ArgumentError
from lab.nn.activations import ReLU
from lab.nn.linear import Linear
from lab.nn.module import Module


class Sequential(Module):
    """Each module takes what the one before it gave.

    Example:
        >>> model = Sequential(Linear(64, 128), ReLU(), Linear(128, 10))
        >>> model
        Sequential(
          0: Linear(64, 128)
          1: ReLU()
          2: Linear(128, 10)
        )
        >>> model[2], len(model)
        (Linear(128, 10), 3)
    """

    def __init__(self, *layers: Module) -> None:
        given_layers: tuple[object, ...] = layers
        for layer in given_layers:
            if not isinstance(layer, Module):
                given, hint = type(layer).__name__, "for a function, write a Module with it as forward"
                raise ArgumentError("a Sequential is made of modules", given=given, hint=hint)
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        """What the last layer makes of what the others made of `x`."""
        for layer in self.layers:
            x = layer(x)
        return x

    def parts(self) -> Mapping[str, Any]:
        return {str(i): layer for i, layer in enumerate(self.layers)}

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, i: int) -> Module:
        return self.layers[i]

    def __iter__(self) -> Iterator[Module]:
        return iter(self.layers)


def mlp(
    *sizes: int,
    activation: Callable[[], Module] = ReLU,
    init: str = "kaiming",
    rng: int | np.random.Generator | None = None,
) -> Sequential:
    """A multi-layer perceptron: Linear layers of these sizes with activations between them.

    Raises:
        ArgumentError: fewer than two sizes, or a size that is no whole number of at least 1.

    Example:
        >>> mlp(64, 128, 128, 10, rng=0).n_parameters
        26122
    """
    if len(sizes) < 2:
        raise ArgumentError(
            "an mlp has at least an input and an output size", given=str(sizes), hint="mlp(64, 128, 10)"
        )
    rng = generator(rng)
    layers: list[Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [Linear(n_in, n_out, init=init, rng=rng), activation()]
    return Sequential(*layers[:-1])
