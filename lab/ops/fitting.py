"""What fits a convolution: which arrays, weights and settings go together, and the windows that they have.

The three ops check the same things from three sides; an error names the function that the user called.
"""

from __future__ import annotations

from typing import Any

from lab.errors import ShapeError
from lab.ops.windows import Windows, grown, per_axis, remembered, windows
from lab.shapes import Shape


def named(word: str, x: Shape) -> str:
    """The function that the user called, or would have."""
    return f"{word}{min(max(len(x) - 2, 1), 2)}d"


def fit_channels(op: str, x: Shape, weight: Shape, axis: int, groups: Any) -> None:
    """Refuse an array whose channels are not those on an axis of the weight: 1 for a convolution, 0 transposed."""
    if len(x) not in (3, 4) or len(x) != len(weight):
        raise ShapeError(
            f"{op} takes (batch, channels, one or two axes) and a weight with as many", given=f"x {x}, weight {weight}",
            hint="one example needs a batch axis of length 1, a grey image one channel: lab.reshape",
        )  # fmt: skip
    (n_groups,) = per_axis(op, "groups", groups, 1)
    channels = weight[1] * n_groups if axis else weight[0]
    if x[1] != channels or weight[0] % n_groups:
        of = f" in each of {n_groups} groups" if n_groups > 1 else ""
        layout = "(out, in / groups, ...)" if axis else "(in, out / groups, ...)"
        raise ShapeError(
            f"{op} has a weight for other channels",
            given=f"x {x} has {x[1]} channels, weight {weight} takes {weight[axis]}{of}",
            hint=f"x is (batch, channels, ...), the weight {layout}; groups divides both numbers of channels",
        )  # fmt: skip


@remembered
def plan_of(x: Shape, weight: Shape, groups: Any, stride: Any, padding: Any, dilation: Any) -> Windows:
    """The windows of `conv`.

    Raises:
        ShapeError, ArgumentError: channels, kernel or settings that do not fit.

    Example:
        >>> plan_of((1, 3, 8, 8), (4, 3, 3, 3), groups=1, stride=1, padding="same", dilation=1).out
        (8, 8)
    """
    op = named("conv", x)
    fit_channels(op, x, weight, 1, groups)
    return windows(op, x[2:], weight[2:], stride, padding, dilation)


@remembered
def plan_back(y: Shape, weight: Shape, size: Any, groups: Any, stride: Any, padding: Any, dilation: Any) -> Windows:
    """The windows of `conv_transpose`, over the result.

    Raises:
        ShapeError, ArgumentError: as of `plan_of`, or a size with another number of windows.

    Example:
        >>> plan_back((1, 4, 3), (4, 2, 3), None, groups=1, stride=2, padding=0, dilation=1).size
        (7,)
    """
    op = named("conv_transpose", y)
    fit_channels(op, y, weight, 0, groups)
    if size is None:
        size = grown(op, y[2:], weight[2:], stride, padding, dilation)
    plan = windows(op, per_axis(op, "size", size, len(y) - 2, 0), weight[2:], stride, padding, dilation)
    if plan.out != y[2:]:
        raise ShapeError(
            f"{op} cannot give this size", given=f"size {plan.size} has {plan.out} windows, y {y}",
            hint="leave size out, or take that of the array that was convolved",
        )  # fmt: skip
    return plan


@remembered
def plan_weight(x: Shape, y: Shape, kernel: Any, groups: Any, stride: Any, padding: Any, dilation: Any) -> Windows:
    """The windows of `conv_weight`.

    Raises:
        ShapeError, ArgumentError: y has not the shape of the result of such a convolution of x.

    Example:
        >>> plan_weight((1, 3, 8), (1, 4, 6), 3, groups=1, stride=1, padding=0, dilation=1).kernel
        (3,)
    """
    if len(x) not in (3, 4) or len(x) != len(y) or x[0] != y[0]:
        raise ShapeError(
            "conv_weight takes two arrays (batch, channels, one or two axes) of one batch", given=f"x {x}, y {y}",
            hint="y is as the result of a convolution of x",
        )  # fmt: skip
    plan = windows("conv_weight", x[2:], kernel, stride, padding, dilation)
    (n_groups,) = per_axis("conv_weight", "groups", groups, 1)
    if plan.out != y[2:] or x[1] % n_groups or y[1] % n_groups:
        raise ShapeError(
            "conv_weight has a y that is no result of such a convolution",
            given=f"x {x} has {plan.out} windows, y {y}, {n_groups} groups",
            hint="y is (batch, channels, windows...); groups divides both numbers of channels",
        )  # fmt: skip
    return plan
