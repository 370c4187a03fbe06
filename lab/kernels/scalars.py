"""The lab's elementary functions of one number, written so that a loop over them vectorises.

numba calls libm once per element (tanh on 1e6 float32: 16 ms); these float32 polynomials run eight or more lanes at a
time (under 0.5 ms). The float64 versions call libm, and so do the functions that formulas know and this file does not
(tan, arcsin, cbrt ...). Largest errors over every exponent in float32, in units in the last place
(tests/kernels/test_scalars.py): exp and log 1, expm1 and log1p 1.5, tanh 2.2, sigmoid 2.1; of
libm's sqrt, exp2, cbrt, sin and cos 0.6, tan, arcsin, arccos, arctan and log2 0.9, sinh, cosh, log10 and the inverse
hyperbolic functions 2. In float64 all are within 4 of NumPy or scipy. Everything here is plain Python over NumPy
scalars and runs without numba too.

How the float32 functions work: exp(x) = 2**n * exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2. The polynomial for
exp(r) - 1 is a minimax fit (Lawson's iteration, float64); 2**n is made by writing n into the exponent bits. tanh and
expm1 share the same core, which keeps the small difference exp(r) - 1 exact near 0. No branches: every `if` becomes a
select.
"""
# ruff: noqa: PLR0124, FURB136 - x == x is the test for nan; which branch a nan takes is written out, max() would hide it

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Number = Any
"""One np.float32 or np.float64 (a machine number inside numba)."""

F32 = np.float32
# Literals inside numba are float64, and one of them would promote the whole polynomial: hence named float32 constants.
ZERO, HALF, ONE, TWO = F32(0.0), F32(0.5), F32(1.0), F32(2.0)
INF = F32(np.inf)
NAN = F32(np.nan)
LOG2_E = F32(1.4426950408889634)
LN2_HIGH = F32(0.693359375)  # 355 / 512: n * LN2_HIGH is exact for every n that occurs
LN2_LOW = F32(-2.12194440054690583e-4)  # ln 2 - LN2_HIGH
NEAREST = F32(12582912.0)  # 1.5 * 2**23: the lowest bits of NEAREST + x are those of round(x), for |x| < 2**22
NEAREST_BITS = np.int32(0x4B400000)
LOWEST, HIGHEST = F32(-104.0), F32(89.0)  # beyond these exp is 0 or inf in float32, denormals included
ROUNDS = F32(12582912.0 + 127.0)  # 1.5 * 2**23 + 127: the lowest bits of ROUNDS + x are those of 127 + round(x)
ROUNDS_TWICE = F32(12582912.0 + 254.0)
HALF_LOG2_E = F32(0.7213475204444817)
LOWEST_NORMAL = F32(-88.0)  # exp of this is below 2**-126.5
# exp(r) - 1 = r + r**2 * (Q0 + Q1 r + ... + Q5 r**5), relative error 0.004 * 2**-24
Q0, Q1, Q2 = F32(0.5000000044665414), F32(0.1666666636704243), F32(0.04166635859351623)
Q3, Q4, Q5 = F32(0.008333389801984652), F32(0.0013940823648756382), F32(0.0001984589241382013)
# log(1 + f) = f - f**2 / 2 + f**3 * (L0 + L1 f + ... + L7 f**7), relative error 0.1 * 2**-24
L0, L1, L2, L3 = F32(0.3333333168404205), F32(-0.2500082679054939), F32(0.20001235664521577), F32(-0.16623143591859366)
L4, L5, L6, L7 = F32(0.14201373163703812), F32(-0.13162016913580998), F32(0.1276540099150135), F32(-0.07634320695984886)
SQRT_HALF_BITS = np.int32(0x3F3504F3)
ONE_BITS = np.int32(0x3F800000)
BELOW_SIGN, BELOW_SIGN_64 = np.int32(2**31 - 1), np.int64(2**63 - 1)
SIGN = np.int32(-(2**31))
TINIEST = F32(1.1754943508222875e-38)
TWO_24 = F32(16777216.0)
TANH_ONE = F32(9.02)  # tanh of this and more rounds to 1


def bits_to_float(n: Any) -> Any:
    """The float whose bits are those of the int32 or int64 `n`: no instruction at all in numba."""
    return n.view(F32) if n.itemsize == 4 else n.view(np.float64)


def float_to_bits(x: Number) -> Any:
    """The int32 or int64 whose bits are those of the float32 or float64 `x`."""
    return x.view(np.int32) if x.itemsize == 4 else x.view(np.int64)


def order32(x: Number) -> Any:
    """An int32 that is the larger the larger the float32; of nan it is beyond those of both infinities."""
    n = float_to_bits(x)
    return np.int32(n ^ np.int32(np.int32(n >> np.int32(31)) & BELOW_SIGN))


def order64(x: Number) -> Any:
    """An int64 that is the larger the larger the float64."""
    n = float_to_bits(x)
    return n ^ ((n >> np.int64(63)) & BELOW_SIGN_64)


