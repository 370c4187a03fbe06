"""Rows of a matrix added up by their numbers: the gradient of an embedding, and of what is taken along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.arguments import Labels, Matrix, OutMatrix
from lab.kernels.kernel import kernel


def add_rows_twin(rows: NDArray[Any], places: NDArray[Any], out: NDArray[Any]) -> None:
    """`add_rows` in NumPy."""
    with np.errstate(all="ignore"):
        np.add.at(out, places, rows)


def _add_rows_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    return rng.standard_normal((size, 3)).astype(dtype), rng.integers(0, 5, size), np.zeros((5, 3), dtype)


@kernel(twin=add_rows_twin, sample=_add_rows_sample)
def add_rows(rows: Matrix, places: Labels, out: OutMatrix) -> None:
    """Add each row to the row of `out` that its place names, one after the other.

    Shapes:
        rows: (m, w); places: (m,) from 0 to n - 1; out: (n, w).

    Example:
        >>> out = np.zeros((2, 1))
        >>> add_rows(np.array([[1.0], [2.0], [4.0]]), np.array([1, 0, 1]), out)
        >>> out
        array([[2.],
               [5.]])
    """
    m, width = rows.shape
    if places.size != m or out.shape[1] != width:
        raise ShapeError("add_rows needs a place for each row, and rows of one length")
    n = out.shape[0]
    for i in range(m):
        place = places[i]
        if place < 0 or place >= n:
            raise ShapeError("add_rows needs places inside of out")
        source, target = rows[i], out[place]
        for j in range(width):
            target[j] += source[j]
