"""Convolutions and poolings in plain NumPy, as an exported file brings them along: windows as views, sums as einsum."""

from __future__ import annotations

from typing import Any

import numpy as np


def windows_of(x: Any, kernel: Any, stride: Any, dilation: Any, around: Any, fill: Any) -> Any:
    """All windows of the spatial axes, (n, c, windows..., kernel...); `fill` stands around the array."""
    n = len(kernel)
    x = np.pad(x, [(0, 0), (0, 0), *around], constant_values=fill)
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, 2 + n)))
    steps = (*(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))
    return view[(slice(None), slice(None), *steps)]


def conv(x: Any, weight: Any, stride: Any, dilation: Any, around: Any, groups: int) -> Any:
    """Each window times each kernel, summed."""
    seen = windows_of(x, weight.shape[2:], stride, dilation, around, 0)
    n, axes = weight.ndim - 2, "xyz"[: weight.ndim - 2]
    seen = seen.reshape(len(x), groups, -1, *seen.shape[2:])
    kernels = weight.reshape(groups, -1, *weight.shape[1:])
    inner = "ijk"[:n]
    found = np.einsum(f"bgc{axes}{inner},goc{inner}->bgo{axes}", seen, kernels, optimize=True)
    return found.reshape(len(x), len(weight), *found.shape[3:])


def conv_weight(x: Any, y: Any, kernel: Any, stride: Any, dilation: Any, around: Any, groups: int) -> Any:
    """For each kernel entry what it met in x times y, summed: the gradient of `conv` by its kernel."""
    seen = windows_of(x, kernel, stride, dilation, around, 0)
    n, axes = len(kernel), "xyz"[: len(kernel)]
    seen = seen.reshape(len(x), groups, -1, *seen.shape[2:])
    outs = y.reshape(len(x), groups, -1, *y.shape[2:])
    inner = "ijk"[:n]
    found = np.einsum(f"bgc{axes}{inner},bgo{axes}->goc{inner}", seen, outs, optimize=True)
    return found.reshape(y.shape[1], *found.shape[2:])


def conv_transpose(y: Any, weight: Any, size: Any, stride: Any, dilation: Any, around: Any, groups: int) -> Any:
    """Each entry of y times its kernel, added where its window was: the gradient of `conv` by its operand."""
    n, kernel, out = weight.ndim - 2, weight.shape[2:], y.shape[2:]
    rows = y.reshape(len(y), groups, -1, *out)
    kernels = weight.reshape(groups, -1, *weight.shape[1:])
    full = np.zeros((len(y), groups, weight.shape[1], *(a + s + b for s, (a, b) in zip(size, around, strict=True))),
                    np.result_type(y, weight))  # fmt: skip
    for place in np.ndindex(*kernel):
        spots = tuple(slice(p * d, p * d + s * (m - 1) + 1, s)
                      for p, d, s, m in zip(place, dilation, stride, out, strict=True))  # fmt: skip
        here = kernels[(slice(None), slice(None), slice(None), *place)]
        axes = "xyz"[:n]
        full[(slice(None), slice(None), slice(None), *spots)] += np.einsum(
            f"bgo{axes},goc->bgc{axes}", rows, here, optimize=True
        )
    inner = tuple(slice(a, a + s) for s, (a, _) in zip(size, around, strict=True))
    return full[(slice(None), slice(None), slice(None), *inner)].reshape(len(y), -1, *size)


def flat_windows(x: Any, kernel: Any, stride: Any, around: Any) -> Any:
    """The windows of a pooling, each flattened; the least number stands around."""
    x = np.asarray(x)
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    seen = windows_of(x, kernel, stride, (1,) * len(kernel), around, least)
    return seen.reshape(*seen.shape[: x.ndim], -1)


def max_pool(x: Any, kernel: Any, stride: Any, around: Any) -> Any:
    """The largest entry of each window."""
    return flat_windows(x, kernel, stride, around).max(axis=-1)


def argmax_pool(x: Any, kernel: Any, stride: Any, around: Any) -> Any:
    """Where the largest entry of each window is, its number in the flattened spatial axes."""
    size = np.shape(x)[2:]
    numbers = np.broadcast_to(np.arange(np.prod(size, dtype=np.int64)).reshape(size), np.shape(x))
    shown = windows_of(numbers, kernel, stride, (1,) * len(kernel), around, -1)
    shown = shown.reshape(*shown.shape[: np.ndim(x)], -1)
    seen = flat_windows(x, kernel, stride, around)
    own = np.argmax(shown >= 0, axis=-1)[..., None]  # of a window of nothing but -inf its first own entry
    best = np.argmax(seen, axis=-1)[..., None]
    best = np.where(np.take_along_axis(shown, best, -1) < 0, own, best)
    return np.take_along_axis(shown, best, -1)[..., 0]


def max_pool_back(ct: Any, x: Any, kernel: Any, stride: Any, around: Any) -> Any:
    """Each entry of ct added where its window of x has the largest."""
    places = argmax_pool(x, kernel, stride, around).reshape(-1, ct[0, 0].size)
    out = np.zeros((len(places), x[0, 0].size), ct.dtype)
    np.add.at(out, (np.arange(len(places))[:, None], places), ct.reshape(places.shape))
    return out.reshape(x.shape)
