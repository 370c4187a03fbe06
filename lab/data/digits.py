"""Real handwritten digits, small enough to travel with the package: 1,797 images of 8 x 8 pixels.

The test set of UCI's Optical Recognition of Handwritten Digits (CC BY 4.0, see DIGITS_LICENSE.txt beside this file).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from lab.config import STATE
from lab.data.dataset import Dataset, Rng
from lab.data.packed import unpacked
from lab.errors import ArgumentError

SHA256 = "b2dab7b501728c22e9119ad76740b2e17c77a231e42d1e592380d90886f1a05e"
FILE = Path(__file__).with_name("digits.npz")
N_TEST = 360
"""A fifth of the examples is kept for testing."""
SIDE = 28
"""Pixels along a side of an image that was made larger."""


@overload
def digits(split: None = None, *, flat: bool = True, n_test: int = N_TEST, rng: Rng = 0) -> tuple[Dataset, Dataset]: ...
@overload
def digits(
    split: Literal["train", "test", "all"], *, flat: bool = True, n_test: int = N_TEST, rng: Rng = 0
) -> Dataset: ...
def digits(
    split: Literal["train", "test", "all"] | None = None, *, flat: bool = True, n_test: int = N_TEST, rng: Rng = 0
) -> Dataset | tuple[Dataset, Dataset]:
    """Handwritten digits, as a pair (train, test) or one part by name.

    The split is drawn once from a fixed seed, so that everybody compares on the same 1,437 + 360 examples.

    Shapes:
        inputs: (n, 64), or (n, 8, 8) with `flat=False`; pixels from 0 (paper) to 1 (ink), in the lab's dtype.
        targets: (n,) int64, the digit.

    Raises:
        DataError: the file in the package is missing or damaged.
        ArgumentError: no such split.

    Example:
        >>> train, test = digits()
        >>> train.inputs.shape, test.inputs.shape, train.inputs.dtype.name
        ((1437, 64), (360, 64), 'float32')
    """
    if split not in {None, "train", "test", "all"}:
        raise ArgumentError(
            "no such split of the digits", given=repr(split), hint="'train', 'test' or 'all'; none for both"
        )
    images, labels = _read()
    inputs = images.reshape(len(images), -1) if flat else images
    everything = Dataset((inputs / 16).astype(STATE.get().dtype), labels.astype(np.int64), "digits")
    if split == "all":
        return everything
    train, test = everything.split(n_test, rng=rng)
    if split is None:
        return train, test
    return train if split == "train" else test


@overload
def digits28(split: None = None, *, n_test: int = N_TEST, rng: Rng = 0) -> tuple[Dataset, Dataset]: ...
@overload
def digits28(split: Literal["train", "test", "all"], *, n_test: int = N_TEST, rng: Rng = 0) -> Dataset: ...
def digits28(
    split: Literal["train", "test", "all"] | None = None, *, n_test: int = N_TEST, rng: Rng = 0
) -> Dataset | tuple[Dataset, Dataset]:
    """The same digits as images of 28 x 28 pixels, for convolutions: upsampled bilinearly, between centres of pixels.

    They are no finer than those of 8 x 8, from which they are made; the size is that of MNIST.

    Shapes:
        inputs: (n, 1, 28, 28), with an axis for the one channel; targets: (n,) int64.

    Raises:
        DataError: the file in the package is missing or damaged.
        ArgumentError: no such split.

    Example:
        >>> digits28("test")
        Dataset 'digits28': 360 examples, inputs (1, 28, 28) float32, targets () int64
    """
    parts = digits(split, flat=False, n_test=n_test, rng=rng) if split else digits(flat=False, n_test=n_test, rng=rng)
    if isinstance(parts, Dataset):
        return _enlarged(parts)
    return _enlarged(parts[0]), _enlarged(parts[1])


def _enlarged(data: Dataset) -> Dataset:
    rows = _between(data.inputs.shape[1], SIDE).astype(data.inputs.dtype)
    return Dataset((rows @ data.inputs @ rows.T)[:, None], data.targets, "digits28")


def _between(n: int, n_more: int) -> npt.NDArray[np.float64]:
    """(n_more, n): what each new pixel takes of the two old ones whose centres it lies between; at the rim, of one."""
    centres = np.clip((np.arange(n_more) + 0.5) * n / n_more - 0.5, 0, n - 1)
    found: npt.NDArray[np.float64] = np.maximum(0.0, 1 - np.abs(centres[:, None] - np.arange(n)))
    return found


def _read(path: Path = FILE) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    arrays = unpacked(path, "digits", SHA256)
    return arrays["images"], arrays["labels"]
