"""Memory asked for before it is needed: the next row of a matrix comes from memory while this one is worked on.

The processor guesses what comes next within a page of 4 KiB only, so each long row begins with a wait: 1024 entries of
float32 are a page, and without this the kernels over such rows take a fifth longer.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from lab.kernels.kernel import helper

LINE = 64
"""Bytes that come from memory at a time."""
MOST = 1 << 14
"""Bytes of a row that are asked for."""


def ask_for(row: NDArray[Any], j: int) -> None:
    """Nothing; in numba the line of memory with an entry is on its way to the cache afterwards."""


@helper()
def ask_for_row(matrix: NDArray[Any], i: int) -> None:
    """Ask for the beginning of a row, if there is one of that number."""
    if i < matrix.shape[0]:
        row = matrix[i]
        for j in range(0, min(row.size, MOST // row.itemsize), LINE // row.itemsize):
            ask_for(row, j)
