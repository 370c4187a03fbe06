"""Exercise of lesson 03, step 4: what was broadcast on the way forward is summed on the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.autograd import tensor
from lab.teach.exercise import Check, Exercise, Mutant, Seen

_RNG = np.random.default_rng(3)


def of_the_lab(ct: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of an array of this shape that was broadcast to the shape of `ct`, by the lab's engine.

    Example:
        >>> of_the_lab(np.ones((4, 3)), (3,)).tolist()
        [4.0, 4.0, 4.0]
    """
    small = tensor(np.zeros(shape), requires_grad=True)
    (small + np.zeros(np.shape(ct))).backward(tensor(ct))
    assert small.grad is not None
    return small.grad.numpy()


def _ct(*shape: int) -> Any:
    return _RNG.normal(size=shape)


def _summed(ct: Any, shape: tuple[int, ...], reduce: Callable[..., Any] = np.sum, *, ones: bool = True) -> Any:
    """Leading axes first, then axes of length 1, with a switch for each way to get it wrong."""
    while ct.ndim > len(shape):
        ct = reduce(ct, axis=0)
    for axis, n in enumerate(shape):
        if n == 1 and ones:
            ct = reduce(ct, axis=axis, keepdims=True)
    return ct


def _without_the_ones(ct: Any, shape: tuple[int, ...]) -> Any:
    ct = _summed(ct, shape, ones=False)
    return ct.sum(axis=tuple(axis for axis, n in enumerate(shape) if n == 1))


def _all_at_once(ct: Any, shape: tuple[int, ...]) -> Any:
    return ct if ct.shape == tuple(shape) else np.full(shape, ct.sum())


def _first(a: Any, axis: int, keepdims: bool = False) -> Any:
    return a.take([0], axis) if keepdims else a.take(0, axis)


def _last_axes(ct: Any, shape: tuple[int, ...]) -> Any:
    while ct.ndim > len(shape):
        ct = ct.sum(axis=-1)
    return _summed(ct, shape)


def _loses_an_axis(seen: Seen) -> bool:
    return any(not a.failure and np.ndim(a.value) < len(shape) for (_, shape), a in seen if 1 in shape)


UNBROADCAST = Exercise(
    name="unbroadcast",
    task="Bring the gradient ct back to the shape of an array that was broadcast.",
    stub='''\
def unbroadcast(ct, shape):
    while ct.ndim > len(shape):
        ct = ct[0]
    return ct
''',
    arguments=("ct", "shape"),
    results=("gradient",),
    answer=of_the_lab,
    checks=(
        Check("the same shape", [(_ct(4, 3), (4, 3))]),
        Check("a row that was added to every row", [(_ct(4, 3), (3,)), (_ct(2, 4, 3), (3,))]),
        Check("a single number", [(_ct(4, 3), ()), (_ct(), ())]),
        Check("a column, an axis of length 1", [(_ct(4, 3), (4, 1)), (_ct(4, 1), (4, 1))]),
        Check("both at once", [(_ct(2, 4, 3), (4, 1)), (_ct(2, 4, 3), (1, 1, 3))]),
    ),
    mutants=(
        Mutant("nothing is summed", lambda ct, shape: ct, "how many numbers had the array before it was broadcast?"),
        Mutant("only the first entry is kept where all have to be summed", lambda ct, shape: _summed(ct, shape, _first,
               ones=False), "the row was used once for every row of the result: where paths meet, parts add up"),
        Mutant("it takes the mean where it has to sum", lambda ct, shape: _summed(ct, shape, np.mean),
               "each copy gives a part, and parts add up: they are not averaged"),
        Mutant("axes of length 1 are forgotten", lambda ct, shape: _summed(ct, shape, ones=False),
               "(4, 3) back to (4, 1): which axis became longer?"),
        Mutant("every entry gets the sum of all", _all_at_once,
               "sum only along the axes that were made longer"),
        Mutant("the last axes are summed, not the first", _last_axes,
               "broadcasting puts new axes in front: (3,) becomes (4, 3)"),
        Mutant("it is cut to shape, and the rest is lost", np.resize,
               "the numbers that are left over belong to copies of the same entry: add them"),
        Mutant("the sum is taken along the first axis, whatever the shapes are", lambda ct, shape: ct.sum(axis=0),
               "sum as long as ct has more axes than shape, and not once more"),
        Mutant("axes of length 1 are summed away", _without_the_ones,
               "the axis has to stay, with length 1: keepdims=True", _loses_an_axis),
    ),
    hints=(
        "broadcasting copied the array. Each copy gets a gradient, and all of them belong to the same entries",
        "first the axes that are too many: ct.sum(axis=0). Then those that have length 1 in shape",
        "for an axis of length 1: ct.sum(axis=axis, keepdims=True)",
    ),
)  # fmt: skip
