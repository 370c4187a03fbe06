"""Several results in one array and back: a node and an equation have one result, a user's function any number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.autograd.tensor import wrap
from lab.ops import cast, concatenate, getitem, reshape
from lab.shapes import Spec


def pack(outs: Sequence[Any]) -> Any:
    """Results as the one value that a node or an equation has: itself, or all entries in a row.

    Example:
        >>> pack([wrap(np.ones(2)), wrap(np.zeros((1, 1)))])
        tensor([1., 1., 0.])
    """
    if len(outs) == 1:
        return outs[0]
    dtype = np.result_type(*(o.dtype for o in outs)) if outs else np.dtype(float)
    rows = [reshape(o if o.dtype == dtype else cast(o, dtype=dtype), shape=(-1,)) for o in outs]
    return concatenate(*rows, axis=0) if rows else wrap(np.zeros(0))


def unpack(packed: Any, layout: Sequence[Spec]) -> list[Any]:
    """The results again.

    Example:
        >>> unpack(wrap(np.arange(3.0)), [Spec((2,), np.dtype(float)), Spec((1, 1), np.dtype(float))])
        [tensor([0., 1.]), tensor([[2.]])]
    """
    if len(layout) == 1:
        return [packed]
    outs, start = [], 0
    for spec in layout:
        size = int(np.prod(spec.shape, dtype=np.int64))
        out = reshape(getitem(packed, index=slice(start, start + size)), shape=spec.shape)
        outs.append(out if out.dtype == spec.dtype else cast(out, dtype=spec.dtype))
        start += size
    return outs


def packed_spec(layout: Sequence[Spec]) -> Spec:
    """Shape and dtype of what `pack` makes of results like these."""
    if len(layout) == 1:
        return layout[0]
    total = sum(int(np.prod(s.shape, dtype=np.int64)) for s in layout)
    return Spec((total,), np.result_type(*(s.dtype for s in layout)) if layout else np.dtype(float))
