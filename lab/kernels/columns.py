"""Images as columns of a matrix, one for each window of a convolution: then a convolution is a matrix product.

(Chellapilla, Puri and Simard, "High performance convolutional neural networks for document processing", 2006.) What the
entries of a kernel in one of its columns meet lies in one image, shifted and cut to the windows' width: so each row of
pixels is copied once for each column, and whole images from there, not a few pixels at a time. Indices are unsigned,
because for signed ones numba asks each time whether they count from the end: four times as slow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.arguments import Matrix, OutMatrix
from lab.kernels.kernel import helper, kernel

# h, w an image; kh, kw the kernel; sh, sw from window to window; dh, dw from entry to entry of one; top, left the zeros
# before the image; oh, ow how many windows. Zeros behind the image are what windows reach beyond it.


def framed(
    n: int, dtype: Any, h: int, w: int, kh: int, kw: int, sh: int, sw: int, dh: int, dw: int,
    top: int, left: int, oh: int, ow: int,
) -> tuple[Any, Any]:  # fmt: skip
    """Zeros with room for n images, and a view of them as windows: (n, h, w) inside, (n, kh, kw, oh, ow).

    Example:
        >>> inside, windows = framed(1, "f", 1, 3, 1, 2, 1, 1, 1, 1, 0, 1, 1, 3)
        >>> inside[:] = [[[1, 2, 3]]]
        >>> windows[0, 0, :, 0].tolist()
        [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]
    """
    height = max(top + h, (oh - 1) * sh + (kh - 1) * dh + 1)
    width = max(left + w, (ow - 1) * sw + (kw - 1) * dw + 1)
    frame = np.zeros((n, height, width), dtype)
    s, sy, sx = frame.strides
    windows: Any = np.ndarray(
        (n, kh, kw, oh, ow), frame.dtype, frame, 0, (s, dh * sy, dw * sx, sh * sy, sw * sx)
    )
    return frame[:, top : top + h, left : left + w], windows


def im2col_twin(
    x: NDArray[Any], out: NDArray[Any], h: int, w: int, kh: int, kw: int, sh: int, sw: int, dh: int, dw: int,
    top: int, left: int, oh: int, ow: int,
) -> None:  # fmt: skip
    """`im2col` in NumPy."""
    inside, windows = framed(len(x), x.dtype, h, w, kh, kw, sh, sw, dh, dw, top, left, oh, ow)
    inside[:] = x.reshape(inside.shape)
    out.reshape(windows.shape)[:] = windows


def col2im_twin(
    columns: NDArray[Any], out: NDArray[Any], h: int, w: int, kh: int, kw: int, sh: int, sw: int, dh: int, dw: int,
    top: int, left: int, oh: int, ow: int,
) -> None:  # fmt: skip
    """`col2im` in NumPy."""
    inside, windows = framed(len(out), out.dtype, h, w, kh, kw, sh, sw, dh, dw, top, left, oh, ow)
    parts = columns.reshape(windows.shape)
    for i, j in np.ndindex(kh, kw):  # windows overlap, those of one entry of the kernel do not
        windows[:, i, j] += parts[:, i, j]
    out.reshape(inside.shape)[:] = inside


_SAMPLE = (4, 5, 3, 2, 2, 1, 1, 2, 1, 1, 2, 5)
"""3 x 2 on images of 4 x 5: stride (2, 1), dilation (1, 2), zeros (1, 1) before and behind."""


def _im2col_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    return rng.standard_normal((size, 20)).astype(dtype), np.zeros((size, 60), dtype), *_SAMPLE


def _col2im_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    return rng.standard_normal((size, 60)).astype(dtype), np.zeros((size, 20), dtype), *_SAMPLE


@helper()
def first_inside(before: int, stride: int) -> int:
    """The first window whose entry lies behind `before` pixels that are outside."""
    return max(0, (before + stride - 1) // stride)


@helper()
def end_inside(before: int, stride: int, size: int, n: int) -> int:
    """One more than the last of n windows whose entry lies before the end."""
    return max(0, min(n, (size - 1 + before) // stride + 1))


@helper()
def copy(x: NDArray[Any], out: NDArray[Any]) -> None:
    """Write x to `out`."""
    for i in range(out.size):
        out[i] = x[i]


@helper()
def add(x: NDArray[Any], out: NDArray[Any]) -> None:
    """Add x."""
    for i in range(out.size):
        out[i] += x[i]


@kernel(twin=im2col_twin, sample=_im2col_sample)
def im2col(
    x: Matrix, out: OutMatrix, h: int, w: int, kh: int, kw: int, sh: int, sw: int, dh: int, dw: int,
    top: int, left: int, oh: int, ow: int,
) -> None:  # fmt: skip
    """Write each window of each image to a column of `out`, zeros where it reaches beyond.

    Shapes:
        x: (n, h * w), an image or a channel of one in each row; out: (n, kh * kw * oh * ow), for each entry of the
            kernel a row of what all windows have there.

    Example:
        >>> out = np.zeros((1, 6))
        >>> im2col(np.array([[1.0, 2.0, 3.0]]), out, 1, 3, 1, 2, 1, 1, 1, 1, 0, 1, 1, 3)
        >>> out.reshape(2, 3)
        array([[0., 1., 2.],
               [1., 2., 3.]])
    """
    if x.shape[0] != out.shape[0] or x.shape[1] != h * w or out.shape[1] != kh * kw * oh * ow:
        raise ShapeError("im2col needs an image in each row of x and its windows in the same row of out")
    height, size = max(top + h, (oh - 1) * sh + (kh - 1) * dh + 1), np.uint64(oh * ow)
    frames = np.zeros((kw, height * ow), x.dtype)  # an image for each column of the kernel, zeros around what is inside
    n_ow, step = np.uint64(ow), np.uint64(sw)
    for n in range(x.shape[0]):
        image, columns = x[n], out[n]
        for kx in range(kw):
            frame = frames[kx]
            x0, x1 = first_inside(left - kx * dw, sw), end_inside(left - kx * dw, sw, w, ow)
            for y in range(h):
                read, to = np.uint64(y * w + x0 * sw + kx * dw - left), np.uint64((top + y) * ow + x0)
                for i in range(np.uint64(max(0, x1 - x0))):
                    frame[to + i] = image[read + i * step]
            for ky in range(kh):
                read, to = np.uint64(ky * dh * ow), np.uint64((ky * kw + kx) * oh * ow)
                if sh == 1:
                    copy(frame[read : read + size], columns[to : to + size])
                else:
                    for _ in range(oh):
                        for i in range(n_ow):
                            columns[to + i] = frame[read + i]
                        read, to = read + n_ow * np.uint64(sh), to + n_ow


@kernel(twin=col2im_twin, sample=_col2im_sample)
def col2im(
    columns: Matrix, out: OutMatrix, h: int, w: int, kh: int, kw: int, sh: int, sw: int, dh: int, dw: int,
    top: int, left: int, oh: int, ow: int,
) -> None:  # fmt: skip
    """Write to each entry of an image the sum of what the columns have for it: the transpose of `im2col`.

    Shapes:
        columns: (n, kh * kw * oh * ow); out: (n, h * w).

    Example:
        >>> out = np.zeros((1, 3))
        >>> col2im(np.array([[9.0, 1.0, 2.0, 1.0, 2.0, 3.0]]), out, 1, 3, 1, 2, 1, 1, 1, 1, 0, 1, 1, 3)
        >>> out
        array([[2., 4., 3.]])
    """
    if columns.shape[0] != out.shape[0] or out.shape[1] != h * w or columns.shape[1] != kh * kw * oh * ow:
        raise ShapeError("col2im needs the windows of an image in each row of columns and the image in that row of out")
    height, size = max(top + h, (oh - 1) * sh + (kh - 1) * dh + 1), np.uint64(oh * ow)
    frame = np.empty(height * ow, out.dtype)
    n_ow, step = np.uint64(ow), np.uint64(sw)
    for n in range(out.shape[0]):
        image, parts = out[n], columns[n]
        image[:] = 0
        for kx in range(kw):
            frame[:] = 0
            for ky in range(kh):
                to, read = np.uint64(ky * dh * ow), np.uint64((ky * kw + kx) * oh * ow)
                if sh == 1:
                    add(parts[read : read + size], frame[to : to + size])
                else:
                    for _ in range(oh):
                        for i in range(n_ow):
                            frame[to + i] += parts[read + i]
                        to, read = to + n_ow * np.uint64(sh), read + n_ow
            x0, x1 = first_inside(left - kx * dw, sw), end_inside(left - kx * dw, sw, w, ow)
            for y in range(h):
                to, read = np.uint64(y * w + x0 * sw + kx * dw - left), np.uint64((top + y) * ow + x0)
                for i in range(np.uint64(max(0, x1 - x0))):
                    image[to + i * step] += frame[read + i]
