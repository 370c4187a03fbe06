"""Few directions: a matrix as the product of two thin ones, found by one step of the power method (PowerSGD).

Vogels and others, NeurIPS 2019. Both thin matrices are sums over ranks, so plans sum them, for any number of ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lab.checks import whole
from lab.parallel.compression.hook import Compressor, Shapes, Vector
from lab.parallel.ranks.runtime import Comm


class _Matrix(NamedTuple):
    """A parameter that is compressed, within the gradient: rows x columns."""

    where: slice
    n_rows: int
    n_columns: int

    def of(self, vector: Vector) -> Vector:
        return vector[self.where].reshape(self.n_rows, self.n_columns)


@dataclass(frozen=True)
class PowerSGD(Compressor):
    """Matrices as products of thin ones, of `rank` columns; what is too small or has one axis is summed as it is.

    A parameter of more axes is a matrix of its first one. For (m, n) it sends rank (m + n) entries in place of m n.

    Args:
        rank: columns of the thin matrices.
        warm_start: begin with what the last step found; else with random numbers, the same on all ranks, in each step.
        seed: of these.

    Raises:
        ArgumentError: no rank.

    Example:
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     gradient = np.outer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], np.arange(8)).ravel()
        ...     whole = 2 * gradient
        ...     PowerSGD(rank=1)(comm, gradient, {}, [(6, 8)])
        ...     return bool(np.allclose(gradient, whole))  # of rank 1 itself
        >>> run_ranks(program, world_size=2)
        [True, True]
    """

    rank: int = 2
    warm_start: bool = True
    seed: int = 0

    def __init__(self, rank: int = 2, warm_start: bool = True, seed: int = 0, error_feedback: bool = True) -> None:
        rank = whole("rank", rank, least=1, hint="2 or 4 are usual")
        seed = whole("seed", seed, least=0, hint="seed=0")
        for name, value in (("rank", rank), ("warm_start", bool(warm_start)), ("seed", seed),
                            ("error_feedback", error_feedback)):  # fmt: skip
            object.__setattr__(self, name, value)

    def send(self, comm: Comm, gradient: Vector, memory: dict[str, Any], shapes: Shapes) -> Vector:
        matrices = self._matrices(shapes)
        step = memory["step"] = memory.get("step", -1) + 1
        thin = memory.get("thin") if self.warm_start else None
        if thin is None:
            rng = np.random.default_rng([self.seed, step])
            thin = [rng.standard_normal((m.n_columns, self.rank)).astype(gradient.dtype) for m in matrices]
        left = [m.of(gradient) @ q for m, q in zip(matrices, thin, strict=True)]
        _all_reduce(comm, left)
        left = [np.linalg.qr(p)[0].astype(gradient.dtype) for p in left]  # the same bits everywhere, so its factor is
        right = [m.of(gradient).T @ p for m, p in zip(matrices, left, strict=True)]
        mine = gradient.copy()
        for m, p, q in zip(matrices, left, right, strict=True):
            m.of(mine)[...] = p @ q.T
        _all_reduce(comm, right)
        self._sum_the_rest(comm, gradient, matrices)
        for m, p, q in zip(matrices, left, right, strict=True):
            m.of(gradient)[...] = p @ q.T
        memory["thin"] = right
        return mine

    def _matrices(self, shapes: Shapes) -> list[_Matrix]:
        found, start = [], 0
        for shape in shapes:
            size = math.prod(shape)
            n_rows = shape[0] if len(shape) > 1 else 0
            if n_rows and size > self.rank * (n_rows + size // n_rows) and min(n_rows, size // n_rows) >= self.rank:
                found.append(_Matrix(slice(start, start + size), n_rows, size // n_rows))
            start += size
        return found

    def _sum_the_rest(self, comm: Comm, gradient: Vector, matrices: list[_Matrix]) -> None:
        is_rest = np.ones(len(gradient), bool)
        for m in matrices:
            is_rest[m.where] = False
        if is_rest.any():
            rest = gradient[is_rest]
            comm.all_reduce_(rest)
            gradient[is_rest] = rest


def _all_reduce(comm: Comm, arrays: list[Vector]) -> None:
    """All of them in one call, in place."""
    if not arrays:
        return
    flat = np.concatenate([array.ravel() for array in arrays])
    comm.all_reduce_(flat)
    start = 0
    for array in arrays:
        array[...] = flat[start : start + array.size].reshape(array.shape)
        start += array.size
