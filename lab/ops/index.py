"""Indexing: reading entries, and its transpose, adding into them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ShapeError
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import reshape
from lab.shapes import Spec


def is_basic(index: Any) -> bool:
    """Whether an index is made of integers, slices, None and Ellipsis only, so that it selects a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        isinstance(p, int | np.integer | slice | None | type(Ellipsis)) and not isinstance(p, bool) for p in parts
    )


def _positions(shape: tuple[int, ...], index: Any) -> Any:
    """For each selected entry its number in the flattened array."""
    return _select(np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape), index)


def _select(x: Any, index: Any) -> Any:
    try:
        return x[index]
    except IndexError as why:
        raise ShapeError(
            "an index does not fit the array", given=f"{str(index)[:60]} into shape {x.shape}", hint=str(why)
        ) from None


@primitive(
    linear="each",
    samples=[
        Sample(((4, 3),), {"index": index})
        for index in [
            1,
            (slice(None, None, 2), -1),
            (slice(None, None, -1), slice(2, None, -2)),
            (..., None),
            ([0, 0, 2],),
            (np.array([[True, False, True]] * 4),),
            ([0, 3], slice(None), None),
        ]
    ],
    error_samples=[(((4, 3),), {"index": 7}, "an index does not fit the array")],
    reference=lambda x, index: np.ravel(x)[_positions(x.shape, index)],
)
def getitem(x: Any, *, index: Any = ...) -> Any:
    """The entries that an index selects: integers, slices, None, Ellipsis, integer or boolean arrays."""
    return _select(np.asarray(x), index)


@getitem.vjp(text="ct added into zeros at the index")
def _getitem_vjp(ct: Any, _out: Any, x_like: Any, *, index: Any) -> Any:
    return scatter_add(ct, index=index, shape=x_like.shape)


@getitem.batching
def _getitem_batch(size: int, _mapped: tuple[bool, ...], x: Any, *, index: Any) -> Any:
    return getitem(reshape(x, shape=(size, -1)), index=(slice(None), _positions(x.shape[1:], index)))


@primitive(
    linear="each",
    samples=[Sample(((3,),), {"index": 1, "shape": (4, 3)}), Sample(((3,),), {"index": ([0, 0, 2],), "shape": (4,)})],
    reference=lambda x, index, shape: np.bincount(
        np.ravel(_positions(shape, index)),
        np.ravel(np.broadcast_to(x, _positions(shape, index).shape)),
        int(np.prod(shape)),
    ).reshape(shape),
)
def scatter_add(x: Any, *, index: Any = ..., shape: Any = ()) -> Any:
    """Zeros of `shape` with x added at an index; entries selected twice receive both."""
    x = np.asarray(x)
    out = np.zeros(shape, x.dtype)
    if is_basic(index):
        out[index] = x
    else:
        np.add.at(out, index, x)
    return out


@scatter_add.vjp(text="the entries of ct at the index")
def _scatter_vjp(ct: Any, _out: Any, _x: Any, *, index: Any, shape: Any) -> Any:
    return getitem(ct, index=index)


@scatter_add.shaped
def _scatter_shape(x: Spec, *, index: Any, shape: Any) -> Spec:
    return Spec(tuple(shape), x.dtype)


@scatter_add.batching
def _scatter_batch(size: int, _mapped: tuple[bool, ...], x: Any, *, index: Any, shape: Any) -> Any:
    n = int(np.prod(shape, dtype=np.int64))
    return reshape(
        scatter_add(x, index=(slice(None), _positions(tuple(shape), index)), shape=(size, n)), shape=(size, *shape)
    )
