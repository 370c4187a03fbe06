"""Places in arrays: indices that the graph knows become constants, those that values name gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.interop.nodes.building import Call
from lab.interop.nodes.table import emits
from lab.ops.index import is_basic


def places_of(shape: Sequence[int], index: Any) -> Any:
    """The number in the flattened array of each entry that an index selects."""
    return np.arange(int(np.prod(shape, dtype=np.int64))).reshape(tuple(shape))[index]


def _flat(c: Call, i: int = 0, dtype: Any = None) -> str:
    return c.nodes.reshape(c.x(i, dtype), (-1,))


@emits("getitem")
def _getitem(c: Call) -> str:
    index, shape = c.e.params["index"], c.spec().shape
    if is_basic(index):
        return _sliced(c, index if isinstance(index, tuple) else (index,))
    rows = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if not isinstance(rows, tuple) and np.asarray(rows).dtype.kind in "iu":
        return c.nodes.node("Gather", c.x(), c.nodes.constant(rows, np.int64), axis=0)
    return c.nodes.node("Gather", _flat(c), c.nodes.constant(places_of(shape, index)), axis=0)


def _sliced(c: Call, index: tuple[Any, ...]) -> str:
    """An index of numbers, slices, None and `...`: one Slice, one Reshape."""
    shape, named = c.spec().shape, [i for i in index if i is not None]
    if ... in named:
        k = named.index(...)
        named[k : k + 1] = [slice(None)] * (len(shape) - len(named) + 1)
    cuts = [(axis, *_cut(i, n)) for axis, (i, n) in enumerate(zip(named, shape, strict=False))]
    x = c.x()
    if cuts := [cut for cut in cuts if cut[1:] != (0, shape[cut[0]], 1)]:
        axes, starts, ends, steps = (c.nodes.constant(np.array(v, np.int64)) for v in zip(*cuts, strict=True))
        x = c.nodes.node("Slice", x, starts, ends, axes, steps)
    return c.nodes.reshape(x, c.out.shape)


def _cut(index: Any, n: int) -> tuple[int, int, int]:
    """Where a slice starts, ends and how it goes on; an end before the first entry is below -n."""
    if not isinstance(index, slice):
        at = int(index) % n
        return at, at + 1, 1
    start, stop, step = index.indices(n)
    return start, (stop if stop >= 0 else -n - 1), step


@emits("scatter_add")
def _scatter_add(c: Call) -> str:
    shape = c.out.shape
    places = places_of(shape, c.e.params["index"])
    x = c.nodes.expand(c.x(0, c.out.dtype), places.shape)
    zeros = c.nodes.expand(c.nodes.constant(0, c.out.dtype), (int(np.prod(shape, dtype=np.int64)),))
    added = c.nodes.node("ScatterElements", zeros, c.nodes.constant(places.reshape(-1)),
                         c.nodes.reshape(x, (-1,)), axis=0, reduction="add")  # fmt: skip
    return c.nodes.reshape(added, shape)


@emits("setitem")
def _setitem(c: Call) -> str:
    places = places_of(c.out.shape, c.e.params["index"])
    values = c.nodes.reshape(c.nodes.expand(c.x(1, c.out.dtype), places.shape), (-1,))
    flat = places.reshape(-1)
    last = flat.size - 1 - np.unique(flat[::-1], return_index=True)[1]  # of several values the last one stays
    if last.size < flat.size:
        flat, values = flat[last], c.nodes.node("Gather", values, c.nodes.constant(last), axis=0)
    written = c.nodes.node("ScatterElements", _flat(c, 0, c.out.dtype), c.nodes.constant(flat), values, axis=0)
    return c.nodes.reshape(written, c.out.shape)


@emits("embedding")
def _embedding(c: Call) -> str:
    return c.nodes.node("Gather", c.x(0), c.x(1, np.int64), axis=0)


@emits("take")
def _take(c: Call) -> str:
    axis, batch, nodes = c.e.params["axis"], c.e.params["batch"], c.nodes
    indices, shape = c.x(1, np.int64), c.spec().shape
    if axis is None:
        return nodes.node("Gather", _flat(c), indices, axis=0)
    if not batch:
        return nodes.node("Gather", c.x(), indices, axis=int(axis))
    along, k = axis % len(shape), len(c.spec(1).shape) - batch
    front = _moved(len(shape), [along], [batch])
    rows = nodes.transpose(c.x(), front)
    numbers = nodes.reshape(indices, (*c.spec(1).shape, 1))
    picked = nodes.node("GatherND", rows, numbers, batch_dims=batch)
    back = _moved(len(c.out.shape), range(batch, batch + k), range(along, along + k))
    return nodes.node("Identity", nodes.transpose(picked, back))


def _moved(ndim: int, source: Sequence[int], target: Sequence[int]) -> list[int]:
    """The order of axes that `np.moveaxis` makes."""
    order = [a for a in range(ndim) if a not in source]
    for to, a in sorted(zip(target, source, strict=True)):
        order.insert(to, a)
    return order


@emits("segment_sum")
def _segment_sum(c: Call) -> str:
    p, nodes, ids = c.e.params, c.nodes, c.spec(1).shape
    ndim, batch, k = len(c.spec().shape), p["batch"], len(ids) - p["batch"]
    along = p["axis"] % (ndim - k + 1)
    order = _moved(ndim, range(along, along + k), range(batch, batch + k))
    rows = nodes.transpose(c.x(0, c.out.dtype), order)
    lengths = [c.spec().shape[a] for a in order]
    total = (*lengths[:batch], int(p["n"]), *lengths[batch + k :])
    zeros = nodes.expand(nodes.constant(0, c.out.dtype), total)
    numbers = nodes.reshape(c.x(1, np.int64), (*ids, 1))
    if batch:
        members = np.stack(np.broadcast_arrays(*np.indices(ids)[:batch]), axis=-1)
        numbers = nodes.node("Concat", nodes.constant(members, np.int64), numbers, axis=-1)
    added = nodes.node("ScatterND", zeros, numbers, rows, reduction="add")
    return nodes.node("Identity", nodes.transpose(added, _moved(len(total), [batch], [along])))


@emits("put_along_axis")
def _put_along_axis(c: Call) -> str:
    axis, nodes, shape = c.e.params["axis"], c.nodes, c.out.shape
    x, indices, values = c.x(0, c.out.dtype), c.x(1, np.int64), c.x(2, c.out.dtype)
    if axis is None:
        shape, axis = (int(np.prod(shape, dtype=np.int64)),), 0
        x, indices = nodes.reshape(x, (-1,)), nodes.reshape(indices, (-1,))
        full: list[int] = [int(np.prod(c.spec(1).shape, dtype=np.int64))]
    else:
        full = list(np.broadcast_shapes(c.spec(1).shape, c.spec(2).shape))
        full = [n if i == axis % len(shape) else shape[i] for i, n in enumerate(full)]
    written = nodes.node("ScatterElements", x, nodes.expand(indices, full), nodes.expand(values, full), axis=int(axis))
    return nodes.reshape(written, c.out.shape)


@emits("wrap_index")
def _wrap_index(c: Call) -> str:
    i, n = c.x(0, np.int64), c.nodes.constant(int(c.e.params["n"]), np.int64)
    below = c.nodes.node("Less", i, c.nodes.constant(0, np.int64))
    return c.nodes.node("Where", below, c.nodes.node("Add", i, n), i)


# --- order --------------------------------------------------------------------------------------------------------


def _ordered(c: Call, x: str, n: int, axis: int, largest: bool) -> list[str]:
    """The entries along an axis in order, and where they were; of equal ones the first comes first."""
    count = c.nodes.constant(np.array([n], np.int64))
    return c.nodes.several("TopK", 2, x, count, axis=axis, largest=int(largest), sorted=1)


@emits("sort", "argsort")
def _sort(c: Call) -> str:
    axis, x = c.e.params["axis"], c.x()
    if axis is None:
        x, axis = c.nodes.reshape(x, (-1,)), 0
    values, numbers = _ordered(c, x, c.out.shape[axis], int(axis), bool(c.e.params["descending"]))
    return values if c.e.op.name == "sort" else numbers


@emits("median")
def _median(c: Call) -> str:
    axis, shape, nodes = c.e.params["axis"], c.spec().shape, c.nodes
    axes = range(len(shape)) if axis is None else [a % len(shape) for a in np.atleast_1d(axis).tolist()]
    kept = [a for a in range(len(shape)) if a not in axes]
    n = int(np.prod([shape[a] for a in axes], dtype=np.int64))
    rows = nodes.reshape(nodes.transpose(c.x(0, c.out.dtype), [*kept, *axes]), (-1, n))
    ordered = _ordered(c, rows, n, 1, largest=False)[0]
    middle = nodes.node("Gather", ordered, nodes.constant(np.array([(n - 1) // 2, n // 2])), axis=1)
    found = nodes.reduce("Mean", middle, [1])
    lost = nodes.reduce("Max", nodes.cast(nodes.node("IsNaN", rows), np.int64), [1])
    none = nodes.constant(np.nan, c.out.dtype)
    return nodes.reshape(nodes.node("Where", nodes.cast(lost, bool), none, found), c.out.shape)
