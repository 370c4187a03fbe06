"""Where the windows of a convolution or of a pooling lie: from sizes and options to counts, checked once for each.

A signal has one spatial axis and an image two, and all that is said here holds for both.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, NamedTuple, TypeVar, cast

from lab.errors import ArgumentError, LabError, ShapeError
from lab.shapes import Shape

P = TypeVar("P", bound=Callable[..., Any])


class Windows(NamedTuple):
    """The geometry of windows that slide over spatial axes.

    Attributes:
        size: length of each axis.
        kernel, stride, dilation: entries of a window along it, from one window to the next, from one entry to the next.
        before, after: zeros around.
        out: number of windows along each axis.
        numbers: the same for the kernels of `kernels/columns.py`; a signal is an image of one row.

    Example:
        >>> windows("conv2d", (5, 6), (3, 3), 2, 1).out
        (3, 3)
    """

    size: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    after: Shape
    out: Shape
    numbers: Shape


def remembered(plan: P) -> P:
    """The function with its results kept by shapes and settings: a plan is made once for each layer."""
    kept = lru_cache(maxsize=1024, typed=True)(plan)  # True and 1.0 are no whole numbers, but equal to 1

    @wraps(plan)
    def call(*args: Any, **settings: Any) -> Any:
        try:
            return kept(*args, **settings)
        except TypeError:  # a setting that is a list
            return kept(*map(_hashable, args), **{name: _hashable(s) for name, s in settings.items()})

    return cast("P", call)


def windows(op: str, size: Shape, kernel: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Windows:
    """The windows over axes of this size; options as the user gave them, `op` is who is named in an error.

    Args:
        kernel, stride, dilation: a whole number, or one for each axis.
        padding: likewise, or a pair (before, after) for each axis, or "valid" (none), or "same" (as many windows as
            entries; the odd zero is put behind).

    Raises:
        ArgumentError: a setting that is none.
        ShapeError: the window is longer than the axis with its zeros.
    """
    return _windows(op, tuple(size), kernel, stride, padding, dilation)


def _hashable(setting: Any) -> Any:
    return tuple(map(_hashable, setting)) if isinstance(setting, list | tuple) else setting


def per_axis(op: str, name: str, setting: Any, ndim: int, least: int = 1) -> Shape:
    """A setting as a whole number for each axis.

    Example:
        >>> per_axis("conv2d", "stride", 2, 2), per_axis("conv2d", "stride", (1, 2), 2)
        ((2, 2), (1, 2))
    """
    many = tuple(setting) if isinstance(setting, list | tuple) else (setting,) * ndim
    try:
        found = tuple(-1 if isinstance(n, bool) else operator.index(n) for n in many)
    except TypeError:
        found = ()
    if len(found) != ndim or min(found, default=least) < least:
        several = f", or one for each of {ndim} axes: {name}={(least,) * ndim}" if ndim > 1 else ""
        raise ArgumentError(
            f"{op} needs {name} as a whole number of at least {least}", given=f"{name}={setting!r}"[:70],
            hint=f"{name}={least}{several}",
        )  # fmt: skip
    return found


@remembered
def _windows(op: str, size: Shape, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Windows:
    kernel = per_axis(op, "kernel", kernel, len(size))
    stride, dilation = per_axis(op, "stride", stride, len(size)), per_axis(op, "dilation", dilation, len(size))
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    before, after = _padding(op, padding, reach, stride)
    padded = tuple(b + n + a for b, n, a in zip(before, size, after, strict=True))
    if any(p < r for p, r in zip(padded, reach, strict=True)):
        wide = "" if reach == kernel else f", with dilation {reach}"
        zeros = "" if padded == size else f", with padding {padded}"
        raise ShapeError(
            f"{op} has a kernel that is larger than its input", given=f"kernel {kernel}{wide}; input {size}{zeros}",
            hint="a smaller kernel, or more padding",
        )  # fmt: skip
    out = tuple((p - r) // s + 1 for p, r, s in zip(padded, reach, stride, strict=True))
    each: tuple[Shape, ...] = (size, kernel, stride, dilation, before, out)
    if len(size) == 1:
        each = tuple((one, *part) for one, part in zip((1, 1, 1, 1, 0, 1), each, strict=True))
    return Windows(size, kernel, stride, dilation, before, after, out, sum(each, ()))


def _padding(op: str, padding: Any, reach: Shape, stride: Shape) -> tuple[Shape, Shape]:
    """Zeros before and after each axis."""
    if padding == "same":
        if any(s != 1 for s in stride):
            raise ArgumentError(
                f"{op} keeps its size only with stride 1", given=f"padding='same', stride={stride}",
                hint="padding as a number",
            )  # fmt: skip
        return tuple((r - 1) // 2 for r in reach), tuple(r // 2 for r in reach)
    if padding == "valid":
        padding = 0
    if isinstance(padding, str):
        raise ArgumentError(f"{op} does not know this padding", given=f"padding={padding!r}", hint="'same' or 'valid'")
    if isinstance(padding, tuple) and padding and all(isinstance(p, tuple) and len(p) == 2 for p in padding):
        before, after = zip(*padding, strict=True)
        ndim = len(reach)
        return per_axis(op, "padding", before, ndim, 0), per_axis(op, "padding", after, ndim, 0)
    both = per_axis(op, "padding", padding, len(reach), 0)
    return both, both


def grown(op: str, out: Shape, kernel: Shape, stride: Any, padding: Any, dilation: Any, more: Any = 0) -> Shape:
    """The axes over which so many windows slide: what a transposed convolution gives.

    Several lengths have the same number of windows when the stride is above 1; `more` chooses among them.

    Raises:
        ArgumentError: `more` is not below the stride.
        ShapeError: nothing is left once the padding is cut off.

    Example:
        >>> grown("conv_transpose2d", (3, 3), (3, 3), 2, 1, 1), grown("conv_transpose2d", (3, 3), (3, 3), 2, 1, 1, 1)
        ((5, 5), (6, 6))
    """
    ndim = len(out)
    stride, dilation = per_axis(op, "stride", stride, ndim), per_axis(op, "dilation", dilation, ndim)
    more = per_axis(op, "output_padding", more, ndim, 0)
    if any(m >= s for m, s in zip(more, stride, strict=True)):
        raise ArgumentError(
            f"{op} needs an output_padding below its stride", given=f"output_padding {more}, stride {stride}",
            hint="it chooses among the sizes that a convolution of this stride makes equal",
        )  # fmt: skip
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    before, after = _padding(op, _hashable(padding), reach, stride)
    size = tuple(
        (n - 1) * s + r + m - b - a for n, s, r, m, b, a in zip(out, stride, reach, more, before, after, strict=True)
    )
    if min(size) < 1:
        raise ShapeError(
            f"{op} is left with nothing", given=f"input {out}, kernel {kernel}, padding {before}: size {size}",
            hint="less padding",
        )  # fmt: skip
    return size


def wrong_rank(op: str, x: Shape, ndim: int) -> LabError:
    """The refusal of an array that has not (batch, channels) and `ndim` spatial axes."""
    axes = ("length",) if ndim == 1 else ("height", "width")
    return ShapeError(
        f"{op} takes ({', '.join(('batch', 'channels', *axes))})", given=f"shape {x}",
        hint="one example needs a batch axis of length 1, a grey image one channel: lab.reshape",
    )  # fmt: skip


def entries(shape: Shape) -> int:
    """How many entries an array of this shape has.

    Example:
        >>> entries((2, 3)), entries(())
        (6, 1)
    """
    return math.prod(shape)
