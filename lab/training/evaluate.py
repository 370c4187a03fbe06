"""How good a model is on a data set: mean loss, and the share of right answers where there are classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lab import ops
from lab.autograd import Tensor, no_grad, wrap
from lab.data import Batch, Dataset, Loader, as_dataset
from lab.errors import ShapeError, UnsupportedError
from lab.nn import Module
from lab.training.counting import counts_of
from lab.training.refusals import refuse_what_cannot_be_evaluated

Model = Callable[[Tensor], Tensor]
Loss = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Evaluation:
    """Loss and accuracy over a data set.

    Attributes:
        loss: mean over the examples, or over what a `Counted` loss counts.
        accuracy: share of right answers, 0 to 1, where an example may have several; nan where targets are not classes.

    Example:
        >>> Evaluation(0.031, 0.975, 360), Evaluation(0.2, math.nan, 50)
        (Evaluation of 360 examples: loss 0.031, accuracy 97.5 %, Evaluation of 50 examples: loss 0.2)
    """

    loss: float
    accuracy: float
    n_examples: int

    def __repr__(self) -> str:
        share = "" if math.isnan(self.accuracy) else f", accuracy {100 * self.accuracy:.1f} %"
        return f"Evaluation of {self.n_examples} examples: loss {self.loss:.4g}{share}"


def loss_of(model: Model, loss: Loss, batch: Batch) -> tuple[Any, Tensor]:
    """What the model says to a batch, and its loss.

    Raises:
        UnsupportedError: the loss is no tensor.
        ShapeError: it is no scalar.
    """
    inputs: object = batch.inputs  # of a function that is transformed they are tracers
    prediction = model(inputs if isinstance(inputs, Tensor) else wrap(batch.inputs))
    found: object = loss(prediction, batch.targets)
    if not isinstance(found, Tensor):
        hint = "compute it from the prediction by operators and lab functions, without float(), .item() or .numpy()"
        raise UnsupportedError("the loss must be a tensor", given=type(found).__name__, hint=hint)
    if found.shape != ():
        hint = "a loss is one number: take its mean, as `((prediction - targets) ** 2).mean()`"
        raise ShapeError("the loss must be a scalar", given=f"shape {found.shape}", hint=hint)
    return prediction, found


def evaluate(
    model: Model, data: Dataset | Sequence[npt.ArrayLike], *, loss: Loss = ops.cross_entropy, batch_size: int = 1024
) -> Evaluation:
    """Loss and accuracy of `model` on `data`; a Module is in evaluation mode meanwhile. Records nothing on a tape.

    Args:
        loss: `(prediction, targets) -> scalar`, the mean over the examples it is given.

    Raises:
        ArgumentError: what is no model or no loss.
        DataError: data that are no data set.
        ShapeError, UnsupportedError: a loss that is no scalar tensor.

    Example:
        >>> from lab.data import digits
        >>> from lab.nn import mlp
        >>> found = evaluate(mlp(64, 10, rng=0), digits("test"))
        >>> found.n_examples, 0 <= found.accuracy <= 1
        (360, True)
    """
    refuse_what_cannot_be_evaluated(model, loss)
    dataset = as_dataset(data)
    was_training = isinstance(model, Module) and model.training
    total, n_counted, n_right, n_targets = 0.0, 0.0, 0.0, 0
    if was_training:
        model.eval()  # type: ignore[attr-defined]
    try:
        with no_grad():
            for batch in Loader(dataset, batch_size, shuffle=False):
                counts = counts_of(loss, batch.targets)
                counted = float(len(batch.inputs) if counts is None else counts.sum())
                with nullcontext() if counted else np.errstate(invalid="ignore", divide="ignore"):  # a mean of nothing
                    prediction, found = loss_of(model, loss, batch)
                total, n_counted = total + (found.item() * counted if counted else 0.0), n_counted + counted
                n_right, n_targets = n_right + _n_right(prediction, batch.targets), n_targets + batch.targets.size
    finally:
        if was_training:
            model.train()  # type: ignore[attr-defined]
    return Evaluation(total / n_counted if n_counted else math.nan, n_right / n_targets, len(dataset))


def _n_right(prediction: object, targets: npt.NDArray[Any]) -> float:
    """How often the largest score is the target's; nan where that has no meaning: no classes, or a single number."""
    if not isinstance(prediction, Tensor) or targets.dtype.kind not in "iu":
        return math.nan
    scores = prediction.numpy()
    if scores.shape[:-1] != targets.shape or scores.ndim == 0 or scores.shape[-1] < 2:
        return math.nan
    # A row with nan has no answer, although argmax gives one.
    return float(((scores.argmax(axis=-1) == targets) & np.isfinite(scores).all(axis=-1)).sum())
