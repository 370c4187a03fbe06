"""Functions of one number that NumPy does not have: erf and erfc, x log(y), the derivatives of sinc.

In float32 erf and erfc are polynomials that run many lanes at a time, as those of `scalars.py`, and as exact as is
said at each; in float64 they are libm's.
"""
# ruff: noqa: PLR0124, FURB136 - x == x is the test for nan; which branch a nan takes is written out

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.kernels.scalars import (
    F32,
    ONE,
    TWO,
    ZERO,
    Number,
    bits_to_float,
    float_to_bits,
    log,
    power_of_two,
    reduced,
)

# erf(x) = x + x (E0 + E1 x**2 + ... + E5 x**10) below NEAR, relative error 0.03 * 2**-24
E0, E1, E2 = F32(0.12837916549734762), F32(-0.37612618759895383), F32(0.11283376605723151)
E3, E4, E5 = F32(-0.02683462583990359), F32(0.00511434780539802), F32(-0.0006749527790243454)
NEAR = F32(0.75)
# erfc(a) = exp(-a**2) / (a + 2) * (C0 + C1 t + ... + C8 t**8) with t = (a - 2) / (a + 2) from NEAR to FAR, relative
# error 0.08 * 2**-24; the form is that of Shepherd and Laframboise, Math. Comp. 36 (1981) 249
C0, C1, C2 = F32(1.0215827084201583), F32(-0.6871606259323612), F32(0.2794716276139127)
C3, C4, C5 = F32(-0.03644447892581081), F32(-0.02149958374699419), F32(0.006499533856347948)
C6, C7, C8 = F32(0.0030012668610051732), F32(-0.0008818555414897996), F32(-0.00040772170191900257)
FAR = F32(10.1)  # erfc of this and more is 0 in float32
HALF_MASK = np.int32(-4096)  # the upper 12 bits of a significand, whose square is exact


def erf_near(x: Number) -> Any:
    """The error function of a float32 between -NEAR and NEAR."""
    z = x * x
    return x + x * (E0 + z * (E1 + z * (E2 + z * (E3 + z * (E4 + z * E5)))))


def erfc_far(a: Number) -> Any:
    """1 - erf of a float32 between NEAR and FAR; something finite below."""
    t = (a - TWO) / (a + TWO)
    poly = C0 + t * (C1 + t * (C2 + t * (C3 + t * (C4 + t * (C5 + t * (C6 + t * (C7 + t * C8)))))))
    square = a * a
    high = bits_to_float(np.int32(float_to_bits(a) & HALF_MASK))
    low = a - high
    lost = (high * high - square) + TWO * high * low + low * low  # a**2 - square: exp would magnify it 100 times
    n, p = reduced(-square)
    half = np.int32(n >> np.int32(1))
    e = ((ONE + p) * power_of_two(half)) * power_of_two(np.int32(n - half))
    return (e - e * lost) * (poly / (a + TWO))


def erf32(x: Number) -> Any:
    """The error function of a float32, within 2 ulp."""
    a = x if x > ZERO else -x
    far = ONE - erfc_far(a if a < FAR else FAR)
    near = erf_near(a)
    y = far if a > NEAR else near
    y = y if x > ZERO else -y
    y = y if x != ZERO else x
    return y if x == x else x


def erfc32(x: Number) -> Any:
    """1 - erf of a float32 with its digits kept for large x, within 4 ulp."""
    a = x if x > ZERO else -x
    far = erfc_far(a if a < FAR else FAR)  # at FAR it rounds to 0
    other = TWO - far
    near = ONE - erf_near(x)
    far = far if x > ZERO else other
    y = far if a > NEAR else near
    return y if x == x else x


def erf64(x: Number) -> Any:
    """The error function of a float64: libm's."""
    return math.erf(x)


def erfc64(x: Number) -> Any:
    """1 - erf of a float64: libm's."""
    return math.erfc(x)


def erf(x: Number) -> Any:
    """The error function for either float type."""
    return erf32(x) if isinstance(x, np.float32) else math.erf(x)


def erfc(x: Number) -> Any:
    """1 - erf for either float type."""
    return erfc32(x) if isinstance(x, np.float32) else math.erfc(x)


def xlogy(x: Number, y: Number) -> Any:
    """The product x log(y), and 0 where x is 0 and y is a number."""
    zero = x - x
    return zero if (x == zero) & (y == y) else x * log(y)


def sinc_slope(x: Number, order: Number) -> Any:
    """The derivative of sin(pi x) / (pi x) of a whole order, in float64.

    With u = pi x it is pi**n times the n-th derivative of j(u) = sin(u) / u. Differentiating u j(u) = sin(u) gives
    u j[n] = sin(u + n pi / 2) - n j[n-1], stable where u > n; below, the series of j[n] (alternating terms
    (-1)**k u**(2k - n) / ((2k - n)! (2k + 1)) for 2k >= n).
    """
    n = int(order)
    u = np.float64(x) * math.pi
    if abs(u) < n + 1:
        first = (n + 1) // 2
        term = (1.0 if first % 2 == 0 else -1.0) * (u if n % 2 else 1.0)
        total = 0.0
        for k in range(first, first + 14 + 2 * n):
            total += term / (2 * k + 1)
            term = term * (-(u * u) / ((2 * k + 1 - n) * (2 * k + 2 - n)))
            if abs(term) <= 1e-19 * abs(total):
                break
    else:
        total = np.sin(u) / u
        for m in range(1, n + 1):
            total = (np.sin(u + m * (math.pi / 2)) - m * total) / u
    return math.pi**n * total


BY_TYPE: dict[Callable[[Any], Any], tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    erf: (erf32, erf64),
    erfc: (erfc32, erfc64),
}
"""Function -> (float32 version, float64 version): what numba is told to choose from."""

INLINED = (erf_near, erfc_far, erf32, erfc32, erf64, erfc64, xlogy)
"""Functions that numba compiles as they stand, inside the loop that calls them."""

CALLED = (sinc_slope,)
"""Those with loops of their own, which stay calls."""

TWINS: tuple[Callable[..., Any], ...] = (erf, erfc, xlogy, sinc_slope)
"""What stands here for functions of formulas."""
