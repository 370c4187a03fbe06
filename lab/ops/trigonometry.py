"""Trigonometric and hyperbolic functions and their inverses, in radians."""

from __future__ import annotations

import numpy as np

from lab.ops.elementwise import MORE_SHAPES, NUMPY, elementwise
from lab.ops.sample import Sample

sin = elementwise(
    "sin", "x", "sin(x)", ["cos(x)"], ufunc=np.sin, reference=np.sin, method=True, doc="Sine, elementwise."
)
cos = elementwise(
    "cos", "x", "cos(x)", ["-ct * sin(x)"], ufunc=np.cos, reference=np.cos, method=True, doc="Cosine, elementwise."
)
tan = elementwise(
    "tan", "x", "tan(x)", ["1 + out * out"], ufunc=np.tan, reference=np.tan, domain=(-1.0, 1.0), precision="wide",
    singular=True, method=True, doc="Tangent, elementwise.",
)  # fmt: skip
arcsin = elementwise(
    # (1 - x) * (1 + x) keeps the digits near the ends, which 1 - x * x does not
    "arcsin", "x", "arcsin(x)", ["ct / sqrt((1 - x) * (1 + x))"], ufunc=np.arcsin, reference=np.arcsin,
    domain=(-0.8, 0.8), precision="wide", singular=True, method=True,
    doc="Inverse sine, elementwise; its slope is inf at -1 and 1.",
)  # fmt: skip
arccos = elementwise(
    "arccos", "x", "arccos(x)", ["-ct / sqrt((1 - x) * (1 + x))"], ufunc=np.arccos, reference=np.arccos,
    domain=(-0.8, 0.8), precision="wide", singular=True, method=True,
    doc="Inverse cosine, elementwise; its slope is -inf at -1 and 1.",
)  # fmt: skip
arctan = elementwise(
    "arctan", "x", "arctan(x)", ["ct / (1 + x * x)"], ufunc=np.arctan, reference=np.arctan, method=True,
    doc="Inverse tangent, elementwise.",
)  # fmt: skip
arctan2 = elementwise(
    # two quotients, not one by x * x + y * y, which is inf or 0 long before they are
    "arctan2", "y, x", "arctan2(y, x)",
    ["ct * (x / hypot(x, y) / hypot(x, y))", "ct * (-y / hypot(x, y) / hypot(x, y))"],
    ufunc=np.arctan2, reference=np.arctan2, domain=((-2.0, 2.0), (0.5, 2.0)), singular=True, method=True,
    doc="Angle of the point (x, y), y first, elementwise; at the origin there is none and its slope is nan.",
)  # fmt: skip
sinh = elementwise(
    "sinh", "x", "sinh(x)", ["cosh(x)"], ufunc=np.sinh, reference=np.sinh, precision="wide", singular=True,
    method=True, doc="Hyperbolic sine, elementwise.",
)  # fmt: skip
cosh = elementwise(
    "cosh", "x", "cosh(x)", ["sinh(x)"], ufunc=np.cosh, reference=np.cosh, precision="wide", singular=True,
    method=True, doc="Hyperbolic cosine, elementwise.",
)  # fmt: skip
tanh = elementwise(
    "tanh", "x", "tanh(x)", ["1 - out * out"], ufunc=np.tanh, reference=np.tanh,
    samples=[Sample(s) for s in MORE_SHAPES[1]], method=True, doc="Hyperbolic tangent, elementwise.",
)  # fmt: skip
arcsinh = elementwise(
    "arcsinh", "x", "arcsinh(x)", ["ct / hypot(x, 1)"], ufunc=np.arcsinh, reference=np.arcsinh, method=True,
    doc="Inverse hyperbolic sine, elementwise.",
)  # fmt: skip
arccosh = elementwise(
    "arccosh", "x", "arccosh(x)", ["ct / (sqrt(x - 1) * sqrt(x + 1))"], ufunc=np.arccosh, reference=np.arccosh,
    domain=(1.5, 3.0), singular=True, method=True,
    doc="Inverse hyperbolic cosine, elementwise; its slope is inf at 1.",
)  # fmt: skip
arctanh = elementwise(
    "arctanh", "x", "arctanh(x)", ["ct / ((1 - x) * (1 + x))"], ufunc=np.arctanh, reference=np.arctanh,
    domain=(-0.7, 0.7), singular=True, method=True,
    doc="Inverse hyperbolic tangent, elementwise; inf at 1, -inf at -1.",
)  # fmt: skip
sinc = elementwise(
    "sinc", "x", "where(x == 0, 1, sin(pi * x) / (pi * where(x == 0, 1, x)))", ["sinc_slope(x, 1)"],
    reference=np.sinc, numpy={np.sinc: None}, method=True,
    doc="sin(pi x) / (pi x), elementwise, 1 at 0, where it is smooth to every order.",
)  # fmt: skip
sinc_slope = elementwise(
    "sinc_slope", "x", "sinc_slope(x, order)", ["sinc_slope(x, order + 1)"], parameters={"order": 1},
    ufunc=NUMPY["sinc_slope"],
    reference=lambda x, order=1: (
        (np.cos(np.pi * x) - np.sinc(x)) / x if order == 1
        else -np.pi * np.sin(np.pi * x) / x - 2 * (np.cos(np.pi * x) - np.sinc(x)) / x**2
    ),
    samples=[Sample(((2, 3),), domain=(0.3, 2.0)), Sample(((),), {"order": 2}, domain=(0.3, 2.0))],
    doc="The derivative of sinc of the given order, elementwise.",
)  # fmt: skip
