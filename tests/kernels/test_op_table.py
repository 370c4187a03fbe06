"""The op table fuses: the forward and every rule of each elementwise op gives in a loop what it gives in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from lab.errors import KernelError
from lab.kernels import Chain, Formula, Step, fuse, numpy_namespace
from lab.ops import PRIMITIVES
from lab.ops.primitive import Op

OPS = [op for op in PRIMITIVES.values() if op.elementwise]
RULES = [
    pytest.param(op, rule.text, id=f"{op.name}-{rule.argument}")
    for op in OPS
    for rule in op.rules
    if rule is not None and Formula(rule.text).names
]


def fused_and_plain(op: Op, text: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """The formula over one sample with nan, inf and zeros in it, both ways."""
    rng = np.random.default_rng(0)
    names = ("ct", "out", *op.arguments)
    arrays = [
        np.concatenate([rng.uniform(0.1, 3, 50), [0.0, np.inf, -np.inf, np.nan, -2.0]]).astype(dtype) for _ in names
    ]
    for array in arrays:
        rng.shuffle(array)
    if "condition" in names:
        arrays[names.index("condition")] = arrays[0] > 1
    fixed = {**op.defaults, **{name: value() for name, value in op.fixed.items()}}
    formula = Formula(text)
    step = Step("result", formula, (*names, *fixed), (*names, *fixed.values()))
    inputs = tuple((name, str(array.dtype)) for name, array in zip(names, arrays, strict=True))
    with np.errstate(all="ignore"):
        plain = formula.compile(numpy_namespace(), (*names, *fixed))(*arrays, *fixed.values())
    return fuse(Chain(inputs, (step,), ("result",)))(*arrays)[0], plain


def assert_same(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(
        found, wanted, rtol=8 * np.finfo(wanted.dtype).eps if wanted.dtype != bool else 0, atol=0
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_forward_of_an_op_is_the_same_in_a_loop(op: Op, dtype: str) -> None:
    assert_same(*fused_and_plain(op, op.formula, dtype))


@pytest.mark.parametrize(("op", "text"), RULES)
def test_a_rule_of_an_op_is_the_same_in_a_loop(op: Op, text: str) -> None:
    assert_same(*fused_and_plain(op, text, "float32"))


def test_a_formula_without_arrays_is_no_step() -> None:
    with pytest.raises(KernelError, match=r"depends on no array\ngiven: r = -1"):
        Chain((("x", "float32"),), (Step("r", Formula("-1"), (), ()),), ("r",))