def ordered32(n: Any) -> Any:
    """The float32 of an order."""
    return bits_to_float(np.int32(n ^ np.int32(np.int32(n >> np.int32(31)) & BELOW_SIGN)))


def ordered64(n: Any) -> Any:
    """The float64 of an order."""
    return bits_to_float(n ^ ((n >> np.int64(63)) & BELOW_SIGN_64))


def power_of_two(n: Any) -> Any:
    """2**n as float32 for the int32 n in -126 .. 127."""
    return bits_to_float(np.int32(np.int32(n + np.int32(127)) << np.int32(23)))


def reduced(x: Number) -> Any:
    """(n, exp(r) - 1) with x = n ln 2 + r, for x between LOWEST and HIGHEST; of nan some number, and nan."""
    shifted = x * LOG2_E + NEAREST
    steps = shifted - NEAREST
    # numba widens int32 arithmetic to int64, and vectors of those are dear: back to int32 at once
    n = np.int32(float_to_bits(shifted) - NEAREST_BITS)
    r = (x - steps * LN2_HIGH) - steps * LN2_LOW
    q = Q0 + r * (Q1 + r * (Q2 + r * (Q3 + r * (Q4 + r * Q5))))
    return n, r + (r * r) * q


def clamped(x: Number) -> Any:
    """Keep x within LOWEST .. HIGHEST; nan stays."""
    low = LOWEST if x < LOWEST else x
    return HIGHEST if low > HIGHEST else low


def exp32(x: Number) -> Any:
    """The exponential of a float32, within 1 ulp; denormal results, inf and nan included."""
    x = clamped(x)
    shifted = x * LOG2_E + ROUNDS_TWICE
    steps = shifted - ROUNDS_TWICE
    r = (x - steps * LN2_HIGH) - steps * LN2_LOW
    q = Q0 + r * (Q1 + r * (Q2 + r * (Q3 + r * (Q4 + r * Q5))))
    p = r + (r * r) * q
    # 2**n in two factors, since n may pass the ends of the exponent: 127 + h and 127 + n - h, with h about half of n
    half = float_to_bits(x * HALF_LOG2_E + ROUNDS)
    first = bits_to_float(np.int32(half << np.int32(23)))
    second = bits_to_float(np.int32(np.int32(float_to_bits(shifted) - half) << np.int32(23)))
    return ((ONE + p) * first) * second  # a product keeps nan


def exp_below_zero32(x: Number) -> Any:
    """The exponential of a float32 that is at most 0, in less time: what is below 2**-126.5 becomes 0."""
    x = LOWEST_NORMAL if x < LOWEST_NORMAL else x
    shifted = x * LOG2_E + ROUNDS
    steps = shifted - ROUNDS
    r = (x - steps * LN2_HIGH) - steps * LN2_LOW
    q = Q0 + r * (Q1 + r * (Q2 + r * (Q3 + r * (Q4 + r * Q5))))
    p = r + (r * r) * q
    return (ONE + p) * bits_to_float(np.int32(float_to_bits(shifted) << np.int32(23)))  # a product keeps nan


def expm1_32(x: Number) -> Any:
    """The exponential less 1 of a float32, exact near 0."""
    n, p = reduced(clamped(x))
    half = np.int32(n >> np.int32(1))
    first, second = power_of_two(half), power_of_two(np.int32(n - half))
    small = first * second
    near = small * p + (small - ONE)
    far = ((ONE + p) * first) * second - ONE  # for n = 128, where 2**n alone is inf already
    y = near if n < np.int32(127) else far
    y = y if n != np.int32(0) else p
    return y if x == x else x


def without_sign(x: Number) -> Any:
    """The size of a float32; of nan it is nan."""
    return bits_to_float(np.int32(float_to_bits(x) & BELOW_SIGN))


def tanh32(x: Number) -> Any:
    """Hyperbolic tangent of a float32: e / (e + 2) with e = exp(2 |x|) - 1, and the sign of x."""
    size = without_sign(x)
    n, p = reduced(TWO * (TANH_ONE if size > TANH_ONE else size))
    scale = power_of_two(n)
    e = scale * p + (scale - ONE)
    y = e / (e + TWO)
    return bits_to_float(np.int32(float_to_bits(y) | np.int32(float_to_bits(x) & SIGN)))


def sigmoid32(x: Number) -> Any:
    """1 / (1 + exp(-x)) of a float32, relative accuracy kept for large negative x."""
    z = exp32(-without_sign(x))  # the same of x and of -x, whose two results then share it
    top = ONE if x > ZERO else z
    return top / (ONE + z)


