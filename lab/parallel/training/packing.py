"""A training as bytes that travel to the ranks, and back into a training there; what cannot travel is named."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar, overload

from lab.errors import ArgumentError
from lab.parallel.transport.sending import dumps
from lab.training.trainer import Training

T = TypeVar("T", bound=Training)


def packed(training: Training) -> bytes:
    """A training that has not begun, to be sent; what its optimiser has learned before goes with it.

    Raises:
        ArgumentError: a part of it cannot be sent; names the part.
    """
    try:
        return dumps(_parts(training))
    except Exception as error:
        for name, part in _parts(training).items():
            if (why := _unsendable(part)) is not None:
                raise ArgumentError(
                    f"the {name} cannot be sent to workers",
                    given=why,
                    hint="open files, locks and connections stay at home: make them in forward"
                    if name == "model"
                    else "make what it holds on the workers",
                ) from error
        raise


@overload
def unpacked(payload: bytes) -> Training: ...
@overload
def unpacked(payload: bytes, kind: type[T]) -> T: ...
def unpacked(payload: bytes, kind: type[Training] = Training) -> Training:
    """The copy of the training on a rank; `kind` is what it shall be there."""
    return kind(**pickle.loads(payload))  # noqa: S301 -- it came over the cluster's own connection


def rehearsed(payload: bytes, *_: object) -> None:
    """On a spare: import what the model, its data and its optimiser are made of, and let them go."""
    unpacked(payload)


def _parts(training: Training) -> dict[str, Any]:
    names = ("model", "loader", "validation", "loss", "optimizer", "n_epochs", "measure_every", "snapshots",
             "accumulation", "precision")  # fmt: skip
    return {name: getattr(training, name) for name in names}


def _unsendable(part: object) -> str | None:
    try:
        dumps(part)
    except Exception as error:  # noqa: BLE001 -- it is told
        return f"{type(error).__name__}: {error}"
    return None
