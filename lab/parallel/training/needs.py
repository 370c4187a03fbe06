"""What a training needs of each rank's memory: counted where it is certain, tried out on a few examples where not."""

from __future__ import annotations

import numpy as np

from lab.autograd import Tensor
from lab.data import Dataset
from lab.events import bus
from lab.experiments.saved import saved_values
from lab.parallel.cluster.need import Need
from lab.parallel.training.layers import NOTHING, Chosen, at_rest
from lab.training.evaluate import loss_of
from lab.training.footing import arrays_of
from lab.training.trainer import Training

N_TRIED = 8
"""Examples whose forward pass is looked at."""


def need_of(training: Training, sent: int, *, keeps: bool, choice: Chosen = NOTHING) -> Need:
    """The need of each rank.

    Args:
        training: a copy that nobody needs: its model is called.
        sent: bytes of the training as it travels. It is there twice, in the program's arguments and by itself.
        keeps: whether ranks keep states to go on from after a loss: the last two.
        choice: what layers do on ranks; here they do as in use.
    """
    values = sum(group.values.nbytes for group in training.optimizer.groups)
    state = sum(array.nbytes for array in arrays_of(training))
    datasets = [training.loader.dataset] + ([training.validation] if training.validation is not None else [])
    per_example = _per_example(training, choice)
    return Need(state + values, state * (3 if keeps else 1), sum(map(_size, datasets)) + 2 * sent, per_example,
                min(training.loader.batch_size, len(training.loader.dataset)))  # fmt: skip


def _size(data: Dataset) -> int:
    return int(data.inputs.nbytes + data.targets.nbytes)


def _per_example(training: Training, choice: Chosen) -> int:
    """What backward will read of each example; nothing where a loss has no graph, which training itself refuses.

    Nothing is tried while somebody records operations: these would stand among those of the program.
    """
    if bus.operations:
        return 0
    dataset = training.loader.dataset
    batch = dataset.take(training.loader.order(0)[:N_TRIED])
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the training will find and tell them
    with at_rest(training.model, choice), quiet:
        _, loss = loss_of(training.model, training.loss, batch)
    if type(loss) is not Tensor or loss.node is None or not loss.requires_grad:
        return 0
    return saved_values(loss).n_bytes // len(batch.inputs)
