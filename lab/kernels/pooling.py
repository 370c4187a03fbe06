"""The largest entry of each window of an image, and the way of a cotangent back to it.

Backward looks for it again, which costs what reading saved places would, and keeps no array of them alive meanwhile.
Of several equal entries the first counts, row by row; nan is larger than any number. Windows are described by the
numbers of `columns.py`. One entry of all windows is compared after the other, without a branch: on random images a
branch for each entry is mispredicted half of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.arguments import Matrix, OutMatrix
from lab.kernels.columns import end_inside, first_inside, framed
from lab.kernels.kernel import helper, kernel


def places_of_max(
    x: NDArray[Any], h: int, w: int, kh: int, kw: int, sh: int, sw: int, dh: int, dw: int,
    top: int, left: int, oh: int, ow: int,
) -> NDArray[np.int64]:  # fmt: skip
    """For each window the number of its largest entry in the image, in NumPy: (n, h * w) -> (n, windows).

    Example:
        >>> places_of_max(np.array([[1, 5, 5, 2, 0, 3]]), 1, 6, 1, 3, 1, 3, 1, 1, 0, 0, 1, 2)
        array([[1, 5]])
    """
    inside, windows = framed(1, np.int64, h, w, kh, kw, sh, sw, dh, dw, top, left, oh, ow)
    inside[:] = 1 + np.arange(h * w).reshape(h, w)
    places = windows.reshape(kh * kw, oh * ow).T - 1
    # What is outside stands there as the window's first real entry: never larger, and where it is as large, that is it.
    first, rows = (places >= 0).argmax(axis=1), np.arange(oh * ow)
    entries = np.where(places >= 0, x[:, places], x[:, places[rows, first]][..., None])
    found: NDArray[np.int64] = places[rows, np.maximum(entries.argmax(axis=2), first)]
    return found


def max_pool_twin(
    x: NDArray[Any], out: NDArray[Any], h: int, w: int, kh: int, kw: int, sh: int, sw: int, dh: int, dw: int,
    top: int, left: int, oh: int, ow: int,
) -> None:  # fmt: skip
    """`max_pool` in NumPy."""
    places = places_of_max(x, h, w, kh, kw, sh, sw, dh, dw, top, left, oh, ow)
    out[:] = np.take_along_axis(x, places, axis=1)


def max_pool_gradient_twin(
    x: NDArray[Any], ct: NDArray[Any], out: NDArray[Any], h: int, w: int, kh: int, kw: int, sh: int, sw: int,
    dh: int, dw: int, top: int, left: int, oh: int, ow: int,
) -> None:  # fmt: skip
    """`max_pool_gradient` in NumPy."""
    places = places_of_max(x, h, w, kh, kw, sh, sw, dh, dw, top, left, oh, ow)
    out[:] = 0
    np.add.at(out, (np.arange(len(x))[:, None], places), ct)


_SAMPLE = (5, 6, 3, 2, 2, 2, 1, 1, 1, 0, 3, 3)
"""Windows of 3 x 2 at every second place of images of 5 x 6 with a frame above and below: 3 x 3 of them."""


def _sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x = rng.integers(-3, 3, (size, 30)).astype(dtype)  # with ties
    return x, np.zeros((size, 9), dtype), *_SAMPLE


def _gradient_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x, ct, *rest = _sample(rng, dtype, size)
    return x, rng.standard_normal(ct.shape).astype(dtype), np.zeros_like(x), *rest


# Most windows are of 2 x 2 and tile the image. Then rows of all images are one long row of pairs, and two loops over it
# run in many lanes, where one over the few windows of a row would branch for each: 7 times as long.

TILES = 1024
"""Windows at a time, so that what is between the loops stays in the cache."""


@helper()
def is_larger(entry: Any, old: Any) -> Any:
    """Whether an entry takes the place of one before it: nan does that of a number."""
    return (entry > old) | ((entry != entry) & (old == old))  # noqa: PLR0124 - nan


@helper()
def write_largest(x: NDArray[Any], out: NDArray[Any]) -> None:
    """The larger of each pair."""
    two, one = np.uint64(2), np.uint64(1)
    for i in range(np.uint64(out.size)):
        left, right = x[i * two], x[i * two + one]
        out[i] = right if is_larger(right, left) else left


@helper()
def send_back(ct: NDArray[Any], upper: NDArray[Any], lower: NDArray[Any]) -> None:
    """Put the cotangent in the place of the larger of two, zero in that of the other."""
    zero = ct.dtype.type(0)
    for i in range(ct.size):
        c, is_lower = ct[i], is_larger(lower[i], upper[i])  # read in any case: a read that depends is a branch
        upper[i] = zero if is_lower else c
        lower[i] = c if is_lower else zero


@helper()
def write_back(x: NDArray[Any], ct: NDArray[Any], out: NDArray[Any]) -> None:
    """Write the cotangent of each pair to the place of the larger, zero to the other."""
    two, one, zero = np.uint64(2), np.uint64(1), ct.dtype.type(0)
    for i in range(np.uint64(ct.size)):
        c, is_right = ct[i], is_larger(x[i * two + one], x[i * two])
        out[i * two] = zero if is_right else c
        out[i * two + one] = c if is_right else zero


@helper()
def write_larger(upper: NDArray[Any], lower: NDArray[Any], out: NDArray[Any]) -> None:
    """The larger of two."""
    for i in range(out.size):
        u, v = upper[i], lower[i]
        out[i] = v if is_larger(v, u) else u


@helper()
def part_rows(x: NDArray[Any], upper: NDArray[Any], lower: NDArray[Any], width: int) -> None:
    """Copy the rows of x to `upper` and `lower` in turn."""
    n = np.uint64(width)
    for start in range(np.uint64(0), np.uint64(upper.size), n):  # a slice for each row takes longer than a short row
        for k in range(start, start + n):
            upper[k], lower[k] = x[start + k], x[start + k + n]


@helper()
def join_rows(upper: NDArray[Any], lower: NDArray[Any], out: NDArray[Any], width: int) -> None:
    """Copy the rows of `upper` and `lower` to `out` in turn."""
    n = np.uint64(width)
    for start in range(np.uint64(0), np.uint64(upper.size), n):
        for k in range(start, start + n):
            out[start + k], out[start + k + n] = upper[k], lower[k]


@helper()
def largest_of_tiles(x: NDArray[Any], out: NDArray[Any], width: int) -> None:
    """`max_pool` of windows of 2 x 2 that tile the images, so many in a row; both arrays flat."""
    step = max(1, TILES // width) * width
    pairs, upper, lower = np.empty(2 * step, x.dtype), np.empty(step, x.dtype), np.empty(step, x.dtype)
    for start in range(0, out.size, step):
        n = min(step, out.size - start)
        write_largest(x[4 * start : 4 * (start + n)], pairs[: 2 * n])
        part_rows(pairs[: 2 * n], upper[:n], lower[:n], width)
        write_larger(upper[:n], lower[:n], out[start : start + n])


@helper()
def gradient_of_tiles(x: NDArray[Any], ct: NDArray[Any], out: NDArray[Any], width: int) -> None:
    """`max_pool_gradient` of windows of 2 x 2 that tile the images, so many in a row; all arrays flat."""
    step = max(1, TILES // width) * width
    pairs, upper, lower = np.empty(2 * step, x.dtype), np.empty(step, x.dtype), np.empty(step, x.dtype)
    for start in range(0, ct.size, step):
        n = min(step, ct.size - start)
        entries = x[4 * start : 4 * (start + n)]
        write_largest(entries, pairs[: 2 * n])
        part_rows(pairs[: 2 * n], upper[:n], lower[:n], width)
        send_back(ct[start : start + n], upper[:n], lower[:n])
        join_rows(upper[:n], lower[:n], pairs[: 2 * n], width)
        write_back(entries, pairs[: 2 * n], out[4 * start : 4 * (start + n)])


@kernel(twin=max_pool_twin, sample=_sample)
def max_pool(
    x: Matrix, out: OutMatrix, h: int, w: int, kh: int, kw: int, sh: int, sw: int, dh: int, dw: int,
    top: int, left: int, oh: int, ow: int,
) -> None:  # fmt: skip
    """Write the largest entry of each window to `out`; a window that lies across the edge has fewer entries.

    Shapes:
        x: (n, h * w), an image in each row; out: (n, oh * ow). No window may lie outside as a whole.

    Example:
        >>> out = np.zeros((1, 2))
        >>> max_pool(np.array([[1.0, 5.0, 2.0, 0.0]]), out, 1, 4, 1, 2, 1, 2, 1, 1, 0, 0, 1, 2)
        >>> out
        array([[5., 2.]])
    """
    if x.shape[0] != out.shape[0] or x.shape[1] != h * w or out.shape[1] != oh * ow:
        raise ShapeError("max_pool needs an image in each row of x and its windows in the same row of out")
    if kh == kw == sh == sw == 2 and dh == dw == 1 and h == 2 * oh and w == 2 * ow and top == left == 0 and ow > 0:
        largest_of_tiles(x.reshape(-1), out.reshape(-1), ow)
        return
    step = np.uint64(sw)
    for n in range(x.shape[0]):
        image, best = x[n], out[n]
        best[:] = -np.inf
        for ky in range(kh):
            y0, y1 = first_inside(top - ky * dh, sh), end_inside(top - ky * dh, sh, h, oh)
            for kx in range(kw):
                x0, x1 = first_inside(left - kx * dw, sw), end_inside(left - kx * dw, sw, w, ow)
                for y in range(y0, y1):
                    read = np.uint64((y * sh + ky * dh - top) * w + x0 * sw + kx * dw - left)
                    to = np.uint64(y * ow + x0)
                    for i in range(np.uint64(max(0, x1 - x0))):
                        entry, old = image[read + i * step], best[to + i]
                        best[to + i] = entry if (entry > old) | (entry != entry) else old  # noqa: PLR0124 - nan


@kernel(twin=max_pool_gradient_twin, sample=_gradient_sample)
def max_pool_gradient(
    x: Matrix, ct: Matrix, out: OutMatrix, h: int, w: int, kh: int, kw: int, sh: int, sw: int, dh: int, dw: int,
    top: int, left: int, oh: int, ow: int,
) -> None:  # fmt: skip
    """Write to `out` zeros, and at the largest entry of each window the sum of what came back to it in `ct`.

    Shapes:
        x, out: (n, h * w); ct: (n, oh * ow).

    Example:
        >>> out = np.zeros((1, 4))
        >>> x, geometry = np.array([[1.0, 5.0, 2.0, 0.0]]), (1, 4, 1, 2, 1, 2, 1, 1, 0, 0, 1, 2)
        >>> max_pool_gradient(x, np.ones((1, 2)), out, *geometry)
        >>> out
        array([[0., 1., 1., 0.]])
    """
    if x.shape[0] != ct.shape[0] or x.shape != out.shape or x.shape[1] != h * w or ct.shape[1] != oh * ow:
        raise ShapeError("max_pool_gradient needs an image in each row of x and out, its windows in that row of ct")
    if kh == kw == sh == sw == 2 and dh == dw == 1 and h == 2 * oh and w == 2 * ow and top == left == 0 and ow > 0:
        gradient_of_tiles(x.reshape(-1), ct.reshape(-1), out.reshape(-1), ow)
        return
    best, place = np.empty(oh * ow, x.dtype), np.empty(oh * ow, np.int64)
    step = np.uint64(sw)
    for n in range(x.shape[0]):
        image, slope, back = x[n], out[n], ct[n]
        place[:] = -1
        for ky in range(kh):
            y0, y1 = first_inside(top - ky * dh, sh), end_inside(top - ky * dh, sh, h, oh)
            for kx in range(kw):
                x0, x1 = first_inside(left - kx * dw, sw), end_inside(left - kx * dw, sw, w, ow)
                for y in range(y0, y1):
                    read = np.uint64((y * sh + ky * dh - top) * w + x0 * sw + kx * dw - left)
                    to = np.uint64(y * ow + x0)
                    for i in range(np.uint64(max(0, x1 - x0))):
                        entry, old, had = image[read + i * step], best[to + i], place[to + i]
                        better = is_larger(entry, old) | (had < 0)
                        best[to + i] = entry if better else old
                        place[to + i] = np.int64(read + i * step) if better else had
        slope[:] = 0
        for i in range(back.size):
            slope[place[i]] += back[i]
