"""What is made of where ranks went since they last met: their mean, or a step of an outer optimiser towards it.

How far the mean of the ranks is from where they began is taken for a gradient, the outer one. A step of 1 without
momentum goes to the mean itself; DiLoCo takes 0.7 with Nesterov's momentum (Douillard et al., arXiv:2311.08105).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from lab.checks import flag, number
from lab.errors import ArgumentError
from lab.words import shown

Vector = npt.NDArray[Any]


@dataclass(frozen=True)
class Outer:
    """The outer optimiser of Local SGD: gradient descent with momentum on the outer gradient.

    Args:
        learning_rate: above 0; 1 without momentum is the mean of the ranks.
        momentum: 0 to below 1; how much of the last outer step's velocity goes on.
        nesterov: take the outer gradient's part once more, as if one looked ahead.

    Raises:
        ArgumentError: numbers that would not do that.

    Example:
        >>> Outer()
        Outer(learning_rate=0.7, momentum=0.9, nesterov=True)
    """

    learning_rate: float = 0.7
    momentum: float = 0.9
    nesterov: bool = True

    def __post_init__(self) -> None:
        rate = number("learning_rate", self.learning_rate, hint="Outer(learning_rate=0.7)")
        if not 0 < rate < float("inf"):
            raise ArgumentError("an outer learning rate is above 0", given=f"learning_rate={shown(rate)}",
                                hint="0.7 is usual with momentum=0.9; 1 without momentum is the mean")  # fmt: skip
        momentum = number("momentum", self.momentum, hint="Outer(momentum=0.9)")
        if not 0 <= momentum < 1:
            raise ArgumentError("momentum is 0 to below 1", given=f"momentum={shown(momentum)}", hint="0.9 is usual")
        flag("nesterov", self.nesterov)

    def step(self, gradient: Vector, velocity: Vector) -> Vector:
        """What to subtract from where the ranks began; `velocity` is changed in place.

        Shapes:
            gradient, velocity: (n,); result: (n,), new.

        Example:
            >>> import numpy as np
            >>> velocity = np.zeros(1)
            >>> [Outer(0.5, momentum=0.5).step(np.ones(1), velocity).item() for _ in range(2)]
            [0.75, 0.875]
        """
        velocity *= velocity.dtype.type(self.momentum)
        velocity += gradient
        ahead = gradient + velocity * velocity.dtype.type(self.momentum) if self.nesterov else velocity
        moved: Vector = ahead * velocity.dtype.type(self.learning_rate)
        return moved


MEAN = Outer(1.0, momentum=0.0, nesterov=False)
"""Goes to the mean of the ranks."""


def outer_of(outer: object) -> Outer:
    """The outer step that was meant; None is the mean.

    Raises:
        ArgumentError: it is something else.

    Example:
        >>> outer_of(None) is MEAN
        True
    """
    if outer is None or isinstance(outer, Outer):
        return outer or MEAN
    raise ArgumentError("outer= is an Outer, or None for the mean", given=f"outer={shown(outer)}",
                        hint="lab.parallel.Outer(learning_rate=0.7, momentum=0.9)")  # fmt: skip
