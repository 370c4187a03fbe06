"""What networks of tokens are made of: a row for each token, and places that look at each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.ops.comparisons import where
from lab.ops.composite import composite
from lab.ops.linalg import matmul, swapped
from lab.ops.picking import operand, segment_sum, take
from lab.ops.primitive import primitive
from lab.ops.reduce import softmax
from lab.ops.sample import Sample
from lab.shapes import Spec, broadcast


def _check(table: Any, indices: Any) -> None:
    if len(table.shape) < 1:
        raise ShapeError("embedding needs a table of rows", given="a single number", hint="table (n, width)")
    if np.dtype(indices.dtype).kind not in "iu":
        raise DTypeError("embedding needs integer indices", given=str(indices.dtype), hint="indices.astype(int)")


@primitive(
    linear="each",
    samples=[Sample(((5, 2), (2, 3)), kinds=("f", "i5")), Sample(((4,), ()), kinds=("f", "i4"))],
    error_samples=[(((3, 2), (2,)), {}, "embedding needs integer indices"),
                   (((), (2,)), {}, "embedding needs a table of rows")],
    reference=lambda table, indices: np.tensordot(np.eye(len(table))[indices], table, 1),
)  # fmt: skip
def embedding(table: Any, indices: Any) -> Any:
    """The row of a table for each index from 0: (n, ...) and integers (--) -> (--, ...)."""
    table, indices = np.asarray(table), np.asarray(indices)
    _check(table, indices)
    if indices.size and (indices.min() < 0 or indices.max() >= len(table)):
        raise ShapeError(
            "embedding has no row for an index",
            given=f"indices {indices.min()} to {indices.max()}, {len(table)} rows",
            hint="indices count from 0 to n - 1",
        )
    return np.take(table, indices, axis=0)


@embedding.vjp(0, text="ct added into zeros at the indices")
def _embedding_vjp(ct: Any, _out: Any, table_like: Any, indices: Any) -> Any:
    return segment_sum(ct, indices, n=table_like.shape[0], axis=0)


@embedding.shaped
def _embedding_shape(table: Spec, indices: Spec) -> Spec:
    _check(table, indices)
    return Spec((*indices.shape, *table.shape[1:]), table.dtype)


@embedding.batching
def _embedding_batch(size: int, mapped: tuple[bool, ...], table: Any, indices: Any) -> Any:
    _check(*(Spec(tuple(v.shape[m:]), v.dtype) for v, m in zip((table, indices), mapped, strict=True)))
    if mapped == (False, True):
        return embedding(table, indices)
    return take(table, indices, axis=1, batch=1) if mapped[1] else take(table, indices, axis=1)


_ATTENTION = "scaled_dot_product_attention"


def _by_rows(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, scale: Any = None) -> Any:
    scores = np.einsum("...qd,...kd->...qk", q, k) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    allowed = np.ones(scores.shape, bool) if mask is None else np.broadcast_to(mask, scores.shape)
    weights = np.exp(scores) * (np.tril(allowed) if causal else allowed)
    total = weights.sum(-1, keepdims=True)
    return np.einsum("...qk,...kd->...qd", weights / np.where(total == 0, 1, total), v)


@composite(
    samples=[Sample(((3, 2), (3, 2), (3, 2)), {"causal": True}),
             Sample(((2, 3, 2), (4, 2), (2, 4, 5)), {"mask": np.arange(12).reshape(3, 4) % 5 < 3}),
             Sample(((2, 2), (2, 2), (2, 2)), {"mask": np.array([[True, False], [False, False]])})],
    error_samples=[(((3, 2), (4, 3), (4, 2)), {}, f"{_ATTENTION} needs queries, keys and values that fit"),
                   (((3, 2), (4, 2), (3, 2)), {}, f"{_ATTENTION} needs queries, keys and values that fit"),
                   (((2,), (4, 2), (4, 2)), {}, f"{_ATTENTION} needs queries, keys and values that fit"),
                   (((3, 2), (4, 2), (4, 2)), {"causal": True}, f"{_ATTENTION} with causal=True needs a key for each"),
                   (((3, 2), (4, 2), (4, 2)), {"mask": np.ones((3, 4))}, f"{_ATTENTION} needs a mask of booleans"),
                   (((3, 2), (4, 2), (4, 2)), {"mask": np.ones((2, 4), bool)}, f"{_ATTENTION} (its mask) cannot")],
    reference=_by_rows,
)  # fmt: skip
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False, scale: float | None = None
) -> Any:
    """Means of values, weighted by softmax(query @ key.T / sqrt(d)): (..., q, d), (..., k, d), (..., k, e).

    A query looks at the keys where the mask, booleans that broadcast to (..., q, k), is True; with causal at the keys
    up to its own place. One that may look nowhere gets 0. (Vaswani et al., arXiv:1706.03762, 3.2.1.)
    """
    query, key, value = operand(query), operand(key), operand(value)
    _fit(query, key, value, causal)
    width = 1.0 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = matmul(query * np.asarray(width, query.dtype), swapped(key))
    if causal:
        scores = where(np.tri(scores.shape[-1], dtype=bool), scores, _lowest(scores))
    if mask is None:
        return matmul(softmax(scores, axis=-1), value)
    mask = operand(mask)
    if np.dtype(mask.dtype) != np.bool_:
        raise DTypeError(
            f"{_ATTENTION} needs a mask of booleans", given=str(mask.dtype), hint="True where a query may look"
        )
    broadcast(tuple(mask.shape), tuple(scores.shape), op=f"{_ATTENTION} (its mask)")
    weights = softmax(where(mask, scores, _lowest(scores)), axis=-1)
    return matmul(where(mask, weights, np.zeros((), scores.dtype)), value)


def _lowest(scores: Any) -> Any:
    """A score with no weight beside any other; finite, as is its square: a row of nothing else is no nan."""
    narrow = np.float16 if np.dtype(scores.dtype) == np.float16 else np.float32
    return np.asarray(np.finfo(narrow).min / 2, scores.dtype)


def _fit(query: Any, key: Any, value: Any, causal: bool) -> None:
    few = min(x.ndim for x in (query, key, value)) < 2
    if few or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"{_ATTENTION} needs queries, keys and values that fit",
                         given=" and ".join(str(tuple(x.shape)) for x in (query, key, value)),
                         hint="(..., q, d), (..., k, d) and (..., k, e)")  # fmt: skip
    if causal and query.shape[-2] != key.shape[-2]:
        raise ArgumentError(f"{_ATTENTION} with causal=True needs a key for each query",
                            given=f"{query.shape[-2]} queries, {key.shape[-2]} keys",
                            hint="give a mask, which says who sees what")  # fmt: skip
    broadcast(*(tuple(x.shape[:-2]) for x in (query, key, value)), op=_ATTENTION)
