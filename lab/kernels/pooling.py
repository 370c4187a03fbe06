"""The largest entry of each window of an image, and the way of a cotangent back to it.

Backward looks for it again, which costs what reading saved places would, and keeps no array of them alive meanwhile.
Of several equal entries the first counts, row by row; nan is larger than any number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.arguments import Matrix, OutMatrix
from lab.kernels.kernel import helper, kernel

# h, w an image; kh, kw a window; sh, sw from one to the next; ph, pw the width of the frame that is no entry


def places_of_max(
    x: NDArray[Any], h: int, w: int, kh: int, kw: int, sh: int, sw: int, ph: int, pw: int
) -> NDArray[np.int64]:
    """For each window the number of its largest entry in the image, in NumPy: (n, h * w) -> (n, windows).

    Example:
        >>> places_of_max(np.array([[1, 5, 5, 2, 0, 3]]), 1, 6, 1, 3, 1, 3, 0, 0)
        array([[1, 5]])
    """
    frame = ((ph, ph), (pw, pw))
    numbers = np.pad(np.arange(h * w).reshape(h, w), frame, constant_values=-1)
    view = np.lib.stride_tricks.sliding_window_view
    places = view(numbers, (kh, kw))[::sh, ::sw].reshape(-1, kh * kw)
    # What is outside stands there as the window's first real entry: never larger, and where it is as large, that is it.
    first = (places >= 0).argmax(axis=1)
    rows = np.arange(len(places))
    entries = np.where(places >= 0, x[:, places], x[:, places[rows, first]][..., None])
    found: NDArray[np.int64] = places[rows, np.maximum(entries.argmax(axis=2), first)]
    return found


def max_pool_twin(
    x: NDArray[Any], out: NDArray[Any], h: int, w: int, kh: int, kw: int, sh: int, sw: int, ph: int, pw: int
) -> None:
    """`max_pool` in NumPy."""
    out[:] = np.take_along_axis(x, places_of_max(x, h, w, kh, kw, sh, sw, ph, pw), axis=1)


def max_pool_gradient_twin(
    x: NDArray[Any], ct: NDArray[Any], out: NDArray[Any],
    h: int, w: int, kh: int, kw: int, sh: int, sw: int, ph: int, pw: int,
) -> None:  # fmt: skip
    """`max_pool_gradient` in NumPy."""
    out[:] = 0
    rows = np.arange(len(x))[:, None]
    np.add.at(out, (rows, places_of_max(x, h, w, kh, kw, sh, sw, ph, pw)), ct)


_SAMPLE = (5, 6, 3, 2, 2, 2, 1, 0)
"""An image of 5 x 6, windows of 3 x 2 at every second place, a frame above and below: 3 x 3 of them."""


def _sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x = rng.integers(-3, 3, (size, 30)).astype(dtype)  # with ties
    return x, np.zeros((size, 9), dtype), *_SAMPLE


def _gradient_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    x, ct, *rest = _sample(rng, dtype, size)
    return x, rng.standard_normal(ct.shape).astype(dtype), np.zeros_like(x), *rest


@helper()
def place_of_max(
    image: NDArray[Any], row: int, w: int, top: int, bottom: int, left: int, right: int
) -> int:
    """The number of the largest entry in rows top .. bottom - 1 and columns left .. right - 1 of one image."""
    place = top * w + left
    best = image[row, place]
    for i in range(top, bottom):
        for j in range(i * w + left, i * w + right):
            entry = image[row, j]
            if entry > best or (entry != entry and best == best):  # noqa: PLR0124 - nan is what differs from itself
                best, place = entry, j
    return place


@kernel(twin=max_pool_twin, sample=_sample)
def max_pool(
    x: Matrix, out: OutMatrix, h: int, w: int, kh: int, kw: int, sh: int, sw: int, ph: int, pw: int
) -> None:
    """Write the largest entry of each window to `out`; a window that lies across the edge has fewer entries.

    Shapes:
        x: (n, h * w), an image in each row; out: (n, windows).

    Args:
        h, w, kh, kw, sh, sw, ph, pw: height and width of the image, of a window, from one window to the next, and of
            the frame around the image, in which no window may lie as a whole.

    Example:
        >>> out = np.zeros((1, 2))
        >>> max_pool(np.array([[1.0, 5.0, 2.0, 0.0]]), out, 1, 4, 1, 2, 1, 2, 0, 0)
        >>> out
        array([[5., 2.]])
    """
    oh, ow = (h + 2 * ph - kh) // sh + 1, (w + 2 * pw - kw) // sw + 1
    if x.shape[1] != h * w or out.shape[0] != x.shape[0] or out.shape[1] != oh * ow:
        raise ShapeError("max_pool needs an image in each row of x and its windows in the same row of out")
    for row in range(x.shape[0]):
        for i in range(oh):
            top, bottom = max(0, i * sh - ph), min(h, i * sh - ph + kh)
            for j in range(ow):
                left, right = max(0, j * sw - pw), min(w, j * sw - pw + kw)
                out[row, i * ow + j] = x[row, place_of_max(x, row, w, top, bottom, left, right)]


@kernel(twin=max_pool_gradient_twin, sample=_gradient_sample)
def max_pool_gradient(
    x: Matrix, ct: Matrix, out: OutMatrix, h: int, w: int, kh: int, kw: int, sh: int, sw: int, ph: int, pw: int
) -> None:
    """Write to `out` zeros, and at the largest entry of each window the sum of what came back to it in `ct`.

    Shapes:
        x, out: (n, h * w); ct: (n, windows). Other arguments as those of `max_pool`.

    Example:
        >>> out = np.zeros((1, 4))
        >>> max_pool_gradient(np.array([[1.0, 5.0, 2.0, 0.0]]), np.ones((1, 2)), out, 1, 4, 1, 2, 1, 2, 0, 0)
        >>> out
        array([[0., 1., 1., 0.]])
    """
    oh, ow = (h + 2 * ph - kh) // sh + 1, (w + 2 * pw - kw) // sw + 1
    if x.shape[1] != h * w or out.shape != x.shape or ct.shape[0] != x.shape[0] or ct.shape[1] != oh * ow:
        raise ShapeError("max_pool_gradient needs an image in each row of x and out, its windows in that row of ct")
    for row in range(x.shape[0]):
        for k in range(h * w):
            out[row, k] = 0
        for i in range(oh):
            top, bottom = max(0, i * sh - ph), min(h, i * sh - ph + kh)
            for j in range(ow):
                left, right = max(0, j * sw - pw), min(w, j * sw - pw + kw)
                out[row, place_of_max(x, row, w, top, bottom, left, right)] += ct[row, i * ow + j]
