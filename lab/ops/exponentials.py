"""Exponentials and logarithms of every base, and the sums and products of logarithms that do not overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lab.ops.elementwise import NUMPY, elementwise

POSITIVE = (0.3, 3.0)

exp = elementwise(
    "exp", "x", "exp(x)", ["out"], ufunc=np.exp, reference=np.exp, precision="wide", singular=True, method=True,
    doc="Exponential, elementwise.",
)  # fmt: skip
exp2 = elementwise(
    "exp2", "x", "exp2(x)", ["out * ln2"], ufunc=np.exp2, reference=lambda x: 2.0**x, precision="wide", singular=True,
    method=True, doc="2 to the power of x, elementwise.",
)  # fmt: skip
expm1 = elementwise(
    # the rule is exp(x) and not out + 1, which has no digits left for x < -36
    "expm1", "x", "expm1(x)", ["exp(x)"], ufunc=np.expm1, reference=np.expm1, precision="wide", singular=True,
    method=True, doc="exp(x) - 1, exact near 0, elementwise.",
)  # fmt: skip
log = elementwise(
    "log", "x", "log(x)", ["ct / x"], ufunc=np.log, reference=np.log, domain=POSITIVE, precision="wide", singular=True,
    method=True, doc="Natural logarithm, elementwise.",
)  # fmt: skip
log2 = elementwise(
    "log2", "x", "log2(x)", ["ct / (x * ln2)"], ufunc=np.log2, reference=np.log2, domain=POSITIVE, precision="wide",
    singular=True, method=True, doc="Logarithm of base 2, elementwise.",
)  # fmt: skip
log10 = elementwise(
    "log10", "x", "log10(x)", ["ct / (x * ln10)"], ufunc=np.log10, reference=np.log10, domain=POSITIVE,
    precision="wide", singular=True, method=True, doc="Logarithm of base 10, elementwise.",
)  # fmt: skip
log1p = elementwise(
    "log1p", "x", "log1p(x)", ["ct / (1 + x)"], ufunc=np.log1p, reference=np.log1p, domain=(-0.5, 2.0),
    precision="wide", singular=True, method=True, doc="log(1 + x), exact near 0, elementwise.",
)  # fmt: skip
_SHARE = (
    "where(isinf({0}), where({0} > {1}, ct, where({0} == {1}, 0.5 * ct, 0.0)), "
    "ct * exp({0} - where(isinf({0}), 0.0, out)))"
)
logaddexp = elementwise(
    # The share of each term in the sum. Where x is infinite a difference would be nan: the larger takes all, and equal
    # ones, -inf twice too, share equally.
    "logaddexp", "x, y", "logaddexp(x, y)",
    [_SHARE.format("x", "y"), _SHARE.format("y", "x")],
    ufunc=np.logaddexp, reference=lambda x, y: np.log(np.exp(x) + np.exp(y)), precision="wide", masks=True,
    singular=True, method=True, doc="log(exp(x) + exp(y)) without overflow, elementwise; -inf is log(0).",
)  # fmt: skip
xlogy = elementwise(
    "xlogy", "x, y", "xlogy(x, y)",
    # 0 log 0 is 0 and, as in torch, flat.
    ["ct * log(where(logical_and(x == 0, y == 0), 1, y))", "ct * (x / where(logical_and(x == 0, y == 0), inf, y))"],
    ufunc=NUMPY["xlogy"], reference=lambda x, y: x * np.log(y), domain=((0.0, 2.0), POSITIVE), precision="wide",
    singular=True, masks=True, method=True, doc="x * log(y), elementwise, and 0 where x is 0: the term of an entropy.",
)  # fmt: skip


def _one_by_one(function: Any) -> Any:
    return lambda x: np.vectorize(function, otypes=[np.result_type(x, np.float16)])(x)


erf = elementwise(
    "erf", "x", "erf(x)", ["2 * exp(-x * x) / sqrtpi"], ufunc=NUMPY["erf"], reference=_one_by_one(math.erf),
    precision="wide", method=True,
    doc="Error function, elementwise: the share of a normal distribution within x * sqrt(2) deviations.",
)  # fmt: skip
erfc = elementwise(
    "erfc", "x", "erfc(x)", ["-2 * exp(-x * x) / sqrtpi"], ufunc=NUMPY["erfc"], reference=_one_by_one(math.erfc),
    precision="wide", method=True, doc="1 - erf(x), elementwise, with its digits kept where erf is nearly 1.",
)  # fmt: skip
