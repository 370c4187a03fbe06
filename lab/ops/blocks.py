"""Arrays cut into blocks for the members of an axis, and joined again; in ops, so that it differentiates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.errors import ArgumentError, ShapeError
from lab.ops.moving import moveaxis, swapaxes
from lab.ops.shape import reshape
from lab.shapes import Shape, one_axis
from lab.words import counted, shown


def cut_shape(word: str, shape: Shape, axis: int, size: int) -> tuple[int, Shape]:
    """The axis that is cut, from the front, and the shape of one of `size` blocks.

    Raises:
        ShapeError: there is no such axis, or it cannot be cut into blocks of one length.

    Example:
        >>> cut_shape("all_to_all", (2, 6), -1, 3)
        (1, (2, 2))
        >>> cut_shape("all_to_all", (2, 6), -1, 4)
        Traceback (most recent call last):
        lab.errors.ShapeError: all_to_all cuts an axis into blocks of one length
        given: axis 1 of (2, 6) for 4 members: 6 = 4 * 1 + 2
        hint:  pad the axis to 8
    """
    at = one_axis(axis, len(shape), op=word)
    each, rest = divmod(shape[at], size)
    if rest:
        raise ShapeError(
            f"{word} cuts an axis into blocks of one length",
            given=f"axis {at} of {tuple(shape)} for {counted(size, 'member')}: {shape[at]} = {size} * {each} + {rest}",
            hint=f"pad the axis to {size * (each + 1)}",
        )
    return at, (*shape[:at], each, *shape[at + 1 :])


def cut(word: str, x: Any, axis: int, size: int) -> Any:
    """The blocks of x along an axis, stacked in front.

    Example:
        >>> import numpy as np
        >>> cut("reduce_scatter", np.arange(6), 0, 3).tolist()
        [[0, 1], [2, 3], [4, 5]]
    """
    at, each = cut_shape(word, tuple(x.shape), axis, size)
    return moveaxis(reshape(x, shape=(*each[:at], size, *each[at:])), at, 0)


def front_to(rows: Any, at: int, tiled: bool) -> Any:
    """The first axis moved to another place, and joined there with the next one if they shall lie like tiles.

    Example:
        >>> import numpy as np
        >>> front_to(np.array([[[0], [1]], [[10], [11]]]), 1, True).tolist()
        [[0, 10], [1, 11]]
    """
    moved = moveaxis(rows, 0, at)
    shape = tuple(moved.shape)
    return reshape(moved, shape=(*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])) if tiled else moved


def swapped(word: str, rows: Any, axis: int, size: int) -> Any:
    """Row r of the result has block r of each row, joined in the order of rows.

    Example:
        >>> import numpy as np
        >>> swapped("all_to_all", np.array([[0, 1], [10, 11]]), 0, 2).tolist()
        [[0, 10], [1, 11]]
    """
    at, each = cut_shape(word, tuple(rows.shape[1:]), axis, size)
    blocks = reshape(rows, shape=(size, *each[:at], size, *each[at:]))
    return reshape(swapaxes(blocks, 0, at + 1), shape=tuple(rows.shape))


def require_pairs(pairs: Any, size: int) -> tuple[tuple[int, int], ...]:
    """(from, to) of what moves, as they are meant.

    Raises:
        ArgumentError: they are no pairs of members, or one gives or gets twice.

    Example:
        >>> require_pairs([(0, 1), (1, 0)], 2)
        ((0, 1), (1, 0))
        >>> require_pairs([(0, 1), (2, 1)], 3)
        Traceback (most recent call last):
        lab.errors.ArgumentError: a member gives at most once and gets at most once
        given: pairs=[(0, 1), (2, 1)]: member 1 gets twice
        hint:  all_gather or broadcast give to many, all_reduce adds what comes from many
    """
    given = f"pairs={shown(pairs)}"
    if not (isinstance(pairs, Sequence) and all(isinstance(p, Sequence) and len(p) == 2 for p in pairs)):
        raise ArgumentError("what moves is told in pairs", given=given, hint="pairs=[(0, 1), (1, 0)]: (from, to)")
    if not all(isinstance(m, int) and 0 <= m < size for pair in pairs for m in pair):
        raise ArgumentError("pairs are of members that are there", given=f"{given} of {counted(size, 'member')}",
                            hint=f"members are 0 to {size - 1}")  # fmt: skip
    for word, ends in (("gives", [src for src, _ in pairs]), ("gets", [dst for _, dst in pairs])):
        if twice := [m for m in ends if ends.count(m) > 1]:
            raise ArgumentError("a member gives at most once and gets at most once",
                                given=f"{given}: member {twice[0]} {word} twice",
                                hint="all_gather or broadcast give to many, all_reduce adds what comes from many",
                                )  # fmt: skip
    return tuple((src, dst) for src, dst in pairs)


def require_root(word: str, root: Any, size: int) -> int:
    """The number of a member, which may be counted from the end.

    Raises:
        ArgumentError: there is no such member.

    Example:
        >>> require_root("broadcast", -1, 3)
        2
    """
    if not isinstance(root, int) or not -size <= root < size:
        raise ArgumentError(f"{word} begins at a member that is not there",
                            given=f"root={shown(root)} of {counted(size, 'member')}",
                            hint=f"members are 0 to {size - 1}")  # fmt: skip
    return root % size
