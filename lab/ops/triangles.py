"""Diagonals of matrices, and what is above and below them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.ops.comparisons import where
from lab.ops.composite import composite
from lab.ops.index import getitem, scatter_add
from lab.ops.moving import moveaxis
from lab.ops.picking import operand
from lab.ops.reduce import sum_
from lab.ops.sample import Sample
from lab.shapes import normal_axes


def _whole(k: Any, word: str) -> int:
    if not isinstance(k, int | np.integer):
        raise ArgumentError(f"{word} needs a whole number of a diagonal", given=repr(k), hint="0 is the main one")
    return int(k)


def _triangle(name: str, numpy: Any, doc: str) -> Any:
    upper = name == "triu"

    def function(x: Any, k: int = 0) -> Any:
        x = operand(x)
        if not x.ndim:
            raise ShapeError(
                f"{name} needs a matrix", given="a single number", hint="two axes, or a vector for each row"
            )
        below = np.tri(x.shape[-2] if x.ndim > 1 else x.shape[0], x.shape[-1], _whole(k, name) - upper, dtype=bool)
        return where(~below if upper else below, x, np.zeros((), x.dtype))

    function.__name__, function.__doc__ = name, doc
    return composite(
        samples=[Sample(((3, 3),)), Sample(((2, 2, 4),), {"k": 1})],
        error_samples=[(((),), {}, f"{name} needs a matrix"), (((2, 2),), {"k": 0.5}, f"{name} needs a whole number")],
        reference=lambda x, k=0: numpy(x, k),
        numpy={numpy: None}, method=True,
    )(function)  # fmt: skip


triu = _triangle("triu", np.triu, "The entries on and above the k-th diagonal of matrices, exactly 0 below.")
tril = _triangle("tril", np.tril, "The entries on and below the k-th diagonal of matrices, exactly 0 above.")


def _line(n_rows: int, n_columns: int, offset: int) -> tuple[Any, Any]:
    """Rows and columns of a diagonal's entries."""
    first = max(-offset, 0)
    rows = np.arange(first, first + max(min(n_rows - first, n_columns - max(offset, 0)), 0))
    return rows, rows + offset


@composite(
    samples=[Sample(((3, 3),)), Sample(((2, 3, 4),), {"offset": 1, "axis1": -1, "axis2": 0})],
    error_samples=[
        (((3,),), {}, "diagonal over an axis"),
        (((3, 3),), {"axis1": 0, "axis2": -2}, "diagonal names an axis twice"),
    ],
    reference=lambda x, offset=0, axis1=0, axis2=1: np.einsum("ii->i", x) if x.ndim == 2
    else np.stack([x[1, :, 0]], -1),
    numpy={np.diagonal: None},
    method=True,
)  # fmt: skip
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonals of the matrices that two axes make, as the last axis of the result."""
    return _diagonal(operand(x), offset, axis1, axis2, "diagonal")


def _diagonal(x: Any, offset: int, axis1: int, axis2: int, word: str) -> Any:
    normal_axes((axis1, axis2), x.ndim, op=word)
    if (axis1 % x.ndim, axis2 % x.ndim) != (x.ndim - 2, x.ndim - 1):
        x = moveaxis(x, (axis1, axis2), (-2, -1))
    return getitem(x, index=(..., *_line(x.shape[-2], x.shape[-1], _whole(offset, word))))


@composite(
    samples=[Sample(((3,),), {"k": -1}), Sample(((2, 3),), {"k": 1})],
    error_samples=[(((2, 2, 2),), {}, "diag needs a vector or a matrix")],
    reference=lambda x, k=0: np.eye(x.size + abs(k), k=k)[:, : x.size] * x @ np.eye(x.size, x.size + abs(k))
    if x.ndim == 1 else x[[0, 1], [1, 2]],
    numpy={np.diag: None},
)  # fmt: skip
def diag(x: Any, k: int = 0) -> Any:
    """Of a vector the matrix with it on the k-th diagonal, of a matrix its k-th diagonal."""
    x = operand(x)
    if x.ndim == 2:
        return _diagonal(x, k, 0, 1, "diag")
    if x.ndim != 1:
        raise ShapeError(
            "diag needs a vector or a matrix", given=f"shape {tuple(x.shape)}", hint="lab.diagonal of more axes"
        )
    n = x.shape[0] + abs(_whole(k, "diag"))
    return scatter_add(x, index=_line(n, n, int(k)), shape=(n, n))


@composite(
    samples=[Sample(((3, 3),)), Sample(((2, 3, 4),), {"offset": -1, "axis1": 1, "axis2": 2})],
    error_samples=[(((3,),), {}, "trace over an axis")],
    reference=lambda x, offset=0, axis1=0, axis2=1: np.einsum("ii->", x) if x.ndim == 2 else x[:, 1, 0] + x[:, 2, 1],
    numpy={np.trace: None},
    method=True,
)
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The sum of a diagonal of the matrices that two axes make."""
    return sum_(_diagonal(operand(x), offset, axis1, axis2, "trace"), axis=-1)
