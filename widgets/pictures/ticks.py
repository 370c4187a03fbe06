"""Ticks of axes: which numbers stand beside one, so that none lies on another and none is missing.

plotly puts every digit beside a logarithmic axis of a decade or two, one on the other, and has no opinion in pictures
that Python draws: both ask here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from widgets.pictures.theme import MINUS, short

MOST = 12
"""Ticks of one axis."""
NEAR = 0.5
"""Decades: numbers so near to each other have ticks as on a linear axis."""
FAR = 3.0
"""Decades from which on powers of ten are enough."""


def log_axis(numbers: Iterable[Any]) -> dict[str, Any]:
    """The keys of a logarithmic axis in plotly for these numbers (arrays of them): few ticks, and short.

    Example:
        >>> log_axis([[0.05, 1.0]])["dtick"], log_axis([[0.0, 1e-9, 3.0]])["dtick"], log_axis([[2.0, 2.4]])["nticks"]
        ('D2', 2, 4)
    """
    seen = np.concatenate([np.empty(0), *(np.asarray(some, np.float64).ravel() for some in numbers)])
    seen = seen[np.isfinite(seen) & (seen > 0)]
    decades = float(np.log10(seen.max() / seen.min())) if len(seen) else 0.0
    if decades >= FAR:  # 0.000001 would be as wide as a panel
        return {"type": "log", "exponentformat": "power", "dtick": max(1, round(decades / 5))}
    few: dict[str, Any] = {"nticks": 4} if decades < NEAR else {"dtick": "D2"}
    return {"type": "log", "tickformat": "~g", **few}


def linear(low: float, high: float, every: float | None = None, begin: float = 0.0) -> list[float]:
    """About five round numbers of a stretch, or every so many from `begin` on, to both sides.

    Example:
        >>> linear(0.9, 3.1), linear(0.9, 3.1, 1.0), linear(0.5, 9.5, 3.0, 1.0)
        ([1.0, 1.5, 2.0, 2.5, 3.0], [1.0, 2.0, 3.0], [1.0, 4.0, 7.0])
    """
    low, high = min(low, high), max(low, high)
    step = every or nice((high - low) / 5)
    if (high - low) / step > MOST:  # `every` was meant for a larger picture
        step *= math.ceil((high - low) / step / MOST)
    first = math.ceil((low - begin) / step - 1e-9)
    marks = (begin + (first + i) * step for i in range(MOST + 1))
    return [mark for mark in marks if mark <= high + step * 1e-9]


def logarithmic(low: float, high: float) -> list[float]:
    """Exponents of ten at which ticks stand, of a stretch given by its own: powers, of few of them also 2 and 5.

    Example:
        >>> [round(10**e, 6) for e in logarithmic(-1.2, 0.1)]
        [0.1, 0.2, 0.5, 1.0]
        >>> [round(10**e, 6) for e in logarithmic(math.log10(2.0), math.log10(2.4))]
        [2.0, 2.1, 2.2, 2.3, 2.4]
    """
    low, high = min(low, high), max(low, high)
    if high - low >= FAR:
        return linear(low, high, max(1.0, nice((high - low) / 5)))
    if high - low < NEAR:
        return [math.log10(mark) for mark in linear(10.0**low, 10.0**high) if mark > 0]
    places = (e + math.log10(m) for e in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5))
    return [place for place in places if low - 1e-9 <= place <= high + 1e-9]


def nice(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten.

    Example:
        >>> nice(0.7), nice(30.0)
        (1.0, 50.0)
    """
    step = abs(step) or 1.0
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= step * 0.999)


def plain_number(value: float) -> str:
    """A tick's text: whole numbers without a point.

    Example:
        >>> plain_number(20_000.0), plain_number(0.30000000000000004), plain_number(1e-12)
        ('20,000', '0.3', '1e−12')
    """
    whole = round(value)
    if abs(value - whole) < 1e-9 * max(1.0, abs(value)) and abs(value) < 1e6 and (whole or abs(value) < 1e-300):
        return f"{whole:,}".replace("-", MINUS)
    return short(float(f"{value:.12g}"))
