"""Real handwritten digits, small enough to travel with the package: 1,797 images of 8 x 8 pixels.

The test set of UCI's Optical Recognition of Handwritten Digits (CC BY 4.0, see DIGITS_LICENSE.txt beside this file).
"""

from __future__ import annotations

import hashlib
import io
from functools import cache
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from lab.config import STATE
from lab.data.dataset import Dataset, Rng
from lab.errors import ArgumentError, DataError

SHA256 = "b2dab7b501728c22e9119ad76740b2e17c77a231e42d1e592380d90886f1a05e"
FILE = Path(__file__).with_name("digits.npz")
N_TEST = 360
"""A fifth of the examples is kept for testing."""


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


@cache
def _read(path: Path = FILE) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    hint = "install the package again"
    try:
        packed = path.read_bytes()
    except OSError as why:
        raise DataError("the digits cannot be read", given=f"{path.name}: {why.strerror}", hint=hint) from why
    if hashlib.sha256(packed).hexdigest() != SHA256:
        raise DataError("the digits are damaged", given=f"{path.name}, {len(packed)} bytes, wrong checksum", hint=hint)
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        return arrays["images"], arrays["labels"]
