"""What the loops over rows call while they go along a row: running sums, and the largest entry of a row.

Plain Python over NumPy scalars, compiled into the loops by numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.kernels.scalars import order, ordered


def plus(a: Any, b: Any) -> Any:
    """A + b where the order of a sum is free, so that it runs in many lanes."""
    return a + b


def add_to(parts: NDArray[Any], sums: NDArray[Any]) -> None:
    """Add the parts to the sums, and begin them anew."""
    for j in range(parts.size):
        sums[j] += parts[j]
        parts[j] = 0


def ends(row: NDArray[Any]) -> Any:
    """The smallest and the largest order of the entries of a row that is not empty.

    It is sought among integers: the largest of floats LLVM seeks one by one as long as nan counts. The order of a nan
    is beyond that of the infinity of its sign.
    """
    top = order(row[0])
    low = top
    for j in range(row.size):
        n = order(row[j])
        top = max(top, n)
        low = min(low, n)
    return low, top


def largest(row: NDArray[Any]) -> Any:
    """The largest entry of a row that is not empty, nan if one is nan."""
    low, top = ends(row)
    return row.dtype.type(np.nan) if low < order(row.dtype.type(-np.inf)) else ordered(top)


def smallest(row: NDArray[Any]) -> Any:
    """The smallest entry of a row that is not empty, nan if one is nan."""
    low, top = ends(row)
    return row.dtype.type(np.nan) if top > order(row.dtype.type(np.inf)) else ordered(low)


INLINED = (plus,)
"""Put into the loop: one that stays a call keeps it from running in lanes."""
CALLED = (add_to, ends, largest, smallest)
