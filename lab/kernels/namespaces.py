"""What the functions of a formula mean: on NumPy arrays, and on single numbers inside a compiled loop.

Both give the same values, nan and inf included; the scalar ones are within a few units in the last place
(`scalars.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lab.kernels import scalars


def sigmoid(x: ArrayLike) -> Any:
    """The logistic function 1 / (1 + exp(-x)), without overflow and with all digits for large negative x.

    Example:
        >>> [float(y) for y in sigmoid(np.array([-1000.0, 0.0, 1000.0]))]
        [0.0, 0.5, 1.0]
    """
    x = np.asarray(x)
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, z.dtype.type(1)) / (1 + z)


@cache
def numpy_namespace() -> MappingProxyType[str, Callable[..., Any]]:
    """Formula function -> NumPy function, one for each name in `formula.FUNCTIONS`.

    Example:
        >>> numpy_namespace()["maximum"](np.array([1.0, np.nan]), 2.0)
        array([ 2., nan])
    """
    same = ("abs", "sign", "exp", "expm1", "log", "log1p", "sqrt", "tanh", "sinh", "cosh", "sin", "cos",
            "maximum", "minimum", "where", "floor")  # fmt: skip
    return MappingProxyType({**{name: getattr(np, name) for name in same}, "sigmoid": sigmoid})


@cache
def scalar_namespace() -> MappingProxyType[str, Callable[..., Any]]:
    """Formula function -> function of one number: the same meaning for a loop that numba compiles.

    Example:
        >>> float(scalar_namespace()["tanh"](np.float32(0.0)))
        0.0
    """
    return MappingProxyType({name: getattr(scalars, {"abs": "absolute"}.get(name, name)) for name in numpy_namespace()})
