"""Reductions: sum, mean, max, min, logsumexp, softmax over any axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lab import kernels
from lab.errors import ShapeError
from lab.ops.comparisons import where
from lab.ops.exponentials import exp
from lab.ops.primitive import Op, primitive
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, reshape
from lab.shapes import Spec, kept, normal_axes, one_axis, reduced

_add: Callable[..., Any] = np.add.reduce  # NumPy's stubs take a literal keepdims only

SAMPLES = [
    Sample(((2, 3),)), Sample(((2, 3, 4),), {"axis": 1}), Sample(((2, 3, 4),), {"axis": (0, -1)}),
    Sample(((2, 3),), {"axis": 0, "keepdims": True}), Sample(((),)),
]  # fmt: skip


def reduction(op: Op, check: Callable[[tuple[int, ...], Any], None] = lambda _shape, _axis: None) -> None:
    """The shape and batching rules that all reductions share."""

    @op.shaped
    def shape(x: Spec, *, axis: Any, keepdims: bool, **_rest: Any) -> Spec:
        check(x.shape, axis)
        dtype = np.asarray(op.forward(np.ones((1,) * x.ndim, x.dtype))).dtype
        return Spec(reduced(x.shape, axis, keepdims, op=op.name), dtype)

    @op.batching
    def batch(_size: int, _mapped: tuple[bool, ...], x: Any, *, axis: Any, keepdims: bool, **rest: Any) -> Any:
        check(tuple(x.shape[1:]), axis)
        axes = tuple(a + 1 for a in normal_axes(axis, x.ndim - 1, op=op.name))
        return op(x, axis=axes, keepdims=keepdims, **rest)


_FEW = 4096
"""Entries that are written out in less time than NumPy takes to make a broadcast view, and that need no kernel."""


def as_rows(x: Any, axis: Any) -> Any:
    """A matrix whose rows are what is reduced, for a kernel; None where NumPy does as well, or it would be a copy."""
    fits = type(x) is np.ndarray and x.size > _FEW and x.dtype.char in kernels.FLOAT_CHARS
    if not fits or not x.flags.c_contiguous:
        return None
    axes = normal_axes(axis, x.ndim)
    first = x.ndim - len(axes)
    return x.reshape(math.prod(x.shape[:first]), -1) if axes and axes[0] == first else None


def spread(ct: Any, x: Any, axis: Any) -> Any:
    """A cotangent of a reduction put back over the axes that it lost."""
    if isinstance(ct, np.ndarray | np.generic):  # without the checks of two ops: a fifth of the time
        shape = x.shape
        if ct.size != 1 and ct.ndim != len(shape):
            ct = ct.reshape(kept(shape, axis))
        if x.size > _FEW:
            return np.broadcast_to(ct, shape)
        out = np.empty(shape, ct.dtype)
        out[...] = ct
        return out
    return broadcast_to(reshape(ct, shape=kept(x.shape, axis)), shape=x.shape)


@primitive(
    linear="each",
    samples=SAMPLES,
    error_samples=[
        (((3,),), {"axis": -2}, "sum over an axis"),
        (((3,),), {"axis": (0, -1)}, "sum names an axis twice"),
    ],
    precision="wide",
    reference=lambda x, axis=None, keepdims=False: np.sum(x, axis=axis, keepdims=keepdims),
    numpy={np.sum: None},
    method=True,
)
def sum_(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Sum over axes."""
    if axis is not None and not np.ndim(x):
        normal_axes(axis, 0, op="sum")  # NumPy lets axis 0 and -1 of a single number pass
    if is_half(x):
        return narrowed(total(x, axis, keepdims), x)
    return _add(x, axis=tuple(axis) if type(axis) is list else axis, keepdims=keepdims)


