"""How good a model is on a data set: mean loss, and the share of right answers where there are classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lab import ops
from lab.autograd import Tensor, no_grad, wrap
from lab.data import Dataset, Loader, as_dataset
from lab.nn import Module

Model = Callable[[Tensor], Tensor]
Loss = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Evaluation:
    """Loss and accuracy over a data set.

    Attributes:
        loss: mean over the examples.
        accuracy: share of right answers, 0 to 1; nan where targets are not classes.
    """

    loss: float
    accuracy: float
    n_examples: int


def evaluate(
    model: Model, data: Dataset | Sequence[npt.ArrayLike], *, loss: Loss = ops.cross_entropy, batch_size: int = 1024
) -> Evaluation:
    """Loss and accuracy of `model` on `data`; a Module is in evaluation mode meanwhile. Records nothing on a tape.

    Args:
        loss: `(prediction, targets) -> scalar`, the mean over the examples it is given.

    Raises:
        DataError: data that are no data set.

    Example:
        >>> from lab.data import digits
        >>> from lab.nn import mlp
        >>> found = evaluate(mlp(64, 10, rng=0), digits("test"))
        >>> found.n_examples, 0 <= found.accuracy <= 1
        (360, True)
    """
    dataset = as_dataset(data)
    was_training = isinstance(model, Module) and model.training
    total, n_right = 0.0, 0.0
    if was_training:
        model.eval()  # type: ignore[attr-defined]
    try:
        with no_grad():
            for inputs, targets in Loader(dataset, batch_size, shuffle=False):
                prediction = model(wrap(inputs))
                total += loss(prediction, targets).item() * len(inputs)
                n_right += _n_right(prediction.numpy(), targets)
    finally:
        if was_training:
            model.train()  # type: ignore[attr-defined]
    return Evaluation(total / len(dataset), n_right / len(dataset), len(dataset))


def _n_right(scores: npt.NDArray[Any], targets: npt.NDArray[Any]) -> float:
    """How often the largest score is the target's; nan where that has no meaning."""
    if targets.dtype.kind not in "iu" or scores.shape[:-1] != targets.shape:
        return math.nan
    # A row with nan has no answer, although argmax gives one.
    return float(((scores.argmax(axis=-1) == targets) & np.isfinite(scores).all(axis=-1)).sum())
