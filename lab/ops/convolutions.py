"""Convolutions as users call them: by the number of axes, with a bias, in the order of torch's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lab.errors import ShapeError
from lab.ops.composite import composite
from lab.ops.convolution import conv, conv_by_entry, conv_transpose, transpose_by_entry
from lab.ops.fitting import fit_channels
from lab.ops.picking import operand
from lab.ops.sample import Sample
from lab.ops.shape import reshape
from lab.ops.windows import grown, wrong_rank


def _biased(op: str, out: Any, bias: Any) -> Any:
    """The result with a number added to each channel."""
    if bias is None:
        return out
    bias = operand(bias)
    if tuple(bias.shape) != (out.shape[1],):
        raise ShapeError(
            f"{op} has one number of the bias for each channel of its result",
            given=f"bias {tuple(bias.shape)}, {out.shape[1]} channels", hint="shape (channels,)",
        )  # fmt: skip
    return out + reshape(bias, shape=(out.shape[1], *(1,) * (out.ndim - 2)))


def _checked(op: str, x: Any, weight: Any, ndim: int) -> tuple[Any, Any]:
    x, weight = operand(x), operand(weight)
    if len(x.shape) != ndim + 2:
        raise wrong_rank(op, tuple(x.shape), ndim)
    return x, weight


def _with_rank(ndim: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """conv1d and conv_transpose1d, or conv2d and conv_transpose2d."""
    shape = ((1, 1, 4), (1, 1, 3, 4))[ndim - 1]
    name, name_back = f"conv{ndim}d", f"conv_transpose{ndim}d"
    axes = ("length", "height, width")[ndim - 1]

    def conv_(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
    ) -> Any:
        x, weight = _checked(name, x, weight, ndim)
        out = conv(x, weight, stride=stride, padding=padding, dilation=dilation, groups=groups)
        return _biased(name, out, bias)

    def conv_transpose_(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: Any = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        x, weight = _checked(name_back, x, weight, ndim)
        fit_channels(name_back, tuple(x.shape), tuple(weight.shape), 0, groups)
        size = grown(
            name_back, tuple(x.shape[2:]), tuple(weight.shape[2:]), stride, padding, dilation, output_padding
        )
        out = conv_transpose(x, weight, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
        return _biased(name_back, out, bias)

    conv_.__name__, conv_transpose_.__name__ = name, name_back
    conv_.__doc__ = (
        f"Convolution as networks have it, the kernel not turned: (n, in, {axes}) and (out, in / groups, kernel...)."
    )
    conv_transpose_.__doc__ = (
        f"The transpose of conv{ndim}d by its image, to larger ones: (n, in, {axes}) and (in, out / groups, kernel...)."
    )
    made = composite(
        samples=[Sample((shape, (1, 1, 2, 3)[: ndim + 2]), {"padding": "same"})],
        error_samples=[
            (((3, 5), (2, 3, 3)), {}, f"{name} takes (batch, channels"),
            ((shape, (2, 1, 9, 9)[: ndim + 2]), {}, f"{name} has a kernel that is larger than its input"),
            ((shape, (2, 1, 2, 2)[: ndim + 2]), {"stride": -1}, f"{name} needs stride"),
            ((shape, (2, 1, 2, 2)[: ndim + 2]), {"bias": [1.0]}, f"{name} has one number of the bias"),
        ],
        reference=conv_by_entry,
    )(conv_)
    made_back = composite(
        samples=[Sample((shape, (1, 1, 2, 3)[: ndim + 2]), {"stride": 2, "padding": 1})],
        error_samples=[
            ((shape, (1, 1, 2, 2)[: ndim + 2]), {"output_padding": 1}, f"{name_back} needs an output_padding below"),
            (((1, 1, 1, 1)[: ndim + 2], (1, 1, 2, 2)[: ndim + 2]), {"padding": 1}, f"{name_back} is left with nothing"),
        ],
        reference=transpose_by_entry,
    )(conv_transpose_)
    return made, made_back


conv1d, conv_transpose1d = _with_rank(1)
conv2d, conv_transpose2d = _with_rank(2)
