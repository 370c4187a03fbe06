"""Where a training stands, to the last bit: what is no array as a value, and the arrays as they lie in memory.

With both, another copy of the same training goes on as if it were this one: in another process, or on another day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.nn.module import Module
from lab.precision.scaling import UNSCALED, Scaler
from lab.training.standing import Sound, named_buffers

if TYPE_CHECKING:
    from lab.training.trainer import Training

Arrays = Sequence[npt.NDArray[Any]]


class Footing(NamedTuple):
    """All but the arrays. The order of the examples is not in it: seed and step decide that."""

    step: int
    first_loss: float
    last_loss: float
    accuracy: float
    n_updates: int
    hyperparameters: Mapping[str, float]
    schedule: Callable[[int], float] | None
    bounds: Mapping[str, float]
    broke_at: int
    sound: Sound
    """The state to rewind to; its arrays are never written to."""
    generators: tuple[Any, ...]
    """The state of each random generator of the model."""
    scaler: Scaler = UNSCALED


def footing_of(training: Training) -> Footing:
    """Where it stands, between two steps."""
    optimizer = training.optimizer
    return Footing(
        training.step, training._first_loss, training.last_loss, training.accuracy, optimizer.n_steps,
        dict(optimizer._values), optimizer.schedule, training._bounds, training._broke_at, training._sound,
        tuple(generator.bit_generator.state for generator in generators_of(training)), training.scaler,
    )  # fmt: skip


def generators_of(training: Training) -> list[np.random.Generator]:
    """Those of random layers, in the order of the model."""
    modules = training.model.named_modules() if isinstance(training.model, Module) else ()
    return [part for _, module in modules for part in vars(module).values() if isinstance(part, np.random.Generator)]


def arrays_of(training: Training) -> list[npt.NDArray[Any]]:
    """What steps change: parameters and state of the optimiser, flat, and the buffers of the model; no copies.

    Example:
        >>> from lab.data import Loader
        >>> from lab.nn import mlp
        >>> from lab import ops
        >>> from lab.optim import Adam
        >>> from lab.training.trainer import Training
        >>> model, data = mlp(2, 3, 1, rng=0), (np.zeros((4, 2), "float32"), np.zeros((4, 1), "float32"))
        >>> training = Training(model, Loader(data, 2, rng=0), None, ops.cross_entropy, Adam(model.parameters()),
        ...                     n_epochs=1, measure_every=0)
        >>> [array.shape for array in arrays_of(training)]
        [(13,), (13,), (13,)]
    """
    optimizer = training.optimizer
    flat = [a for g, slots in zip(optimizer.groups, optimizer.slots, strict=True) for a in (g.values, *slots.values())]
    return flat + [tensor.value for _, tensor in named_buffers(training.model)]


def stand_on(training: Training, at: Footing, arrays: Arrays) -> None:
    """Stand where another copy of this training stood; `arrays` are copied."""
    for generator, state in zip(generators_of(training), at.generators, strict=True):
        generator.bit_generator.state = state
    optimizer = training.optimizer
    for group in optimizer.groups:
        group.adopt()
    mine = arrays_of(training)
    n_flat = len(mine) - sum(1 for _ in named_buffers(training.model))
    for own, other in zip(mine[:n_flat], arrays[:n_flat], strict=True):
        own[...] = other
    for group in optimizer.groups:
        group.changed()
    for (_, tensor), other in zip(named_buffers(training.model), arrays[n_flat:], strict=True):
        tensor.value = np.array(other)
    optimizer.n_steps, optimizer.schedule = at.n_updates, at.schedule
    optimizer._values.update(at.hyperparameters)
    training.step, training._first_loss, training.last_loss = at.step, at.first_loss, at.last_loss
    training.accuracy, training._sound = at.accuracy, at.sound
    training._bounds, training._broke_at = dict(at.bounds), at.broke_at
    training.scaler, training.is_resumed = at.scaler, True
    training._batch = None
    # The last step of an epoch leaves none of it: the next step takes the next epoch by itself.
    training._batches = training.loader.epoch(training.epoch, training.step % len(training.loader))
