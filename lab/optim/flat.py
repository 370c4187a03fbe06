"""Parameters side by side in one vector: an update rule is then one pass over memory, and an all-reduce one buffer.

Building it moves the parameters: each tensor's array becomes a view into the vector, with the values that it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.autograd import Leaf, Tensor, mutation
from lab.autograd.between import tell_written
from lab.errors import ArgumentError, GradientError
from lab.events.bus import bus
from lab.nn.module import leaf_of

Vector = npt.NDArray[Any]


class FlatParameters:
    """Parameters of one dtype as views into one vector.

    Attributes:
        values: (n,), what the parameters look into.
        gradients: (n,), filled by `gather`.

    Example:
        >>> from lab.autograd import tensor
        >>> w = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        >>> flat = FlatParameters([w])
        >>> flat.values *= 10
        >>> w.numpy().tolist()
        [[10.0, 20.0], [30.0, 40.0]]
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = list(parameters)
        ends = np.cumsum([p.size for p in parameters]).tolist()
        self.slices = [slice(end - p.size, end) for p, end in zip(parameters, ends, strict=True)]
        self.values: Vector = np.empty(ends[-1], parameters[0].dtype)
        self.gradients: Vector = np.empty_like(self.values)
        self.adopt()

    @property
    def leaves(self) -> list[Leaf]:
        """The leaf of each parameter, looked up each time: copying an optimiser makes new leaves."""
        return [leaf_of(p) for p in self.parameters]

    def adopt(self) -> None:
        """Take in every parameter whose array has been replaced: by another optimiser, by a copy, by hand."""
        for p, where in zip(self.parameters, self.slices, strict=True):
            if p.value.base is not self.values:
                view = self.values[where].reshape(p.shape)
                view[...] = p.value
                p.value = view

    def gather(self, lacking: list[Tensor] | None = None) -> None:
        """Copy the parameters' gradients into `gradients`.

        Args:
            lacking: takes those that have none, which count as 0; without it they are
                refused.

        Raises:
            GradientError: a parameter has none.
        """
        found = []
        for p in self.parameters:
            gradient = p.node.grad  # type: ignore[union-attr]  # of a Leaf, as `leaves` asks
            if gradient is None:
                if lacking is None:
                    raise self.missing()
                lacking.append(p)
                gradient = np.zeros_like(p.value)
            found.append((gradient.value if isinstance(gradient, Tensor) else gradient).reshape(-1))
        np.concatenate(found, out=self.gradients)

    def missing(self) -> GradientError:
        lacking = [leaf.name or f"number {i}" for i, leaf in enumerate(self.leaves) if leaf.grad is None]
        if len(lacking) == len(self.parameters):
            given = f"none of {len(self.parameters)} has one"
            return GradientError("no parameter has a gradient", given=given, hint="call loss.backward() before step()")
        hint = "they took no part in the loss: leave them out of the optimiser, or use them"
        given = ", ".join(lacking[:4]) + (f" and {len(lacking) - 4} more" if len(lacking) > 4 else "")
        return GradientError(
            f"{len(lacking)} of {len(self.parameters)} parameters have no gradient", given=given, hint=hint
        )

    def changed(self) -> None:
        """Tell the tapes, and who listens to operations, that the values are not what they were."""
        mutation.mark(self.values)
        if bus.operations:
            for p in self.parameters:
                tell_written(leaf_of(p), p.value)

    def split(self, vector: Vector) -> list[Vector]:
        """A vector like `values`, cut into arrays of the parameters' shapes; copies."""
        return [vector[where].reshape(p.shape).copy() for p, where in zip(self.parameters, self.slices, strict=True)]


def leaf_at(number: int, parameter: object) -> Leaf:
    """The leaf of what was given as parameter `number`.

    Raises:
        ArgumentError: it is none.
    """
    if isinstance(parameter, Tensor) and isinstance(parameter.node, Leaf):
        return parameter.node
    raise ArgumentError("this cannot be optimised", given=f"number {number}: {type(parameter).__name__}",
                        hint="give leaf tensors made with requires_grad=True, such as model.parameters()")  # fmt: skip
