"""Functions that move axes and entries along them, made of reshape, transpose and indexing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.ops.composite import composite
from lab.ops.index import getitem
from lab.ops.picking import operand
from lab.ops.sample import Sample
from lab.ops.shape import concatenate, reshape, transpose
from lab.shapes import normal_axes, one_axis

ALL = slice(None)


def _listed(axis: Any, ndim: int, op: str) -> list[int]:
    """One axis or several, in the order given, non-negative."""
    given = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    normal_axes(given, ndim, op=op)
    return [int(a) % ndim for a in given]


# --- axes ------------------------------------------------------------------------------------------------------------


@composite(
    samples=[Sample(((2, 3),), {"axis1": 0, "axis2": 1}), Sample(((2, 3, 4),), {"axis1": -1, "axis2": 0})],
    error_samples=[(((2, 3),), {"axis1": 0, "axis2": 2}, "swapaxes over an axis")],
    reference=lambda x, axis1, axis2: np.einsum("ij->ji" if x.ndim == 2 else "ijk->kji", x),
    numpy={np.swapaxes: None},
    method=True,
)
def swapaxes(x: Any, axis1: int = -1, axis2: int = -2) -> Any:
    """Two axes exchanged; the last two unless given."""
    x = operand(x)
    a, b = (one_axis(axis, x.ndim, op="swapaxes") for axis in (axis1, axis2))
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return transpose(x, axes=tuple(order))


@composite(
    samples=[Sample(((2, 3),)), Sample(((2, 3, 4),))],
    error_samples=[(((3,),), {}, "matrix_transpose needs a matrix")],
    reference=lambda x: np.einsum("...ij->...ji", x),
    numpy={np.matrix_transpose: None, np.linalg.matrix_transpose: None},
)
def matrix_transpose(x: Any) -> Any:
    """Matrices with rows and columns exchanged: (..., m, n) -> (..., n, m)."""
    x = operand(x)
    if x.ndim < 2:
        raise ShapeError(
            "matrix_transpose needs a matrix", given=f"shape {tuple(x.shape)}", hint="x[None] makes a vector a row"
        )
    return transpose(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@composite(
    samples=[Sample(((2, 3),), {"source": 0, "destination": -1}),
        Sample(((2, 3, 4),), {"source": (0, 1), "destination": (1, 2)})],
    error_samples=[
        (((2, 3),), {"source": 2, "destination": 0}, "moveaxis over an axis"),
        (((2, 3),), {"source": (0, 1), "destination": 0}, "moveaxis needs a destination for each source"),
    ],
    reference=lambda x, source, destination: np.einsum("ij->ji" if source == 0 else "ijk->kij", x),
    numpy={np.moveaxis: None},
)  # fmt: skip
def moveaxis(x: Any, source: Any = 0, destination: Any = -1) -> Any:
    """Axes moved to other places; the rest keep their order."""
    x = operand(x)
    start, stop = _listed(source, x.ndim, "moveaxis"), _listed(destination, x.ndim, "moveaxis")
    if len(start) != len(stop):
        raise ShapeError(
            "moveaxis needs a destination for each source", given=f"{source} to {destination}",
            hint="two tuples of one length",
        )  # fmt: skip
    order = [a for a in range(x.ndim) if a not in start]
    for to, a in sorted(zip(stop, start, strict=True)):
        order.insert(to, a)
    return transpose(x, axes=tuple(order))


@composite(
    samples=[Sample(((2, 1, 3, 1),)), Sample(((1, 3, 1),), {"axis": -1}), Sample(((1, 3, 1),), {"axis": (0, 2)})],
    error_samples=[
        (((1, 3),), {"axis": 1}, "squeeze takes axes of length 1 away"),
        (((1, 3),), {"axis": 2}, "squeeze over an axis"),
    ],
    reference=lambda x, axis=None: np.reshape(x, (2, 3) if axis is None else (1, 3) if axis == -1 else (3,)),
    numpy={np.squeeze: None},
    method=True,
)
def squeeze(x: Any, axis: Any = None) -> Any:
    """Without axes of length 1: without all of them, or those that are named."""
    x = operand(x)
    shape = tuple(x.shape)
    axes = tuple(a for a, d in enumerate(shape) if d == 1) if axis is None else normal_axes(axis, x.ndim, op="squeeze")
    if any(shape[a] != 1 for a in axes):
        raise ShapeError("squeeze takes axes of length 1 away", given=f"axis {axis} of {shape}", hint="index it: x[0]")
    return reshape(x, shape=tuple(d for a, d in enumerate(shape) if a not in axes))


def _in_a_row(name: str, numpy: Any) -> Any:
    def function(x: Any) -> Any:
        return reshape(operand(x), shape=(-1,))

    function.__name__, function.__doc__ = name, "All entries in one row, the last axis fastest."
    return composite(
        samples=[Sample(((2, 3),)), Sample(((),))], reference=lambda x: np.asarray(x).flatten(), method=True,
        numpy={numpy: None} if numpy else {},
    )(function)  # fmt: skip


ravel = _in_a_row("ravel", np.ravel)
flatten = _in_a_row("flatten", None)


def _at_least(n: int, numpy: Any) -> Any:
    name = f"atleast_{n}d"

    def function(x: Any) -> Any:
        x = operand(x)
        shape = tuple(x.shape)
        if len(shape) >= n:
            return reshape(x, shape=shape)
        wide = {1: (1,), 2: (1, *shape) if shape else (1, 1), 3: (1, *shape) if len(shape) == 1 else shape}[n]
        return reshape(x, shape=(*wide, *(1,) * (n - len(wide))))

    def several(*tensors: Any) -> Any:
        found = tuple(made(t) for t in tensors)
        return found[0] if len(found) == 1 else found

    function.__name__, function.__doc__ = name, f"With axes of length 1, where there are fewer than {n}."
    made = composite(samples=[Sample(((2,),)), Sample(((),))], reference=numpy, numpy={numpy: several})(function)
    return made


atleast_1d = _at_least(1, np.atleast_1d)
atleast_2d = _at_least(2, np.atleast_2d)
atleast_3d = _at_least(3, np.atleast_3d)


# --- order -----------------------------------------------------------------------------------------------------------


@composite(
    samples=[Sample(((2, 3),)), Sample(((2, 3, 2),), {"axis": (0, -1)})],
    error_samples=[(((3,),), {"axis": 1}, "flip over an axis")],
    reference=lambda x, axis=None: x[::-1, ::-1] if axis is None else x[::-1, :, ::-1],
    numpy={np.flip: None},
)
def flip(x: Any, axis: Any = None) -> Any:
    """Backwards along axes; along all of them unless given."""
    x = operand(x)
    axes = normal_axes(axis, x.ndim, op="flip")
    return getitem(x, index=tuple(slice(None, None, -1) if a in axes else ALL for a in range(x.ndim)))


def _shifts(x: Any, shift: Any, axis: Any) -> dict[int, int]:
    """How far each axis is rolled; several shifts of one axis add up."""
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    shifts = tuple(shift) if isinstance(shift, Sequence | np.ndarray) else (shift,)
    if not all(isinstance(s, int | np.integer) for s in shifts):
        raise ArgumentError(
            "roll needs whole numbers of places", given=f"shift={shift!r}", hint="an integer for each axis"
        )
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ShapeError(
            "roll needs a shift for each axis", given=f"shift={shift}, axis={axis}", hint="tuples of one length"
        )
    found: dict[int, int] = {}
    for k in range(max(len(shifts), len(axes))):
        a = one_axis(axes[k % len(axes)], x.ndim, op="roll")
        found[a] = found.get(a, 0) + int(shifts[k % len(shifts)])
    return found


@composite(
    samples=[
        Sample(((5,),), {"shift": 2}), Sample(((2, 3),), {"shift": 4}),
        Sample(((2, 3),), {"shift": (1, -1), "axis": (0, 1)}),
    ],
    error_samples=[
        (((3,),), {"shift": 1, "axis": 1}, "roll over an axis"),
        (((3,),), {"shift": 0.5}, "roll needs whole numbers of places"),
        (((2, 3),), {"shift": (1, 1, 1), "axis": (0, 1)}, "roll needs a shift for each axis"),
    ],
    reference=lambda x, shift, axis=None: np.take(x, np.arange(-shift, x.size - shift), mode="wrap").reshape(x.shape)
    if axis is None else x[::-1][:, [1, 2, 0]],
    numpy={np.roll: None},
)  # fmt: skip
def roll(x: Any, shift: Any = 1, axis: Any = None) -> Any:
    """Moved on along axes; what leaves at one end comes in at the other. Without an axis as one row."""
    x = operand(x)
    if axis is None:
        return reshape(roll(reshape(x, shape=(-1,)), shift, 0), shape=tuple(x.shape))
    for a, n in _shifts(x, shift, axis).items():
        cut = -n % x.shape[a] if x.shape[a] else 0
        if cut:
            before = (ALL,) * a
            tail, head = getitem(x, index=(*before, slice(cut, None))), getitem(x, index=(*before, slice(0, cut)))
            x = concatenate(tail, head, axis=a)
    return x
