"""Normalisation: entries with mean 0 and variance 1 over some axes, then scaled and shifted by what is learned.

`standardize` is the one rule that all of them have; `layer_norm` is an op of its own, because most of the time of a
small transformer is spent there and one pass over the rows does it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab import kernels
from lab.errors import ArgumentError, ShapeError
from lab.ops.arithmetic import rsqrt
from lab.ops.composite import composite
from lab.ops.picking import operand
from lab.ops.primitive import primitive
from lab.ops.reduce import floating, is_half, mean, narrowed
from lab.ops.sample import Sample
from lab.ops.shape import cast, fold, reshape
from lab.ops.statistics import var
from lab.shapes import Spec, normal_axes


def _spread(x: Any, axis: Any, epsilon: float) -> Any:
    """1 / sqrt(variance + epsilon), ready to meet the entries."""
    return rsqrt(var(x, axis=axis, keepdims=True) + epsilon)


def _evened(x: Any, axis: Any = -1, epsilon: float = 1e-5) -> Any:
    return (x - np.average(x, axis=axis, keepdims=True)) / np.sqrt(np.std(x, axis=axis, keepdims=True) ** 2 + epsilon)


@primitive(
    samples=[Sample(((2, 3),)), Sample(((2, 3, 4),), {"axis": (0, -1), "epsilon": 0.1})],
    error_samples=[(((3,),), {"axis": 1}, "standardize over an axis")],
    precision="wide",
    reference=_evened,
)
def standardize(x: Any, *, axis: Any = -1, epsilon: float = 1e-5) -> Any:
    """(x - mean) / sqrt(variance + epsilon) over axes: mean 0, and variance 1 but for epsilon."""
    x = floating(x)
    axes = normal_axes(axis, x.ndim, op="standardize")
    full = x.astype(np.float32) if is_half(x) else x
    with np.errstate(invalid="ignore", divide="ignore"):
        return narrowed((full - mean.forward(full, axis=axes, keepdims=True)) * _spread(full, axes, epsilon), x)


def _slope(ct: Any, out: Any, x: Any, axis: Any, epsilon: float) -> Any:
    """What is left of `ct` without its mean and its part along `out`; the Jacobian is symmetric."""
    along = mean(ct * out, axis=axis, keepdims=True)
    return _spread(x, axis, epsilon) * (ct - mean(ct, axis=axis, keepdims=True) - out * along)


@standardize.vjp(text="(ct - mean(ct) - out * mean(ct * out)) / sqrt(variance + epsilon)")
def _standardize_vjp(ct: Any, out: Any, x: Any, *, axis: Any, epsilon: float) -> Any:
    return _slope(ct, out, x, axis, epsilon)


@standardize.jvp
def _standardize_jvp(tangents: tuple[Any, ...], out: Any, x: Any, *, axis: Any, epsilon: float) -> Any:
    return _slope(tangents[0], out, x, axis, epsilon)


@standardize.shaped
def _standardize_shape(x: Spec, *, axis: Any, epsilon: float) -> Spec:
    normal_axes(axis, x.ndim, op="standardize")
    return Spec(x.shape, np.result_type(x.dtype, np.float16))


@standardize.batching
def _standardize_batch(_size: int, _mapped: tuple[bool, ...], x: Any, *, axis: Any, epsilon: float) -> Any:
    axes = normal_axes(axis, x.ndim - 1, op="standardize")
    return standardize(x, axis=tuple(a + 1 for a in axes), epsilon=epsilon)


def _check(x: Any, scale: Any, shift: Any, op: str, axis: int = -1) -> None:
    n = x.shape[axis] if x.shape else None
    if not x.shape or any(tuple(p.shape) != (n,) for p in (scale, shift)):
        raise ShapeError(
            f"{op} needs a scale and a shift for each entry of {'the last axis' if axis == -1 else f'axis {axis}'}",
            given=f"x {tuple(x.shape)}, scale {tuple(scale.shape)}, shift {tuple(shift.shape)}",
            hint="lab.standardize normalises without them",
        )


def _matrix(x: Any) -> Any:
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


def _fits(*xs: Any) -> bool:
    """Whether a kernel takes them: arrays of one float type, not empty."""
    char = xs[0].dtype.char
    return char in kernels.FLOAT_CHARS and all(type(x) is np.ndarray and x.dtype.char == char and x.size for x in xs)


@primitive(
    samples=[Sample(((2, 3), (3,), (3,))), Sample(((2, 2, 4), (4,), (4,)), {"epsilon": 0.1})],
    error_samples=[(((2, 3), (2,), (3,)), {}, "layer_norm needs a scale and a shift for each entry"),
                   (((), (), ()), {}, "layer_norm needs a scale and a shift for each entry")],
    precision="wide",
    reference=lambda x, scale, shift, epsilon=1e-5: _evened(x, -1, epsilon) * scale + shift,
)  # fmt: skip
def layer_norm(x: Any, scale: Any, shift: Any, *, epsilon: float = 1e-5) -> Any:
    """Rows with mean 0 and variance 1, scaled and shifted (Ba et al., arXiv:1607.06450): (..., n), (n,), (n,)."""
    x, scale, shift = np.asarray(x), np.asarray(scale), np.asarray(shift)
    _check(x, scale, shift, "layer_norm")
    if _fits(x, scale, shift):
        out = np.empty(x.shape, x.dtype)
        kernels.layer_norm(_matrix(x), scale, shift, _matrix(out), epsilon)
        return out
    dtype = np.result_type(x, scale, shift, np.float16)
    wide = [v.astype(np.result_type(v, np.float32)) for v in (x, scale, shift)]
    return (standardize.forward(wide[0], axis=-1, epsilon=epsilon) * wide[1] + wide[2]).astype(dtype)


@layer_norm.vjp(0, text="(c - mean(c) - z * mean(c * z)) / sqrt(variance + epsilon), c = ct * scale, z standardized x")
def _layer_norm_vjp_x(ct: Any, _out: Any, x: Any, scale: Any, _shift: Any, *, epsilon: float) -> Any:
    if _fits(x, scale, ct):
        return _gradients(ct, x, scale, epsilon)[0]
    return _slope(ct * scale, standardize(x, axis=-1, epsilon=epsilon), x, -1, epsilon)


@layer_norm.vjp(1, text="sum of ct * standardized x")
def _layer_norm_vjp_scale(ct: Any, _out: Any, x: Any, scale_like: Any, _shift: Any, *, epsilon: float) -> Any:
    if _fits(x, ct) and x.dtype == scale_like.dtype:
        return _gradients(ct, x, None, epsilon)[1]
    return fold(ct * standardize(x, axis=-1, epsilon=epsilon), tuple(scale_like.shape))


@layer_norm.vjp(2, text="sum of ct")
def _layer_norm_vjp_shift(ct: Any, _out: Any, _x: Any, _scale: Any, shift_like: Any, *, epsilon: float) -> Any:
    return fold(ct, tuple(shift_like.shape))


@layer_norm.together
def _layer_norm_together(ct: Any, _out: Any, x: Any, scale: Any, _shift: Any, *, epsilon: float) -> Any:
    return _gradients(ct, x, scale, epsilon) if _fits(x, scale, ct) else None


def _gradients(ct: Any, x: Any, scale: Any, epsilon: float) -> tuple[Any, Any, Any]:
    """By x (not without a scale), scale and shift, in one go over the rows."""
    n = x.shape[-1]
    slope = np.empty((0, n) if scale is None else x.shape, x.dtype)
    sums = np.empty(n, x.dtype), np.empty(n, x.dtype)
    scale = sums[0] if scale is None else scale
    kernels.layer_norm_gradients(_matrix(x), scale, _matrix(ct), _matrix(slope), *sums, epsilon)
    return slope, *sums


@layer_norm.jvp
def _layer_norm_jvp(
    tangents: tuple[Any, ...], _out: Any, x: Any, scale: Any, shift: Any, *, epsilon: float
) -> Any:
    dx, dscale, dshift = tangents
    even = standardize(x, axis=-1, epsilon=epsilon)
    terms = [] if dx is None else [_slope(dx, even, x, -1, epsilon) * scale]
    terms += [] if dscale is None else [even * dscale]
    terms += [] if dshift is None else [dshift]
    return sum(terms[1:], start=terms[0])


@layer_norm.shaped
def _layer_norm_shape(x: Spec, scale: Spec, shift: Spec, *, epsilon: float) -> Spec:
    _check(x, scale, shift, "layer_norm")
    return Spec(x.shape, np.result_type(x.dtype, scale.dtype, shift.dtype, np.float16))


@layer_norm.batching
def _layer_norm_batch(size: int, mapped: tuple[bool, ...], *operands: Any, epsilon: float) -> Any:
    members = [Spec(tuple(v.shape[m:]), v.dtype) for v, m in zip(operands, mapped, strict=True)]
    _check(members[0], members[1], members[2], "layer_norm")
    x, scale, shift = operands
    if mapped == (True, False, False):
        return layer_norm(x, scale, shift, epsilon=epsilon)
    scale, shift = (reshape(v, shape=(size, *(1,) * (members[0].ndim - 1), v.shape[-1])) if m else v
                    for v, m in zip((scale, shift), mapped[1:], strict=True))  # fmt: skip
    return standardize(x, axis=-1, epsilon=epsilon) * scale + shift


# --- the others, made of these ----------------------------------------------------------------------------------------


def _channels(p: Any, x: Any) -> Any:
    """A number for each channel, ready to meet (n, channels, ...)."""
    return reshape(p, shape=(-1, *(1,) * (x.ndim - 2)))


@composite(
    samples=[Sample(((2, 3), (3,))), Sample(((2, 2, 4), (4,)), {"epsilon": 0.1})],
    error_samples=[(((2, 3), (2,)), {}, "rms_norm needs a scale for each entry of the last axis")],
    reference=lambda x, scale, epsilon=1e-5: x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + epsilon) * scale,
)
def rms_norm(x: Any, scale: Any, epsilon: float = 1e-5) -> Any:
    """Rows divided by the root of their mean square, scaled (Zhang and Sennrich, arXiv:1910.07467): (..., n), (n,)."""
    x, scale = operand(x), operand(scale)
    if not x.ndim or tuple(scale.shape) != tuple(x.shape[-1:]):
        raise ShapeError("rms_norm needs a scale for each entry of the last axis",
                         given=f"x {tuple(x.shape)}, scale {tuple(scale.shape)}",
                         hint="x (..., n), scale (n,)")  # fmt: skip
    return x * rsqrt(mean(x * x, axis=-1, keepdims=True) + epsilon) * scale


@composite(
    samples=[Sample(((2, 6), (6,), (6,)), {"n_groups": 2, "epsilon": 0.1}),
             Sample(((2, 2, 3), (2,), (2,)), {"n_groups": 1})],
    error_samples=[(((2, 3), (3,), (3,)), {"n_groups": 2}, "group_norm needs channels that make equal groups"),
                   (((2, 3), (2,), (2,)), {"n_groups": 3}, "group_norm needs a scale and a shift for each entry"),
                   (((3,), (3,), (3,)), {}, "group_norm takes (n, channels, ...)")],
    reference=lambda x, scale, shift, n_groups=1, epsilon=1e-5: np.stack(
        [_evened(g.reshape(-1), 0, epsilon).reshape(g.shape)
         for row in x for g in np.split(row, n_groups)]
    ).reshape(x.shape) * scale.reshape(-1, *(1,) * (x.ndim - 2)) + shift.reshape(-1, *(1,) * (x.ndim - 2)),
)  # fmt: skip
def group_norm(x: Any, scale: Any, shift: Any, n_groups: int = 1, epsilon: float = 1e-5) -> Any:
    """Each example's channels in groups, each group standardized (Wu and He, arXiv:1803.08494): (n, channels, ...).

    One group is layer normalisation over all channels, as many groups as channels instance normalisation.
    """
    x, scale, shift = _of_channels(x, scale, shift, "group_norm")
    n, channels = x.shape[:2]
    if n_groups not in range(1, channels + 1) or channels % n_groups:
        raise ArgumentError("group_norm needs channels that make equal groups",
                            given=f"{channels} channels, n_groups={n_groups!r}",
                            hint="the number of groups divides that of channels")  # fmt: skip
    per_group = int(np.prod(x.shape[1:], dtype=np.int64)) // int(n_groups)
    groups = standardize(reshape(x, shape=(n, int(n_groups), per_group)), axis=-1, epsilon=epsilon)
    return reshape(groups, shape=tuple(x.shape)) * _channels(scale, x) + _channels(shift, x)


def _of_channels(x: Any, scale: Any, shift: Any, op: str) -> tuple[Any, Any, Any]:
    x, scale, shift = operand(x), operand(scale), operand(shift)
    if x.ndim < 2:
        raise ShapeError(f"{op} takes (n, channels, ...)", given=f"shape {tuple(x.shape)}",
                         hint="x[None] is a batch of one")  # fmt: skip
    _check(x, scale, shift, op, axis=1)
    return x, scale, shift


def _by_columns(x: Any, scale: Any, shift: Any, mean: Any = None, variance: Any = None, epsilon: float = 1e-5) -> Any:
    columns = np.moveaxis(x, 1, -1)
    flat = columns.reshape(-1, columns.shape[-1])
    middle, spread = (flat.mean(0), flat.var(0)) if mean is None else (mean, variance)
    return np.moveaxis((columns - middle) / np.sqrt(spread + epsilon) * scale + shift, -1, 1)


@composite(
    samples=[Sample(((4, 2), (2,), (2,))), Sample(((2, 2, 3), (2,), (2,)), {"epsilon": 0.1}),
             Sample(((3, 2), (2,), (2,)), {"mean": np.array([0.5, -1.0]), "variance": np.array([2.0, 0.5])})],
    error_samples=[(((2, 3), (2,), (2,)), {}, "batch_norm needs a scale and a shift for each entry"),
                   (((3,), (3,), (3,)), {}, "batch_norm takes (n, channels, ...)"),
                   (((2, 3), (3,), (3,)), {"mean": np.ones(3)}, "batch_norm needs both a mean and a variance")],
    reference=_by_columns,
)  # fmt: skip
def batch_norm(
    x: Any, scale: Any, shift: Any, mean: Any = None, variance: Any = None, epsilon: float = 1e-5
) -> Any:
    """Each channel standardized over the batch (Ioffe and Szegedy, arXiv:1502.03167): (n, channels, ...).

    In training without `mean` and `variance`: those of this batch. In use with the running ones, (channels,) each,
    which a module keeps: `running + momentum * (lab.mean(x, axis) - running)`; of the variance usually with ddof=1.
    """
    x, scale, shift = _of_channels(x, scale, shift, "batch_norm")
    if (mean is None) != (variance is None):
        raise ArgumentError("batch_norm needs both a mean and a variance", given="one of them",
                            hint="without both it takes those of the batch")  # fmt: skip
    if mean is None:
        even = standardize(x, axis=(0, *range(2, x.ndim)), epsilon=epsilon)
        return even * _channels(scale, x) + _channels(shift, x)
    mean, variance = (cast(operand(v), dtype=x.dtype) for v in (mean, variance))
    slope = scale * rsqrt(variance + epsilon)
    return x * _channels(slope, x) + _channels(shift - mean * slope, x)
