"""The usual engine of forty lines, as articles have it: a value remembers its parents, and `backward` walks back.

It is right for numbers, for one walk, in small graphs. Lesson 03 shows where it is not, so nothing here is mended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Value:
    """A number that remembers which values it was made of, and what each of them gets of its gradient.

    Attributes:
        data: the number; an array of NumPy does, too.
        grad: what walks have added up so far.
        parents: the values that it was made of.
        rule: takes the gradient of this value, gives one part for each parent.

    Example:
        >>> x, y = Value(2.0), Value(3.0)
        >>> (x * y + x).backward()
        >>> x.grad, y.grad
        (4.0, 2.0)
    """

    def __init__(
        self, data: Any, parents: tuple[Value, ...] = (), rule: Callable[[Any], Sequence[Any]] = lambda ct: ()
    ) -> None:
        self.data, self.grad = data, 0.0
        self.parents, self.rule = parents, rule

    def __repr__(self) -> str:
        return f"Value({self.data})"

    def __add__(self, other: Value) -> Value:
        return Value(self.data + other.data, (self, other), lambda ct: (ct, ct))

    def __mul__(self, other: Value) -> Value:
        return Value(self.data * other.data, (self, other), lambda ct: (ct * other.data, ct * self.data))

    def backward(self) -> None:
        """Add to `grad` of everything that this value depends on."""
        walk(backward_order(self))


def backward_order(root: Value) -> list[Value]:
    """Everything that `root` depends on, every value before its parents.

    Example:
        >>> x = Value(2.0); y = x * x
        >>> backward_order(y)
        [Value(4.0), Value(2.0)]
    """
    done: dict[Value, None] = {}

    def visit(value: Value) -> None:
        if value not in done:
            for parent in value.parents:
                visit(parent)
            done[value] = None

    visit(root)
    return [*reversed(done)]


def walk(order: Sequence[Value]) -> None:
    """Start with gradient 1 at the first value, and add to each parent what the rules give.

    Example:
        >>> x = Value(2.0); y = x * x
        >>> walk([y, x]); x.grad
        4.0
    """
    order[0].grad = 1.0
    for value in order:
        for parent, part in zip(value.parents, value.rule(value.grad), strict=True):
            parent.grad = parent.grad + part
