"""Elementwise ops: each is a formula in text, and everything else follows from it.

The forward on arrays, the kernel in a numba loop, the rule of each edge, the tangent, the batching rule, the label in
the picture and the tests come from the same strings. The records stand by family in `arithmetic.py`, `exponentials.py`,
`trigonometry.py`, `activations.py` and `comparisons.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lab.config import STATE
from lab.errors import DTypeError
from lab.kernels.formula import Formula
from lab.kernels.loops import looped_of
from lab.kernels.namespaces import numpy_namespace
from lab.ops.primitive import PRIMITIVES, Op, formula_rule
from lab.ops.sample import Sample
from lab.shapes import Spec, broadcast

NUMPY = numpy_namespace()
"""What the functions of a formula mean on arrays."""


def elementwise(
    name: str,
    arguments: str,
    formula: str,
    rules: Sequence[str | None],
    *,
    doc: str,
    reference: Callable[..., Any],
    ufunc: Callable[..., Any] | None = None,
    looped: bool = False,
    parameters: Mapping[str, float] | None = None,
    fixed: Mapping[str, Callable[[], Any]] | None = None,
    samples: Sequence[Sample] | None = None,
    domain: tuple[Any, ...] = (-2.0, 2.0),
    kinds: tuple[str, ...] = ("f",),
    precision: str = "follow",
    masks: bool = False,
    singular: bool = False,
    numpy: Mapping[Any, Callable[..., Any] | None] | None = None,
    method: bool = False,
) -> Op:
    """Make an op from its formula and one rule for each argument.

    Args:
        name: key in the table; NumPy's word where NumPy has one.
        arguments: names of the operands, "x, y".
        formula: the forward.
        rules: for each argument its partial derivative, or the whole rule if it mentions `ct`; None: no gradient.
        ufunc: a NumPy function that computes the formula faster than its parts.
        looped: the formula and its rules run in a compiled loop each; for those that take NumPy five passes or more.
        parameters: numbers in the formula that the user may give, with their defaults; fixed when the op is recorded.
        fixed: parameters of the formula that the State fixes when the op is recorded.
        samples: rows for the tests, where those that follow from the number of operands and `domain` do not do.

    Example:
        >>> import lab
        >>> cube = elementwise("cube", "x", "x * x * x", ["3 * x * x"], reference=lambda x: x**3, doc="x * x * x.")
        >>> lab.grad(cube)(2.0)
        tensor(12.)
        >>> del PRIMITIVES["cube"]
    """
    operands = tuple(a.strip() for a in arguments.split(","))
    words = (*(parameters or {}), *(fixed or {}))
    forward = looped_of(formula, operands) if looped else ufunc or Formula(formula).compile(NUMPY, (*operands, *words))
    # Before the op is entered in the table: a rule that cannot be read leaves nothing behind.
    made = [
        None if text is None else formula_rule(i, text, operands, NUMPY, words) for i, text in enumerate(rules)
    ]
    op = Op(
        name,
        operands,
        forward,
        doc=doc,
        formula=formula,
        defaults=parameters,
        fixed=fixed,
        reference=reference,
        samples=[Sample(s, domain=domain, kinds=kinds) for s in SHAPES[len(operands)]] if samples is None else samples,
        precision=precision,
        masks=masks,
        singular=singular,
        numpy=numpy,
        method=method,
    )
    op.rules = made
    for rule in made if looped else ():
        if rule is not None:
            rule.eager = _looped_rule(rule.text, operands)
    op.shape = _shape_rule(op)
    op.batch = _batch_rule(op)
    return op


def _looped_rule(text: str, operands: tuple[str, ...]) -> Callable[..., Any]:
    """A rule on arrays as one loop over those that it reads."""
    formula = Formula(text)
    places = [i for i, name in enumerate(("ct", "out", *operands)) if name in formula.names]
    loop = looped_of(text, tuple(("ct", "out", *operands)[i] for i in places))
    return lambda *arrays: loop(*(arrays[i] for i in places))


SHAPES: dict[int, list[tuple[tuple[int, ...], ...]]] = {
    1: [((2, 3),), ((),)],
    2: [((2, 3), (3,)), ((), ()), ((2, 1), (4,))],
    3: [((3,), (3,), (3,)), ((2, 3), (3,), (2, 1))],
}
"""Shapes of the samples by the number of operands."""
MORE_SHAPES: dict[int, list[tuple[tuple[int, ...], ...]]] = {
    1: [*SHAPES[1], ((3,),), ((2, 0),)],
    2: [*SHAPES[2], ((2, 3), (2, 3)), ((0, 3), (1,))],
}
"""The same with empty ones and equal ones, for a few ops that stand for all: what they show is no op's own."""


def _shape_rule(op: Op) -> Callable[..., Spec]:
    @lru_cache(maxsize=1024)
    def dtype_of(kinds: tuple[Any, ...]) -> np.dtype[Any]:
        ones = [k(1) if isinstance(k, type) else np.ones(1, k) for k in kinds]
        params = {**op.defaults, **{n: f() for n, f in op.fixed.items()}}
        try:
            with np.errstate(all="ignore"):
                tried: np.ndarray[Any, np.dtype[Any]] = np.asarray(op.forward(*ones, **params))
                return tried.dtype
        except TypeError as why:
            raise DTypeError(
                f"{op.name} is not defined for these dtypes",
                given=" and ".join(k.__name__ if isinstance(k, type) else str(k) for k in kinds),
                hint=f"convert with .astype(float); NumPy says: {why}",
            ) from None

    def shape(*specs: Any, **_: Any) -> Spec:
        shapes = [s.shape if isinstance(s, Spec) else np.shape(s) for s in specs]
        kinds = tuple(
            s.dtype if isinstance(s, Spec) else type(s) if np.isscalar(s) else np.asarray(s).dtype for s in specs
        )
        return Spec(broadcast(*shapes, op=op.name), dtype_of(kinds))

    return shape


def _batch_rule(op: Op) -> Callable[..., Any]:
    def batch(_size: int, mapped: tuple[bool, ...], *values: Any, **params: Any) -> Any:
        ranks = [np.ndim(v) - m if not hasattr(v, "ndim") else v.ndim - m for v, m in zip(values, mapped, strict=True)]
        rank = max(ranks)
        reshape = PRIMITIVES["reshape"]
        aligned = [
            reshape(v, shape=(v.shape[0], *(1,) * (rank - r), *v.shape[1:])) if m and r < rank else v
            for v, m, r in zip(values, mapped, ranks, strict=True)
        ]
        return op(*aligned, **params)

    return batch


_SLOPES = {"zero": 0.0, "half": 0.5, "one": 1.0}


def kink() -> float:
    """The slope at a kink by the convention in force, as a share of the way from the left slope to the right one."""
    return _SLOPES[STATE.get().kinks]
