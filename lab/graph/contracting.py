"""A contraction of two arrays as a matrix product of views of them, where it is one."""

from __future__ import annotations

from typing import NamedTuple


class Product(NamedTuple):
    """`out = left @ right` of views.

    Attributes:
        swapped: the second operand is the left one.
        left, right: the order of axes in which the operands (in their own order) are looked at.
        stacked: there are leading axes in common.
    """

    swapped: bool
    left: tuple[int, ...]
    right: tuple[int, ...]
    stacked: bool


def product_of(subscripts: str) -> Product | None:
    """How a contraction is a product of matrices, or of stacks of them; None where it is something else.

    Example:
        >>> product_of("ab,cb->ac")
        Product(swapped=False, left=(0, 1), right=(1, 0), stacked=False)
        >>> product_of("ijk->ki") is None
        True
    """
    terms, _, out = subscripts.partition("->")
    parts = terms.split(",")
    if len(parts) != 2 or any(len(set(p)) != len(p) for p in (*parts, out)):
        return None
    first, second = parts
    for swapped, (a, b) in ((False, (first, second)), (True, (second, first))):
        batch = "".join(c for c in out if c in a and c in b)
        summed = "".join(c for c in a if c in b and c not in out)
        left = "".join(c for c in a if c not in b)
        right = "".join(c for c in b if c not in a)
        if len(summed) == len(left) == len(right) == 1 and out == batch + left + right:
            return Product(
                swapped,
                tuple(a.index(c) for c in batch + left + summed),
                tuple(b.index(c) for c in batch + summed + right),
                bool(batch),
            )
    return None
