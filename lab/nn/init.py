"""Starting values of weights: random, and scaled so that a signal keeps its size from layer to layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.errors import ArgumentError

Init = Callable[[int, int, np.random.Generator], npt.NDArray[Any]]
"""A rule `(n_in, n_out, rng) -> (n_in, n_out)`."""


def kaiming(n_in: int, n_out: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Uniform within sqrt(6 / n_in): keeps the variance where relu drops half of it (He et al., arXiv:1502.01852).

    Example:
        >>> w = kaiming(600, 100, np.random.default_rng(0))
        >>> bool(abs(w).max() <= 0.1), round(float(w.var()), 4)
        (True, 0.0033)
    """
    bound = math.sqrt(6 / n_in)
    return rng.uniform(-bound, bound, (n_in, n_out))


def xavier(n_in: int, n_out: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Uniform within sqrt(6 / (n_in + n_out)): for tanh and sigmoid (Glorot and Bengio, AISTATS 2010).

    Example:
        >>> w = xavier(300, 300, np.random.default_rng(0))
        >>> bool(abs(w).max() <= 0.1)
        True
    """
    bound = math.sqrt(6 / (n_in + n_out))
    return rng.uniform(-bound, bound, (n_in, n_out))


INITS: dict[str, Init] = {"kaiming": kaiming, "xavier": xavier}


def init_of(init: str | Init) -> Init:
    """The rule of this name, or the rule itself.

    Raises:
        ArgumentError: no rule has this name.
    """
    if callable(init):
        return init
    if init not in INITS:
        raise ArgumentError(
            "no such initialisation", given=repr(init), hint=f"one of {', '.join(INITS)}, or a function"
        )
    return INITS[init]
