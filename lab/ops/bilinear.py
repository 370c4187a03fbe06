"""NumPy's products of two arrays: dot, inner, outer and their kin, each a contraction or a product of entries."""

from __future__ import annotations

from string import ascii_letters
from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.ops.arithmetic import multiply
from lab.ops.composite import composite
from lab.ops.contraction import contract
from lab.ops.linalg import matmul
from lab.ops.picking import operand
from lab.ops.sample import Sample
from lab.ops.shape import reshape
from lab.shapes import one_axis


def _over(a: Any, b: Any, axes: tuple[list[int], list[int]], op: str) -> Any:
    """Products summed over axes of both, pair by pair; what is left of `a` comes before what is left of `b`."""
    for i, j in zip(*axes, strict=True):
        if a.shape[i] != b.shape[j]:
            raise ShapeError(
                f"{op} sums over axes of one length",
                given=f"axis {i} of {tuple(a.shape)}, axis {j} of {tuple(b.shape)}",
                hint="transpose an operand, or name other axes",
            )
    first = ascii_letters[: a.ndim]
    rest = iter(ascii_letters[a.ndim :])
    second = "".join(first[axes[0][axes[1].index(j)]] if j in axes[1] else next(rest) for j in range(b.ndim))
    left = "".join(c for c in first if c not in second) + "".join(c for c in second if c not in first)
    return contract(a, b, subscripts=f"{first},{second}->{left}")


@composite(
    samples=[Sample(((3,), (3,))), Sample(((2, 3), (2, 3, 4))), Sample(((), (2,)))],
    error_samples=[(((2, 3), (2, 3)), {}, "dot sums over axes of one length"),
                   (((2,), (2, 3, 4)), {}, "dot sums over axes of one length")],
    reference=np.dot,
    numpy={np.dot: None},
    method=True,
)  # fmt: skip
def dot(a: Any, b: Any) -> Any:
    """The matrix product; with a number that of entries; the last axis of a meets the last but one of a larger b."""
    a, b = operand(a), operand(b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    axis = max(b.ndim - 2, 0)
    if b.ndim <= 2 and a.shape[-1] == b.shape[axis]:
        return matmul(a, b)
    return _over(a, b, ([a.ndim - 1], [axis]), "dot")


@composite(
    samples=[Sample(((3,), (3,))), Sample(((2, 3), (4, 3))), Sample(((), (2,)))],
    error_samples=[(((2, 3), (2,)), {}, "inner sums over axes of one length")],
    reference=np.inner,
    numpy={np.inner: None},
)
def inner(a: Any, b: Any) -> Any:
    """Products summed over the last axis of both: (..., n) and (--, n) -> (..., --)."""
    a, b = operand(a), operand(b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return _over(a, b, ([a.ndim - 1], [b.ndim - 1]), "inner")


@composite(
    samples=[Sample(((2,), (3,))), Sample(((2, 2), ()))],
    error_samples=[],
    reference=np.outer,
    numpy={np.outer: None, np.linalg.outer: None},
)
def outer(a: Any, b: Any) -> Any:
    """Every entry of a times every entry of b, as a matrix: (n,) and (m,) -> (n, m)."""
    return multiply(reshape(operand(a), shape=(-1, 1)), reshape(operand(b), shape=(1, -1)))


@composite(
    samples=[Sample(((3,), (3,))), Sample(((2, 3), (6,)))],
    error_samples=[(((2,), (3,)), {}, "vdot needs as many entries on both sides")],
    reference=np.vdot,
    numpy={np.vdot: None},
)
def vdot(a: Any, b: Any) -> Any:
    """The sum of the products of all entries, whatever the shapes."""
    a, b = operand(a), operand(b)
    if np.prod(a.shape, dtype=np.int64) != np.prod(b.shape, dtype=np.int64):
        raise ShapeError("vdot needs as many entries on both sides", given=f"{tuple(a.shape)} and {tuple(b.shape)}",
                         hint="lab.outer for the products of all pairs")  # fmt: skip
    return matmul(reshape(a, shape=(-1,)), reshape(b, shape=(-1,)))


@composite(
    samples=[Sample(((2, 3), (3, 4)), {"axes": 1}), Sample(((2, 3, 4), (4, 2)), {"axes": ((0, -1), (1, 0))}),
             Sample(((2,), (3,)), {"axes": 0})],
    error_samples=[(((2, 3), (2, 3)), {"axes": 1}, "tensordot sums over axes of one length"),
                   (((2, 3), (3,)), {"axes": 2}, "tensordot sums over as many axes of both"),
                   (((2, 3), (3,)), {"axes": ((0, 1), (0,))}, "tensordot sums over as many axes of both"),
                   (((2, 3), (3,)), {"axes": ((2,), (0,))}, "tensordot over an axis"),
                   (((2, 3), (3,)), {"axes": None}, "tensordot needs a number of axes")],
    reference=lambda a, b, axes=2: np.tensordot(a, b, axes),
    numpy={np.tensordot: None, np.linalg.tensordot: None},
)  # fmt: skip
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Products summed over axes: the last ones of a with the first ones of b, or pairs that two lists name."""
    a, b = operand(a), operand(b)
    first, second = _lists(axes, a.ndim)
    if len(first) != len(second) or len(first) > a.ndim or len(second) > b.ndim:
        raise ShapeError("tensordot sums over as many axes of both", given=f"axes={axes} of {a.ndim} and {b.ndim} axes",
                         hint="axes=1 is the matrix product; or axes=((1,), (0,))")  # fmt: skip
    chosen = [one_axis(i, a.ndim, op="tensordot") for i in first], [one_axis(j, b.ndim, op="tensordot") for j in second]
    return _over(a, b, chosen, "tensordot")


def _lists(axes: Any, ndim: int) -> tuple[list[Any], list[Any]]:
    """The axes of a tensordot, by number, of both operands."""
    if isinstance(axes, int | np.integer) and axes >= 0:
        return list(range(ndim - int(axes), ndim)), list(range(int(axes)))
    if not isinstance(axes, tuple | list) or len(axes) != 2:
        raise ArgumentError("tensordot needs a number of axes or two lists of them", given=f"axes={axes!r}",
                            hint="axes=1 is the matrix product; or axes=((1,), (0,))")  # fmt: skip
    first, second = (list(one) if isinstance(one, tuple | list) else [one] for one in axes)
    return first, second


@composite(
    samples=[Sample(((2, 2), (1, 3))), Sample(((2,), (2, 2)))],
    error_samples=[],
    reference=np.kron,
    numpy={np.kron: None},
)
def kron(a: Any, b: Any) -> Any:
    """Kronecker's product: each entry of a replaced by itself times b."""
    a, b = operand(a), operand(b)
    ndim = max(a.ndim, b.ndim)
    first, second = ((1,) * (ndim - x.ndim) + tuple(x.shape) for x in (a, b))
    wide = reshape(a, shape=tuple(n for d in first for n in (d, 1)))
    fine = reshape(b, shape=tuple(n for d in second for n in (1, d)))
    return reshape(multiply(wide, fine), shape=tuple(m * n for m, n in zip(first, second, strict=True)))