def total(x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum, in float32 for float16: there 2,048 + 1 is 2,048, and 65,520 is infinite."""
    axes = tuple(axis) if type(axis) is list else axis
    return _add(x, axis=axes, keepdims=keepdims, dtype=np.float32 if is_half(x) else None)


def narrowed(whole: Any, x: Any) -> Any:
    """A total that was taken in float32, in the dtype of its entries."""
    return whole.astype(np.float16) if is_half(x) else whole


def is_half(x: Any) -> bool:
    """Whether it is an array of float16."""
    return type(x) is np.ndarray and x.dtype.char == "e"  # 40 ns; a comparison of dtypes takes 200


@sum_.vjp(text="ct for every entry")
def _sum_vjp(ct: Any, _out: Any, x_like: Any, *, axis: Any, keepdims: bool) -> Any:
    return spread(ct, x_like, axis)


@primitive(
    linear="each",
    samples=SAMPLES,
    error_samples=[(((3,),), {"axis": 1}, "mean over an axis"), (((),), {"axis": 0}, "mean over an axis")],
    precision="wide",
    reference=lambda x, axis=None, keepdims=False: np.average(x, axis=axis, keepdims=keepdims),
    numpy={np.mean: None},
    method=True,
)
def mean(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Arithmetic mean over axes; of no entries it is nan."""
    if type(x) is np.ndarray and x.dtype.char in "fd" and x.size and x.ndim:
        whole = _add(x, axis=tuple(axis) if type(axis) is list else axis, keepdims=keepdims)
        return whole / (x.size // whole.size)
    n = count(np.shape(x), axis)
    whole = total(x, axis, keepdims)
    with np.errstate(invalid="ignore"):
        return narrowed(
            whole / np.asarray(n, np.result_type(whole, np.float16))
            if np.ndim(whole)
            else np.true_divide(whole, n, dtype=np.result_type(whole, np.float16)),
            x,
        )


def count(shape: tuple[int, ...], axis: Any) -> int:
    """How many entries are reduced to one."""
    return int(np.prod([shape[a] for a in normal_axes(axis, len(shape), op="mean")], dtype=np.int64))


@mean.vjp(text="ct / number of entries, for every entry")
def _mean_vjp(ct: Any, _out: Any, x_like: Any, *, axis: Any, keepdims: bool) -> Any:
    n = x_like.size // ct.size if ct.size else 1
    return spread(ct * (1.0 / max(n, 1)), x_like, axis)


def _extreme(name: str, reduce: Callable[..., Any], numpy: Any, word: str) -> Op:
    """Max or min: the gradient goes to the extreme entries, shared equally between ties."""

    def check(shape: tuple[int, ...], axis: Any) -> None:
        if not all(shape[a] for a in normal_axes(axis, len(shape), op=name)):
            raise ShapeError(
                f"{name} of no entries",
                given=f"shape {shape}, axis {axis}",
                hint="an axis of length 0 has no largest or smallest entry",
            )

    def forward(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        check(np.shape(x), axis)
        return reduce(x, axis=tuple(axis) if type(axis) is list else axis, keepdims=keepdims)

    forward.__name__ = name
    forward.__doc__ = f"{word} entry over axes; ties share the gradient equally."
    op = primitive(
        samples=SAMPLES, masks=True, numpy={numpy: None}, method=True,
        reference=lambda x, axis=None, keepdims=False: numpy(x, axis=axis, keepdims=keepdims),
        error_samples=[(((0, 3),), {"axis": 0}, f"{name} of no entries")],
    )(forward)  # fmt: skip

    @op.vjp(text="ct to the extreme entries, shared between ties")
    def _vjp(ct: Any, out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
        rows = as_rows(x, axis) if type(ct) is np.ndarray and ct.dtype == x.dtype else None
        if rows is not None:
            slope = np.empty(x.shape, x.dtype)
            kernels.row_extremes_gradient(rows, out.reshape(-1), ct.reshape(-1), slope.reshape(rows.shape))
            return slope
        hit = x == spread(out, x, axis)
        shares = sum_(hit * np.ones((), ct.dtype), axis=axis, keepdims=True)
        share = broadcast_to(reshape(ct, shape=kept(x.shape, axis)) / shares, shape=x.shape)
        return where(hit, share, np.zeros((), ct.dtype))

    @op.jvp
    def _jvp(tangents: tuple[Any, ...], out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
        hit = x == spread(out, x, axis)
        share = hit / sum_(hit * np.ones((), x.dtype), axis=axis, keepdims=True)
        return sum_(share * tangents[0], axis=axis, keepdims=keepdims)

    reduction(op, check)
    return op


max_ = _extreme("max", np.maximum.reduce, np.max, "Largest")
min_ = _extreme("min", np.minimum.reduce, np.min, "Smallest")


def floating(x: Any) -> Any:
    """Integers and booleans as the floats that NumPy's exp makes of them."""
    x = np.asarray(x)
    return x if x.dtype.kind == "f" else x.astype(np.result_type(x.dtype, np.float16))


def _shift(x: Any, axis: Any) -> Any:
    """The largest entry along `axis`, 0 where it is infinite: what exp is taken relative to."""
    top = np.maximum.reduce(x, axis=tuple(axis) if type(axis) is list else axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, np.zeros((), np.asarray(x).dtype))


@primitive(
    samples=SAMPLES,
    error_samples=[(((3,),), {"axis": -2}, "logsumexp over an axis")],
    precision="wide",
    reference=lambda x, axis=None, keepdims=False: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
)
def logsumexp(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) over axes, without overflow; of no entries it is -inf."""
    x = floating(x)
    shift = _shift(x, axis)
    with np.errstate(divide="ignore"):
        logs = np.log(total(np.exp(x - shift), axis, True))
    return np.reshape(logs + shift, reduced(x.shape, axis, keepdims)).astype(x.dtype, copy=False)


@logsumexp.vjp(text="ct * softmax(x)")
def _logsumexp_vjp(ct: Any, out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    return spread(ct, x, axis) * exp(x - spread(out, x, axis))


@logsumexp.jvp
def _logsumexp_jvp(tangents: tuple[Any, ...], out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    return sum_(tangents[0] * exp(x - spread(out, x, axis)), axis=axis, keepdims=keepdims)


for _op in (sum_, mean, logsumexp):
    reduction(_op)


@primitive(
    samples=[Sample(((2, 3),)), Sample(((2, 3, 4),), {"axis": 1}), Sample(((4,),), {"axis": 0})],
    error_samples=[(((3,),), {"axis": -2}, "softmax over an axis"), (((),), {}, "softmax over an axis")],
    precision="wide",
    reference=lambda x, axis=-1: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True),
)
def softmax(x: Any, *, axis: int = -1) -> Any:
    """exp(x) divided by its sum along an axis, without overflow."""
    x = floating(x)
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        one_axis(axis, x.ndim, op="softmax")
    if (rows := as_rows(x, axis)) is not None:
        out = np.empty(x.shape, x.dtype)
        kernels.softmax(rows, out.reshape(rows.shape))
        return out
    e = np.exp(x - _shift(x, axis))
    return narrowed(e / total(e, axis, True), x)


@softmax.vjp(text="out * (ct - sum(ct * out))")
def _softmax_vjp(ct: Any, out: Any, _x: Any, *, axis: int) -> Any:
    rows = as_rows(out, axis) if type(ct) is np.ndarray and ct.dtype == out.dtype else None
    if rows is not None:
        slope = np.empty(out.shape, out.dtype)
        kernels.softmax_gradient(rows, ct.reshape(rows.shape), slope.reshape(rows.shape))
        return slope
    return out * (ct - sum_(ct * out, axis=axis, keepdims=True))


@softmax.jvp
def _softmax_jvp(tangents: tuple[Any, ...], out: Any, _x: Any, *, axis: int) -> Any:
    return _softmax_vjp(tangents[0], out, None, axis=axis)  # its Jacobian is symmetric


@primitive(
    samples=[Sample(((2, 3),)), Sample(((2, 3, 4),), {"axis": 1}), Sample(((4,),), {"axis": 0})],
    error_samples=[
        (((3,),), {"axis": 1}, "log_softmax over an axis"),
        (((3,),), {"axis": -2}, "log_softmax over an axis"),
    ],
    precision="wide",
    reference=lambda x, axis=-1: np.log(np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)),
)
def log_softmax(x: Any, *, axis: int = -1) -> Any:
    """log(softmax(x)) along an axis, exact also where the softmax underflows."""
    x = floating(x)
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        one_axis(axis, x.ndim, op="log_softmax")
    shifted = x - _shift(x, axis)
    return narrowed(shifted - np.log(total(np.exp(shifted), axis, True)), x)


@log_softmax.vjp(text="ct - softmax(x) * sum(ct)")
def _log_softmax_vjp(ct: Any, out: Any, _x: Any, *, axis: int) -> Any:
    return ct - exp(out) * sum_(ct, axis=axis, keepdims=True)


@log_softmax.jvp
def _log_softmax_jvp(tangents: tuple[Any, ...], out: Any, _x: Any, *, axis: int) -> Any:
    (t,) = tangents
    return t - sum_(exp(out) * t, axis=axis, keepdims=True)


def _row_rules(op: Op) -> None:
    @op.shaped
    def shape(x: Spec, *, axis: int) -> Spec:
        one_axis(axis, x.ndim, op=op.name)
        return Spec(x.shape, np.result_type(x.dtype, np.float16))

    @op.batching
    def batch(_size: int, _mapped: tuple[bool, ...], x: Any, *, axis: int) -> Any:
        return op(x, axis=one_axis(axis, x.ndim - 1, op=op.name) + 1)


for _op in (softmax, log_softmax):
    _row_rules(_op)
