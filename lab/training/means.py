"""The same training with its micro-batches weighed rightly and wrongly: the curves that part, step by step.

No division makes the gradient as many times as large as there are micro-batches, as if the learning rate was. A mean of
means weighs parts alike that count unlike: it follows the gradient of another loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lab.checks import number, whole
from lab.data import Dataset, Loader, as_dataset
from lab.errors import ArgumentError
from lab.events import MeansBegun, MeansStepped, Recording, bus, record
from lab.nn import Module, cross_entropy
from lab.optim import SGD
from lab.training.accumulation import COUNTED, NO_DIVISION, OF_MEANS, Accumulation
from lab.training.evaluate import Loss
from lab.training.trainer import Training
from lab.words import counted


class Mean(NamedTuple):
    """What one training told; fields as of the event MeansStepped."""

    way: str
    step: int
    loss: float


class Means(NamedTuple):
    """What `compare_means` found.

    Attributes:
        rows: one for each way and step. A training whose loss became no finite number ends before that.
        recording: of the experiment, for MeansView.
    """

    rows: tuple[Mean, ...]
    recording: Recording

    def losses(self, way: str) -> list[float]:
        """Of one way, step by step."""
        return [row.loss for row in self.rows if row.way == way]

    def __repr__(self) -> str:
        last = {row.way: row.loss for row in self.rows}
        return f"<losses at the end: {'; '.join(f'{way} {loss:.3g}' for way, loss in last.items())}>"


WHOLE_BATCH, BY_COUNT, MEAN_OF_MEANS, NO_MEAN = "whole batch", "weighed by count", "mean of means", "no division"
FASTER = "learning rate x {}"


def compare_means(
    make: Callable[[], Module], data: Dataset | Sequence[npt.ArrayLike], n_micro: int = 8, *,
    loss: Loss = cross_entropy, batch_size: int = 64, learning_rate: float = 0.1, steps: int = 40,
) -> Means:  # fmt: skip
    """Train the same model on the same batches by plain gradient descent, weighing micro-batches in each way.

    MeansView draws it: whole batches; micro-batches weighed by what they count; the mean of their means; their sum
    without a division, and beside it whole batches at `n_micro` times the learning rate, which is the same where all
    parts count alike.

    Args:
        make: makes the model, alike each time.
        data: a Dataset or a pair (inputs, targets).
        n_micro: micro-batches in a batch.
        loss: a mean over examples, or `Counted`; with it a mean of means goes wrong.

    Raises:
        ArgumentError: a number out of range, or fewer examples than a batch has.

    Example:
        >>> import lab
        >>> train, _ = lab.data.digits()
        >>> found = lab.compare_means(lambda: lab.nn.mlp(64, 16, 10, rng=0), train, 4, steps=5)
        >>> ends = {row.way: round(row.loss, 3) for row in found.rows if row.step == 5}
        >>> ends["whole batch"] == ends["weighed by count"] != ends["no division"]
        True
    """
    n_micro = whole("n_micro", n_micro, least=2, hint="8 micro-batches; with 1 there is nothing to weigh")
    batch_size, steps = whole("batch_size", batch_size, least=1), whole("steps", steps, least=1)
    rate = number("learning_rate", learning_rate, hint="0.1")
    dataset = as_dataset(data)
    if len(dataset) < batch_size:
        raise ArgumentError("there are fewer examples than a batch has", given=f"{counted(len(dataset), 'example')}, "
                            f"batch_size={batch_size}", hint="a smaller batch_size")  # fmt: skip
    ways = {
        WHOLE_BATCH: (rate, Accumulation(1)), BY_COUNT: (rate, Accumulation(n_micro, mean=COUNTED)),
        MEAN_OF_MEANS: (rate, Accumulation(n_micro, mean=OF_MEANS)),
        NO_MEAN: (rate, Accumulation(n_micro, mean=NO_DIVISION)),
        FASTER.format(n_micro): (n_micro * rate, Accumulation(1)),
    }  # fmt: skip
    rows = list[Mean]()
    with record(kinds=(MeansBegun, MeansStepped)) as rec:
        rec.meta["title"] = "micro-batches weighed in several ways"
        bus.emit(MeansBegun(n_micro, batch_size, steps, rate))
        for way, (its_rate, accumulation) in ways.items():
            for step, found in enumerate(_losses(make(), dataset, loss, batch_size, its_rate, accumulation, steps), 1):
                rows.append(Mean(way, step, found))
                bus.emit(MeansStepped(*rows[-1]))
    return Means(tuple(rows), rec)


def _losses(
    model: Module, data: Dataset, loss: Loss, batch_size: int, rate: float, accumulation: Accumulation, steps: int
) -> list[float]:
    """Of each step, up to one that cannot be made since a loss or a gradient is no finite number."""
    loader = Loader(data, batch_size, rng=0)
    training = Training(model, loader, None, loss, SGD(model.parameters(), rate), n_epochs=-(-steps // len(loader)),
                        measure_every=0, accumulation=accumulation)  # fmt: skip
    found = list[float]()
    with np.errstate(over="ignore", invalid="ignore"):  # one that diverges is what is to be seen
        while len(found) < steps and training.advance() is None:
            found.append(training.last_loss)
    return found
