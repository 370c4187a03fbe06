"""Tensors joined below or beside each other, and cut into parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.ops.composite import composite
from lab.ops.index import getitem
from lab.ops.moving import ALL, atleast_1d, atleast_2d, atleast_3d
from lab.ops.picking import operand
from lab.ops.sample import Sample
from lab.ops.shape import concatenate, listed
from lab.shapes import one_axis


def _joined(tensors: Any, word: str, at_least: Any, axis: Any) -> Any:
    parts = [at_least(p) for p in listed(tensors, word)]
    along = axis(parts[0]) if parts else 0
    if len({(p.ndim, *p.shape[:along], *p.shape[along + 1 :]) for p in parts}) != 1:
        raise ShapeError(
            f"{word} needs equal shapes but for the joined axis" if parts else f"{word} needs at least one tensor",
            given=" and ".join(str(tuple(p.shape)) for p in parts) or "an empty list", hint=f"lab.{word}([a, b])",
        )  # fmt: skip
    return concatenate(*parts, axis=along)


@composite(
    sequence=True,
    samples=[Sample(((3,), (3,))), Sample(((2, 3), (1, 3)))],
    error_samples=[(((3,), (2,)), {}, "vstack needs equal shapes")],
    reference=lambda *xs: np.concatenate([x[None] if x.ndim == 1 else x for x in xs]),
    numpy={np.vstack: None},
)
def vstack(tensors: Any) -> Any:
    """Tensors below each other: rows joined along the first axis; a vector is a row."""
    return _joined(tensors, "vstack", atleast_2d, lambda _part: 0)


@composite(
    sequence=True,
    samples=[Sample(((3,), (2,))), Sample(((2, 3), (2, 1))), Sample(((), ()))],
    error_samples=[(((2, 3), (3, 3)), {}, "hstack needs equal shapes")],
    reference=lambda *xs: np.r_[*xs] if xs[0].ndim < 2 else np.c_[*xs],
    numpy={np.hstack: None},
)
def hstack(tensors: Any) -> Any:
    """Tensors beside each other: columns joined along the second axis, vectors along their only one."""
    return _joined(tensors, "hstack", atleast_1d, lambda part: 0 if part.ndim == 1 else 1)


@composite(
    sequence=True,
    samples=[Sample(((3,), (3,))), Sample(((2, 3), (2, 3)))],
    error_samples=[(((2, 3), (3, 3)), {}, "dstack needs equal shapes")],
    reference=lambda *xs: np.stack(xs, -1) if xs[0].ndim > 1 else np.stack(xs, -1)[None],
    numpy={np.dstack: None},
)
def dstack(tensors: Any) -> Any:
    """Tensors behind each other, joined along the third axis."""
    return _joined(tensors, "dstack", atleast_3d, lambda _part: 2)


# --- cutting ---------------------------------------------------------------------------------------------------------


def _cut(x: Any, cuts: list[int], axis: int) -> list[Any]:
    bounds = zip([0, *cuts], [*cuts, None], strict=True)
    return [getitem(x, index=(*(ALL,) * axis, slice(start, stop))) for start, stop in bounds]


def _sections(x: Any, wanted: Any, axis: int, word: str) -> list[Any]:
    """As np.array_split: parts that differ by one at most, or cuts at given places."""
    cuts = list(wanted) if isinstance(wanted, Sequence | np.ndarray) else None
    if cuts is not None and all(isinstance(c, int | np.integer) for c in cuts):
        return _cut(x, [int(c) for c in cuts], axis)
    if cuts is not None or not isinstance(wanted, int | np.integer) or wanted < 1:
        raise ArgumentError(
            f"{word} needs a number of parts or where to cut",
            given=repr(wanted)[:60],
            hint=f"lab.{word}(x, 3), or [2, 5]",
        )
    size, more = divmod(x.shape[axis], int(wanted))
    return _cut(x, np.cumsum([size + 1] * more + [size] * (int(wanted) - more))[:-1].tolist(), axis)


@composite(
    samples=[
        Sample(((4, 3),), {"indices_or_sections": 2}), Sample(((2, 5),), {"indices_or_sections": [1, 3], "axis": 1}),
    ],
    error_samples=[
        (((3,),), {"indices_or_sections": 2}, "split needs parts of one length"),
        (((3,),), {"indices_or_sections": 0}, "split needs a number of parts"),
        (((3,),), {"indices_or_sections": 1, "axis": 1}, "split over an axis"),
    ],
    reference=lambda x, indices_or_sections, axis=0: [x[:2], x[2:]] if axis == 0 else [x[:, :1], x[:, 1:3], x[:, 3:]],
    numpy={np.split: None},
)  # fmt: skip
def split(x: Any, indices_or_sections: Any = 2, axis: int = 0) -> list[Any]:
    """A list of parts along an axis: so many of one length, or cut at the given places."""
    x = operand(x)
    a = one_axis(axis, x.ndim, op="split")
    whole = isinstance(indices_or_sections, int | np.integer)
    if whole and indices_or_sections > 0 and x.shape[a] % indices_or_sections:
        raise ShapeError(
            "split needs parts of one length", given=f"{indices_or_sections} parts of an axis of length {x.shape[a]}",
            hint="lab.array_split makes parts that differ by one",
        )  # fmt: skip
    return _sections(x, indices_or_sections, a, "split")


@composite(
    samples=[Sample(((5,),), {"indices_or_sections": 3}), Sample(((2, 5),), {"indices_or_sections": 2, "axis": -1})],
    error_samples=[(((3,),), {"indices_or_sections": 2.5}, "array_split needs a number of parts")],
    reference=lambda x, indices_or_sections, axis=0: [x[:2], x[2:4], x[4:]] if axis == 0 else [x[:, :3], x[:, 3:]],
    numpy={np.array_split: None},
)
def array_split(x: Any, indices_or_sections: Any = 2, axis: int = 0) -> list[Any]:
    """A list of parts along an axis whose lengths differ by one at most, the longer ones first; or cut at places."""
    x = operand(x)
    return _sections(x, indices_or_sections, one_axis(axis, x.ndim, op="array_split"), "array_split")
