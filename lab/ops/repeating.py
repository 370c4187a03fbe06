"""Functions that repeat entries: whole tiles, each in its place, or around the border."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.ops.composite import composite
from lab.ops.index import getitem, setitem
from lab.ops.moving import ALL
from lab.ops.picking import operand
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, reshape
from lab.shapes import one_axis


def _counts(repeats: Any, word: str) -> tuple[int, ...]:
    counts = tuple(np.asarray(repeats).reshape(-1).tolist())
    if not all(type(c) is int and c >= 0 for c in counts):
        raise ArgumentError(
            f"{word} needs whole numbers from 0", given=repr(repeats)[:60], hint="how often, as 2 or [1, 0, 3]"
        )
    return counts


@composite(
    samples=[Sample(((2, 3),), {"reps": 2}), Sample(((3,),), {"reps": (2, 1, 2)}), Sample(((),), {"reps": 2})],
    error_samples=[(((3,),), {"reps": 0.5}, "tile needs whole numbers from 0")],
    reference=lambda x, reps: np.kron(np.ones(reps, x.dtype), x),
    numpy={np.tile: None},
    method=True,
)
def tile(x: Any, reps: Any = 1) -> Any:
    """The whole repeated along axes, as tiles are laid; of fewer numbers than axes the last axes."""
    x, counts = operand(x), _counts(reps, "tile")
    n = max(len(counts), x.ndim)
    shape, counts = (1,) * (n - x.ndim) + tuple(x.shape), (1,) * (n - len(counts)) + counts
    wide = tuple(d for c, s in zip(counts, shape, strict=True) for d in (c, s))
    ones = tuple(d for s in shape for d in (1, s))
    spread = broadcast_to(reshape(x, shape=ones), shape=wide)
    return reshape(spread, shape=tuple(c * s for c, s in zip(counts, shape, strict=True)))


@composite(
    samples=[
        Sample(((2, 3),), {"repeats": 2}), Sample(((2, 3),), {"repeats": 2, "axis": -1}),
        Sample(((2, 3),), {"repeats": [0, 2], "axis": 0}),
    ],
    error_samples=[
        (((3,),), {"repeats": 2, "axis": 1}, "repeat over an axis"),
        (((3,),), {"repeats": [1, 2]}, "repeat needs a number for each entry"),
        (((3,),), {"repeats": -1}, "repeat needs whole numbers from 0"),
    ],
    reference=lambda x, repeats, axis=None: np.kron(np.ravel(x), np.ones(2)).astype(x.dtype) if axis is None
    else np.stack([x[1], x[1]]) if axis == 0 else np.kron(x, np.ones(2)).astype(x.dtype),
    numpy={np.repeat: None},
    method=True,
)  # fmt: skip
def repeat(x: Any, repeats: Any = 1, axis: Any = None) -> Any:
    """Each entry repeated in its place along an axis, all alike or each as often as it says; flat without an axis."""
    x = operand(x)
    if axis is None:
        x, axis = reshape(x, shape=(-1,)), 0
    a, counts = one_axis(axis, x.ndim, op="repeat"), _counts(repeats, "repeat")
    shape = tuple(x.shape)
    if len(counts) == 1:
        spread = broadcast_to(reshape(x, shape=(*shape[: a + 1], 1, *shape[a + 1 :])),
                              shape=(*shape[: a + 1], counts[0], *shape[a + 1 :]))  # fmt: skip
        return reshape(spread, shape=(*shape[:a], shape[a] * counts[0], *shape[a + 1 :]))
    if len(counts) != shape[a]:
        raise ShapeError(
            "repeat needs a number for each entry", given=f"{len(counts)} numbers, an axis of length {shape[a]}",
            hint="one number repeats all entries alike",
        )  # fmt: skip
    return getitem(x, index=(*(ALL,) * a, np.repeat(np.arange(shape[a]), counts)))


def _widths(width: Any, ndim: int) -> list[tuple[int, int]]:
    """(before, after) of each axis, from a number, a pair or a pair for each axis, as NumPy reads them."""
    try:
        pairs = np.broadcast_to(np.asarray(width), (ndim, 2))
    except ValueError:
        pairs = np.asarray(None)
    if pairs.dtype.kind not in "iu" or (pairs.size and pairs.min() < 0):
        raise ArgumentError(
            "pad needs how many entries to put before and after", given=f"{width!r} for {ndim} axes"[:70],
            hint="pad_width=1, (1, 2), or ((1, 2), (0, 0)) with a pair for each axis",
        )  # fmt: skip
    return [(int(b), int(a)) for b, a in pairs]


@composite(
    samples=[
        Sample(((3,),), {"pad_width": (1, 2), "constant_values": 5.0}),
        Sample(((2, 3),), {"pad_width": ((1, 0), (2, 4)), "mode": "reflect"}),
        Sample(((2, 3),), {"pad_width": 4, "mode": "wrap"}),
    ],
    error_samples=[
        (((3,),), {"pad_width": -1}, "pad needs how many entries"),
        (((3,),), {"pad_width": 1, "mode": "mean"}, "pad of this mode"),
        (((0,),), {"pad_width": 1, "mode": "edge"}, "pad of an empty axis"),
    ],
    reference=lambda x, pad_width, mode="constant", **more: np.pad(x, pad_width, mode, **more),
    numpy={np.pad: lambda array, pad_width, mode="constant", **more: pad(array, pad_width, mode, **more)},
)
def pad(x: Any, pad_width: Any = 0, mode: str = "constant", constant_values: Any = 0) -> Any:
    """Entries put around: a constant, the edge, a reflection without it (reflect) or with it (symmetric), or a wrap."""
    x = operand(x)
    shape, widths = tuple(x.shape), _widths(pad_width, x.ndim)
    if mode == "constant":
        if np.ndim(constant_values):
            around = np.pad(np.zeros(shape, x.dtype), widths, constant_values=constant_values)
        else:  # a fifth of the time
            wide = tuple(b + d + a for (b, a), d in zip(widths, shape, strict=True))
            around = np.full(wide, constant_values, x.dtype)
        return setitem(around, x, index=tuple(slice(b, b + d) for (b, _), d in zip(widths, shape, strict=True)))
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise ArgumentError(
            "pad of this mode does not exist", given=f"mode={mode!r}", hint="constant, edge, reflect, symmetric, wrap"
        )
    for a, (before, after) in enumerate(widths):
        if before or after:
            if not shape[a]:
                raise ShapeError("pad of an empty axis", given=f"mode={mode!r}, shape {shape}", hint="mode='constant'")
            source = np.pad(np.arange(shape[a]), (before, after), mode=mode)  # type: ignore[call-overload]
            x = getitem(x, index=(*(ALL,) * a, source))
    return x
