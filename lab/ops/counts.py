"""Reductions without a gradient: any, all, count_nonzero, and where the largest and smallest entries are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.errors import ShapeError
from lab.ops.primitive import Op, primitive
from lab.ops.reduce import reduction
from lab.ops.sample import Sample
from lab.ops.shape import reshape
from lab.shapes import Spec, normal_axes, one_axis


def _counted(name: str, numpy: Any, reference: Callable[..., Any], doc: str, *, method: bool = True) -> Op:
    def forward(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        normal_axes(axis, np.ndim(x), op=name)
        return numpy(x, axis=tuple(axis) if type(axis) is list else axis, keepdims=keepdims)

    forward.__name__, forward.__doc__ = name, doc
    op = primitive(
        samples=[Sample(((2, 3),), {"axis": (0, -1)}, kinds=("i2",)), Sample(((2, 3),), {"axis": 1, "keepdims": True})],
        error_samples=[(((3,),), {"axis": 1}, f"{name} over an axis")],
        reference=reference, numpy={numpy: None}, method=method,
    )(forward)  # fmt: skip
    reduction(op)
    return op


any_ = _counted(
    "any", np.any, lambda x, axis=None, keepdims=False: np.logical_or.reduce(x, axis=axis, keepdims=keepdims),
    "Whether any entry over axes is not zero; of no entries False.",
)  # fmt: skip
all_ = _counted(
    "all", np.all, lambda x, axis=None, keepdims=False: np.logical_and.reduce(x, axis=axis, keepdims=keepdims),
    "Whether every entry over axes is not zero; of no entries True.",
)  # fmt: skip
count_nonzero = _counted(
    "count_nonzero", np.count_nonzero,
    lambda x, axis=None, keepdims=False: np.sum(x != 0, axis=axis, keepdims=keepdims),
    "How many entries over axes are not zero.",
)  # fmt: skip


def _where(name: str, numpy: Any, word: str) -> Op:
    """The number of the first extreme entry; no gradient, as it jumps."""

    def check(shape: tuple[int, ...], axis: Any) -> int | None:
        along = None if axis is None else one_axis(axis, len(shape), op=name)
        if not (shape[along] if along is not None else np.prod(shape)):
            raise ShapeError(
                f"{name} of no entries", given=f"shape {shape}, axis {axis}", hint=f"nothing there is the {word}"
            )
        return along

    def forward(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        check(np.shape(x), axis)
        return numpy(x, axis=axis, keepdims=keepdims)

    forward.__name__ = name
    forward.__doc__ = f"Where along an axis the {word} entry is, the first of several; flat without an axis."
    op = primitive(
        samples=[
            Sample(((2, 3),)), Sample(((2, 3),), {"axis": 0}), Sample(((2, 3, 2),), {"axis": -2, "keepdims": True}),
        ],
        error_samples=[(((3,),), {"axis": 1}, f"{name} over an axis"), (((0,),), {}, f"{name} of no entries")],
        reference=lambda x, axis=None, keepdims=False: np.asarray(
            np.expand_dims(np.argsort(x if name == "argmin" else -x, axis=axis).take(0, axis=axis or 0), axis)
            if keepdims else np.argsort(x if name == "argmin" else -x, axis=axis).take(0, axis=axis or 0)),
        numpy={numpy: None}, method=True,
    )(forward)  # fmt: skip

    @op.shaped
    def shape(x: Spec, *, axis: Any, keepdims: bool) -> Spec:
        along = check(x.shape, axis)
        lost = range(x.ndim) if along is None else (along,)
        kept = [1 if a in lost else d for a, d in enumerate(x.shape) if keepdims or a not in lost]
        return Spec(tuple(kept), np.dtype(np.intp))

    @op.batching
    def batch(size: int, _mapped: tuple[bool, ...], x: Any, *, axis: Any, keepdims: bool) -> Any:
        along = check(tuple(x.shape[1:]), axis)
        if along is not None:
            return op(x, axis=along + 1, keepdims=keepdims)
        out = op(reshape(x, shape=(size, -1)), axis=1)
        return reshape(out, shape=(size, *(1,) * (x.ndim - 1))) if keepdims else out

    return op


argmax = _where("argmax", np.argmax, "largest")
argmin = _where("argmin", np.argmin, "smallest")
