"""Reading and writing at places that values name, in plain NumPy, as an exported file brings it along."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.interop.plain.functions import inside


def scatter_add(x: Any, index: Any, shape: Any) -> Any:
    """Zeros with x added at an index; entries selected twice receive both."""
    out = np.zeros(shape, np.asarray(x).dtype)
    np.add.at(out, index, x)
    return out


def setitem(x: Any, values: Any, index: Any) -> Any:
    """A copy of x with values written at an index."""
    out = np.array(x)
    out[index] = values
    return out


def take(x: Any, indices: Any, axis: int, batch: int) -> Any:
    """The slices along an axis at indices; of the first `batch` axes each member has indices of its own."""
    indices = np.asarray(indices)
    members = np.indices(indices.shape, sparse=True)[:batch]
    picked = np.moveaxis(x, axis, batch)[(*members, indices)]
    k = indices.ndim - batch
    return np.moveaxis(picked, range(batch, batch + k), range(axis, axis + k))


def segment_sum(x: Any, segments: Any, n: int, axis: int, batch: int) -> Any:
    """Zeros of length n along an axis, with each slice of x added at the number of its segment."""
    x, segments = np.asarray(x), np.asarray(segments)
    k = segments.ndim - batch
    rows = np.moveaxis(x, range(axis, axis + k), range(batch, batch + k))
    out = np.zeros((*segments.shape[:batch], n, *rows.shape[batch + k :]), x.dtype)
    members = np.indices(segments.shape, sparse=True)[:batch]
    np.add.at(out, (*members, segments), rows)
    return np.moveaxis(out, batch, axis)


def put_along_axis(x: Any, indices: Any, values: Any, axis: Any) -> Any:
    """A copy of x with values written along an axis at indices of their own for each row."""
    x = np.asarray(x)
    if axis is None:
        return put_along_axis(x.reshape(-1), np.ravel(indices), np.ravel(values), 0).reshape(x.shape)
    along = axis % x.ndim
    full = list(np.broadcast_shapes(np.shape(indices), np.shape(values)))
    for i, length in enumerate(x.shape):
        full[i] = full[i] if i == along else length
    out = np.array(x)
    np.put_along_axis(out, np.broadcast_to(indices, full), np.broadcast_to(values, full), along)
    return out


def embedding(table: Any, indices: Any) -> Any:
    """The row of a table for each index from 0."""
    inside(indices, len(table))
    return np.take(table, indices, axis=0)


def wrap_index(i: Any, n: int) -> Any:
    """Indices counted from the front, -1 as n - 1."""
    i = np.asarray(i)
    if i.size and (i.min() < -n or i.max() >= n):
        raise IndexError(f"indices {i.min()} to {i.max()} do not fit an axis of length {n}")
    return np.where(i < 0, i + n, i).astype(np.int64)


def random_uniform(key: Any, shape: Any, dtype: Any) -> Any:
    """Numbers from [0, 1), decided by the key alone."""
    drawn = np.float64 if np.dtype(dtype) == np.float64 else np.float32
    return np.asarray(np.random.Generator(np.random.Philox(key=key)).random(shape, drawn)).astype(dtype)


