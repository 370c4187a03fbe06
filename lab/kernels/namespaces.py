"""What the functions of a formula mean: on NumPy arrays, and on single numbers inside a compiled loop.

Both give the same values, nan and inf included; the scalar ones are within a few units in the last place
(`scalars.py`). Where NumPy has no such function (erf, sigmoid), the same compiled loop serves arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lab.errors import ArgumentError
from lab.kernels import scalars, special
from lab.kernels.formula import FUNCTIONS


def sigmoid(x: ArrayLike) -> Any:
    """The logistic function 1 / (1 + exp(-x)), without overflow and with all digits for large negative x.

    Example:
        >>> [float(y) for y in sigmoid(np.array([-1000.0, 0.0, 1000.0]))]
        [0.0, 0.5, 1.0]
    """
    return _one_loop("sigmoid")(x)


def xlogy(x: ArrayLike, y: ArrayLike) -> Any:
    """Compute x * log(y), and 0 where x is 0, whatever y is; nan where either is nan.

    Example:
        >>> xlogy(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
        array([0., 0.])
    """
    dtype = np.result_type(x, y)
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    return x * np.log(np.where(np.equal(x, 0) & ~np.isnan(y), dtype.type(1), y))


def erf(x: ArrayLike) -> Any:
    """The error function 2 / sqrt(pi) * integral of exp(-t**2) from 0 to x: libm's in float64, `special.erf32` below.

    Example:
        >>> erf(np.array([0.0, np.inf])).tolist()
        [0.0, 1.0]
    """
    return _one_loop("erf")(x)


def erfc(x: ArrayLike) -> Any:
    """1 - erf(x), with all its digits where erf is nearly 1.

    Example:
        >>> erfc(np.array([0.0, np.inf])).tolist()
        [1.0, 0.0]
    """
    return _one_loop("erfc")(x)


@cache
def _one_loop(name: str) -> Callable[[Any], Any]:
    from lab.kernels.loops import LOOPS  # which needs the table below

    return LOOPS[f"{name}(x)"]


def sinc_slope(x: ArrayLike, order: float) -> Any:
    """The derivative of sin(pi x) / (pi x) of order 1, 2, ...; smooth at 0.

    Raises:
        ArgumentError: the order is no whole number.

    Example:
        >>> [round(float(sinc_slope(0.0, n)), 4) for n in (1, 2, 3)]
        [0.0, -3.2899, 0.0]
    """
    n = int(order)
    if n != order or n < 0:
        raise ArgumentError("the order of a derivative is a whole number", given=repr(order), hint="order=1")
    return _slope_loop(n)(np.asarray(x))


@cache
def _slope_loop(n: int) -> Callable[[Any], Any]:
    from lab.kernels.loops import Looped

    def plain(x: Any) -> Any:
        return np.fromiter((special.sinc_slope(v, n) for v in x), x.dtype, x.size)

    return Looped(f"sinc_slope(x, {n})", ("x",), plain)


@cache
def numpy_namespace() -> MappingProxyType[str, Callable[..., Any]]:
    """Formula function -> NumPy function, one for each name in `formula.FUNCTIONS`.

    Example:
        >>> numpy_namespace()["maximum"](np.array([1.0, np.nan]), 2.0)
        array([ 2., nan])
    """
    own = {f.__name__: f for f in (sigmoid, xlogy, erf, erfc, sinc_slope)}
    return MappingProxyType({name: own[name] if name in own else getattr(np, name) for name in FUNCTIONS})


@cache
def scalar_namespace() -> MappingProxyType[str, Callable[..., Any]]:
    """Formula function -> function of one number: the same meaning for a loop that numba compiles.

    Example:
        >>> float(scalar_namespace()["tanh"](np.float32(0.0)))
        0.0
    """
    # numba knows NumPy's functions of one number: those that have no twin are NumPy's own
    own = {twin.__name__: twin for twin in (*scalars.TWINS, *special.TWINS)}
    return MappingProxyType({name: own[name] if name in own else getattr(np, name) for name in FUNCTIONS})
