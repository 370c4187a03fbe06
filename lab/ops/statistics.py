"""Variance, standard deviation and median over axes.

The variance is taken about the mean in two passes with the correction of Chan, Golub and LeVeque (1983): of equal
entries it is exactly 0, and so its gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab import kernels
from lab.errors import ArgumentError, ShapeError
from lab.ops.comparisons import where
from lab.ops.norms import shortest
from lab.ops.primitive import Op, primitive
from lab.ops.products import at_end, put_back
from lab.ops.ranking import sort
from lab.ops.reduce import SAMPLES, _add, as_rows, is_half, mean, reduction, spread, sum_
from lab.ops.sample import Sample
from lab.shapes import Spec, kept, normal_axes, reduced


def _divisor(shape: tuple[int, ...], axis: Any, ddof: float, correction: float | None, op: str) -> tuple[int, float]:
    """How many entries are reduced, and what their squares are divided by.

    Raises:
        ArgumentError: both names of one parameter.
    """
    if correction is not None and ddof:
        raise ArgumentError(
            f"{op} takes ddof or correction", given=f"ddof={ddof}, correction={correction}", hint="they mean the same"
        )
    n = int(np.prod([shape[a] for a in normal_axes(axis, len(shape), op=op)], dtype=np.int64))
    return n, max(n - (ddof if correction is None else correction), 0)


def _centred(x: Any, axes: tuple[int, ...], n: int, out: Any = None) -> Any:
    """X - mean."""
    middle = np.add.reduce(x, axis=axes, keepdims=True)
    return np.subtract(x, np.true_divide(middle, n, out=np.asarray(middle)), out=out)


def _variance(x: Any, axis: Any, keepdims: bool, n: int, divisor: float, op: str) -> Any:
    """The variance of floats, those of float16 in float32."""
    axes = normal_axes(axis, x.ndim, op=op)
    x = x.astype(np.float32) if is_half(x) else x
    if (rows := as_rows(x, axes)) is not None:
        out = np.empty(reduced(x.shape, axis, keepdims), x.dtype)
        kernels.row_variances(rows, out.reshape(-1), divisor)
        return out
    with np.errstate(all="ignore"):
        d = _centred(x, axes, n)
        left = _add(d, axis=axes, keepdims=keepdims)  # what rounding left of the mean
        squares = _add(np.multiply(d, d, out=np.asarray(d)), axis=axes, keepdims=keepdims)
        return np.true_divide(squares - left * left / max(n, 1), divisor)


def _variance_rule(ct: Any, x: Any, axis: Any, n: int, divisor: float, op: str) -> Any:
    """Ct * 2 (x - mean) / divisor, by the same steps on arrays and on what is tracked."""
    with np.errstate(all="ignore"):
        scale = float(np.true_divide(2.0, divisor))
    if type(x) is not np.ndarray or type(ct) is not np.ndarray:
        d = x - mean(x, axis=axis, keepdims=True)
        return spread(ct * scale, x, axis) * (d - mean(d, axis=axis, keepdims=True))
    axes = normal_axes(axis, x.ndim, op=op)
    out = np.empty(x.shape, np.result_type(ct.dtype, np.float32) if is_half(x) else x.dtype)
    with np.errstate(all="ignore"):
        factors = np.asarray(ct.reshape(kept(x.shape, axis)) * scale, out.dtype)
        if (rows := as_rows(x, axes)) is not None:
            kernels.row_deviations(rows, factors.reshape(-1), out.reshape(rows.shape))
        else:
            _centred(x.astype(out.dtype, copy=False), axes, n, out=out)
            _centred(out, axes, n, out=out)
            np.multiply(out, factors, out=out)
    return out.astype(x.dtype, copy=False)


def _steps(x: Any, axis: Any, keepdims: bool, ddof: float, correction: float | None, op: str) -> Any:
    x = np.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    n, divisor = _divisor(x.shape, axis, ddof, correction, op)
    return _variance(x, axis, keepdims, n, divisor, op).astype(x.dtype, copy=False)


@primitive(
    samples=[*SAMPLES[1:4], Sample(((3,),), {"ddof": 1})],
    error_samples=[
        (((3,),), {"axis": 1}, "var over an axis"),
        (((3,),), {"ddof": 1, "correction": 1}, "var takes ddof or correction"),
    ],
    precision="wide",
    reference=lambda x, axis=None, ddof=0, keepdims=False: np.var(x, axis=axis, ddof=ddof, keepdims=keepdims),
    numpy={np.var: None},
    method=True,
)
def var(x: Any, *, axis: Any = None, ddof: float = 0, keepdims: bool = False, correction: Any = None) -> Any:
    """Mean square distance from the mean over axes, divided by n - ddof; nan where nothing is left to divide by."""
    return _steps(x, axis, keepdims, ddof, correction, "var")


@var.vjp(text="ct * 2 (x - mean(x)) / (n - ddof)")
def _var_vjp(ct: Any, _out: Any, x: Any, *, axis: Any, ddof: float, keepdims: bool, correction: Any) -> Any:
    return _variance_rule(ct, x, axis, *_divisor(tuple(x.shape), axis, ddof, correction, "var"), "var")


@var.jvp
def _var_jvp(
    tangents: tuple[Any, ...], _out: Any, x: Any, *, axis: Any, ddof: float, keepdims: bool, correction: Any
) -> Any:
    ones = np.ones(kept(tuple(x.shape), axis), x.dtype)
    slope = _variance_rule(ones, x, axis, *_divisor(tuple(x.shape), axis, ddof, correction, "var"), "var")
    return sum_(slope * tangents[0], axis=axis, keepdims=keepdims)


@primitive(
    samples=[*SAMPLES[1:4], Sample(((3,),), {"ddof": 1})],
    error_samples=[(((3,),), {"axis": 1}, "std over an axis")],
    precision="wide",
    reference=lambda x, axis=None, ddof=0, keepdims=False: np.std(x, axis=axis, ddof=ddof, keepdims=keepdims),
    numpy={np.std: None},
    method=True,
)
def std(x: Any, *, axis: Any = None, ddof: float = 0, keepdims: bool = False, correction: Any = None) -> Any:
    """Root of the variance over axes, divided by n - ddof; of equal entries it is 0 and its gradient is taken as 0."""
    return np.sqrt(_steps(x, axis, keepdims, ddof, correction, "std"))


@std.vjp(text="ct * (x - mean(x)) / ((n - ddof) * out), 0 where out is 0")
def _std_vjp(ct: Any, out: Any, x: Any, *, axis: Any, ddof: float, keepdims: bool, correction: Any) -> Any:
    ct = shortest(ct * 0.5, out)
    return _variance_rule(ct, x, axis, *_divisor(tuple(x.shape), axis, ddof, correction, "std"), "std")


@std.jvp
def _std_jvp(
    tangents: tuple[Any, ...], out: Any, x: Any, *, axis: Any, ddof: float, keepdims: bool, correction: Any
) -> Any:
    t = _var_jvp(tangents, None, x, axis=axis, ddof=ddof, keepdims=keepdims, correction=correction)
    return shortest(t * 0.5, out)


def _some(shape: tuple[int, ...], axis: Any) -> None:
    if not all(shape[a] for a in normal_axes(axis, len(shape), op="median")):
        raise ShapeError(
            "median of no entries", given=f"shape {shape}, axis {axis}", hint="an axis of length 0 has no middle"
        )


@primitive(
    samples=[Sample(((2, 3),)), *SAMPLES[1:4]],
    error_samples=[(((3,),), {"axis": 1}, "median over an axis"), (((0,),), {}, "median of no entries")],
    masks=True,
    reference=lambda x, axis=None, keepdims=False: np.quantile(x, 0.5, axis=axis, keepdims=keepdims),
    numpy={np.median: None},
    method=True,
)
def median(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The middle entry over axes, or the mean of the two in the middle; ties share the gradient equally."""
    x = np.asarray(x)
    _some(x.shape, axis)
    rows, _ = at_end(x, axis, "median")
    n = rows.shape[-1]
    ordered = np.partition(rows, sorted({(n - 1) // 2, n // 2, n - 1}), axis=-1)  # nan comes last
    low, high, top = (ordered[..., k].astype(np.result_type(x, np.float32) if x.dtype.kind == "f" else np.float64)
                      for k in ((n - 1) // 2, n // 2, n - 1))  # fmt: skip
    out = np.where(np.isnan(top), top, low if n % 2 else (low + high) * 0.5)
    return out.reshape(reduced(x.shape, axis, keepdims)).astype(x.dtype if x.dtype.kind == "f" else np.float64)


def _weights(x: Any, axis: Any) -> Any:
    """How much of the median each entry is."""
    rows, order = at_end(x, axis, "median")
    n, last = rows.shape[-1], rows.ndim - 1
    middles, total = sorted({(n - 1) // 2, n // 2}), None
    ordered = np.partition(rows, middles, axis=last) if type(rows) is np.ndarray else sort(rows, axis=last)
    for k in middles:
        middle = slice(k, k + 1)
        hit = rows == ordered[(..., middle)]
        share = hit / sum_(hit * np.ones((), x.dtype), axis=last, keepdims=True)
        total = share if total is None else 0.5 * (total + share)
    return put_back(total, tuple(x.shape), order)


@median.vjp(text="ct to the middle entries, shared between ties")
def _median_vjp(ct: Any, _out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    weights = _weights(x, axis)
    return weights * where(weights > 0, spread(ct, x, axis), np.zeros((), ct.dtype))


@median.jvp
def _median_jvp(tangents: tuple[Any, ...], _out: Any, x: Any, *, axis: Any, keepdims: bool) -> Any:
    weights = _weights(x, axis)
    return sum_(weights * where(weights > 0, tangents[0], np.zeros((), x.dtype)), axis=axis, keepdims=keepdims)


reduction(median, _some)


def _spreads(op: Op) -> None:
    """The rules that variance and deviation share: a reduction's, and a divisor under one name."""
    reduction(op)
    of_reduction = op.shape

    @op.shaped
    def shape(x: Spec, *, ddof: float, correction: Any, **params: Any) -> Spec:
        _divisor((), None, ddof, correction, op.name)
        return of_reduction(x, **params)


for _op in (var, std):
    _spreads(_op)
