"""A convolution, and what it is with respect to each of its operands, as matrix products (arrays in, arrays out).

Each window's entries are a column of a matrix (`kernels/columns.py`) and each kernel is a row of another. The columns
are made, used and forgotten for a few examples at a time, so that they stay in the cache and take no memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from lab import kernels
from lab.kernels.columns import col2im_twin, im2col_twin
from lab.ops.windows import Windows, entries

CACHE = 1 << 20
"""Bytes of columns at a time: they should stay in the caches, and few examples at a time are many calls."""

# G groups, C channels of a group (O of the result), K entries of a kernel over its channels, L windows


class Columns:
    """Room for the columns of some examples of a batch.

    Attributes:
        matrix: (examples at a time, G, K, L).
    """

    def __init__(self, plan: Windows, n: int, groups: int, channels: int, dtype: Any, room: Any = None) -> None:
        """Room: bytes to lie in, at least `Columns.n_bytes` of the same; new ones otherwise."""
        self.n, self.groups, self.numbers, self.pixels = n, groups, plan.numbers, entries(plan.size)
        k, windows = entries(plan.kernel), entries(plan.out)
        self.channels, self.entries = groups * channels, k * windows
        self.step = self._step(plan, n, self.channels, dtype)
        shape = (self.step, groups, channels * k, windows)
        self.matrix: Any = np.empty(shape, dtype)
        if room is not None:
            self.matrix = room[: self.matrix.nbytes].view(dtype).reshape(shape)
        compiled = self.matrix.dtype.char in "fd"  # a name takes 3 us
        self.im2col, self.col2im = (kernels.im2col, kernels.col2im) if compiled else (im2col_twin, col2im_twin)
        starts = range(0, n, max(self.step, 1))
        self.parts = [(slice(i, min(n, i + self.step)), slice(min(n, i + self.step) - i)) for i in starts]

    @staticmethod
    def _step(plan: Windows, n: int, channels: int, dtype: Any) -> int:
        """Examples at a time."""
        size = channels * entries(plan.kernel) * entries(plan.out) * int(dtype.itemsize)
        return min(n, max(1, CACHE // max(size, 1)))

    @staticmethod
    def n_bytes(plan: Windows, n: int, groups: int, channels: int, dtype: Any) -> int:
        """The room that they take."""
        step = Columns._step(plan, n, groups * channels, dtype)
        return step * groups * channels * entries(plan.kernel) * entries(plan.out) * int(dtype.itemsize)

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        """Which examples, and where they are in this room."""
        return iter(self.parts)

    def _rows(self, here: slice) -> Any:
        return self.matrix[here].reshape(here.stop * self.channels, self.entries)

    def fill(self, x: Any, here: slice) -> Any:
        """The columns of examples (n, G * C, *size) as (n, G, K, L)."""
        images = x.reshape(here.stop * self.channels, self.pixels).astype(self.matrix.dtype, copy=False)
        self.im2col(images, self._rows(here), *self.numbers)
        return self.matrix[here]

    def add_up(self, here: slice, out: Any) -> None:
        """Write to `out` the examples that have these columns, what overlaps summed."""
        self.col2im(self._rows(here), out.reshape(here.stop * self.channels, self.pixels), *self.numbers)


def correlate(x: Any, weight: Any, plan: Windows, groups: int) -> Any:
    """Each window times each kernel, summed: the convolution of networks.

    Shapes:
        x: (n, c, *size); weight: (o, c / groups, *kernel); result: (n, o, *out).
    """
    dtype = np.result_type(x, weight)
    out: Any = np.empty((x.shape[0], weight.shape[0], *plan.out), dtype)
    correlate_into(Columns(plan, x.shape[0], groups, weight.shape[1], dtype), x, weight, out)
    return out


def correlate_into(columns: Columns, x: Any, weight: Any, out: Any) -> None:
    """The same, written to `out`."""
    rows = _rows(weight, columns.groups, out.dtype)
    results = _windows(out, columns)
    for there, here in columns:
        np.matmul(rows, columns.fill(x[there], here), out=results[there])


def spread_back(y: Any, weight: Any, plan: Windows, groups: int) -> Any:
    """Each entry of y times its kernel, added where its window was: the transpose of `correlate` in x.

    Shapes:
        y: (n, o, *out); weight: (o, c / groups, *kernel); result: (n, c, *size).
    """
    n, c, dtype = y.shape[0], weight.shape[1], np.result_type(y, weight)
    out: Any = np.empty((n, groups * c, *plan.size), dtype)
    spread_back_into(Columns(plan, n, groups, c, dtype), y, weight, out)
    return out


def spread_back_into(columns: Columns, y: Any, weight: Any, out: Any) -> None:
    """The same, written to `out`."""
    rows = _rows(weight, columns.groups, out.dtype).swapaxes(-1, -2)
    windows = _windows(y, columns)
    for there, here in columns:
        np.matmul(rows, windows[there], out=columns.matrix[here])
        columns.add_up(here, out[there])


def correlate_weight(x: Any, y: Any, plan: Windows, groups: int) -> Any:
    """For each entry of a kernel what it met in x times y, summed: the transpose of `correlate` in the weight.

    Shapes:
        x: (n, c, *size); y: (n, o, *out); result: (o, c / groups, *kernel).
    """
    c, dtype = x.shape[1] // groups, np.result_type(x, y)
    out: Any = np.empty((y.shape[1], c, *plan.kernel), dtype)
    correlate_weight_into(Columns(plan, x.shape[0], groups, c, dtype), x, y, out)
    return out


def correlate_weight_into(columns: Columns, x: Any, y: Any, out: Any) -> None:
    """The same, written to `out`."""
    windows, groups = _windows(y, columns), columns.groups
    total: Any = np.zeros((groups, columns.matrix.shape[2], y.shape[1] // groups), out.dtype)
    for there, here in columns:  # (G, K, O): BLAS is a tenth faster than the other way round
        total += np.matmul(columns.fill(x[there], here), windows[there].swapaxes(-1, -2)).sum(axis=0)
    out.reshape(groups, total.shape[2], total.shape[1])[...] = total.swapaxes(-1, -2)


def _windows(y: Any, columns: Columns) -> Any:
    """A result as (n, G, O, L)."""
    return y.reshape(columns.n, columns.groups, y.shape[1] // columns.groups, columns.matrix.shape[3])


def _rows(weight: Any, groups: int, dtype: Any) -> Any:
    """A kernel in each row: (G, O, K)."""
    k = entries(weight.shape[1:])
    return weight.astype(dtype, copy=False).reshape(groups, weight.shape[0] // groups, k)


def meetings(plan: Windows, n: int, o: int, c: int, groups: int) -> Iterator[tuple[Any, Any, Any]]:
    """Which entry of x meets which of the weight for which of the result: a convolution entry by entry, as defined."""
    channels = itertools.product(range(n), range(o), range(c // groups))
    for (b, k, i), place, tap in itertools.product(channels, np.ndindex(plan.out), np.ndindex(plan.kernel)):
        found = tuple(
            p * s + t * d - z
            for p, s, t, d, z in zip(place, plan.stride, tap, plan.dilation, plan.before, strict=True)
        )
        if all(0 <= f < size for f, size in zip(found, plan.size, strict=True)):
            yield (b, k // (o // groups) * (c // groups) + i, *found), (k, i, *tap), (b, k, *place)
