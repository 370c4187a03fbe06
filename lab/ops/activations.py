"""Activations of networks: sigmoids, rectifiers and their smooth relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError
from lab.kernels import FLOAT_CHARS
from lab.kernels.loops import looped_of
from lab.ops.composite import composite
from lab.ops.elementwise import MORE_SHAPES, elementwise, kink
from lab.ops.sample import Sample

sigmoid = elementwise(
    "sigmoid", "x", "sigmoid(x)", ["out * (1 - out)"], looped=True,
    reference=lambda x: 0.5 * (1 + np.tanh(x / 2)), method=True, doc="1 / (1 + exp(-x)), elementwise.",
)  # fmt: skip
log_sigmoid = elementwise(
    "log_sigmoid", "x", "minimum(x, 0) - log1p(exp(-abs(x)))", ["sigmoid(-x)"], precision="wide", looped=True,
    reference=lambda x: -np.logaddexp(0, -x), doc="log(sigmoid(x)) without overflow, elementwise.",
)  # fmt: skip
softplus = elementwise(
    "softplus", "x", "maximum(x, 0) + log1p(exp(-abs(x)))", ["sigmoid(x)"], precision="wide", looped=True,
    reference=lambda x: np.logaddexp(0, x), doc="log(1 + exp(x)) without overflow, elementwise: a smooth relu.",
)  # fmt: skip
_ZEROS = {char: np.zeros((), char) for char in "efd"}
"""Ready made: NumPy converts a number as slowly as it rectifies 640."""


_MANY = 4096
"""Entries that a loop of our own rectifies in less time: NumPy's maximum with a single number runs in no lanes."""
_rectify = looped_of("maximum(x, 0.0)", ("x",))


def _rectified(x: Any, kink: float) -> Any:
    if type(x) is not np.ndarray:
        return np.maximum(x, 0)
    return _rectify(x) if x.size > _MANY and x.dtype.char in FLOAT_CHARS else np.maximum(x, _ZEROS.get(x.dtype.char, 0))


relu = elementwise(
    "relu", "x", "maximum(x, 0)", ["where(x > 0, ct, where(x == 0, kink * ct, 0.0))"], fixed={"kink": kink},
    ufunc=_rectified, reference=lambda x: x * (x > 0), masks=True,
    samples=[Sample(s) for s in MORE_SHAPES[1]], method=True,
    doc="The larger of x and 0, elementwise; its slope at 0 is the convention `kinks`.",
)  # fmt: skip


_FEW = 2000
"""Entries of which NumPy's where chooses in less time than a compiled loop is called."""
_relu_loop = looped_of("where(x > 0, ct, 0.0)", ("ct", "x"))
_relu_formula = relu.rules[0].eager  # type: ignore[union-attr]


def _relu_rule(ct: Any, out: Any, x: Any, *, kink: float) -> Any:
    """The rule of relu on arrays: that of its formula, in one pass where the slope at 0 is 0."""
    if kink:
        return _relu_formula(ct, out, x, kink=kink)
    if ct.dtype is not x.dtype:  # to compare dtypes takes longer
        ct = ct.astype(x.dtype, copy=False)
    if x.size < _FEW or x.dtype.char not in FLOAT_CHARS:
        zero = _ZEROS[x.dtype.char]
        return np.where(np.greater(x, zero), ct, zero)
    return _relu_loop(ct, x)


relu.rules[0].eager = _relu_rule  # type: ignore[union-attr]
leaky_relu = elementwise(
    "leaky_relu", "x", "where(x > 0, x, negative_slope * x)",
    ["where(x > 0, ct, where(x == 0, (negative_slope + kink * (1 - negative_slope)) * ct, negative_slope * ct))"],
    parameters={"negative_slope": 0.01}, fixed={"kink": kink}, reference=lambda x, negative_slope=0.01: (
        np.maximum(x, 0) + negative_slope * np.minimum(x, 0)
    ),
    samples=[Sample(((2, 3),)), Sample(((),), {"negative_slope": 0.2})],
    doc="x above 0, a share of x below; its slope at 0 is the convention `kinks`.",
)  # fmt: skip
elu = elementwise(
    "elu", "x", "where(x > 0, x, alpha * expm1(minimum(x, 0)))",
    ["where(x > 0, ct, ct * where(x == 0, alpha + kink * (1 - alpha), alpha * exp(minimum(x, 0))))"],
    parameters={"alpha": 1.0}, fixed={"kink": kink},
    reference=lambda x, alpha=1.0: np.maximum(x, 0) + alpha * (np.exp(np.minimum(x, 0)) - 1),
    samples=[Sample(((2, 3),)), Sample(((),), {"alpha": 0.3}, domain=(-2.0, -1.0))],
    doc="x above 0, alpha * (exp(x) - 1) below; where alpha is not 1, its slope at 0 is the convention `kinks`.",
)  # fmt: skip
silu = elementwise(
    "silu", "x", "x * sigmoid(x)", ["sigmoid(x) * (1 + x * sigmoid(-x))"], looped=True,
    reference=lambda x: x / (1 + np.exp(-x)), doc="x * sigmoid(x), elementwise; also called swish.",
)  # fmt: skip


def _normal_cdf(x: Any) -> Any:
    from lab.ops.exponentials import erfc

    return 0.5 * erfc.reference(-x / np.sqrt(2.0))  # type: ignore[misc]


gelu_erf = elementwise(
    # erfc, not 1 + erf, which has no digits left for x < -5
    "gelu_erf", "x", "0.5 * x * erfc(-x / sqrt2)", ["0.5 * erfc(-x / sqrt2) + x * exp(-0.5 * x * x) / sqrt2pi"],
    reference=lambda x: x * _normal_cdf(x), looped=True,
    doc="x times the share of a normal distribution below x, elementwise: gelu as it is defined.",
)  # fmt: skip
_SIGMOID = "sigmoid({}(1.5957691216057308 * (x + 0.044715 * x * x * x)))"  # with a minus the same exponential
gelu_tanh = elementwise(
    # 0.5 * (1 + tanh(u)) is sigmoid(2 * u), and keeps its digits for negative u; 1.5957... is 2 * sqrt(2 / pi)
    "gelu_tanh", "x", f"x * {_SIGMOID.format('')}",
    [f"{_SIGMOID.format('')} * (1 + x * {_SIGMOID.format('-')} * 1.5957691216057308 * (1 + 0.134145 * x * x))"],
    reference=lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), looped=True,
    doc="The approximation of gelu by a hyperbolic tangent, elementwise (Hendrycks and Gimpel, arXiv:1606.08415).",
)  # fmt: skip


def _gelu(x: Any, approximate: str = "none") -> Any:
    return gelu_tanh.reference(x) if approximate == "tanh" else gelu_erf.reference(x)  # type: ignore[misc]


@composite(
    samples=[Sample(((3,),)), Sample(((3,),), {"approximate": "tanh"})], reference=_gelu,
    error_samples=[(((3,),), {"approximate": "erf"}, "gelu does not know this approximation")],
)  # fmt: skip
def gelu(x: Any, approximate: str | bool = "none") -> Any:
    """The share of a normal distribution below x, times x; `approximate="tanh"` (or True) is cheaper."""
    if approximate in ("tanh", True):
        return gelu_tanh(x)
    if approximate in ("none", False):
        return gelu_erf(x)
    raise ArgumentError("gelu does not know this approximation", given=repr(approximate), hint='"none" or "tanh"')
