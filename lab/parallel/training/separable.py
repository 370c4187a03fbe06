"""Whether a training may be split over examples: tried out on a copy, with a few batches, before anything starts.

A replica sees its shard alone. So the answer to an example must not depend on the others of its batch, the loss must be
a mean over examples, and nothing may be drawn or counted from call to call. Other than by trying, nobody can know: a
model is any Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lab.autograd import Tensor, no_grad
from lab.data import Batch
from lab.errors import UnsupportedError
from lab.nn import Module
from lab.nn.batchnorm import BatchNorm1d
from lab.nn.dropout import Dropout
from lab.parallel.training.layers import NOTHING, Chosen, at_rest
from lab.parallel.training.shards import shard_of
from lab.training.counting import counts_of
from lab.training.evaluate import loss_of
from lab.training.trainer import Training

CLOSE = 1e-3
"""How far a loss may be from the mean of its parts, relatively: rounding is far below, a mistake far above."""

N_TRIED = 5
"""Batches that are tried, from the first to the last of an epoch: a loss may be a mean on some of them only."""


def refuse_what_cannot_be_split(
    training: Training, n_parts: int | None, parts: str = "shards", choice: Chosen = NOTHING
) -> None:
    """Refuse what ranks would do otherwise than one process, since each sees a part of the batch alone.

    Args:
        training: a copy that nobody needs: its model is called.
        n_parts: number of parts, 2 are tried if it is not known.
        parts: what they are called.
        choice: for which layers it is known what they do on ranks.

    Raises:
        UnsupportedError: the model draws random numbers or remembers calls, mixes examples, or the loss is no mean.
    """
    n_batches = len(training.loader)
    for number in sorted({round(i * (n_batches - 1) / (N_TRIED - 1)) for i in range(N_TRIED)}):
        with at_rest(training.model, choice):
            _try(training, number, n_parts, parts)


def _try(training: Training, number: int, n_parts: int | None, parts: str) -> None:
    """Try it out with that batch of the first epoch."""
    batch = next(training.loader.epoch(0, number))
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the training will find and tell them
    with no_grad(), quiet:
        whole, loss = _answer(training, batch)
        before = dict(_memory(training.model))
        again, _ = _answer(training, batch)
        _refuse_memory(training.model, before, can_choose=parts == "shards")
        if not _close(whole, again):
            raise UnsupportedError("ranks would draw other random numbers than one process", given="two answers of "
                                   "the model to the same batch differ", hint='DataParallel(random="per rank") lets '
                                   "dropout layers draw on each rank; other noise: train without `on=`")  # fmt: skip
        counts = counts_of(training.loss, batch.targets)
        shards = [shard_of(i, n_parts or 2, len(batch.inputs), counts) for i in range(n_parts or 2)]
        found = [(shard, *_answer(training, shard.of(batch))) for shard in shards if len(shard)]
    if not _close(whole, np.concatenate([answer for _, answer, _ in found])):
        raise UnsupportedError("the answer to an example must not depend on the others of its batch", given="the model "
                               f"answers otherwise when the batch is cut into {parts}", hint='for batch normalisation, '
                               'DataParallel(batch_norm="synchronized") does what one process does; else leave out '
                               "`on=`")  # fmt: skip
    mean = sum(shard.share * part for shard, _, part in found if shard.share)
    if np.isfinite(loss) and not _close(np.array(loss), np.array(mean)):
        where = f" (batch {number + 1} of {len(training.loader)})" if number else ""
        raise UnsupportedError("the loss must be a mean over examples to be split over ranks", given=f"{loss:.4g} for "
                               f"the whole batch, {mean:.4g} as the mean of its {len(found)} {parts}{where}",
                               hint="write `.mean()` for `.sum()`; weigh all examples alike, or say what "
                               "each counts: lab.training.Counted(loss, count)")  # fmt: skip


def _answer(training: Training, batch: Batch) -> tuple[Any, float]:
    """What the model says, flat in each example, and the loss; an answer without a row for each example is none."""
    prediction, loss = loss_of(training.model, training.loss, batch)
    rows = prediction.numpy() if isinstance(prediction, Tensor) else np.empty(0)
    n = len(batch.inputs)
    return (rows.reshape(n, -1) if rows.ndim and len(rows) == n else np.empty((n, 0))), loss.item()


def _close(a: Any, b: Any) -> bool:
    """Equal to within rounding; what is no number was so before the split, and training itself will find it."""
    return a.shape == b.shape and np.allclose(a, b, rtol=CLOSE, atol=CLOSE * _size(a), equal_nan=True)


def _size(a: Any) -> float:
    return float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0))


def _refuse_memory(model: object, before: dict[str, bytes], *, can_choose: bool) -> None:
    changed = [name for name, was in _memory(model) if before.get(name) != was]
    if not changed:
        return
    where = changed[0].rpartition(".")[0]
    layer = dict(model.named_modules()).get(where) if isinstance(model, Module) else None
    hint = "each call sees a part of the batch alone: keep counters and running means outside of the model"
    if can_choose and isinstance(layer, BatchNorm1d):
        hint = 'DataParallel(batch_norm="synchronized") does what one process does; "local" as torch does'
    elif can_choose and isinstance(layer, Dropout):
        hint = 'DataParallel(random="per rank") lets each rank draw its own masks'
    raise UnsupportedError("a model that remembers calls cannot be split over ranks",
                           given=f"{changed[0]} changes from call to call", hint=hint)  # fmt: skip


def _memory(model: object) -> Iterator[tuple[str, bytes]]:
    """What a model holds besides its parameters, by name: numbers, arrays, generators."""
    import pickle

    for path, module in model.named_modules() if isinstance(model, Module) else ():
        for name, value in vars(module).items():
            where = f"{path}.{name}" if path else name
            if isinstance(value, Tensor):
                if not value.requires_grad:
                    yield where, value.numpy().tobytes()
            elif isinstance(value, int | float | np.ndarray | np.random.Generator):
                yield where, pickle.dumps(value)
