"""Broadcasting and axes: tuples in, tuples out.

Every op's shape rule and every gradient that must be folded back to its operand's shape is built from these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lab.errors import ShapeError

Shape = tuple[int, ...]
Axis = int | Sequence[int] | None


class Spec(NamedTuple):
    """Shape and dtype of an array that need not exist: what shape rules compute with and what some rules save.

    Example:
        >>> Spec((2, 3), np.dtype("float32")).size
        6
    """

    shape: Shape
    dtype: np.dtype[np.generic]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


@lru_cache(maxsize=1024)
def broadcast(*shapes: Shape, op: str = "broadcast") -> Shape:
    """The shape that arrays of these shapes broadcast to, by NumPy's rule.

    Raises:
        ShapeError: trailing dimensions differ and none of them is 1.

    Example:
        >>> broadcast((3, 1), (4,))
        (3, 4)
    """
    n = max(map(len, shapes), default=0)
    out = []
    for sizes in zip(*((1,) * (n - len(s)) + tuple(s) for s in shapes), strict=True):
        wanted = {d for d in sizes if d != 1}
        if len(wanted) > 1:
            raise ShapeError(
                f"{op} cannot broadcast its operands",
                given=" and ".join(map(str, shapes)),
                hint="trailing dimensions must be equal or 1",
            )
        out.append(wanted.pop() if wanted else 1)
    return tuple(out)


def normal_axes(axis: Axis, ndim: int, *, op: str = "reduction") -> tuple[int, ...]:
    """Axes as a sorted tuple of non-negative numbers; None means all.

    Raises:
        ShapeError: an axis that the array does not have, or one given twice.

    Example:
        >>> normal_axes(-1, 3), normal_axes(None, 2), normal_axes((0, -1), 3)
        ((2,), (0, 1), (0, 2))
    """
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    if not all(isinstance(a, int | np.integer) for a in given):
        raise ShapeError("an axis must be an integer", given=f"axis {axis!r} of {op}", hint="or a tuple of integers")
    axes = tuple(a + ndim if a < 0 else a for a in given)
    if any(not 0 <= a < ndim for a in axes):
        raise ShapeError(
            f"{op} over an axis that the array does not have",
            given=f"axis {axis} of {ndim} axes",
            hint=f"axes are 0 to {ndim - 1}, or -1 from the end" if ndim else "a single number has no axes",
        )
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{op} names an axis twice", given=f"axis {axis}", hint="each axis once; -1 is the last")
    return tuple(sorted(axes))


def one_axis(axis: Axis, ndim: int, *, op: str) -> int:
    """A single axis as a non-negative number.

    Raises:
        ShapeError: none, several, or one that the array does not have.

    Example:
        >>> one_axis(-1, 3, op="softmax")
        2
    """
    if axis is None or isinstance(axis, Sequence):
        raise ShapeError(f"{op} works along one axis", given=f"axis {axis!r}", hint="an integer, as axis=-1")
    return normal_axes(axis, ndim, op=op)[0]


def reduced(shape: Shape, axis: Axis, keepdims: bool, *, op: str = "reduction") -> Shape:
    """The shape after a reduction over `axis`.

    Example:
        >>> reduced((2, 3, 4), 1, False), reduced((2, 3), None, True)
        ((2, 4), (1, 1))
    """
    axes = normal_axes(axis, len(shape), op=op)
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


def kept(shape: Shape, axis: Axis) -> Shape:
    """The shape of a reduction's result with its reduced axes put back as 1.

    Example:
        >>> kept((2, 3, 4), (0, -1))
        (1, 3, 1)
    """
    n = len(shape)
    if type(axis) is int and -n <= axis < n:  # the axis of most reductions, in a tenth of the time
        axis %= n
        return (*shape[:axis], 1, *shape[axis + 1 :])
    return reduced(shape, axis, True)


@lru_cache(maxsize=1024)
def folded_axes(wide: Shape, narrow: Shape) -> tuple[int, ...]:
    """The axes of `wide` to sum over so that a gradient of that shape fits an operand of shape `narrow`.

    Example:
        >>> folded_axes((5, 3, 4), (3, 1))
        (0, 2)
    """
    extra = len(wide) - len(narrow)
    return tuple(range(extra)) + tuple(
        extra + i for i, (w, n) in enumerate(zip(wide[extra:], narrow, strict=True)) if n == 1 and w != 1
    )


def resolve_reshape(shape: Shape, wanted: Sequence[int]) -> Shape:
    """The target of a reshape with its one -1 worked out.

    Raises:
        ShapeError: the number of entries would change, or more than one -1.

    Example:
        >>> resolve_reshape((2, 6), (3, -1))
        (3, 4)
    """
    size = math.prod(shape)
    target = tuple(int(d) for d in wanted)
    if target.count(-1) > 1:
        raise ShapeError("reshape can work out one dimension only", given=str(target), hint="use -1 once")
    if -1 in target:
        known = math.prod(d for d in target if d != -1)
        if known and size % known == 0:
            target = tuple(size // known if d == -1 else d for d in target)
    if -1 in target or math.prod(target) != size:
        raise ShapeError(
            "reshape must keep the number of entries",
            given=f"{shape} ({size} entries) to {tuple(wanted)}",
            hint="the lengths multiply to the number of entries; -1 works one out",
        )
    return target
