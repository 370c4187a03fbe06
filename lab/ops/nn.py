"""Losses of rows with labels as single ops: what would be four nodes is one, with a rule that does not overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lab import kernels
from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.ops.comparisons import where
from lab.ops.primitive import Op, primitive
from lab.ops.reduce import log_softmax, mean, softmax, sum_
from lab.ops.sample import Sample
from lab.ops.shape import reshape
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


REDUCTIONS: tuple[str, ...] = ("mean", "sum", "none")
"""What becomes of the losses of all rows."""


def check_reduction(reduction: Any, op: str) -> None:
    """Refuse what is no reduction.

    Raises:
        ArgumentError: so it is.
    """
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"{op} has no such reduction", given=f"reduction={reduction!r}", hint=", ".join(REDUCTIONS))


def _check(rows: Any, labels: Any, reduction: Any, op: str) -> None:
    check_reduction(reduction, op)
    if len(rows.shape) < 1 or tuple(labels.shape) != tuple(rows.shape[:-1]):
        raise ShapeError(
            f"{op} needs one label for each row of {_WORDS[op]}",
            given=f"{_WORDS[op]} {tuple(rows.shape)}, labels {tuple(labels.shape)}",
            hint=f"{_WORDS[op]} (n, classes), labels (n,) with integers from 0",
        )
    _whole(labels, op)
    if rows.dtype.kind != "f":
        raise DTypeError(f"{op} needs float {_WORDS[op]}", given=str(rows.dtype), hint=f"{_WORDS[op]}.astype(float)")


_WORDS = {"cross_entropy": "logits", "nll": "log_probabilities"}


def _inside(labels: Any, n_classes: int, op: str) -> None:
    if labels.size and (labels.min() < 0 or labels.max() >= n_classes):
        raise ShapeError(
            f"{op} met a label outside the classes",
            given=f"labels {labels.min()} to {labels.max()}, {n_classes} classes",
            hint=f"labels count from 0; the last axis of the {_WORDS[op]} is as long as there are classes",
        )


def _reduced(losses: Any, shape: Any, reduction: str) -> Any:
    """The losses of all rows made what was asked for; float16 in NumPy's own wider accumulator, float32 in float64."""
    if reduction == "none":
        return losses.reshape(shape)
    total = float(np.add.reduce(losses, dtype=np.float64))
    if reduction == "mean":  # as numbers of Python: to let NumPy divide and round them takes ten times as long
        total = total / losses.size if losses.size else math.nan
    return losses.dtype.type(total)


def _shares(ct: Any, labels: Any, reduction: str) -> Any:
    """The cotangent of each row's loss, ready to meet the row."""
    if reduction == "none":
        return reshape(ct, shape=(*ct.shape, 1))
    return ct * (1.0 / max(math.prod(labels.shape), 1)) if reduction == "mean" else ct


def _picked(rows: Any, labels: Any, reduction: str, lead: int) -> Any:
    """Minus the entries of the rows at the labels, reduced over all axes but the first `lead`, in ops."""
    hot = one_hot(labels, n=rows.shape[-1], dtype="bool")
    losses = -sum_(where(hot, rows, np.zeros((), rows.dtype)), axis=-1)
    axes = tuple(range(lead, losses.ndim))
    if reduction == "none":
        return losses
    return (mean if reduction == "mean" else sum_)(losses, axis=axes)


def _rules(op: Op) -> None:
    """The shape rule of a loss of rows and labels."""

    @op.shaped
    def shape(rows: Spec, labels: Spec, *, reduction: str) -> Spec:
        _check(rows, labels, reduction, op.name)
        return Spec(labels.shape if reduction == "none" else (), rows.dtype)


def _check_members(mapped: tuple[bool, ...], operands: tuple[Any, ...], reduction: str, op: str) -> None:
    members = [Spec(tuple(x.shape[m:]), x.dtype) for x, m in zip(operands, mapped, strict=True)]
    _check(members[0], members[1], reduction, op)


@primitive(
    precision="wide",
    samples=[Sample(((4, 5), (4,)), kinds=("f", "i5")), Sample(((5,), ()), kinds=("f", "i5")),
             Sample(((2, 3, 5), (2, 3)), {"reduction": "none"}, kinds=("f", "i5"))],
    error_samples=[(((4, 5), (4,)), {}, "cross_entropy needs integer labels"),
                   (((4, 5), (3,)), {}, "cross_entropy needs one label for each row of logits"),
                   (((4, 5), (4,)), {"reduction": "all"}, "cross_entropy has no such reduction")],
    reference=lambda x, y, reduction="mean": (np.mean if reduction == "mean" else np.asarray)(
        -np.log(np.take_along_axis(np.exp(x) / np.exp(x).sum(-1, keepdims=True), y[..., None], -1))[..., 0]
    ),
)  # fmt: skip
def cross_entropy(logits: Any, labels: Any, *, reduction: Any = "mean") -> Any:
    """-log softmax(logits) at the labels, its mean over the rows: (..., classes) and integers (...) -> ()."""
    labels = np.asarray(labels)
    _check(logits, labels, reduction, "cross_entropy")
    if logits.dtype.char not in kernels.FLOAT_CHARS:
        rows = log_softmax.forward(logits.reshape(-1, logits.shape[-1]), axis=-1)
        _inside(labels, logits.shape[-1], "cross_entropy")
        return _reduced(-rows[np.arange(labels.size), labels.reshape(-1)], labels.shape, reduction)
    return _reduced(_rows(logits, labels), labels.shape, reduction)


