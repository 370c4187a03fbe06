"""Elementwise functions, sums along axes and losses in plain NumPy, as an exported file brings them along.

Their source is copied as it stands, so each needs nothing but `np`, `math`, `Any` and others of `plain`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(np.greater_equal(x, 0), np.ones_like(small), small) / (1 + small)


def erf(x: Any) -> Any:
    """The error function, entry by entry."""
    dtype = np.result_type(x, np.float16)
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(dtype)


def erfc(x: Any) -> Any:
    """1 - erf(x) with all its digits, entry by entry."""
    dtype = np.result_type(x, np.float16)
    return np.vectorize(math.erfc, otypes=[np.float64])(x).astype(dtype)


def xlogy(x: Any, y: Any) -> Any:
    """X * log(y), and 0 where x is 0."""
    dtype = np.result_type(x, y)
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    return x * np.log(np.where((x == 0) & ~np.isnan(y), dtype.type(1), y))


def sinc_slope(x: Any, order: float) -> Any:
    """The derivative of sin(pi x) / (pi x) of a whole order: near 0 by its series, else by recurrence."""
    n = int(order)
    x = np.asarray(x)
    u = np.asarray(x, np.float64) * math.pi
    near = np.abs(u) < n + 1
    far = np.where(near, 1.0, u)
    outside = np.sin(far) / far
    for m in range(1, n + 1):
        outside = (np.sin(far + m * (math.pi / 2)) - m * outside) / far
    inner, first = np.where(near, u, 0.0), (n + 1) // 2
    term = (-1.0) ** first * (inner if n % 2 else np.ones_like(inner))
    series = np.zeros_like(inner)
    for k in range(first, first + 14 + 2 * n):
        series = series + term / (2 * k + 1)
        term = term * (-(inner * inner) / ((2 * k + 1 - n) * (2 * k + 2 - n)))
    return (math.pi**n * np.where(near, series, outside)).astype(np.result_type(x, np.float16))


def floating(x: Any) -> Any:
    """Integers and booleans as the floats that exp makes of them."""
    x = np.asarray(x)
    return x if x.dtype.kind == "f" else x.astype(np.result_type(x, np.float16))


def shift_of(x: Any, axis: Any) -> Any:
    """The largest entries along axes, 0 where they are infinite: exp is taken relative to them."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, np.zeros((), x.dtype))


def logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    """log(sum(exp(x))) without overflow."""
    x = floating(x)
    shift = shift_of(x, axis)
    total = np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift
    return total if keepdims else np.squeeze(total, axis=axis)


def softmax(x: Any, axis: int) -> Any:
    """exp(x) over its sum along an axis."""
    x = floating(x)
    e = np.exp(x - shift_of(x, axis))
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int) -> Any:
    """log(softmax(x)), exact also where the softmax underflows."""
    x = floating(x)
    shifted = x - shift_of(x, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def vector_norm(x: Any, axis: Any, keepdims: bool) -> Any:
    """The root of the sum of squares."""
    x = floating(x)
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


def standardize(x: Any, axis: Any, epsilon: float) -> Any:
    """(x - mean) / sqrt(variance + epsilon)."""
    x = floating(x)
    centred = x - np.mean(x, axis=axis, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=axis, keepdims=True) + epsilon)


def linear_recurrence(a: Any, b: Any, axis: int) -> Any:
    """out[i] = a[i] * out[i - 1] + b[i] along an axis."""
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    out = np.array(b, np.result_type(a, b))
    for i in range(1, len(out)):
        out[i] += a[i] * out[i - 1]
    return np.moveaxis(out, 0, axis)


def argsort(x: Any, axis: Any, descending: bool) -> Any:
    """Where the smallest entry is, the next, and so on; equal entries in their order."""
    x = np.asarray(x)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def sort(x: Any, axis: Any, descending: bool) -> Any:
    """The entries from the smallest to the largest, or back."""
    x = np.sort(x, axis=axis)
    return np.flip(x, 0 if axis is None else axis) if descending else x


def one_hot(labels: Any, n: int, dtype: Any) -> Any:
    """1 at the place of the label, 0 elsewhere."""
    inside(labels, n)
    return (np.asarray(labels)[..., None] == np.arange(n)).astype(dtype)


def inside(labels: Any, n: int) -> None:
    """Refuse a label that is none of n, which NumPy would count from the end."""
    labels = np.asarray(labels)
    if labels.size and (labels.min() < 0 or labels.max() >= n):
        raise IndexError(f"numbers {labels.min()} to {labels.max()}, but they count from 0 to {n - 1}")


def nll(rows: Any, labels: Any, reduction: str) -> Any:
    """Minus the log-probabilities at the labels."""
    rows, labels = np.asarray(rows), np.asarray(labels)
    inside(labels, rows.shape[-1])
    picked = -np.take_along_axis(rows, labels[..., None], -1)[..., 0]
    if reduction == "none":
        return picked
    return picked.sum() if reduction == "sum" else picked.mean()


def cross_entropy(logits: Any, labels: Any, reduction: str) -> Any:
    """-log softmax(logits) at the labels."""
    return nll(log_softmax(logits, -1), labels, reduction)
