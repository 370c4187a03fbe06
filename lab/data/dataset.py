"""A data set: inputs and targets side by side, one row an example.

Plain arrays and nothing else; what a batch is and in which order examples come is the loader's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.checks import generator
from lab.errors import ArgumentError, DataError, LabError

Rng = int | np.random.Generator | None
"""What `rng=` takes everywhere: a seed, a generator, or None for a fresh one."""


class Batch(NamedTuple):
    """Some examples: `inputs` (n, ...) and `targets` (n, ...), row by row."""

    inputs: npt.NDArray[Any]
    targets: npt.NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Inputs and targets, one row an example.

    Shapes:
        inputs: (n, ...); targets: (n, ...), integers (n,) for classes.

    Raises:
        DataError: no example, not one target for each input, or what is no number.

    Example:
        >>> Dataset(np.zeros((6, 2), np.float32), np.arange(6), name="zeros")
        Dataset 'zeros': 6 examples, inputs (2,) float32, targets () int64
    """

    inputs: npt.NDArray[Any]
    targets: npt.NDArray[Any]
    name: str = ""

    def __post_init__(self) -> None:
        for name in ("inputs", "targets"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        given = f"inputs {np.shape(self.inputs)}, targets {np.shape(self.targets)}"
        if np.ndim(self.inputs) == 0 or np.ndim(self.targets) == 0 or len(self.inputs) != len(self.targets):
            raise DataError("a data set needs one target for each input", given=given, hint="axis 0 counts examples")
        if not len(self.inputs):
            raise DataError("a data set needs at least one example", given=given, hint="was everything filtered out?")

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        parts = (f"{name} {a.shape[1:]} {a.dtype}" for name, a in (("inputs", self.inputs), ("targets", self.targets)))
        return f"Dataset {self.name!r}: {len(self)} examples, {', '.join(parts)}"

    def take(self, rows: npt.NDArray[np.integer] | slice) -> Batch:
        """The examples in these rows: copies for an array of indices, views for a slice."""
        return Batch(self.inputs[rows], self.targets[rows])

    def split(self, n_second: int, *, rng: Rng = 0) -> tuple[Dataset, Dataset]:
        """Two data sets without a common example; the second has `n_second`, drawn without replacement.

        Raises:
            ArgumentError: one of the two would be empty.

        Example:
            >>> [len(part) for part in Dataset(np.zeros((10, 2)), np.arange(10)).split(3)]
            [7, 3]
        """
        if not 0 < n_second < len(self):
            raise ArgumentError("a split leaves examples on both sides", given=f"{n_second} of {len(self)} examples",
                                hint=f"1 to {len(self) - 1}")  # fmt: skip
        order = generator(rng).permutation(len(self))
        first, second = np.sort(order[n_second:]), np.sort(order[:n_second])
        return Dataset(*self.take(first), self.name), Dataset(*self.take(second), self.name)


def as_dataset(data: Dataset | Sequence[npt.ArrayLike], name: str = "") -> Dataset:
    """A Dataset from one, or from a pair (inputs, targets).

    Raises:
        DataError: neither, or the two do not fit each other.

    Example:
        >>> len(as_dataset((np.zeros((4, 2)), [0, 1, 0, 1])))
        4
    """
    if isinstance(data, Dataset):
        return data
    try:
        inputs, targets = data
    except (TypeError, ValueError):
        hint = "give a Dataset or a pair (inputs, targets)"
        raise DataError("not a data set", given=type(data).__name__, hint=hint) from None
    return Dataset(_numbers("inputs", inputs), _numbers("targets", targets), name)


def _numbers(name: str, data: npt.ArrayLike) -> npt.NDArray[Any]:
    """An array of numbers."""
    try:
        found = np.asarray(data)
    except (TypeError, ValueError) as why:
        if isinstance(why, LabError):
            raise
        hint = "each row needs the same number of entries: pad or cut"
        raise DataError(f"the {name} are not a rectangle", given=_short(data), hint=hint) from None
    if found.dtype.kind not in "fiub":
        hint = "turn words into integers first: np.unique(words, return_inverse=True)[1]"
        raise DataError(f"the {name} are not numbers", given=f"{found.dtype} {_short(data)}", hint=hint)
    return found


def _short(data: object, limit: int = 60) -> str:
    text = " ".join(repr(data).split())
    return text if len(text) <= limit else f"{text[:limit]}..."