def _rows(logits: Any, labels: Any) -> Any:
    """The loss of each row, by the kernel."""
    losses = np.empty(labels.size, logits.dtype)
    if labels.size and kernels.softmax_cross_entropy(_matrix(logits), _vector(labels), losses) >= 0:
        _inside(labels, logits.shape[-1], "cross_entropy")
    return losses


def _matrix(logits: Any) -> Any:
    return logits if logits.ndim == 2 else logits.reshape(-1, logits.shape[-1])


def _vector(labels: Any) -> Any:
    return labels.reshape(-1).astype(np.int64, copy=False)


@cross_entropy.vjp(0, text="ct of the row * (softmax(logits) - one_hot(labels))")
def _cross_entropy_vjp(ct: Any, _out: Any, logits: Any, labels: Any, *, reduction: str) -> Any:
    plain = type(logits) is np.ndarray and isinstance(ct, np.ndarray | np.generic)
    if plain and logits.dtype.char in kernels.FLOAT_CHARS:
        slope = np.empty(logits.shape, logits.dtype)
        cts = np.empty(labels.size, logits.dtype)
        cts[:] = ct.reshape(-1) if reduction == "none" else _shares(ct[()], labels, reduction)
        if labels.size:
            kernels.softmax_cross_entropy_gradient(_matrix(logits), _vector(labels), cts, _matrix(slope))
        return slope  # and no view of it: a gradient that is one would be copied
    return _shares(ct, labels, reduction) * _slope(logits, labels)


def _slope(logits: Any, labels: Any) -> Any:
    """How the loss of each row changes with its logits: softmax - one hot."""
    return softmax(logits, axis=-1) - one_hot(labels, n=logits.shape[-1], dtype=logits.dtype)


@cross_entropy.jvp
def _cross_entropy_jvp(tangents: tuple[Any, ...], _out: Any, logits: Any, labels: Any, *, reduction: str) -> Any:
    rows = sum_(tangents[0] * _slope(logits, labels), axis=-1)
    return rows if reduction == "none" else sum_(_shares(rows, labels, reduction))


@cross_entropy.batching
def _cross_entropy_batch(_size: int, mapped: tuple[bool, ...], logits: Any, labels: Any, *, reduction: str) -> Any:
    _check_members(mapped, (logits, labels), reduction, "cross_entropy")
    return _picked(log_softmax(logits, axis=-1), labels, reduction, 1)


@primitive(
    samples=[Sample(((4, 5), (4,)), kinds=("f", "i5")), Sample(((5,), ()), kinds=("f", "i5")),
             Sample(((2, 3, 5), (2, 3)), {"reduction": "none"}, kinds=("f", "i5"))],
    error_samples=[(((4, 5), (4,)), {}, "nll needs integer labels"),
                   (((4, 5), (3,)), {}, "nll needs one label for each row of log_probabilities")],
    precision="wide",
    reference=lambda x, y, reduction="mean": (np.mean if reduction == "mean" else np.asarray)(
        -np.sum(x * np.eye(x.shape[-1])[y], axis=-1)
    ),
)  # fmt: skip
def nll(log_probabilities: Any, labels: Any, *, reduction: Any = "mean") -> Any:
    """Minus the log-probabilities at the labels, their mean over the rows: (..., classes) and integers (...) -> ()."""
    labels = np.asarray(labels)
    _check(log_probabilities, labels, reduction, "nll")
    _inside(labels, log_probabilities.shape[-1], "nll")
    rows = np.take_along_axis(log_probabilities, labels[..., None], -1)
    return _reduced(-rows.reshape(-1), labels.shape, reduction)


@nll.vjp(0, text="-ct of the row * one_hot(labels)")
def _nll_vjp(ct: Any, _out: Any, log_probabilities_like: Any, labels: Any, *, reduction: str) -> Any:
    hot = one_hot(labels, n=log_probabilities_like.shape[-1], dtype=log_probabilities_like.dtype)
    return -_shares(ct, labels, reduction) * hot


@nll.jvp
def _nll_jvp(tangents: tuple[Any, ...], _out: Any, _rows: Any, labels: Any, *, reduction: str) -> Any:
    return _picked(tangents[0], labels, reduction, 0)


@nll.batching
def _nll_batch(_size: int, mapped: tuple[bool, ...], rows: Any, labels: Any, *, reduction: str) -> Any:
    _check_members(mapped, (rows, labels), reduction, "nll")
    return _picked(rows, labels, reduction, 1)


for _op in (cross_entropy, nll):
    _rules(_op)
