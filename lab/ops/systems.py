"""Inverses of matrices and solutions of linear systems, one or many at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.ops.linalg import swapped
from lab.ops.primitive import primitive
from lab.ops.reduce import is_half
from lab.ops.sample import Sample
from lab.ops.shape import fold, reshape
from lab.shapes import Spec, broadcast


def refuse_not_square(a: Any, op: str) -> None:
    """Refuse what are no square matrices.

    Raises:
        ShapeError: so it is.
    """
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(
            f"{op} needs square matrices",
            given=f"shape {tuple(a.shape)}",
            hint="the last two axes are rows and columns, as many of each",
        )


def wide(x: Any) -> Any:
    """Numbers as LAPACK takes them: float16 as float32, integers as float64."""
    x = np.asarray(x)
    return x if x.dtype.char in "fd" else x.astype(np.float32 if is_half(x) else np.float64)


def dtype_of(*xs: Any) -> np.dtype[Any]:
    """The dtype of the result: that of the floats among the operands."""
    found: np.dtype[Any] = np.result_type(*(x.dtype if x.dtype.kind == "f" else np.float64 for x in xs))
    return found


def singular(a: Any, op: str) -> ArgumentError:
    """The three lines for matrices of which one has no inverse."""
    a = wide(a)
    rank = int(np.min(np.linalg.matrix_rank(a))) if np.isfinite(a).all() else "unknown"
    return ArgumentError(
        f"{op} met a singular matrix",
        given=f"shape {a.shape}, smallest rank {rank}",
        hint="rows that depend on each other have no inverse; a + 1e-6 * np.eye(n) has one",
    )


def inverse_for(a: Any, op: str) -> Any:
    """The inverse that a rule of another op needs; an error names that."""
    try:
        return inv(a)
    except ArgumentError as why:
        raise ArgumentError(why.problem.replace("inv", op), given=why.given, hint=why.hint) from None


@primitive(
    samples=[Sample(((2, 2),), kinds=("p",)), Sample(((2, 3, 3),), kinds=("p",))],
    error_samples=[(((2, 3),), {}, "inv needs square matrices"), (((3,),), {}, "inv needs square matrices")],
    reference=lambda a: np.linalg.solve(a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)),
    numpy={np.linalg.inv: None},
)  # fmt: skip
def inv(a: Any) -> Any:
    """The inverses of square matrices: (..., n, n) -> the same."""
    refuse_not_square(a, "inv")
    try:
        return np.linalg.inv(wide(a)).astype(dtype_of(a), copy=False)
    except np.linalg.LinAlgError:
        raise singular(a, "inv") from None


@inv.vjp(text="-out.T @ ct @ out.T")
def _inv_vjp(ct: Any, out: Any, _a: Any) -> Any:
    turned = swapped(out)
    return -(turned @ ct @ turned)


@inv.jvp
def _inv_jvp(tangents: tuple[Any, ...], out: Any, _a: Any) -> Any:
    return -(out @ tangents[0] @ out)


@inv.shaped
def _inv_shape(a: Spec) -> Spec:
    refuse_not_square(a, "inv")
    return Spec(a.shape, dtype_of(a))


@inv.batching
def _inv_batch(_size: int, _mapped: tuple[bool, ...], a: Any) -> Any:
    refuse_not_square(Spec(tuple(a.shape[1:]), a.dtype), "inv")
    return inv(a)


def _check(a: Any, b: Any) -> tuple[int, ...]:
    """The shape of the solution.

    Raises:
        ShapeError: the sides of the system do not fit.
    """
    refuse_not_square(a, "solve")
    n = a.shape[-1]
    if not b.shape or b.shape[0 if len(b.shape) == 1 else -2] != n:
        raise ShapeError(
            "solve needs a right side for each row",
            given=f"{tuple(a.shape)} and {tuple(b.shape)}",
            hint="b is one vector (n,), or matrices (..., n, k) of columns; b[..., None] makes vectors columns",
        )
    if len(b.shape) == 1:
        return tuple(a.shape[:-1])
    return (*broadcast(tuple(a.shape[:-2]), tuple(b.shape[:-2]), op="solve"), n, b.shape[-1])


def _columns(x: Any, vector: bool) -> Any:
    """The right side or a solution as columns."""
    return reshape(x, shape=(*x.shape, 1)) if vector else x


def _as_given(x: Any, vector: bool) -> Any:
    """The inverse of `_columns`."""
    return reshape(x, shape=tuple(x.shape[:-1])) if vector else x


@primitive(
    samples=[Sample(((2, 2), (2,)), kinds=("p", "f")), Sample(((2, 3, 3), (3,)), kinds=("p", "f")),
             Sample(((2, 1, 2, 2), (3, 2, 1)), kinds=("p", "f"))],
    error_samples=[(((2, 3), (2,)), {}, "solve needs square matrices"),
                   (((2, 2), (3,)), {}, "solve needs a right side for each row"),
                   (((2, 2, 2), (3, 2, 1)), {}, "solve cannot broadcast its operands")],
    reference=lambda a, b: (np.linalg.inv(a) @ (b[:, None] if b.ndim == 1 else b)).reshape(
        np.linalg.solve(a, b).shape),
    numpy={np.linalg.solve: None},
)  # fmt: skip
def solve(a: Any, b: Any) -> Any:
    """The x with `a @ x = b`: (..., n, n) with a vector (n,), or with columns (..., n, k); leading axes broadcast."""
    _check(a, b)
    try:
        return np.linalg.solve(wide(a), wide(b)).astype(dtype_of(a, b), copy=False)
    except np.linalg.LinAlgError:
        raise singular(a, "solve") from None


@solve.vjp(0, text="-solve(a.T, ct) @ out.T")
def _solve_vjp_a(ct: Any, out: Any, a: Any, b_like: Any) -> Any:
    vector = b_like.ndim == 1
    back = solve(swapped(a), _columns(ct, vector))
    return fold(-(back @ swapped(_columns(out, vector))), tuple(a.shape))


@solve.vjp(1, text="solve(a.T, ct)")
def _solve_vjp_b(ct: Any, _out: Any, a: Any, b_like: Any) -> Any:
    vector = b_like.ndim == 1
    return fold(_as_given(solve(swapped(a), _columns(ct, vector)), vector), tuple(b_like.shape))


@solve.jvp
def _solve_jvp(tangents: tuple[Any, ...], out: Any, a: Any, b: Any) -> Any:
    vector = b.ndim == 1
    da, db = tangents
    moved = [] if db is None else [_columns(db, vector)]
    moved += [] if da is None else [-(da @ _columns(out, vector))]
    return _as_given(solve(a, sum(moved[1:], start=moved[0])), vector)


@solve.shaped
def _solve_shape(a: Spec, b: Spec) -> Spec:
    return Spec(_check(a, b), dtype_of(a, b))


@solve.batching
def _solve_batch(_size: int, mapped: tuple[bool, ...], a: Any, b: Any) -> Any:
    members = [Spec(tuple(x.shape[m:]), x.dtype) for x, m in zip((a, b), mapped, strict=True)]
    _check(*members)
    vector = members[1].ndim == 1
    b = _columns(b, vector)
    rank = max(members[0].ndim, members[1].ndim, 2)
    a, b = (reshape(x, shape=(x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:])) if m else x
            for x, m in zip((a, b), mapped, strict=True))  # fmt: skip
    return _as_given(solve(a, b), vector)
