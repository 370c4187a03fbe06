"""The usual dual number: a value and, beside it, how fast it changes. One pass forward, and nothing is kept.

It is right along one direction at a time. Nested in itself it mixes the directions up, which lesson 04 shows; so it is
not mended here.
"""

from __future__ import annotations

import math


class Dual:
    """A number with its tangent.

    Attributes:
        value: the number.
        tangent: how fast it changes along the direction that is looked at.

    Example:
        >>> x, y = Dual(2.0, 1.0), Dual(3.0)
        >>> x * y + x
        Dual(8.0, 4.0)
    """

    def __init__(self, value: float, tangent: float = 0.0) -> None:
        self.value, self.tangent = value, tangent

    def __repr__(self) -> str:
        return f"Dual({self.value}, {self.tangent})"

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, self.tangent * other.value + self.value * other.tangent)

    def sin(self) -> Dual:
        """The sine, which changes with the cosine of the value.

        Example:
            >>> Dual(0.0, 2.0).sin()
            Dual(0.0, 2.0)
        """
        return Dual(math.sin(self.value), math.cos(self.value) * self.tangent)
