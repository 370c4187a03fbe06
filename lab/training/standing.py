"""Where a training stands between two steps, as a value; and the buffers of its model, which are a part of that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy.typing as npt

from lab.autograd import Tensor
from lab.nn.module import Module
from lab.optim.optimizer import Snapshot
from lab.precision.scaling import UNSCALED, Scaler


class Sound(NamedTuple):
    """A state to go back to: the last end of an epoch at which all was finite, or the beginning."""

    step: int
    accuracy: float
    optimizer: Snapshot
    buffers: Mapping[str, npt.NDArray[Any]] = {}
    """Of the model."""
    scaler: Scaler = UNSCALED


class Standing(NamedTuple):
    """Where a training stands between two steps: all that another copy of it needs to stand there too."""

    step: int
    first_loss: float
    last_loss: float
    accuracy: float
    optimizer: Snapshot
    sound: Sound
    buffers: Mapping[str, npt.NDArray[Any]] = {}
    """Of the model."""
    scaler: Scaler = UNSCALED


def named_buffers(model: object) -> Iterator[tuple[str, Tensor]]:
    """What a model remembers besides its parameters; nothing of a function."""
    return model.named_buffers() if isinstance(model, Module) else iter(())


def buffers_of(model: object) -> dict[str, npt.NDArray[Any]]:
    """Copies of their values."""
    return {name: tensor.value.copy() for name, tensor in named_buffers(model)}


def restore_buffers(model: object, buffers: Mapping[str, npt.NDArray[Any]]) -> None:
    """Give them values that they had."""
    own = dict(named_buffers(model))
    for name, value in buffers.items():
        own[name].value = value.copy()
