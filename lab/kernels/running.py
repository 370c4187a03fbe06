"""What the loops over rows call while they go along a row: running sums, and the largest entry of a row.

Plain Python over NumPy scalars, compiled into the loops by numba.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

LANES = 16
"""Entries that are compared at a time: a float32 vector of AVX-512, two of AVX2."""


def plus(a: Any, b: Any) -> Any:
    """A + b where the order of a sum is free, so that it runs in many lanes."""
    return a + b


def add_to(parts: NDArray[Any], sums: NDArray[Any]) -> None:
    """Add the parts to the sums, and begin them anew."""
    for j in range(parts.size):
        sums[j] += parts[j]
        parts[j] = 0


def largest(row: NDArray[Any], lanes: NDArray[Any]) -> Any:
    """The largest entry of a row that is not empty, nan if one is nan.

    One running maximum waits for each comparison in turn, so LANES of them run side by side.
    """
    whole = row.size - row.size % LANES
    top = row[0]
    if whole:
        for k in range(LANES):
            lanes[k] = row[k]
        for start in range(LANES, whole, LANES):
            for k in range(LANES):
                x = row[start + k]
                lanes[k] = x if (x > lanes[k]) | (x != x) else lanes[k]  # noqa: PLR0124 - a nan
        for k in range(LANES):
            top = lanes[k] if (lanes[k] > top) | (lanes[k] != lanes[k]) else top
    for j in range(whole, row.size):
        top = row[j] if (row[j] > top) | (row[j] != row[j]) else top
    return top


def smallest(row: NDArray[Any], lanes: NDArray[Any]) -> Any:
    """The smallest entry of a row that is not empty, nan if one is nan."""
    whole = row.size - row.size % LANES
    top = row[0]
    if whole:
        for k in range(LANES):
            lanes[k] = row[k]
        for start in range(LANES, whole, LANES):
            for k in range(LANES):
                x = row[start + k]
                lanes[k] = x if (x < lanes[k]) | (x != x) else lanes[k]  # noqa: PLR0124 - a nan
        for k in range(LANES):
            top = lanes[k] if (lanes[k] < top) | (lanes[k] != lanes[k]) else top
    for j in range(whole, row.size):
        top = row[j] if (row[j] < top) | (row[j] != row[j]) else top
    return top


INLINED = (plus,)
"""Put into the loop: one that stays a call keeps it from running in lanes."""
CALLED = (add_to, largest, smallest)
