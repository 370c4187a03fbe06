"""Cholesky's factor of symmetric matrices, with the rules of Murray 2016 (arXiv:1602.07527)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError
from lab.ops.linalg import swapped
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.systems import dtype_of, refuse_not_square, solve, wide
from lab.shapes import Spec


def _symmetric(a: Any) -> Any:
    return (a + swapped(a)) * np.asarray(0.5, a.dtype)


def _lower(x: Any) -> Any:
    """What is below the diagonal, and half of the diagonal: Phi in the paper."""
    n = x.shape[-1]
    return x * np.asarray(np.tri(n) - 0.5 * np.eye(n), x.dtype)


@primitive(
    samples=[Sample(((3, 3),), kinds=("p",)), Sample(((2, 2, 2),), kinds=("p",))],
    error_samples=[(((2, 3),), {}, "cholesky needs square matrices")],
    reference=lambda a: np.linalg.cholesky(np.swapaxes(a, -1, -2)),
    numpy={np.linalg.cholesky: None},
)  # fmt: skip
def cholesky(a: Any) -> Any:
    """The lower triangular L with `L @ L.T = a` of positive definite matrices: (..., n, n) -> the same.

    Of a matrix that is not symmetric its symmetric part counts, (a + a.T) / 2; so the gradient is symmetric.
    """
    refuse_not_square(a, "cholesky")
    part = _symmetric(wide(a))
    try:
        return np.linalg.cholesky(part).astype(dtype_of(a), copy=False)
    except np.linalg.LinAlgError:
        least = np.min(np.linalg.eigvalsh(part)) if np.isfinite(part).all() else np.nan
        raise ArgumentError(
            "cholesky needs positive definite matrices",
            given=f"shape {part.shape}, smallest eigenvalue {least:.3g}",
            hint="x @ x.T + 1e-6 * np.eye(n) is one",
        ) from None


@cholesky.vjp(text="symmetric part of inv(out).T @ lower(out.T @ ct) @ inv(out)")
def _cholesky_vjp(ct: Any, out: Any, _a: Any) -> Any:
    turned = swapped(out)
    half = solve(turned, _lower(turned @ ct))
    return _symmetric(solve(turned, swapped(half)))


@cholesky.jvp
def _cholesky_jvp(tangents: tuple[Any, ...], out: Any, _a: Any) -> Any:
    half = solve(out, _symmetric(tangents[0]))
    return out @ _lower(solve(out, swapped(half)))


@cholesky.shaped
def _cholesky_shape(a: Spec) -> Spec:
    refuse_not_square(a, "cholesky")
    return Spec(a.shape, dtype_of(a))


@cholesky.batching
def _cholesky_batch(_size: int, _mapped: tuple[bool, ...], a: Any) -> Any:
    refuse_not_square(Spec(tuple(a.shape[1:]), a.dtype), "cholesky")
    return cholesky(a)
