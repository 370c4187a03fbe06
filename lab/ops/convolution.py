"""Convolutions of signals and images, and what they turn into when they are differentiated.

A convolution is linear in the image and linear in the kernel. Its gradient by the image is a transposed convolution, by
the kernel a convolution of image and cotangent: three ops, and the rules of each are the other two. So derivatives of
any order are convolutions again (Dumoulin and Visin, arXiv:1603.07285, chapter 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.ops.fitting import plan_back, plan_of, plan_weight
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import reshape, transpose
from lab.ops.sliding import correlate, correlate_weight, meetings, spread_back
from lab.ops.windows import Windows, grown, per_axis, windows
from lab.shapes import Spec


def _halves(f: Callable[..., Any], a: Any, b: Any, plan: Windows, groups: Any) -> Any:
    """F of arrays; of float16 in float32, as all sums."""
    groups = int(groups[0]) if isinstance(groups, tuple | list) else int(groups)
    if np.result_type(a, b).char == "e":
        return f(a.astype(np.float32), b.astype(np.float32), plan, groups).astype(np.float16)
    return f(a, b, plan, groups)


# --- by definition, for the tests --------------------------------------------------------------------------------


def conv_by_entry(x: Any, weight: Any, groups: int = 1, **options: Any) -> Any:
    """`conv` in loops."""
    plan = windows("conv", x.shape[2:], weight.shape[2:], **options)
    out = np.zeros((len(x), len(weight), *plan.out))
    for i, j, k in meetings(plan, len(x), len(weight), x.shape[1], groups):
        out[k] += x[i] * weight[j]
    return out


def transpose_by_entry(y: Any, weight: Any, size: Any = None, groups: int = 1, **options: Any) -> Any:
    """`conv_transpose` in loops."""
    size = grown("conv", y.shape[2:], weight.shape[2:], **{"stride": 1, "padding": 0, "dilation": 1, **options}) \
        if size is None else size  # fmt: skip
    out = np.zeros((len(y), weight.shape[1] * groups, *size))
    plan = windows("conv", size, weight.shape[2:], **options)
    for i, j, k in meetings(plan, len(y), len(weight), out.shape[1], groups):
        out[i] += y[k] * weight[j]
    return out


def _weight_by_entry(x: Any, y: Any, kernel: Any, groups: int = 1, **options: Any) -> Any:
    out = np.zeros((y.shape[1], x.shape[1] // groups, *kernel))
    for i, j, k in meetings(windows("conv", x.shape[2:], kernel, **options), len(x), y.shape[1], x.shape[1], groups):
        out[j] += x[i] * y[k]
    return out


# --- the three ops -----------------------------------------------------------------------------------------------

_OTHER = "has a weight for other channels"


@primitive(
    linear="each",
    precision="narrow",
    samples=[
        Sample(((1, 1, 5), (1, 1, 3))),
        Sample(((2, 4, 5, 4), (2, 2, 3, 2)), {"padding": ((1, 0), (2, 1)), "groups": 2, "dilation": (1, 2)}),
        Sample(((2, 2, 5, 6), (3, 2, 2, 3)), {"stride": (2, 3), "padding": 1}),
    ],
    error_samples=[
        (((1, 3, 5, 5), (2, 2, 3, 3)), {}, f"conv2d {_OTHER}"),
        (((3, 5), (2, 3, 3)), {}, "conv1d takes (batch, channels, one or two axes)"),
    ],
    reference=conv_by_entry,
)
def conv(x: Any, weight: Any, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1) -> Any:
    """Each window of x times each kernel, summed: (n, c, axes...), (o, c / groups, kernel...) -> (n, o, windows...)."""
    return _halves(correlate, x, weight, plan_of(x.shape, weight.shape, groups, stride, padding, dilation), groups)


@primitive(
    linear="each",
    precision="narrow",
    samples=[
        Sample(((1, 1, 3), (1, 1, 3))),
        Sample(((2, 4, 2, 3), (4, 1, 3, 2)), {"stride": 2, "padding": 1, "size": (4, 5), "groups": 2}),
    ],
    error_samples=[
        (((1, 3, 5, 5), (2, 2, 3, 3)), {}, f"conv_transpose2d {_OTHER}"),
        (((1, 2, 5), (2, 2, 3)), {"size": 5}, "conv_transpose1d cannot give this size"),
    ],
    reference=transpose_by_entry,
)
def conv_transpose(
    y: Any, weight: Any, *, size: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
) -> Any:
    """Each entry of y times its kernel, added where its window was: (n, o, windows...) -> (n, c, size...)."""
    plan = plan_back(y.shape, weight.shape, size, groups, stride, padding, dilation)
    return _halves(spread_back, y, weight, plan, groups)


@primitive(
    linear="each",
    precision="narrow",
    samples=[
        Sample(((1, 1, 5), (1, 1, 3)), {"kernel": (3,)}),
        Sample(((2, 2, 4, 5), (2, 4, 2, 3)), {"kernel": (3, 2), "stride": 2, "padding": 1, "groups": 2}),
    ],
    error_samples=[
        (((1, 2, 5), (1, 2, 4)), {"kernel": 3}, "conv_weight has a y that is no result"),
        (((1, 2, 5), (2, 2, 3)), {"kernel": 3}, "conv_weight takes two arrays"),
    ],
    reference=_weight_by_entry,
)
def conv_weight(
    x: Any, y: Any, *, kernel: Any = 1, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
) -> Any:
    """For each kernel entry what it met in x times y, summed: (n, c, axes...), (n, o, windows...) -> a weight."""
    plan = plan_weight(x.shape, y.shape, kernel, groups, stride, padding, dilation)
    return _halves(correlate_weight, x, y, plan, groups)


@conv.vjp(0, text="conv_transpose(ct, weight)")
def _conv_vjp_x(ct: Any, _out: Any, x_like: Any, weight: Any, **options: Any) -> Any:
    return conv_transpose(ct, weight, size=x_like.shape[2:], **options)


@conv.vjp(1, text="conv_weight(x, ct)")
def _conv_vjp_weight(ct: Any, _out: Any, x: Any, weight_like: Any, **options: Any) -> Any:
    return conv_weight(x, ct, kernel=weight_like.shape[2:], **options)


@conv_transpose.vjp(0, text="conv(ct, weight)")
def _transpose_vjp_y(ct: Any, _out: Any, _y: Any, weight: Any, *, size: Any, **options: Any) -> Any:
    return conv(ct, weight, **options)


@conv_transpose.vjp(1, text="conv_weight(ct, y)")
def _transpose_vjp_weight(ct: Any, _out: Any, y: Any, weight_like: Any, *, size: Any, **options: Any) -> Any:
    return conv_weight(ct, y, kernel=weight_like.shape[2:], **options)


@conv_weight.vjp(0, text="conv_transpose(y, ct)")
def _weight_vjp_x(ct: Any, _out: Any, x_like: Any, y: Any, *, kernel: Any, **options: Any) -> Any:
    return conv_transpose(y, ct, size=x_like.shape[2:], **options)


@conv_weight.vjp(1, text="conv(x, ct)")
def _weight_vjp_y(ct: Any, _out: Any, x: Any, _y: Any, *, kernel: Any, **options: Any) -> Any:
    return conv(x, ct, **options)


@conv.shaped
def _conv_shape(x: Spec, weight: Spec, *, groups: Any, **options: Any) -> Spec:
    plan = plan_of(x.shape, weight.shape, groups, **options)
    return Spec((x.shape[0], weight.shape[0], *plan.out), np.result_type(x.dtype, weight.dtype))


@conv_transpose.shaped
def _transpose_shape(y: Spec, weight: Spec, *, size: Any, groups: Any, **options: Any) -> Spec:
    plan = plan_back(y.shape, weight.shape, size, groups, **options)
    channels = weight.shape[1] * per_axis("conv_transpose", "groups", groups, 1)[0]
    return Spec((y.shape[0], channels, *plan.size), np.result_type(y.dtype, weight.dtype))


@conv_weight.shaped
def _weight_shape(x: Spec, y: Spec, *, kernel: Any, groups: Any, **options: Any) -> Spec:
    plan = plan_weight(x.shape, y.shape, kernel, groups, **options)
    channels = x.shape[1] // per_axis("conv_weight", "groups", groups, 1)[0]
    return Spec((y.shape[1], channels, *plan.kernel), np.result_type(x.dtype, y.dtype))


# --- batching: the mapped axis goes to the batch or, where each member has its own kernel, to the channels -----------


def _merged(x: Any, axis: int, groups: int) -> Any:
    """The first axis of x moved into another, inside of its groups: (b, ..., g * c, ...) -> (..., g * b * c, ...)."""
    b, *shape = x.shape
    wide = reshape(x, shape=(b, *shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]))
    order = (*range(1, axis + 2), 0, *range(axis + 2, wide.ndim))
    return reshape(transpose(wide, axes=order), shape=(*shape[:axis], b * shape[axis], *shape[axis + 1 :]))


def _parted(x: Any, axis: int, groups: int, b: int) -> Any:
    """The inverse of `_merged`."""
    shape = x.shape
    wide = reshape(x, shape=(*shape[:axis], groups, b, shape[axis] // (groups * b), *shape[axis + 1 :]))
    order = (axis + 1, *range(axis + 1), *range(axis + 2, wide.ndim))
    return reshape(transpose(wide, axes=order), shape=(b, *shape[:axis], shape[axis] // b, *shape[axis + 1 :]))


def _members(op: Any, mapped: tuple[bool, ...], values: tuple[Any, ...], params: dict[str, Any]) -> Spec:
    """What a member gives; refuses operands that do not fit."""
    specs = (Spec(tuple(v.shape[m:]), np.dtype(v.dtype)) for v, m in zip(values, mapped, strict=True))
    spec: Spec = op.shape(*specs, **params)
    return spec


@conv.batching
def _conv_batch(b: int, mapped: tuple[bool, ...], x: Any, weight: Any, *, groups: Any, **options: Any) -> Any:
    _members(conv, mapped, (x, weight), {"groups": groups, **options})
    return _of_examples(conv, b, mapped, x, weight, 0, groups, options)


@conv_transpose.batching
def _transpose_batch(b: int, mapped: tuple[bool, ...], y: Any, weight: Any, *, groups: Any, **options: Any) -> Any:
    options["size"] = _members(conv_transpose, mapped, (y, weight), {"groups": groups, **options}).shape[2:]
    return _of_examples(conv_transpose, b, mapped, y, weight, 1, groups, options)


def _of_examples(
    op: Any, b: int, mapped: tuple[bool, ...], x: Any, weight: Any, axis: int, groups: Any, options: dict[str, Any]
) -> Any:
    """Conv and conv_transpose for all members at once; `axis` of the weight are the channels of the result."""
    (groups,) = per_axis(op.name, "groups", groups, 1)
    if not mapped[1]:
        out = op(reshape(x, shape=(b * x.shape[1], *x.shape[2:])), weight, groups=groups, **options)
        return reshape(out, shape=(b, x.shape[1], *out.shape[1:]))
    if not mapped[0]:
        return _parted(op(x, _merged(weight, axis, groups if axis == 0 else 1), groups=groups, **options), 1, groups, b)
    return _parted(op(_merged(x, 1, 1), _merged(weight, 0, 1), groups=groups * b, **options), 1, 1, b)


@conv_weight.batching
def _weight_batch(b: int, mapped: tuple[bool, ...], x: Any, y: Any, *, groups: Any, **options: Any) -> Any:
    _members(conv_weight, mapped, (x, y), {"groups": groups, **options})
    (groups,) = per_axis("conv_weight", "groups", groups, 1)
    if not mapped[1]:
        return _parted(conv_weight(_merged(x, 1, groups), y, groups=groups, **options), 1, 1, b)
    if not mapped[0]:
        return _parted(conv_weight(x, _merged(y, 1, groups), groups=groups, **options), 0, groups, b)
    return _parted(conv_weight(_merged(x, 1, 1), _merged(y, 1, 1), groups=groups * b, **options), 0, 1, b)
