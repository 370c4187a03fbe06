"""Determinants, and what keeps their size in range: sign and logarithm.

The gradient of a determinant is its matrix of cofactors, which singular matrices have, too; so it is computed from
singular values, without a division, and so is its own gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lab.errors import ShapeError
from lab.ops.arithmetic import add
from lab.ops.composite import composite
from lab.ops.exponentials import log
from lab.ops.linalg import swapped
from lab.ops.picking import operand
from lab.ops.primitive import Op, primitive
from lab.ops.reduce import sum_
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, reshape
from lab.ops.systems import dtype_of, inverse_for, refuse_not_square, wide
from lab.shapes import Spec


class SignAndLog(NamedTuple):
    """What a determinant is made of: `sign * exp(logabsdet)`."""

    sign: Any
    logabsdet: Any


def _of_matrices(op: Op, keeps: bool = False) -> None:
    """The shape and batching rules: each matrix is by itself."""

    @op.shaped
    def shape(a: Spec) -> Spec:
        refuse_not_square(a, op.name)
        return Spec(a.shape if keeps else a.shape[:-2], dtype_of(a))

    @op.batching
    def batch(_size: int, _mapped: tuple[bool, ...], a: Any) -> Any:
        refuse_not_square(Spec(tuple(a.shape[1:]), a.dtype), op.name)
        return op(a)


def _over(ct: Any) -> Any:
    """A number for each matrix, ready to meet its entries."""
    return reshape(ct, shape=(*ct.shape, 1, 1))


@primitive(
    samples=[Sample(((2, 2, 2),)), Sample(((3, 3),))],
    error_samples=[(((2, 3),), {}, "det needs square matrices")],
    reference=lambda a: np.prod(np.linalg.eigvals(a), axis=-1).real,
    numpy={np.linalg.det: None},
)
def det(a: Any) -> Any:
    """Determinants: (..., n, n) -> (...). Its gradient is right at singular matrices, too."""
    refuse_not_square(a, "det")
    return np.asarray(np.linalg.det(wide(a))).astype(dtype_of(a), copy=False)


@det.vjp(text="ct * cofactors(a)")
def _det_vjp(ct: Any, _out: Any, a: Any) -> Any:
    return _over(ct) * cofactors(a)


@det.jvp
def _det_jvp(tangents: tuple[Any, ...], _out: Any, a: Any) -> Any:
    return sum_(tangents[0] * cofactors(a), axis=(-2, -1))


class _Singular(NamedTuple):
    """A singular value decomposition `a = turn @ diag(values) @ back` with its handedness."""

    turn: Any
    values: Any
    back: Any
    sign: Any
    finite: Any


def _decomposed(a: Any) -> _Singular:
    finite = np.isfinite(a).all(axis=(-2, -1), keepdims=True)
    turn, values, back = np.linalg.svd(wide(np.where(finite, a, np.zeros((), a.dtype))))
    return _Singular(turn, values, back, np.sign(np.linalg.det(turn) * np.linalg.det(back))[..., None, None], finite)


def _settled(found: Any, parts: _Singular, a: Any) -> Any:
    return np.where(parts.finite, parts.sign * found, np.nan).astype(dtype_of(a), copy=False)


@primitive(
    samples=[Sample(((2, 2, 2),)), Sample(((3, 3),))],
    error_samples=[(((3,),), {}, "cofactors needs square matrices")],
    reference=lambda a: np.linalg.det(a)[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2),
)
def cofactors(a: Any) -> Any:
    """The determinants that are left when a row and a column are taken out, with their signs: (..., n, n) -> the same.

    Of an invertible matrix it is `det(a) * inv(a).T`.
    """
    refuse_not_square(a, "cofactors")
    parts = _decomposed(np.asarray(a))
    n = parts.values.shape[-1]
    others = np.prod(np.where(np.eye(n, dtype=bool), 1.0, parts.values[..., None, :]), axis=-1)
    return _settled((parts.turn * others[..., None, :]) @ parts.back, parts, a)


@cofactors.vjp(text="det_slope(ct, a)")
def _cofactors_vjp(ct: Any, _out: Any, a: Any) -> Any:
    return det_slope(ct, a)


@cofactors.jvp
def _cofactors_jvp(tangents: tuple[Any, ...], _out: Any, a: Any) -> Any:
    return det_slope(tangents[0], a)  # a second derivative is symmetric


@primitive(
    samples=[Sample(((2, 2, 2), (2, 2, 2)), kinds=("f", "p")), Sample(((3, 3), (3, 3)), kinds=("f", "p"))],
    error_samples=[(((2, 3), (2, 3)), {}, "det_slope needs square matrices"),
                   (((2, 2), (3, 3)), {}, "det_slope needs a direction for each matrix")],
    reference=lambda direction, a: _slope_by_inverse(direction, a, np.linalg.inv(a), np.linalg.det(a)),
)  # fmt: skip
def det_slope(direction: Any, a: Any) -> Any:
    """How the cofactors of matrices change along a direction: twice (..., n, n) -> the same.

    The second derivative of det, right at singular matrices, too; the third needs an inverse.
    """
    _check_direction(direction, a)
    parts = _decomposed(np.asarray(a))
    n = parts.values.shape[-1]
    i, j, k = np.ogrid[:n, :n, :n]  # at diag(s) the derivative has the products of all s but two
    others = np.prod(np.where((k == i) | (k == j), 1.0, parts.values[..., None, None, :]), axis=-1)
    others = np.where(np.eye(n, dtype=bool), 0.0, others)
    inside = np.swapaxes(parts.turn, -1, -2) @ direction @ np.swapaxes(parts.back, -1, -2)
    found = -others * np.swapaxes(inside, -1, -2)
    diagonal = np.arange(n)
    found[..., diagonal, diagonal] = (others @ inside[..., diagonal, diagonal, None])[..., 0]
    return _settled(parts.turn @ found @ parts.back, parts, np.empty(0, dtype_of(direction, a)))


def _check_direction(direction: Any, a: Any) -> None:
    refuse_not_square(a, "det_slope")
    if tuple(direction.shape) != tuple(a.shape):
        raise ShapeError("det_slope needs a direction for each matrix",
                         given=f"{tuple(direction.shape)}, {tuple(a.shape)}", hint="both have one shape")  # fmt: skip


def _dot(x: Any, y: Any) -> Any:
    """The inner product of matrices, ready to meet their entries."""
    return sum_(x * y, axis=(-2, -1), keepdims=True)


def _slope_by_inverse(direction: Any, _a: Any, inverse: Any, size: Any) -> Any:
    turned = swapped(inverse)
    return _over(size) * (_dot(direction, turned) * turned - turned @ swapped(direction) @ turned)


def _third(u: Any, v: Any, a: Any) -> Any:
    """The third derivative of det along two directions, symmetric in them."""
    w = swapped(inverse_for(a, "the third derivative of det"))
    wu, wv = w @ swapped(u), w @ swapped(v)
    along_u, along_v = wu @ w, wv @ w
    whole = _dot(u, w) * _dot(v, w) - _dot(u, along_v)
    return _over(det(a)) * (
        whole * w - _dot(u, w) * along_v - _dot(v, w) * along_u + wv @ along_u + wu @ along_v
    )


@det_slope.vjp(0, text="det_slope(ct, a)")
def _det_slope_vjp_direction(ct: Any, _out: Any, _direction: Any, a: Any) -> Any:
    return det_slope(ct, a)


@det_slope.vjp(1, text="the third derivative of det along ct and direction")
def _det_slope_vjp_a(ct: Any, _out: Any, direction: Any, a: Any) -> Any:
    return _third(ct, direction, a)


@det_slope.jvp
def _det_slope_jvp(tangents: tuple[Any, ...], _out: Any, direction: Any, a: Any) -> Any:
    turned, moved = tangents
    terms = [] if turned is None else [det_slope(turned, a)]
    terms += [] if moved is None else [_third(moved, direction, a)]
    return sum(terms[1:], start=terms[0])


@det_slope.shaped
def _det_slope_shape(direction: Spec, a: Spec) -> Spec:
    _check_direction(direction, a)
    return Spec(a.shape, dtype_of(direction, a))


@det_slope.batching
def _det_slope_batch(size: int, mapped: tuple[bool, ...], *both: Any) -> Any:
    _check_direction(*(Spec(tuple(x.shape[m:]), x.dtype) for x, m in zip(both, mapped, strict=True)))
    return det_slope(*(x if m else broadcast_to(x, shape=(size, *x.shape)) for x, m in zip(both, mapped, strict=True)))


@primitive(
    samples=[Sample(((2, 2, 2),)), Sample(((3, 3),))],
    error_samples=[(((2, 3),), {}, "det_sign needs square matrices")],
    reference=lambda a: np.sign(np.linalg.det(a)),
)
def det_sign(a: Any) -> Any:
    """The signs of determinants, also of those that overflow: (..., n, n) -> (...)."""
    refuse_not_square(a, "det_sign")
    return np.asarray(np.linalg.slogdet(wide(a))[0]).astype(dtype_of(a), copy=False)


@primitive(
    samples=[Sample(((2, 2, 2),)), Sample(((3, 3),))],
    error_samples=[(((2, 3),), {}, "logabsdet needs square matrices")],
    singular=True,
    precision="wide",
    reference=lambda a: np.log(np.abs(np.linalg.det(a))),
)
def logabsdet(a: Any) -> Any:
    """log(abs(det(a))), also of what overflows: (..., n, n) -> (...); -inf of a singular matrix."""
    refuse_not_square(a, "logabsdet")
    return np.asarray(np.linalg.slogdet(wide(a))[1]).astype(dtype_of(a), copy=False)


@logabsdet.vjp(text="ct * inv(a).T")
def _logabsdet_vjp(ct: Any, _out: Any, a: Any) -> Any:
    return _over(ct) * swapped(inverse_for(a, "the gradient of log(abs(det))"))


@logabsdet.jvp
def _logabsdet_jvp(tangents: tuple[Any, ...], _out: Any, a: Any) -> Any:
    return sum_(tangents[0] * swapped(inverse_for(a, "the derivative of log(abs(det))")), axis=(-2, -1))


for _op in (det, det_sign, logabsdet):
    _of_matrices(_op)
_of_matrices(cofactors, keeps=True)


@composite(
    samples=[Sample(((2, 2, 2),)), Sample(((3, 3),))],
    error_samples=[(((2, 3),), {}, "slogdet needs square matrices")],
    reference=lambda a: SignAndLog(*np.linalg.slogdet(a)),
    numpy={np.linalg.slogdet: None},
)
def slogdet(a: Any) -> SignAndLog:
    """Sign and logarithm of determinants: (..., n, n) -> (sign, logabsdet) of (...) each."""
    a = operand(a)
    refuse_not_square(a, "slogdet")
    return SignAndLog(det_sign(a), logabsdet(a))


@composite(
    samples=[Sample(((3, 3),), kinds=("p",)), Sample(((2, 2, 2),), kinds=("p",))],
    error_samples=[(((2, 3),), {}, "logdet needs square matrices")],
    reference=lambda a: np.log(np.linalg.det(a)),
)
def logdet(a: Any) -> Any:
    """log(det(a)), also of what overflows: (..., n, n) -> (...); nan where the determinant is negative."""
    a = operand(a)
    refuse_not_square(a, "logdet")
    return add(logabsdet(a), log(det_sign(a)))
