"""Toy data in the plane: two classes that no straight line can part, made fresh from a seed.

Small enough to draw every point, so that one sees what a network has learned.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lab.config import STATE
from lab.data.dataset import Dataset, Rng
from lab.errors import ArgumentError

Floats = npt.NDArray[np.float64]


def moons(n: int = 200, *, noise: float = 0.1, rng: Rng = 0) -> Dataset:
    """Two half circles, each reaching into the other.

    Shapes:
        inputs: (n, 2); targets: (n,) int64, 0 for the upper and 1 for the lower moon, alternating.

    Args:
        noise: standard deviation of what is added to each coordinate; the radius is 1.

    Raises:
        ArgumentError: fewer than two points, or negative noise.

    Example:
        >>> moons(100, noise=0.05).inputs.shape
        (100, 2)
    """
    _check(n, 2, noise)
    classes, angle = np.arange(n) % 2, np.pi * _spread(n, 2)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _noisy("moons", np.where(classes[:, None] == 0, upper, [1.0, 0.5] - upper), classes, noise, rng)


def spirals(n: int = 300, *, n_arms: int = 3, turns: float = 0.75, noise: float = 0.03, rng: Rng = 0) -> Dataset:
    """Arms that wind around the origin, one class an arm.

    Shapes:
        inputs: (n, 2), within about 1 of the origin; targets: (n,) int64, the arm, taking turns.

    Args:
        turns: how many times an arm goes around.
        noise: standard deviation of what is added to each coordinate.

    Raises:
        ArgumentError: fewer points than arms, fewer than two arms, or negative noise.

    Example:
        >>> sorted(set(spirals(30, n_arms=3).targets.tolist()))
        [0, 1, 2]
    """
    _check(n, n_arms, noise)
    classes, radius = np.arange(n) % n_arms, 0.1 + 0.9 * _spread(n, n_arms)
    angle = 2 * np.pi * (turns * radius + classes / n_arms)
    return _noisy("spirals", radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), classes, noise, rng)


def _spread(n: int, n_classes: int) -> Floats:
    """How far along its curve each point lies, 0 to 1; point i belongs to class i % n_classes."""
    last = max(1, (n - 1) // n_classes)
    return (np.arange(n) // n_classes) / last


def _noisy(name: str, points: Floats, classes: npt.NDArray[np.int64], noise: float, rng: Rng) -> Dataset:
    moved = points + noise * np.random.default_rng(rng).standard_normal(points.shape)
    return Dataset(moved.astype(STATE.get().dtype), classes.astype(np.int64), name)


def _check(n: int, n_classes: int, noise: float) -> None:
    if n_classes < 2 or n < n_classes:
        given = f"{n} points, {n_classes} classes"
        raise ArgumentError("toys need two classes and a point for each", given=given, hint="200 points are plenty")
    if not noise >= 0:
        raise ArgumentError("noise is a standard deviation", given=noise, hint="0 or more")
