"""What compares, chooses and limits: comparisons, tests and logic, where, the larger and the smaller of two, clip."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.ops.composite import composite
from lab.ops.elementwise import MORE_SHAPES, elementwise
from lab.ops.sample import Sample
from lab.shapes import broadcast

maximum = elementwise(
    "maximum", "x, y", "maximum(x, y)",
    ["where(x > y, ct, where(x == y, 0.5 * ct, 0.0))", "where(y > x, ct, where(x == y, 0.5 * ct, 0.0))"],
    ufunc=np.maximum, reference=np.maximum, samples=[Sample(s) for s in MORE_SHAPES[2]], masks=True, method=True,
    doc="The larger of two, elementwise; a tie shares the gradient equally.",
)  # fmt: skip
minimum = elementwise(
    "minimum", "x, y", "minimum(x, y)",
    ["where(x < y, ct, where(x == y, 0.5 * ct, 0.0))", "where(y < x, ct, where(x == y, 0.5 * ct, 0.0))"],
    ufunc=np.minimum, reference=np.minimum, masks=True, method=True,
    doc="The smaller of two, elementwise; a tie shares the gradient equally.",
)  # fmt: skip


def _numpy_clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return clip(a, min if a_min is None else a_min, max if a_max is None else a_max)


@composite(
    samples=[Sample(((2, 3),), {"a_min": -0.5, "a_max": 1.0}), Sample(((3,),), {"a_max": 0.5})],
    error_samples=[(((3,),), {"a_min": np.ones(4)}, "clip cannot broadcast its operands")],
    reference=lambda x, a_min=None, a_max=None: np.clip(x, a_min, a_max),
    numpy={np.clip: _numpy_clip}, method=True,
)  # fmt: skip
def clip(x: Any, a_min: Any = None, a_max: Any = None) -> Any:
    """Keep x between two bounds, elementwise: maximum(x, a_min), then minimum with a_max; None is no bound.

    The bounds are numbers, arrays or tensors and take gradients; where x meets one, a tie, they share it equally.
    """
    for bound in (a_min, a_max):
        if bound is not None:
            broadcast(np.shape(x), np.shape(bound), op="clip")
    if a_min is not None:
        x = maximum(x, a_min)
    if a_max is not None:
        return minimum(x, a_max)
    return where(True, x, x) if a_min is None else x


where = elementwise(
    "where", "condition, x, y", "where(condition, x, y)",
    [None, "where(condition, ct, 0.0)", "where(condition, 0.0, ct)"],
    ufunc=np.where, reference=lambda c, x, y: np.choose(c.astype(int), np.broadcast_arrays(y, x)),
    kinds=("b", "f", "f"), masks=True,
    doc="x where the condition holds, y elsewhere; the branch not taken contributes exactly nothing.",
)  # fmt: skip


def _truth(name: str, sign: str) -> Any:
    """A comparison, or an op of logic, of two; it has no gradient."""
    ufunc = getattr(np, name)
    logic = name.startswith("logical")
    return elementwise(
        name, "x, y", f"{name}(x, y)" if logic else f"x {sign} y", [None, None], ufunc=ufunc, reference=ufunc,
        samples=[Sample(((2, 3), (3,)), kinds=("b", "b") if logic else ("f",))], method=True,
        doc=f"x {sign} y, elementwise.",
    )  # fmt: skip


greater = _truth("greater", ">")
greater_equal = _truth("greater_equal", ">=")
less = _truth("less", "<")
less_equal = _truth("less_equal", "<=")
equal = _truth("equal", "==")
not_equal = _truth("not_equal", "!=")
logical_and = _truth("logical_and", "and")
logical_or = _truth("logical_or", "or")
logical_xor = _truth("logical_xor", "xor")


def _test(name: str, doc: str, kind: str = "f") -> Any:
    """A truth of each entry; it has no gradient."""
    ufunc = getattr(np, name)
    return elementwise(
        name, "x", f"{name}(x)", [None], ufunc=ufunc, reference=ufunc, samples=[Sample(((2, 3),), kinds=(kind,))],
        method=True, doc=doc,
    )  # fmt: skip


logical_not = _test("logical_not", "Whether x is zero or False, elementwise.", "b")
isnan = _test("isnan", "Whether x is nan, elementwise.")
isinf = _test("isinf", "Whether x is inf or -inf, elementwise.")
isfinite = _test("isfinite", "Whether x is neither nan, inf nor -inf, elementwise.")
