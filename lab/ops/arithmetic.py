"""Arithmetic: the operators, powers and roots, absolute value and sign, and the roundings to whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError
from lab.ops.composite import composite
from lab.ops.elementwise import MORE_SHAPES, elementwise
from lab.ops.sample import Sample

add = elementwise(
    "add", "x, y", "x + y", ["ct", "ct"], ufunc=np.add, reference=np.add,
    samples=[Sample(s) for s in MORE_SHAPES[2]], doc="Sum, elementwise.",
)  # fmt: skip
subtract = elementwise(
    "subtract", "x, y", "x - y", ["ct", "-ct"], ufunc=np.subtract, reference=np.subtract, doc="Difference, elementwise."
)
multiply = elementwise(
    "multiply", "x, y", "x * y", ["y", "x"], ufunc=np.multiply, reference=np.multiply,
    samples=[Sample(s) for s in MORE_SHAPES[2]], doc="Product, elementwise.",
)  # fmt: skip
divide = elementwise(
    "divide", "x, y", "x / y", ["ct / y", "-ct * out / y"], ufunc=np.true_divide, reference=np.true_divide,
    domain=((-2.0, 2.0), (0.5, 2.0)), singular=True, doc="Quotient, elementwise.",
)  # fmt: skip
negative = elementwise(
    "negative", "x", "-x", ["-1"], ufunc=np.negative, reference=np.negative, method=True, doc="Minus, elementwise."
)


def _power(x: Any, y: Any) -> Any:
    """np.power, with the exponents that everybody writes as the products they are: 20 times as fast."""
    if type(y) is float:
        shortcut = _SHORTCUTS.get(y) if type(x) is np.ndarray and x.dtype.kind == "f" else None
    elif type(y) is np.ndarray and y.ndim == 0 and type(x) is np.ndarray and x.dtype is y.dtype:
        shortcut = _SHORTCUTS.get(y.item()) if y.dtype.kind == "f" else None
    else:
        shortcut = None
    return np.power(x, y) if shortcut is None else shortcut(x)


_SHORTCUTS = {2.0: np.square, 0.5: np.sqrt, 1.0: np.positive, -1.0: np.reciprocal}

power = elementwise(
    "power", "x, y", "x ** y",
    # At 0 ** 0 the slope in x is 0. At x = 0 the slope in y is its limit from above, 0 or (for y < 0) -inf, and 0 at
    # 0 ** 0, as in torch and JAX; for x < 0 the power is no function of a real y, and it is nan, without a warning.
    ["y * x ** where(logical_and(x == 0, y == 0), 0, y - 1)",
     "ct * where(x == 0, where(y < 0, -out, 0.0), out * where(x < 0, nan, log(where(x > 0, x, 1))))"],
    ufunc=_power, reference=np.power, precision="wide", singular=True,
    samples=[Sample(s, domain=((0.3, 2.0), (-2.0, 3.0))) for s in MORE_SHAPES[2][:3]], doc="Power, elementwise.",
)  # fmt: skip


def _power_rule(ct: Any, _out: Any, x: Any, y: Any) -> Any:
    """The rule of x in x ** y on arrays: that of its formula, in fewer steps where y is one number."""
    if y.ndim or x.dtype is not y.dtype:
        return _power_rule_formula(ct, None, x, y)
    exponent = y.item()
    if exponent == 1.0:
        return ct
    if exponent == 2.0:
        return ct * (x + x)
    return ct * (exponent * (_power(x, y - y.dtype.type(1)) if exponent else 0 * x))


_power_rule_formula = power.rules[0].eager  # type: ignore[union-attr]
power.rules[0].eager = _power_rule  # type: ignore[union-attr]

square = elementwise(
    "square", "x", "x * x", ["2 * x"], ufunc=np.square, reference=np.square, method=True, doc="x * x, elementwise."
)
reciprocal = elementwise(
    "reciprocal", "x", "1 / x", ["-ct * out * out"], ufunc=np.reciprocal, reference=np.reciprocal, domain=(0.5, 2.0),
    singular=True, precision="wide", method=True, doc="1 / x, elementwise; of integers as in NumPy the whole part.",
)  # fmt: skip
sqrt = elementwise(
    "sqrt", "x", "sqrt(x)", ["ct * 0.5 / out"], ufunc=np.sqrt, reference=np.sqrt, domain=(0.3, 3.0), singular=True,
    method=True, doc="Square root, elementwise.",
)  # fmt: skip
rsqrt = elementwise(
    "rsqrt", "x", "1 / sqrt(x)", ["ct * -0.5 * out / x"], reference=lambda x: x**-0.5, domain=(0.3, 3.0),
    singular=True, precision="wide", method=True, doc="1 / sqrt(x), elementwise.",
)  # fmt: skip
cbrt = elementwise(
    "cbrt", "x", "cbrt(x)", ["ct / (3 * out * out)"], ufunc=np.cbrt, reference=np.cbrt, domain=(0.3, 3.0),
    singular=True, doc="Cube root, elementwise, of negative numbers, too.",
)  # fmt: skip
hypot = elementwise(
    "hypot", "x, y", "hypot(x, y)",
    # At the origin, the tip of a cone, the slope is 0, as that of |x| is.
    ["ct * where(out == 0, 0.0, x / where(out == 0, 1, out))",
     "ct * where(out == 0, 0.0, y / where(out == 0, 1, out))"],
    ufunc=np.hypot, reference=np.hypot, domain=((0.5, 2.0), (-2.0, 2.0)), singular=True, method=True,
    doc="sqrt(x * x + y * y) without overflow, elementwise; slope 0 at the origin.",
)  # fmt: skip
absolute = elementwise(
    "absolute", "x", "abs(x)", ["sign(x)"], ufunc=np.abs, reference=np.abs, method=True,
    doc="Absolute value, elementwise; slope 0 at 0.",
)  # fmt: skip
sign = elementwise(
    "sign", "x", "sign(x)", [None], ufunc=np.sign, reference=np.sign, method=True, doc="-1, 0 or 1, elementwise."
)
floor = elementwise(
    "floor", "x", "floor(x)", [None], ufunc=np.floor, reference=np.floor, method=True,
    doc="Largest whole number not above x.",
)  # fmt: skip
ceil = elementwise(
    "ceil", "x", "ceil(x)", [None], ufunc=np.ceil, reference=np.ceil, method=True,
    doc="Smallest whole number not below x.",
)  # fmt: skip
rint = elementwise(
    "rint", "x", "rint(x)", [None], ufunc=np.rint, reference=np.rint,
    doc="Nearest whole number, elementwise; halves go to the even one.",
)  # fmt: skip
trunc = elementwise(
    "trunc", "x", "trunc(x)", [None], ufunc=np.trunc, reference=np.trunc, method=True,
    doc="The whole number towards 0, elementwise.",
)  # fmt: skip


@composite(
    samples=[Sample(((2, 3),), {"decimals": 1}, differentiable=())],
    error_samples=[(((3,),), {"decimals": 0.5}, "round needs a whole number of decimals")],
    reference=lambda x, decimals=0: np.round(x, decimals), numpy={np.round: None, np.around: None}, method=True,
)  # fmt: skip
def round_(x: Any, decimals: int = 0) -> Any:
    """To the nearest number with so many decimals, elementwise; halves go to the even one, and the slope is 0."""
    if not isinstance(decimals, int | np.integer):
        raise ArgumentError("round needs a whole number of decimals", given=repr(decimals), hint="decimals=2")
    if getattr(x, "dtype", np.dtype(float)).kind in "iu" and decimals >= 0:
        return absolute(x) * sign(x)
    return rint(x) if decimals == 0 else rint(x * 10.0**decimals) / 10.0**decimals
