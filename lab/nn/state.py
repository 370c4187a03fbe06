"""Whether a saved state fits a model: names, shapes and kinds of values are looked at before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.autograd import Tensor
from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.words import kind_of


def fitting(own: Mapping[str, Tensor], state: Mapping[str, npt.ArrayLike]) -> list[npt.NDArray[Any]]:
    """The values of `state` in the order of a model's `own` tensors, as copies in their dtypes.

    Raises:
        ArgumentError: there is another set of names.
        ShapeError: a value has another shape.
        DTypeError: a value holds no real numbers.
    """
    given: object = state
    if not isinstance(given, Mapping):
        raise ArgumentError("a state is a mapping of names to arrays", given=kind_of(given),
                            hint="what model.state_dict() gave")  # fmt: skip
    if missing := [name for name in own if name not in state]:
        hint = "the state is of another model, or paths have changed"
        raise ArgumentError("the state lacks parameters of the model", given=_some(missing), hint=hint)
    if foreign := [name for name in state if name not in own]:
        hint = f"the model has {_some(list(own))}"
        raise ArgumentError("the state has names that the model does not", given=_some(foreign), hint=hint)
    values = [np.asarray(state[name]) for name in own]
    for (name, p), value in zip(own.items(), values, strict=True):
        if value.shape != p.shape:
            raise ShapeError(f"{name} has another shape in the state", given=f"{value.shape} for {p.shape}",
                             hint="the state is of a model with other sizes")  # fmt: skip
        if value.dtype.kind not in "fiub":
            raise DTypeError(f"{name} holds no real numbers in the state", given=str(value.dtype),
                             hint="values are what model.state_dict() gave")  # fmt: skip
    return [value.astype(p.dtype) for p, value in zip(own.values(), values, strict=True)]


def _some(names: list[str], limit: int = 4) -> str:
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
