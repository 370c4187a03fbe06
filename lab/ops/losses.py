"""Losses that compare a prediction with a target entry by entry, or distribution by distribution.

Each is a formula or a few ops, then its mean. Shapes must be equal: broadcasting (n, 1) against (n,) would compare
every pair, and nobody would be told.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.ops.arithmetic import absolute, multiply, square, subtract
from lab.ops.composite import composite
from lab.ops.elementwise import elementwise
from lab.ops.exponentials import xlogy
from lab.ops.nn import check_reduction
from lab.ops.picking import operand
from lab.ops.reduce import mean, sum_
from lab.ops.sample import Sample


def _pair(prediction: Any, targets: Any, op: str) -> tuple[Any, Any]:
    prediction, targets = operand(prediction), operand(targets)
    if tuple(prediction.shape) != tuple(targets.shape):
        hint = "reshape one of them: broadcasting would compare every pair"
        given = f"{tuple(prediction.shape)} and {tuple(targets.shape)}"
        raise ShapeError(f"{op} compares equal shapes", given=given, hint=hint)
    return prediction, targets


def _reduced(losses: Any, reduction: str, op: str) -> Any:
    check_reduction(reduction, op)
    return losses if reduction == "none" else (mean if reduction == "mean" else sum_)(losses)


def _how(name: str) -> Any:
    """NumPy's function for a reduction, for references."""
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[name]


def _faults(op: str) -> list[Any]:
    return [
        (((3, 1), (3,)), {}, f"{op} compares equal shapes"),
        (((3,), (3,)), {"reduction": "average"}, f"{op} has no such reduction"),
    ]


@composite(
    samples=[Sample(((2, 3), (2, 3))), Sample(((3,), (3,)), {"reduction": "none"})],
    error_samples=_faults("mse"),
    reference=lambda x, y, reduction="mean": _how(reduction)((x - y) ** 2),
)
def mse(prediction: Any, targets: Any, reduction: str = "mean") -> Any:
    """The squared differences, their mean over all entries; both of one shape."""
    return _reduced(square(subtract(*_pair(prediction, targets, "mse"))), reduction, "mse")


@composite(
    samples=[Sample(((2, 3), (2, 3)), {"reduction": "sum"}), Sample(((3,), (3,)), {"reduction": "none"})],
    error_samples=_faults("l1"),
    reference=lambda x, y, reduction="mean": _how(reduction)(np.abs(x - y)),
)
def l1(prediction: Any, targets: Any, reduction: str = "mean") -> Any:
    """The absolute differences, their mean over all entries; both of one shape."""
    return _reduced(absolute(subtract(*_pair(prediction, targets, "l1"))), reduction, "l1")


def _of_huber(x: Any, target: Any, delta: float = 1.0) -> Any:
    size = np.abs(x - target)
    return np.where(size <= delta, size**2 / 2, delta * size - delta**2 / 2)


huber_loss = elementwise(
    "huber_loss", "x, target",
    "where(abs(x - target) <= delta, 0.5 * (x - target) * (x - target), delta * (abs(x - target) - 0.5 * delta))",
    ["maximum(minimum(x - target, delta), -delta)", "-maximum(minimum(x - target, delta), -delta)"],
    parameters={"delta": 1.0}, reference=_of_huber,
    doc="Half the squared difference up to delta, from there on as steep as at delta (Huber 1964); entry by entry.",
)  # fmt: skip


@composite(
    samples=[Sample(((2, 3), (2, 3)), {"delta": 0.5}), Sample(((3,), (3,)), {"reduction": "none"})],
    error_samples=[*_faults("huber"), (((3,), (3,)), {"delta": 0}, "huber needs a positive delta")],
    reference=lambda x, y, delta=1.0, reduction="mean": _how(reduction)(_of_huber(x, y, delta)),
)
def huber(prediction: Any, targets: Any, delta: float = 1.0, reduction: str = "mean") -> Any:
    """Half the squared differences, beyond delta only linear (Huber 1964), their mean; both of one shape."""
    if not delta > 0:
        raise ArgumentError("huber needs a positive delta", given=f"delta={delta!r}", hint="where squares turn linear")
    return _reduced(huber_loss(*_pair(prediction, targets, "huber"), delta=delta), reduction, "huber")


def _of_logits(x: Any, target: Any) -> Any:
    return -target * np.log(1 / (1 + np.exp(-x))) - (1 - target) * np.log(1 / (1 + np.exp(x)))


logistic_loss = elementwise(
    "logistic_loss", "x, target", "maximum(x, 0) - x * target + log1p(exp(-abs(x)))", ["sigmoid(x) - target", "-x"],
    domain=((-4.0, 4.0), (0.0, 1.0)), precision="wide",
    reference=_of_logits,
    doc="-log of the probability of the target 0, 1 or between, where 1 has probability sigmoid(x); entry by entry.",
)  # fmt: skip


@composite(
    samples=[Sample(((2, 3), (2, 3)), domain=((-4.0, 4.0), (0.0, 1.0))),
             Sample(((3,), (3,)), {"reduction": "none"}, domain=((-4.0, 4.0), (0.0, 1.0)))],
    error_samples=_faults("bce_with_logits"),
    reference=lambda x, y, reduction="mean": _how(reduction)(_of_logits(x, y)),
)  # fmt: skip
def bce_with_logits(logits: Any, targets: Any, reduction: str = "mean") -> Any:
    """Binary cross-entropy of sigmoid(logits), targets 0 to 1, its mean; no overflow, all digits where it is tiny."""
    return _reduced(logistic_loss(*_pair(logits, targets, "bce_with_logits")), reduction, "bce_with_logits")


@composite(
    samples=[Sample(((2, 3), (2, 3)), domain=((-3.0, 0.0), (0.1, 1.0))),
             Sample(((2, 3), (2, 3)), {"reduction": "none"}, domain=((-3.0, 0.0), (0.1, 1.0)))],
    error_samples=[*_faults("kl"), (((), ()), {}, "kl needs distributions along the last axis")],
    reference=lambda x, p, reduction="mean": _how(reduction)(np.sum(p * (np.log(p) - x), axis=-1)),
)  # fmt: skip
def kl(log_probabilities: Any, targets: Any, reduction: str = "mean") -> Any:
    """Kullback and Leibler's divergence of targets from exp(log_probabilities): sums over the last axis, their mean.

    Where a target is 0 its entry counts 0. The mean is over the distributions, torch's "batchmean".
    """
    log_probabilities, targets = _pair(log_probabilities, targets, "kl")
    if not targets.ndim:
        raise ShapeError("kl needs distributions along the last axis", given="single numbers", hint="(..., classes)")
    return _reduced(sum_(xlogy(targets, targets) - multiply(targets, log_probabilities), axis=-1), reduction, "kl")
