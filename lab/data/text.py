"""Characters to learn to write from: ten topics of Python's documentation, small enough to travel with the package.

A model that is told a character, and those before it, says which comes next. What can be known from one character alone
is the bigram entropy: a loss below it has learned from more (PSF licence, see TEXT_LICENSE.txt beside this file).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from lab.checks import number, whole
from lab.data.dataset import Dataset
from lab.data.packed import unpacked
from lab.errors import ArgumentError, DataError
from lab.words import one_of, shown

SHA256 = "f98d16bad4482d86c841772cf469af72bde90de51b499279fafffb57f02b6c79"
FILE = Path(__file__).with_name("text.npz")
ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
"""Characters by their number: the end of a line, then those of ASCII that can be seen, and the blank."""
STRETCH = 2048
"""Characters in a row that are for training or held out as a whole; of ten such stretches the last is held out."""
SPLITS = ("train", "held out", "all")


@overload
def text(split: None = None, *, n_places: int = 64) -> tuple[Dataset, Dataset]: ...
@overload
def text(split: Literal["train", "held out", "all"], *, n_places: int = 64) -> Dataset: ...
def text(
    split: Literal["train", "held out", "all"] | None = None, *, n_places: int = 64
) -> Dataset | tuple[Dataset, Dataset]:
    """Windows of text, as a pair (train, held out) or one part by name: the target of a character is the next one.

    Windows lie side by side, so that a character is a target at most once. None reaches from a stretch of the text that
    is for training into one that is held out.

    Shapes:
        inputs: (n, n_places) int64, places in ALPHABET; targets: the same, one character on.

    Args:
        n_places: characters in a window.

    Raises:
        DataError: the file in the package is missing or damaged.
        ArgumentError: no such split, or windows longer than a stretch.

    Example:
        >>> train, held_out = text(n_places=32)
        >>> train.inputs.shape, held_out.inputs.shape
        ((5796, 32), (630, 32))
        >>> spelled(held_out.inputs[1]), spelled(held_out.targets[1])
        ('sions should have the same resul', 'ions should have the same result')
    """
    if split is not None and split not in SPLITS:
        raise ArgumentError("no such split of the text", given=shown(split), hint=one_of(split, SPLITS))
    n_places = whole("n_places", n_places, least=1, hint="64 characters are a line")
    if n_places >= STRETCH:
        raise ArgumentError("windows lie within a stretch of the text", given=f"n_places={n_places}",
                            hint=f"at most {STRETCH - 1}; 64 characters are a line")  # fmt: skip
    stretches = _stretches()
    of_ten = np.arange(len(stretches)) % 10
    chosen = {"train": of_ten != 9, "held out": of_ten == 9, "all": of_ten >= 0}
    parts = {name: _windows(stretches[chosen[name]], n_places, name) for name in ([split] if split else SPLITS[:2])}
    return parts[split] if split else (parts["train"], parts["held out"])


def lines(*, n_places: int = 64) -> tuple[Dataset, Dataset]:
    r"""The same text line by line, as a pair (train, held out): rows of unlike length, filled up with padding.

    A line is told its beginning, then its characters; the last target is its end. Longer ones are cut.

    Shapes:
        inputs: (n, n_places) int64, places in ALPHABET; targets: the same, one character on, or -1 for padding.

    Raises:
        DataError: the file in the package is missing or damaged.
        ArgumentError: lines without a place.

    Example:
        >>> train, held_out = lines(n_places=16)
        >>> spelled(held_out.inputs[5]), (held_out.targets >= 0).sum(axis=1).tolist()[:6]
        ('\n* Comparison sh', [16, 16, 16, 16, 16, 16])
    """
    n_places = whole("n_places", n_places, least=1, hint="64 characters are a line")
    stretches = _stretches()
    of_ten = np.arange(len(stretches)) % 10
    return (_padded(stretches[of_ten != 9], n_places, "train"), _padded(stretches[of_ten == 9], n_places, "held out"))


def spelled(characters: npt.ArrayLike) -> str:
    """The text that numbers of characters stand for.

    Raises:
        ArgumentError: a number that no character has.

    Example:
        >>> spelled([73, 66, 67])
        'hab'
    """
    numbers = np.asarray(characters).ravel()
    if numbers.dtype.kind not in "iu" or (numbers.size and not (0 <= numbers.min() <= numbers.max() < len(ALPHABET))):
        raise ArgumentError("characters are numbered from 0", given=shown(characters),
                            hint=f"whole numbers below {len(ALPHABET)}, places in lab.data.ALPHABET")  # fmt: skip
    return "".join(ALPHABET[i] for i in numbers)


def bigram_entropy(train: Dataset, held_out: Dataset, *, smoothing: float = 1.0) -> float:
    """Nats per character of the held-out text, for who knows the character before and how often which followed it.

    The chance of b after a is counted in the training text, where `smoothing` more followed a, shared out as characters
    are in all of it; to that each character of the alphabet is added once. So nothing that can be has no chance.

    Args:
        train: integers as inputs, and for each what follows it as target.
        smoothing: above 0.

    Raises:
        ArgumentError: a smoothing of 0 or less.
        DataError: the data are no characters.

    Example:
        >>> round(bigram_entropy(*text()), 2)
        2.5
    """
    if not number("smoothing", smoothing, hint="1.0 adds one character") > 0:
        raise ArgumentError("what never followed needs a chance, too", given=f"smoothing={shown(smoothing)}",
                            hint="smoothing=1.0 adds one character to those that followed each")  # fmt: skip
    pairs = [_pairs(data) for data in (train, held_out)]
    n = max(len(ALPHABET), *(1 + int(found.max()) for found in pairs))
    followed = np.zeros((n, n))
    np.add.at(followed, tuple(pairs[0]), 1)
    alone = followed.sum(axis=0) + 1
    chances = followed + smoothing * alone / alone.sum()
    chances /= chances.sum(axis=1, keepdims=True)
    return float(-np.log(chances[tuple(pairs[1])]).mean())


def _pairs(data: Dataset) -> npt.NDArray[np.int64]:
    """(2, n): each character, and what follows it."""
    inputs, targets = data.inputs, data.targets
    is_text = inputs.shape == targets.shape and {inputs.dtype.kind, targets.dtype.kind} <= {"i", "u"}
    if not is_text or min(inputs.min(), targets.min()) < 0:
        given = f"inputs {inputs.shape} {inputs.dtype}, targets {targets.shape} {targets.dtype}"
        raise DataError("these are no characters and what follows them", given=given, hint="lab.data.text() has them")
    return np.stack([inputs.ravel(), targets.ravel()]).astype(np.int64)


def _stretches() -> npt.NDArray[np.int64]:
    """(n, STRETCH); what is left at the end is not used."""
    letters = unpacked(FILE, "topics of the text", SHA256)["text"].astype(np.int64)
    numbers = np.where(letters == ord("\n"), 0, letters - ord(" ") + 1)
    n = len(numbers) // STRETCH
    return numbers[: n * STRETCH].reshape(n, STRETCH)


def _windows(stretches: npt.NDArray[np.int64], n_places: int, name: str) -> Dataset:
    """Side by side within each stretch."""
    n = (STRETCH - 1) // n_places
    inputs, targets = (stretches[:, at : at + n * n_places].reshape(-1, n_places).copy() for at in (0, 1))
    return Dataset(inputs, targets, f"text, {name}")


def _padded(stretches: npt.NDArray[np.int64], n_places: int, name: str) -> Dataset:
    """Whole lines, and of each no more than fits; the first and the last of a stretch may be parts of lines."""
    found = [line for stretch in stretches for line in spelled(stretch).split("\n")[1:-1] if line]
    inputs, targets = np.zeros((len(found), n_places), np.int64), np.full((len(found), n_places), -1)
    for row, line in enumerate(found):
        numbers = [0, *map(ALPHABET.index, line), 0]
        n = min(len(numbers) - 1, n_places)
        inputs[row, :n], targets[row, :n] = numbers[:n], numbers[1 : n + 1]
    return Dataset(inputs, targets, f"lines, {name}")
