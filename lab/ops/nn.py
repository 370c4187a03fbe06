"""Losses of networks as single ops: what would be four nodes is one, with a rule that does not overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab import kernels
from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.ops.primitive import primitive
from lab.ops.reduce import log_softmax, softmax, sum_
from lab.ops.sample import Sample
from lab.shapes import Spec


def _whole(labels: Any, word: str) -> None:
    if labels.dtype.kind not in "iu":
        raise DTypeError(f"{word} needs integer labels", given=str(labels.dtype), hint="labels.astype(int)")


@primitive(
    samples=[Sample(((4,),), {"n": 5}, kinds=("i5",))], reference=lambda labels, n, dtype="float64": np.eye(n)[labels]
)
def one_hot(labels: Any, *, n: Any = 1, dtype: Any = "float64") -> Any:
    """1 at the place of the label, 0 elsewhere: integers (...) -> (..., n)."""
    labels = np.asarray(labels)
    _whole(labels, "one_hot")
    if not isinstance(n, int | np.integer) or n < 0:
        raise ArgumentError("one_hot needs the number of classes", given=f"n={n!r}", hint="lab.one_hot(labels, n=10)")
    if labels.size and (labels.min() < 0 or labels.max() >= n):
        raise ShapeError(
            "one_hot met a label outside the classes",
            given=f"labels {labels.min()} to {labels.max()}, n={n}",
            hint="labels count from 0 to n - 1",
        )
    return (labels[..., None] == np.arange(n)).astype(dtype)


@one_hot.shaped
def _one_hot_shape(labels: Spec, *, n: int, dtype: Any) -> Spec:
    _whole(labels, "one_hot")
    return Spec((*labels.shape, n), np.dtype(dtype))


@one_hot.batching
def _one_hot_batch(_size: int, _mapped: tuple[bool, ...], labels: Any, *, n: int, dtype: Any) -> Any:
    return one_hot(labels, n=n, dtype=dtype)


def _check(logits: Any, labels: Any) -> None:
    if logits.ndim < 1 or labels.shape != logits.shape[:-1]:
        raise ShapeError(
            "cross_entropy needs one label for each row of logits",
            given=f"logits {logits.shape}, labels {labels.shape}",
            hint="logits (n, classes), labels (n,) with integers from 0",
        )
    _whole(labels, "cross_entropy")
    if logits.dtype.kind != "f":
        raise DTypeError("cross_entropy needs float logits", given=str(logits.dtype), hint="logits.astype(float)")


@primitive(
    precision="wide",
    samples=[Sample(shapes, kinds=("f", "i5")) for shapes in [((4, 5), (4,)), ((5,), ()), ((2, 3, 5), (2, 3))]],
    error_samples=[(((4, 5), (4,)), {}, "cross_entropy needs integer labels"),
                   (((4, 5), (3,)), {}, "cross_entropy needs one label for each row of logits")],
    reference=lambda x, y: -np.mean(
        np.log(np.take_along_axis(np.exp(x) / np.exp(x).sum(-1, keepdims=True), y[..., None], -1))
    ),
)  # fmt: skip
def cross_entropy(logits: Any, labels: Any) -> Any:
    """Mean of -log softmax(logits) at the labels: (..., classes) and integers (...) -> ()."""
    labels = np.asarray(labels)
    _check(logits, labels)
    if logits.dtype.name not in kernels.FLOATS:
        rows = log_softmax.forward(logits.reshape(-1, logits.shape[-1]), axis=-1)
        _inside(labels, logits.shape[-1])
        # NumPy's own accumulator, wider for float16; of its result the dtype is the operand's.
        return -np.mean(rows[np.arange(labels.size), labels.reshape(-1)])
    losses = _rows(logits, labels)
    return np.true_divide(np.add.reduce(losses, dtype=np.float64), labels.size).astype(logits.dtype)


def _inside(labels: Any, n_classes: int) -> None:
    if labels.size and (labels.min() < 0 or labels.max() >= n_classes):
        raise ShapeError(
            "cross_entropy met a label outside the classes",
            given=f"labels {labels.min()} to {labels.max()}, {n_classes} classes",
            hint="labels count from 0; the last axis of the logits is as long as there are classes",
        )


def _rows(logits: Any, labels: Any) -> Any:
    """The loss of each row, by the kernel."""
    losses = np.empty(labels.size, logits.dtype)
    if labels.size and kernels.softmax_cross_entropy(_matrix(logits), _vector(labels), losses) >= 0:
        _inside(labels, logits.shape[-1])
    return losses


def _matrix(logits: Any) -> Any:
    return logits if logits.ndim == 2 else logits.reshape(-1, logits.shape[-1])


def _vector(labels: Any) -> Any:
    return labels.reshape(-1).astype(np.int64, copy=False)


def _slope(logits: Any, labels: Any) -> Any:
    """d(loss)/d(logits): (softmax - one hot) / number of rows."""
    n = max(int(np.prod(labels.shape, dtype=np.int64)), 1)
    return (softmax(logits, axis=-1) - one_hot(labels, n=logits.shape[-1], dtype=logits.dtype)) * (1.0 / n)


@cross_entropy.vjp(0, text="ct * (softmax(logits) - one_hot(labels)) / n")
def _cross_entropy_vjp(ct: Any, _out: Any, logits: Any, labels: Any) -> Any:
    if type(logits) is np.ndarray and logits.dtype.name in kernels.FLOATS and isinstance(ct, np.ndarray | np.generic):
        slope = np.empty(_matrix(logits).shape, logits.dtype)
        cts = np.full(labels.size, ct / max(labels.size, 1), logits.dtype)
        if labels.size:
            kernels.softmax_cross_entropy_gradient(_matrix(logits), _vector(labels), cts, slope)
        return slope.reshape(logits.shape)
    return ct * _slope(logits, labels)


@cross_entropy.jvp
def _cross_entropy_jvp(tangents: tuple[Any, ...], _out: Any, logits: Any, labels: Any) -> Any:
    return sum_(tangents[0] * _slope(logits, labels))


@cross_entropy.shaped
def _cross_entropy_shape(logits: Spec, labels: Spec) -> Spec:
    _check(logits, labels)
    return Spec((), logits.dtype)


@cross_entropy.batching
def _cross_entropy_batch(_size: int, mapped: tuple[bool, ...], logits: Any, labels: Any) -> Any:
    members = [Spec(tuple(x.shape[m:]), x.dtype) for x, m in zip((logits, labels), mapped, strict=True)]
    _check(*members)
    n = max(members[1].size, 1)
    hot = one_hot(labels, n=logits.shape[-1], dtype=logits.dtype)
    scores = log_softmax(logits, axis=-1) * hot  # one of the two is mapped: the product is
    return sum_(scores, axis=tuple(range(1, scores.ndim))) * (-1.0 / n)
