"""Products of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lab.errors import ShapeError
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import fold, reshape, transpose
from lab.shapes import Spec, broadcast


def _check(a: Any, b: Any) -> None:
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise ShapeError(
            "matmul needs the inner dimensions to agree",
            given=f"{a.shape} @ {b.shape}",
            hint="transpose one operand, or check which axis is the batch"
            if a.ndim and b.ndim
            else "use * for a number",
        )
    broadcast(a.shape[:-2], b.shape[:-2], op="matmul")


@primitive(
    linear="each",
    precision="narrow",
    samples=[Sample(s) for s in [((3, 4), (4, 2)), ((4,), (4,)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4, 2)),
                                 ((2, 3, 4), (2, 4, 2)), ((2, 3, 0), (0, 4)),
                                 ((5, 1, 3, 4), (2, 4, 2)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((0, 4), (4, 2))]],
    error_samples=[(((3, 4), (3, 4)), {}, "matmul needs the inner dimensions to agree"),
                   (((), (3,)), {}, "matmul needs the inner dimensions to agree"),
                   (((2, 3, 4), (3, 4, 2)), {}, "matmul cannot broadcast its operands")],
    reference=lambda a, b: np.einsum(
        "...ij,...jk->...ik", a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    ).reshape(np.matmul(a, b).shape),
)  # fmt: skip
def matmul(a: Any, b: Any) -> Any:
    """Matrix product: (..., m, k) @ (..., k, n) -> (..., m, n); leading axes broadcast.

    A 1-D operand is a row on the left and a column on the right.
    """
    if a.ndim == 2 and b.ndim == 2 and a.shape[1] == b.shape[0]:
        return a.dot(b) if a.dtype.char != "e" else _product(a, b)  # np.matmul costs 0.5 us more for small matrices
    _check(a, b)
    if a.dtype.char == "e" or b.dtype.char == "e":
        return _product(a, b)
    if b.ndim == 2 and a.ndim > 2:  # one product of matrices, not one for each leading index
        return _rows(a).dot(b).reshape(*a.shape[:-1], b.shape[1])
    return np.matmul(a, b)


def _product(a: Any, b: Any) -> Any:
    """Of matrices; of two arrays of float16 by BLAS in float32, rounded once, as the matrix units of a GPU do."""
    if type(a) is np.ndarray is type(b) and a.dtype.char == b.dtype.char == "e":
        with np.errstate(over="ignore"):  # it becomes inf, as the sum would have
            return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    return a @ b


def _wide(x: Any, column: bool) -> Any:
    """A 1-D operand as the row or the column that matmul takes it for."""
    if x.ndim > 1:
        return x
    return reshape(x, shape=(x.shape[0], 1) if column else (1, x.shape[0]))


def swapped(x: Any) -> Any:
    """Matrices with rows and columns exchanged."""
    return transpose(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _ct(ct: Any, a: Any, b: Any) -> Any:
    """The cotangent with the axes put back that 1-D operands lost."""
    lead = ct.shape[: ct.ndim - (a.ndim > 1) - (b.ndim > 1)]
    return reshape(ct, shape=(*lead, a.shape[-2] if a.ndim > 1 else 1, b.shape[-1] if b.ndim > 1 else 1))


def _rows(x: Any) -> Any:
    """All rows of an array below each other; not by -1, which no axis of length 0 may stand beside."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _stacked(ct: Any, a: Any, b: Any) -> bool:
    """Whether nothing was broadcast, and what comes back is an array: then its rules need no ops."""
    return type(ct) is np.ndarray and a.ndim > 2 and a.shape[:-2] == b.shape[:-2]


@matmul.vjp(0, text="ct @ b.T")
def _matmul_vjp_a(ct: Any, _out: Any, a_like: Any, b: Any) -> Any:
    if a_like.ndim >= 2 and b.ndim == 2:
        if ct.ndim > 2 and type(ct) is np.ndarray is type(b):  # one product of many rows, not one for each matrix
            return _product(_rows(ct), b.T).reshape(a_like.shape)
        return ct @ b.T if b.dtype.char != "e" else _product(ct, b.T)
    if _stacked(ct, a_like, b) and type(b) is np.ndarray:
        return _product(ct, b.swapaxes(-1, -2))
    wide = (1, *a_like.shape) if a_like.ndim == 1 else a_like.shape
    return reshape(fold(_ct(ct, a_like, b) @ swapped(_wide(b, column=True)), wide), shape=a_like.shape)


@matmul.vjp(1, text="a.T @ ct")
def _matmul_vjp_b(ct: Any, _out: Any, a: Any, b_like: Any) -> Any:
    if a.ndim == 2 and b_like.ndim == 2:
        return a.T @ ct if a.dtype.char != "e" else _product(a.T, ct)
    if _stacked(ct, a, b_like) and type(a) is np.ndarray:
        return _product(a.swapaxes(-1, -2), ct)
    if b_like.ndim == 2 and a.ndim > 2:
        if type(ct) is np.ndarray is type(a):
            return _product(_rows(a).T, _rows(ct))
        n = math.prod(a.shape[:-1])
        return reshape(a, shape=(n, a.shape[-1])).T @ reshape(ct, shape=(n, ct.shape[-1]))
    wide = (*b_like.shape, 1) if b_like.ndim == 1 else b_like.shape
    return reshape(fold(swapped(_wide(a, column=False)) @ _ct(ct, a, b_like), wide), shape=b_like.shape)


@matmul.shaped
def _matmul_shape(a: Spec, b: Spec) -> Spec:
    _check(a, b)
    lead = broadcast(a.shape[:-2], b.shape[:-2])
    return Spec((*lead, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ())), np.result_type(a.dtype, b.dtype))


@matmul.batching
def _matmul_batch(size: int, mapped: tuple[bool, ...], a: Any, b: Any) -> Any:
    ranks = [x.ndim - m for x, m in zip((a, b), mapped, strict=True)]
    shapes = [x.shape[m:] for x, m in zip((a, b), mapped, strict=True)]
    _check(Spec(shapes[0], a.dtype), Spec(shapes[1], b.dtype))
    rank = max(*ranks, 2)

    def align(x: Any, is_mapped: bool, column: bool) -> Any:
        shape = x.shape[is_mapped:]
        shape = ((*shape, 1) if column else (1, *shape)) if len(shape) == 1 else shape
        return reshape(x, shape=(*((size,) if is_mapped else (1,)), *(1,) * (rank - len(shape)), *shape))

    out = align(a, mapped[0], False) @ align(b, mapped[1], True)
    lost = (*(() if ranks[0] > 1 else (-2,)), *(() if ranks[1] > 1 else (-1,)))
    return reshape(out, shape=tuple(d for i, d in enumerate(out.shape) if i - out.ndim not in lost)) if lost else out