def log32(x: Number) -> Any:
    """Natural logarithm of a float32; log(0) = -inf, of a negative number nan."""
    small = x < TINIEST
    bits = float_to_bits(x * TWO_24 if small else x)
    n = np.int32(np.int32(bits - SQRT_HALF_BITS) >> np.int32(23))
    f = bits_to_float(np.int32(bits - np.int32(n << np.int32(23)))) - ONE
    steps = F32(n) - (F32(24.0) if small else ZERO)
    poly = L0 + f * (L1 + f * (L2 + f * (L3 + f * (L4 + f * (L5 + f * (L6 + f * L7))))))
    square = f * f
    rest = square * f * poly + steps * LN2_LOW - HALF * square
    y = (f + rest) + steps * LN2_HIGH
    y = y if x > ZERO else (-INF if x == ZERO else NAN)
    y = y if x < INF else x
    return y if x == x else x


def log1p32(x: Number) -> Any:
    """log(1 + x) of a float32, exact near 0: log of the rounded 1 + x, and what the rounding lost."""
    u = ONE + x
    y = log32(u) + (x - (u - ONE)) / u
    y = y if (u > ZERO) & (u < INF) else log32(u)
    return y if x != ZERO else x


def sigmoid64(x: Number) -> Any:
    """1 / (1 + exp(-x)) of a float64, relative accuracy kept for large negative x."""
    z = np.exp(-x if x > 0.0 else x)
    top = 1.0 if x > 0.0 else z
    return top / (1.0 + z)


def sign32(x: Number) -> Any:
    """-1, 0 or 1 as float32; nan stays nan."""
    y = ONE if x > ZERO else (-ONE if x < ZERO else ZERO)
    return y if x == x else x


def sign64(x: Number) -> Any:
    """-1, 0 or 1 as float64; nan stays nan."""
    y = 1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)
    return y if x == x else x


def sqrt(x: Number) -> Any:
    """Square root; nan for negative numbers."""
    return np.sqrt(x)


# What formulas and kernels call: numba picks by the type of x, Python as written here.
def exp(x: Number) -> Any:
    """The exponential for either float type."""
    return exp32(x) if isinstance(x, np.float32) else np.exp(x)


def exp_below_zero(x: Number) -> Any:
    """The exponential of what is at most 0, for either float type."""
    return exp_below_zero32(x) if isinstance(x, np.float32) else np.exp(x)


def order(x: Number) -> Any:
    """An integer that is the larger the larger x: LLVM finds the largest integer in many lanes, of floats in one."""
    return order32(x) if isinstance(x, np.float32) else order64(x)


def ordered(n: Any) -> Any:
    """The number of an order."""
    return ordered32(n) if n.itemsize == 4 else ordered64(n)


def expm1(x: Number) -> Any:
    """The exponential less 1 for either float type."""
    return expm1_32(x) if isinstance(x, np.float32) else np.expm1(x)


def log(x: Number) -> Any:
    """Natural logarithm for either float type."""
    return log32(x) if isinstance(x, np.float32) else np.log(x)


def log1p(x: Number) -> Any:
    """log(1 + x) for either float type."""
    return log1p32(x) if isinstance(x, np.float32) else np.log1p(x)


def tanh(x: Number) -> Any:
    """Hyperbolic tangent for either float type."""
    return tanh32(x) if isinstance(x, np.float32) else np.tanh(x)


def sigmoid(x: Number) -> Any:
    """The logistic function for either float type."""
    return sigmoid32(x) if isinstance(x, np.float32) else sigmoid64(x)


def sign(x: Number) -> Any:
    """-1, 0 or 1 for either float type; nan stays nan."""
    return sign32(x) if isinstance(x, np.float32) else sign64(x)


def maximum(a: Number, b: Number) -> Any:
    """The larger one; nan if either is nan, as in NumPy."""
    return a if (a >= b) | (a != a) else b


def minimum(a: Number, b: Number) -> Any:
    """The smaller one; nan if either is nan, as in NumPy."""
    return a if (a <= b) | (a != a) else b


def where(condition: Any, a: Number, b: Number) -> Any:
    """`a` where the condition holds, `b` elsewhere; both are computed, one is chosen."""
    return a if condition else b


BY_TYPE: dict[Callable[[Any], Any], tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    exp: (exp32, np.exp),
    exp_below_zero: (exp_below_zero32, np.exp),
    order: (order32, order64),
    ordered: (ordered32, ordered64),
    expm1: (expm1_32, np.expm1),
    log: (log32, np.log),
    log1p: (log1p32, np.log1p),
    tanh: (tanh32, np.tanh),
    sigmoid: (sigmoid32, sigmoid64),
    sign: (sign32, sign64),
}
"""Function -> (32-bit version, 64-bit version): what numba is told to choose from."""

INLINED = (
    power_of_two, reduced, clamped, without_sign, exp32, expm1_32, tanh32, sigmoid32, log32, log1p32, sigmoid64,
    sign32, sign64, maximum, minimum, where, sqrt, exp_below_zero32, order32, order64, ordered32, ordered64,
)  # fmt: skip
"""Functions that numba compiles as they stand."""

TWINS: tuple[Callable[..., Any], ...] = (exp, expm1, log, log1p, tanh, sigmoid, sign, maximum, minimum, where)
"""What stands here for functions of formulas; `special.py` has more, and the others are NumPy's, calls of libm."""
