"""Running sums and products along an axis, and differences.

The rule of a running product needs no division: it is a linear recurrence, walked from the end, and so right where
entries are zero, in every order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.ops.arithmetic import subtract
from lab.ops.comparisons import not_equal
from lab.ops.composite import composite
from lab.ops.index import getitem
from lab.ops.primitive import Op, primitive
from lab.ops.reduce import is_half
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, concatenate, reshape
from lab.shapes import Spec, one_axis

SAMPLES = [Sample(((2, 3),)), Sample(((2, 3, 2),), {"axis": 1}), Sample(((4,),), {"axis": -1})]


def along(x: Any, axis: int, part: slice) -> Any:
    """A slice of x along an axis."""
    index = (*(slice(None),) * axis, part)
    return x[index] if type(x) is np.ndarray else getitem(x, index=index)  # 5 us less


def reversed_along(x: Any, axis: int) -> Any:
    """X backwards along an axis."""
    return along(x, axis, slice(None, None, -1))


def before(x: Any, axis: int, first: float) -> Any:
    """X moved on by one along an axis: entry i is x[i - 1], entry 0 is `first`."""
    shape = (*x.shape[:axis], min(1, x.shape[axis]), *x.shape[axis + 1 :])
    return concatenate(np.full(shape, first, x.dtype), along(x, axis, slice(0, max(x.shape[axis] - 1, 0))), axis=axis)


def _flat(x: Any, axis: Any, op: str) -> tuple[Any, int]:
    """Operand and axis; without an axis the flattened operand."""
    if axis is None:
        return reshape(x, shape=(-1,)), 0
    return x, one_axis(axis, x.ndim, op=op)


def _running(op: Op) -> None:
    """The shape and batching rules that running sums and products share."""

    @op.shaped
    def shape(x: Spec, *, axis: Any) -> Spec:
        if axis is not None:
            one_axis(axis, x.ndim, op=op.name)
        return Spec((x.size,) if axis is None else x.shape, np.asarray(op.forward(np.ones(1, x.dtype))).dtype)

    @op.batching
    def batch(size: int, _mapped: tuple[bool, ...], x: Any, *, axis: Any) -> Any:
        if axis is None:
            return op(reshape(x, shape=(size, -1)), axis=1)
        return op(x, axis=one_axis(axis, x.ndim - 1, op=op.name) + 1)


def _accumulated(x: Any, axis: Any, ufunc: Any, op: str) -> Any:
    x = np.asarray(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    dtype = np.float32 if is_half(x) else None  # as in `sum`: in float16 2,048 + 1 is 2,048
    out = getattr(np, ufunc)(x, axis=one_axis(axis, x.ndim, op=op), dtype=dtype)
    return out.astype(np.float16) if is_half(x) else out


@primitive(
    linear="each",
    samples=SAMPLES,
    error_samples=[(((3,),), {"axis": 1}, "cumsum over an axis")],
    precision="wide",
    reference=lambda x, axis=None: np.add.accumulate(np.ravel(x) if axis is None else x, axis=axis or 0),
    numpy={np.cumsum: None},
    method=True,
)
def cumsum(x: Any, *, axis: Any = None) -> Any:
    """Running sum along an axis; without an axis of the flattened array."""
    return _accumulated(x, axis, "cumsum", "cumsum")


@cumsum.vjp(text="running sum of ct from the end")
def _cumsum_vjp(ct: Any, _out: Any, x_like: Any, *, axis: Any) -> Any:
    a = 0 if axis is None else one_axis(axis, len(x_like.shape), op="cumsum")
    found = reversed_along(cumsum(reversed_along(ct, a), axis=a), a)
    return reshape(found, shape=x_like.shape) if axis is None else found


@primitive(
    samples=SAMPLES,
    error_samples=[(((3,),), {"axis": 1}, "cumprod over an axis")],
    precision="wide",
    reference=lambda x, axis=None: np.multiply.accumulate(np.ravel(x) if axis is None else x, axis=axis or 0),
    numpy={np.cumprod: None},
    method=True,
)
def cumprod(x: Any, *, axis: Any = None) -> Any:
    """Running product along an axis; without an axis of the flattened array."""
    return _accumulated(x, axis, "cumprod", "cumprod")


def is_ordinary(out: Any) -> bool:
    """Whether products are neither 0 nor inf and have all their digits, so that division gives the others."""
    size = np.abs(out)
    return bool(((size >= np.finfo(out.dtype).tiny) & (size <= np.finfo(out.dtype).max)).all())


@cumprod.vjp(text="s * product before x, where s = ct + next x * next s")
def _cumprod_vjp(ct: Any, out: Any, x: Any, *, axis: Any) -> Any:
    shape = tuple(x.shape)
    x, a = _flat(x, axis, "cumprod")
    if type(out) is np.ndarray and type(ct) is np.ndarray and is_ordinary(out):
        with np.errstate(over="ignore", invalid="ignore"):
            found = reversed_along(cumsum(reversed_along(ct * out, a), axis=a), a) / x.astype(out.dtype, copy=False)
        if np.isfinite(found).all():  # a quarter of the time
            return found.reshape(shape)
    backwards = before(reversed_along(x, a), a, 0.0)
    sums = reversed_along(linear_recurrence(backwards, reversed_along(ct, a), axis=a), a)
    found = before(out, a, 1.0) * sums
    return reshape(found, shape=shape) if axis is None else found


@cumprod.jvp
def _cumprod_jvp(tangents: tuple[Any, ...], out: Any, x: Any, *, axis: Any) -> Any:
    (t,), a = tangents, 0
    x, a = _flat(x, axis, "cumprod")
    t = reshape(t, shape=(-1,)) if axis is None else t
    return linear_recurrence(x, before(out, a, 1.0) * t, axis=a)


for _op in (cumsum, cumprod):
    _running(_op)


def _stepped(a: Any, b: Any, axis: int) -> Any:
    """`linear_recurrence` by powers, for the tests."""
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    rows = [sum(np.prod(a[j + 1 : i + 1], axis=0) * b[j] for j in range(i + 1)) for i in range(len(b))]
    return np.moveaxis(np.stack(rows), 0, axis)


@primitive(
    samples=[Sample(((2, 3), (2, 3)), {"axis": 1}), Sample(((3, 2), (3, 2)), {"axis": 0})],
    error_samples=[
        (((3,), (2,)), {"axis": 0}, "linear_recurrence needs equal shapes"),
        (((3,), (3,)), {"axis": 1}, "linear_recurrence over an axis"),
    ],
    reference=lambda a, b, axis=-1: _stepped(a, b, axis),
)
def linear_recurrence(a: Any, b: Any, *, axis: int = -1) -> Any:
    """out[i] = a[i] * out[i - 1] + b[i] along an axis, from out[-1] = 0; one step after the other."""
    where = _checked(a, b, axis)
    a, b = np.moveaxis(a, where, 0), np.moveaxis(b, where, 0)
    out = np.array(b, np.result_type(a, b))
    for i in range(1, len(out)):
        out[i] += a[i] * out[i - 1]
    return np.moveaxis(out, 0, where)


def _checked(a: Any, b: Any, axis: int) -> int:
    if tuple(a.shape) != tuple(b.shape):
        raise ShapeError(
            "linear_recurrence needs equal shapes", given=f"{tuple(a.shape)} and {tuple(b.shape)}",
            hint="lab.broadcast_to(a, b.shape)",
        )  # fmt: skip
    return one_axis(axis, len(a.shape), op="linear_recurrence")


def _back(a: Any, ct: Any, axis: int) -> Any:
    """What reaches each step: s[i] = ct[i] + a[i + 1] * s[i + 1]."""
    where = one_axis(axis, ct.ndim, op="linear_recurrence")
    return reversed_along(
        linear_recurrence(before(reversed_along(a, where), where, 0.0), reversed_along(ct, where), axis=where), where
    )


@linear_recurrence.vjp(0, text="s * out before, where s = ct + next a * next s")
def _recurrence_vjp_a(ct: Any, out: Any, a: Any, _b: Any, *, axis: int) -> Any:
    return _back(a, ct, axis) * before(out, one_axis(axis, ct.ndim, op="linear_recurrence"), 0.0)


@linear_recurrence.vjp(1, text="s = ct + next a * next s")
def _recurrence_vjp_b(ct: Any, _out: Any, a: Any, _b: Any, *, axis: int) -> Any:
    return _back(a, ct, axis)


@linear_recurrence.jvp
def _recurrence_jvp(tangents: tuple[Any, ...], out: Any, a: Any, _b: Any, *, axis: int) -> Any:
    ta, tb = tangents
    if ta is None:
        return linear_recurrence(a, tb, axis=axis)
    step = ta * before(out, one_axis(axis, out.ndim, op="linear_recurrence"), 0.0)
    return linear_recurrence(a, step if tb is None else step + tb, axis=axis)


@linear_recurrence.shaped
def _recurrence_shape(a: Spec, b: Spec, *, axis: int) -> Spec:
    _checked(a, b, axis)
    return Spec(a.shape, np.result_type(a.dtype, b.dtype))


@linear_recurrence.batching
def _recurrence_batch(size: int, mapped: tuple[bool, ...], a: Any, b: Any, *, axis: int) -> Any:
    a, b = (v if m else broadcast_to(v, shape=(size, *v.shape)) for v, m in zip((a, b), mapped, strict=True))
    return linear_recurrence(a, b, axis=one_axis(axis, a.ndim - 1, op="linear_recurrence") + 1)


@composite(
    samples=[Sample(((4,),)), Sample(((4, 3),), {"n": 2, "axis": 0})],
    error_samples=[
        (((),), {}, "diff over an axis"),
        (((3,),), {"n": -1}, "diff needs how often"),
    ],
    reference=lambda x, n=1, axis=-1: np.apply_along_axis(
        lambda row: np.convolve(row, [1, -1] if n == 1 else [1, -2, 1], "valid"), axis, x),
    numpy={np.diff: None},
    method=True,
)  # fmt: skip
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """x[i + 1] - x[i] along an axis, n times over; of booleans where they change."""
    x = x if hasattr(x, "ndim") else np.asarray(x)
    where = one_axis(axis, x.ndim, op="diff")
    if not _is_count(n):
        raise ArgumentError("diff needs how often", given=f"n={n!r}", hint="a whole number from 0")
    if n and (prepend is not None or append is not None):
        parts = [_end(e, x, where) for e in (prepend,) if e is not None] + [x]
        x = concatenate(*parts, *(_end(e, x, where) for e in (append,) if e is not None), axis=where)
    minus = not_equal if np.dtype(x.dtype) == np.bool_ else subtract
    for _ in range(n):
        size = x.shape[where]
        x = minus(along(x, where, slice(1, None)), along(x, where, slice(0, max(size - 1, 0))))
    return x


def _is_count(n: Any) -> bool:
    return isinstance(n, int | np.integer) and bool(n >= 0)


def _end(e: Any, x: Any, axis: int) -> Any:
    """What is joined to x before differences are taken: a number stands for a slice of length 1."""
    e = e if hasattr(e, "ndim") else np.asarray(e)
    return e if e.ndim else broadcast_to(e, shape=(*x.shape[:axis], 1, *x.shape[axis + 1 :]))
