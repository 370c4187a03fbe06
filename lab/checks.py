"""Arguments that are numbers: what is none, or is no whole one, is refused where it is given and by its name.

A count of 2.5 would otherwise go on and end in a place that knows nothing of it.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Collection
from pathlib import Path

import numpy as np

from lab.errors import ArgumentError, LabError
from lab.words import shown


def whole(
    name: str, value: object, *, least: int, hint: str = "", error: type[LabError] = ArgumentError
) -> int:
    """`value` as an int of at least `least`; an integer of NumPy is one, a bool, a float and an array are not.

    Raises:
        ArgumentError: it is none, or is below; or the `error` of the room that asks.

    Example:
        >>> whole("epochs", 3, least=1)
        3
        >>> whole("epochs", 2.5, least=1)
        Traceback (most recent call last):
        lab.errors.ArgumentError: epochs is a whole number of at least 1
        given: epochs=2.5
        hint:  for example epochs=1
    """
    try:
        found = least - 1 if isinstance(value, bool | np.ndarray) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        found = least - 1
    if found < least:
        problem = f"{name} is a whole number of at least {least}"
        raise error(problem, given=f"{name}={shown(value)}", hint=hint or f"for example {name}={least}")
    return found


def number(name: str, value: object, *, hint: str, error: type[LabError] = ArgumentError) -> float:
    """`value` as a float, whatever Python takes for a number; text and a bool are none.

    Raises:
        ArgumentError: it is none; or the `error` of the room that asks.

    Example:
        >>> number("learning_rate", 1, hint="for example 0.1")
        1.0
    """
    try:
        found = None if isinstance(value, str | bytes | bool | np.bool_) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise error(f"{name} is a number", given=f"{name}={shown(value)}", hint=hint)
    return found


def text(name: str, value: object, *, hint: str, error: type[LabError] = ArgumentError) -> str:
    """`value`, if it is a text.

    Raises:
        ArgumentError: it is none; or the `error` of the room that asks.

    Example:
        >>> text("name", "w", hint="for example 'w'")
        'w'
    """
    if isinstance(value, str):
        return value
    raise error(f"{name} is a text", given=f"{name}={shown(value)}", hint=hint)


def flag(name: str, value: object, *, error: type[LabError] = ArgumentError) -> bool:
    """`value` as a bool, if it is one; a number, a text and a list are none, however true they are.

    Raises:
        ArgumentError: it is none; or the `error` of the room that asks.

    Example:
        >>> flag("nonfinite", True)
        True
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise error(f"{name} is True or False", given=f"{name}={shown(value)}", hint=f"for example {name}=True")


def choice(
    problem: str, value: object, choices: Collection[str], *, error: type[LabError] = ArgumentError
) -> str:
    """`value`, if it is one of these texts.

    Raises:
        ArgumentError: it is another, or no text; or the `error` of the room that asks.

    Example:
        >>> choice("there is no such colour", "red", ("red", "blue"))
        'red'
    """
    if isinstance(value, str) and value in choices:
        return value
    raise error(problem, given=shown(value), hint=f"one of {', '.join(map(repr, choices))}")


def path(value: object, *, hint: str, error: type[LabError] = ArgumentError) -> Path:
    """`value` as a Path; a text and whatever names a file by a text are one, bytes and a number are not.

    Raises:
        ArgumentError: it is none; or the `error` of the room that asks.

    Example:
        >>> path("run.rec", hint="for example 'run.rec'").name
        'run.rec'
    """
    if isinstance(value, str | Path):
        return Path(value)
    named = os.fspath(value) if isinstance(value, os.PathLike) else None
    if isinstance(named, str):
        return Path(named)
    raise error("a file is named by its path", given=shown(value), hint=hint)


def generator(rng: object) -> np.random.Generator:
    """The Generator that `rng=` asks for: of this seed, itself, or a fresh one for None.

    Raises:
        ArgumentError: it is none of these, or a seed below 0.

    Example:
        >>> bool(generator(0).random() == generator(0).random())
        True
    """
    try:
        if not isinstance(rng, float):  # NumPy refuses it too, by a page about sequences of words
            return np.random.default_rng(rng)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    problem = "rng is a seed of 0 or more, a Generator, or None"
    raise ArgumentError(problem, given=f"rng={shown(rng)}", hint="for example rng=0")
