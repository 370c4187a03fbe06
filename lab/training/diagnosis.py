"""Where nan or inf came in: the step is done again and recorded, and the first bad value names its operation.

And what is said of a loss that cannot be learned from at all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.autograd import Tensor
from lab.data import Batch
from lab.errors import GradientError
from lab.events import ORIGIN, OpRecorded, ValueSeen, first_nonfinite, record
from lab.events.cells import cell_of
from lab.events.telling import Place


class Origin(NamedTuple):
    """Where it began, and what helps if going back does not: nan in the data is met again."""

    given: str
    cure: str = ""


def origin_of_nonfinite(
    loss_of: Callable[[Batch], Tensor],
    batch: Batch,
    parameters: Iterable[Tensor],
    n_steps: int,
    scale: float = 1.0,
) -> Origin:
    """Where nan or inf begins in the step after `n_steps`, of a loss that is scaled; "" if doing it again shows none.

    Looks at the data, at the parameters, and at each operation's value, then at each gradient. Leaves gradients behind.
    """
    for name, rows in batch._asdict().items():
        n_bad = int((~np.isfinite(rows.reshape(len(rows), -1))).any(axis=1).sum())
        if n_bad:
            given = f"{n_bad} of {len(rows)} examples of the batch hold nan or inf in their {name}"
            cure = f"run.stop(); take them out of the data (np.isfinite({name}) finds them), then fit anew"
            return Origin(given, cure)
    for i, p in enumerate(parameters):
        n_bad = int(p.value.size - np.isfinite(p.value).sum())
        if n_bad:
            given = f"{n_bad} of {p.value.size} entries of parameter {p.name or i} are nan or inf"
            if n_steps:
                return Origin(f"{given}, since an update before")
            return Origin(f"{given}, before the first step", "run.stop(); make the model anew, then fit that one")
    here = ORIGIN.get()
    token = ORIGIN.set(here._replace(run=f"{here.run} (looked into)"))  # no part of the run: no gate holds it
    try:
        with record(detail="statistics", kinds=(OpRecorded, ValueSeen)) as rec:
            (loss_of(batch) * scale).backward()
    finally:
        ORIGIN.reset(token)
    found = first_nonfinite(rec)
    if found is None:
        return Origin("")
    entry = "" if found.n_entries > 1 else " entry"
    rule = "" if found.role == "value" else "the backward rule of "
    return Origin(f"first nan or inf{entry} in {rule}{_told(found.place)}")


def finite(arrays: Iterable[npt.NDArray[Any]]) -> bool:
    """Whether all entries of all arrays are."""
    return all(np.isfinite(array).all() for array in arrays)


def unlearnable() -> GradientError:
    """What to raise for a loss that no gradient leads back from."""
    given = "a loss that no parameter leads to by operations on tensors"
    hint = "in forward and loss, .numpy(), .item(), float() and no_grad() lose the gradient"
    return GradientError("this loss cannot be learned from", given=given, hint=hint)


_BELOW = ("threading", "concurrent", "dask", "distributed")
"""Modules that call what runs a training, here or on a worker: a place in them tells nobody anything."""


def _runs_it(file: str) -> bool:
    """Whether this is a file of what calls the lab, and none of the user's."""
    for home in (getattr(sys.modules.get(name), "__file__", None) for name in _BELOW):
        is_package = home and PurePath(home).stem == "__init__"
        if home and (file == home or (is_package and PurePath(home).parent in PurePath(file).parents)):
            return True
    return False


def _told(place: Place) -> str:
    file = "" if _runs_it(place.file) else place.file  # no line of the user's: all frames are the lab's, and below them
    of = f" of layer {place.module!r}" if place.module else ""
    name = cell_of(file) or PurePath(file).name
    return f"{place.op}{of}" + (f" ({name}, line {place.line})" if file else "")
