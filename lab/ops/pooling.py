"""Pooling: one number for each window of a signal or an image, the largest entry or the mean.

The largest entry is read where it is and its cotangent goes back to that place; the mean is a convolution with equal
weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab import kernels
from lab.errors import ArgumentError, ShapeError
from lab.kernels.pooling import max_pool_gradient_twin
from lab.ops.composite import composite
from lab.ops.convolution import conv
from lab.ops.picking import operand, take
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, cast, reshape, stop_gradient
from lab.ops.windows import Windows, entries, remembered, windows, wrong_rank
from lab.shapes import Shape, Spec


@remembered
def plan_of_pooling(word: str, x: Shape, kernel: Any, stride: Any, padding: Any) -> Windows:
    """The windows of a pooling of an array of this shape.

    Raises:
        ShapeError, ArgumentError: axes or settings that do not fit.

    Example:
        >>> plan_of_pooling("max_pool", (1, 1, 8, 8), 2, None, 0).out
        (4, 4)
    """
    ndim = len(x) - 2
    op = f"{word}{min(max(ndim, 1), 2)}d"
    if ndim not in (1, 2):
        raise wrong_rank(op, x, 1 if ndim < 1 else 2)
    plan = windows(op, x[2:], kernel, kernel if stride is None else stride, padding)
    if plan.before != plan.after or any(2 * b > k for b, k in zip(plan.before, plan.kernel, strict=True)):
        raise ArgumentError(
            f"{op} takes padding of at most half its kernel, the same at both ends",
            given=f"kernel {plan.kernel}, padding {padding!r}", hint="a window must have entries of its own",
        )  # fmt: skip
    return plan


def _images(x: Any) -> Any:
    """An image or a signal in each row."""
    n = x.shape[0] * x.shape[1]
    return x.reshape(n, entries(x.shape[2:]))


def _places_by_entry(x: Any, kernel: Any, stride: Any = None, padding: int = 0) -> Any:
    plan = plan_of_pooling("max_pool", x.shape, kernel, stride, padding)
    out = np.zeros((*x.shape[:2], *plan.out), np.int64)
    numbers = np.arange(entries(plan.size)).reshape(plan.size)
    for place in np.ndindex(out.shape):
        starts = [p * s - b for p, s, b in zip(place[2:], plan.stride, plan.before, strict=True)]
        here = tuple(slice(max(0, a), a + k) for a, k in zip(starts, plan.kernel, strict=True))
        out[place] = numbers[here].reshape(-1)[np.argmax(x[(*place[:2], *here)])]
    return out


def _max_by_entry(x: Any, **options: Any) -> Any:
    places = _places_by_entry(x, **options)
    flat = x.reshape(*x.shape[:2], -1)
    return np.take_along_axis(flat, places.reshape(*x.shape[:2], -1), -1).reshape(places.shape)


_ERRORS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    (((2, 3),), {"kernel": 2}, "max_pool1d takes (batch, channels, length)"),
    (((1, 1, 4),), {"kernel": 5}, "max_pool1d has a kernel that is larger than its input"),
    (((1, 1, 4),), {"kernel": 2, "padding": 2}, "max_pool1d takes padding of at most half its kernel"),
]


@primitive(
    masks=True,
    samples=[
        Sample(((1, 1, 6),), {"kernel": 2}),
        Sample(((2, 2, 5, 6),), {"kernel": (3, 2), "stride": (1, 2), "padding": (1, 0)}),
    ],
    error_samples=_ERRORS,
    reference=_max_by_entry,
)
def max_pool(x: Any, *, kernel: Any = 2, stride: Any = None, padding: Any = 0) -> Any:
    """Largest entry of each window: (n, c, axes...) -> (n, c, windows...); the first of several gets the gradient."""
    plan = plan_of_pooling("max_pool", x.shape, kernel, stride, padding)
    shape, images = (*x.shape[:2], *plan.out), _images(x)
    if not x.size or x.dtype.char not in kernels.FLOAT_CHARS:
        found = np.take_along_axis(images, kernels.places_of_max(images, *plan.numbers), axis=1)
        return found.reshape(shape)
    out = np.empty((len(images), entries(plan.out)), x.dtype)
    kernels.max_pool(images, out, *plan.numbers)
    return out.reshape(shape)


@primitive(
    samples=[Sample(((1, 1, 6),), {"kernel": 2}), Sample(((2, 1, 5, 4),), {"kernel": 3, "stride": 2, "padding": 1})],
    error_samples=_ERRORS,
    reference=_places_by_entry,
)
def argmax_pool(x: Any, *, kernel: Any = 2, stride: Any = None, padding: Any = 0) -> Any:
    """Where the largest entry of each window is, its number in the flattened axes: (n, c, axes...) -> integers."""
    plan = plan_of_pooling("max_pool", x.shape, kernel, stride, padding)
    return kernels.places_of_max(_images(x), *plan.numbers).reshape(*x.shape[:2], *plan.out)


def _sent_back(ct: Any, x: Any, plan: Windows) -> Any:
    """Each entry of ct at the place of the largest entry of its window, zeros elsewhere."""
    slope = np.empty((x.shape[0] * x.shape[1], entries(plan.size)), ct.dtype)
    whole = ct.dtype == x.dtype and x.dtype.char in kernels.FLOAT_CHARS and x.size
    run = kernels.max_pool_gradient if whole else max_pool_gradient_twin
    run(_images(x), _images(ct), slope, *plan.numbers)
    return slope.reshape(x.shape)


def _back_by_entry(ct: Any, x: Any, **options: Any) -> Any:
    places, out = _places_by_entry(x, **options), np.zeros(x.shape)
    flat = out.reshape(*x.shape[:2], -1)
    for place in np.ndindex(places.shape):
        flat[(*place[:2], places[place])] += ct[place]
    return out


@primitive(
    samples=[
        Sample(((1, 1, 3), (1, 1, 6)), {"kernel": 2}, differentiable=(0,)),
        Sample(((2, 1, 3, 2), (2, 1, 5, 4)), {"kernel": 3, "stride": 2, "padding": 1}, differentiable=(0,)),
    ],
    error_samples=[(((1, 1, 2), (1, 1, 6)), {"kernel": 2}, "max_pool_back has a ct that is no result")],
    reference=_back_by_entry,
)
def max_pool_back(ct: Any, x: Any, *, kernel: Any = 2, stride: Any = None, padding: Any = 0) -> Any:
    """Each entry of ct added where its window of x has the largest: what `max_pool` sends back; x gets nothing."""
    return _sent_back(ct, x, _plan_back(ct.shape, x.shape, kernel, stride, padding))


@remembered
def _plan_back(ct: Shape, x: Shape, kernel: Any, stride: Any, padding: Any) -> Windows:
    plan = plan_of_pooling("max_pool", x, kernel, stride, padding)
    if tuple(ct) != (*x[:2], *plan.out):
        raise ShapeError(
            "max_pool_back has a ct that is no result of such a pooling", given=f"ct {tuple(ct)}, x {tuple(x)}",
            hint=f"ct as max_pool(x) is: {(*x[:2], *plan.out)}",
        )  # fmt: skip
    return plan


@max_pool_back.vjp(0, text="the entries of ct at the largest of each window")
def _max_pool_back_vjp(ct: Any, _out: Any, _ct: Any, x: Any, **options: Any) -> Any:
    return _picked(ct, x, options)


@max_pool_back.jvp
def _max_pool_back_jvp(tangents: tuple[Any, ...], _out: Any, _ct: Any, x: Any, **options: Any) -> Any:
    if tangents[0] is None:
        return broadcast_to(np.zeros((), x.dtype), shape=tuple(x.shape))
    return max_pool_back(tangents[0], x, **options)


@max_pool_back.shaped
def _back_shape(ct: Spec, x: Spec, **options: Any) -> Spec:
    _plan_back(ct.shape, x.shape, **options)
    return Spec(x.shape, ct.dtype)


@max_pool_back.batching
def _back_batch(b: int, mapped: tuple[bool, ...], ct: Any, x: Any, **options: Any) -> Any:
    ct, x = (v if m else broadcast_to(v, shape=(b, *v.shape)) for v, m in zip((ct, x), mapped, strict=True))
    _plan_back(tuple(ct.shape[1:]), tuple(x.shape[1:]), **options)
    out = max_pool_back(*(reshape(v, shape=(b * v.shape[1], *v.shape[2:])) for v in (ct, x)), **options)
    return reshape(out, shape=tuple(x.shape))


def _picked(from_: Any, x: Any, options: dict[str, Any]) -> Any:
    """The entries of an array like x where the windows of x have their largest."""
    n, c = x.shape[:2]
    places = argmax_pool(x, **options)
    flat = reshape(from_, shape=(n, c, entries(x.shape[2:])))
    found = take(flat, reshape(places, shape=(n, c, entries(places.shape[2:]))), axis=2, batch=2)
    return reshape(found, shape=tuple(places.shape))


@max_pool.vjp(text="ct added to the largest entry of each window")
def _max_pool_vjp(ct: Any, _out: Any, x: Any, **options: Any) -> Any:
    if type(x) is np.ndarray and isinstance(ct, np.ndarray):
        return _sent_back(ct, x, plan_of_pooling("max_pool", x.shape, **options))
    return max_pool_back(ct, stop_gradient(x), **options)


@max_pool.jvp
def _max_pool_jvp(tangents: tuple[Any, ...], _out: Any, x: Any, **options: Any) -> Any:
    return _picked(tangents[0], x, options)


for _op in (max_pool, argmax_pool):

    @_op.shaped
    def _shape(x: Spec, *, _whole: Any = _op is argmax_pool, **options: Any) -> Spec:
        plan = plan_of_pooling("max_pool", x.shape, **options)
        return Spec((*x.shape[:2], *plan.out), np.dtype(np.int64) if _whole else x.dtype)

    @_op.batching
    def _batch(b: int, _mapped: tuple[bool, ...], x: Any, *, _op: Any = _op, **options: Any) -> Any:
        shape = tuple(x.shape[1:])
        plan_of_pooling("max_pool", shape, **options)
        out = _op(reshape(x, shape=(b * shape[0], *shape[1:])), **options)
        return reshape(out, shape=(b, shape[0], *out.shape[1:]))


# --- with names of their own ----------------------------------------------------------------------------------------


def _mean_by_entry(x: Any, kernel: Any, stride: Any = None, padding: Any = 0) -> Any:
    plan = plan_of_pooling("avg_pool", x.shape, kernel, stride, padding)
    around: Any = np.pad(x, [(0, 0), (0, 0), *zip(plan.before, plan.after, strict=True)])
    out: Any = np.zeros((*x.shape[:2], *plan.out))
    for place in np.ndindex(plan.out):
        starts = [p * s for p, s in zip(place, plan.stride, strict=True)]
        here = tuple(slice(a, a + k) for a, k in zip(starts, plan.kernel, strict=True))
        out[(..., *place)] = np.mean(around[(..., *here)], axis=tuple(range(2, x.ndim)))
    return out


def _with_rank(ndim: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two functions for this number of axes."""

    def checked(op: str, x: Any) -> Any:
        x = operand(x)
        if len(x.shape) != ndim + 2:
            raise wrong_rank(op, tuple(x.shape), ndim)
        return x

    def most(x: Any, kernel: Any = 2, stride: Any = None, padding: Any = 0) -> Any:
        return max_pool(checked(most.__name__, x), kernel=kernel, stride=stride, padding=padding)

    def mean(x: Any, kernel: Any = 2, stride: Any = None, padding: Any = 0) -> Any:
        x = checked(mean.__name__, x)
        x = x if np.dtype(x.dtype).kind == "f" else cast(x, dtype="float64")
        n, c, *size = x.shape
        plan = plan_of_pooling("avg_pool", tuple(x.shape), kernel, stride, padding)
        weight = np.full((1, 1, *plan.kernel), 1.0 / entries(plan.kernel), x.dtype)
        out = conv(reshape(x, shape=(n * c, 1, *size)), weight, stride=plan.stride, padding=padding)
        return reshape(out, shape=(n, c, *plan.out))

    axes = ("length", "height, width")[ndim - 1]
    most.__name__, mean.__name__ = f"max_pool{ndim}d", f"avg_pool{ndim}d"
    most.__doc__ = f"Largest entry of each window: (n, c, {axes}); windows side by side unless stride says otherwise."
    mean.__doc__ = f"Mean of each window, zeros around counted: (n, c, {axes}); a convolution with equal weights."
    shape, wrong = ((1, 2, 4), (1, 1, 3, 4))[ndim - 1], ((2, 4),)
    entered = [
        composite(
            samples=[Sample((shape,), {"kernel": 2, "stride": 1, "padding": 1})],
            error_samples=[
                (wrong, {}, f"{f.__name__} takes (batch, channels"),
                ((shape,), {"kernel": 6}, f"{f.__name__} has a kernel that is larger than its input"),
                ((shape,), {"kernel": 0}, f"{f.__name__} needs kernel as a whole number"),
                ((shape,), {"kernel": 2, "padding": 2}, f"{f.__name__} takes padding of at most half its kernel"),
            ],
            reference=reference,
        )(f)
        for f, reference in ((most, _max_by_entry), (mean, _mean_by_entry))
    ]
    return entered[0], entered[1]


max_pool1d, avg_pool1d = _with_rank(1)
max_pool2d, avg_pool2d = _with_rank(2)
