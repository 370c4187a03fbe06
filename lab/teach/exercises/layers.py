"""Exercises of lesson 05: weights that let a gradient through many layers, and units that no gradient reaches.

Weights are random, so they are judged by what a deep network of relu does with them, and mistakes are known by the
spread of the numbers drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lab.autograd import tensor
from lab.errors import ExerciseError
from lab.teach.exercise import Case, Check, Exercise, Mutant, Seen, Wrong
from lab.teach.plain import Plain, describe

DEEP, NARROW = (20, 128), (8, 64)
"""(layers, width)"""

_N_EXAMPLES = 64
_RANGE = 10.0
"""What counts as kept: at most so many times larger or smaller, over all layers."""


class Found(NamedTuple):
    """What became of a signal in a network: sizes are roots of mean squares, out over in."""

    spread: float
    """Of the weights of the first layer: their standard deviation."""
    smallest: float
    alike: bool
    """All units of the first layer are copies of one."""
    forward: float
    backward: float


def sent_through(init: Callable[[int, int, np.random.Generator], Any], n_layers: int, width: int) -> Plain:
    """A signal through layers of relu and its gradient back again, as a `Found`.

    Raises:
        ExerciseError: the weights have another shape.

    Example:
        >>> from lab.nn.init import kaiming
        >>> found = Found(*sent_through(kaiming, *DEEP))
        >>> 0.1 < found.forward < 10 and 0.1 < found.backward < 10
        True
    """
    rng = np.random.default_rng(0)
    start = tensor(rng.normal(size=(_N_EXAMPLES, width)), requires_grad=True)
    signal, first = start, None
    for _ in range(n_layers):
        weight = np.asarray(init(width, width, rng), dtype=float)
        if weight.shape != (width, width):
            raise ExerciseError("the weights have another shape", given=f"{weight.shape} for {width} in, {width} out",
                                hint="rng.normal(size=(n_in, n_out)) has one row for each input")  # fmt: skip
        first = weight if first is None else first
        signal = (signal @ weight).relu()
    ct = rng.normal(size=signal.shape)
    signal.backward(tensor(ct))
    assert first is not None
    assert start.grad is not None
    alike = bool((first == first[:, :1]).all())
    forward, backward = _size(signal.numpy()) / _size(start.numpy()), _size(start.grad.numpy()) / _size(ct)
    return float(first.std()), float(first.min()), alike, forward, backward


def _size(array: Any) -> float:
    with np.errstate(over="ignore"):  # an explosion is an answer, too
        return float(np.sqrt((array.astype(float) ** 2).mean()))


def keeps_its_size(case: Case, value: Plain) -> Wrong | None:
    """Neither signal nor gradient vanishes or explodes, and the units differ."""
    n_layers, width = case
    found = Found(*value)
    about = f"Through {n_layers} layers of {width} units"
    if found.alike:
        return Wrong(f"{about}: all units of a layer are alike, and get the same gradient for ever.",
                     "every column of the weights is the same", "columns that differ")  # fmt: skip
    for name, size in (("signal", found.forward), ("gradient, on its way back,", found.backward)):
        if not 1 / _RANGE < size < _RANGE:
            fate = "explodes" if size > 1 else "vanishes"
            return Wrong(f"{about} the {name} {fate}.", f"it comes out {describe(size)} times as large",
                         f"between {1 / _RANGE:g} and {_RANGE:g} times as large")  # fmt: skip
    return None


def _spreads(near: Callable[[float, int], float]) -> Callable[[Seen], bool]:
    """A sign: in every network the spread is about what `near` gives for (spread, width), 1 being a match."""

    def shows(seen: Seen) -> bool:
        rows = [(Found(*a.value), case[1]) for case, a in seen if not a.failure]
        return len(rows) == len(seen) and all(0.85 < near(found.spread, width) < 1.15 for found, width in rows)

    return shows


def _every(shows: Callable[[Found], bool]) -> Callable[[Seen], bool]:
    return lambda seen: all(not a.failure and shows(Found(*a.value)) for _, a in seen)


def _same_spread(seen: Seen) -> bool:
    spreads = {case[1]: Found(*a.value).spread for case, a in seen if not a.failure}
    return len(spreads) > 1 and max(spreads.values()) < 1.15 * min(spreads.values())


def _normal(spread: Callable[[int], float]) -> Callable[..., Any]:
    return lambda n_in, n_out, rng: spread(n_in) * rng.normal(size=(n_in, n_out))


MY_INIT = Exercise(
    name="my_init",
    task="Draw weights that let a signal and its gradient through many layers of relu.",
    stub='''\
def my_init(n_in, n_out, rng):
    return 0.01 * rng.normal(size=(n_in, n_out))
''',
    arguments=("n_layers", "width"),
    results=("spread", "smallest", "alike", "forward", "backward"),
    answer=_normal(lambda n_in: math.sqrt(2 / n_in)),
    call=sent_through,
    checks=(
        Check("20 layers of 128 units keep the size of signal and gradient", [DEEP], keeps_its_size),
        Check("8 layers of 64 units do, too", [NARROW], keeps_its_size),
    ),
    mutants=(
        Mutant("all weights are 0", lambda n_in, n_out, rng: np.zeros((n_in, n_out)),
               "what does a layer give on if all its weights are 0?", _every(lambda f: f.spread == 0 == f.smallest)),
        Mutant("all units are copies of one", lambda n_in, n_out, rng: np.full((n_in, n_out), 1 / n_in),
               "equal weights get equal gradients and stay equal: draw a number for each",
               _every(lambda f: f.alike)),
        Mutant("no weight is negative", lambda n_in, n_out, rng: rng.uniform(0, math.sqrt(6 / n_in), (n_in, n_out)),
               "then all inputs add up and none cancel: draw from both sides of 0", _every(lambda f: f.smallest >= 0)),
        Mutant("the spread is the same for every width", _normal(lambda n_in: 0.01),
               "a unit adds up n_in numbers: the more there are, the smaller each weight has to be", _same_spread),
        Mutant("the variance is taken for the spread", _normal(lambda n_in: 2 / n_in),
               "variances add up, so the spread is a square root", _spreads(lambda s, n: s * n / 2)),
        Mutant("the half that relu takes away is forgotten", _normal(lambda n_in: math.sqrt(1 / n_in)),
               "relu sets half of the numbers to 0: by how much has the variance to be larger?",
               _spreads(lambda s, n: s * math.sqrt(n))),
        Mutant("the bound of a uniform draw is taken for its spread", lambda n_in, n_out, rng: rng.uniform(
               -math.sqrt(2 / n_in), math.sqrt(2 / n_in), (n_in, n_out)),
               "numbers between -b and b have the spread b / sqrt(3)",
               _spreads(lambda s, n: s * math.sqrt(3 * n / 2))),
    ),
    hints=(
        "a unit adds up n_in products: how does the variance of their sum grow with n_in?",
        "n_in times the variance of a weight, and half of it through relu: that has to be 1",
        "a spread of sqrt(2 / n_in)",
    ),
    show=lambda case: f"Through {case[0]} layers of {case[1]} units",
)  # fmt: skip


def _outputs(*shape: int, dead: tuple[int, ...] = ()) -> Any:
    outputs = np.maximum(np.random.default_rng(len(dead)).normal(size=shape), 0)
    for unit in range(shape[1]):
        outputs[unit % shape[0], unit] += 0.1  # whoever is not dead says so at least once
    outputs[:, dead] = 0
    return outputs


DEAD_SHARE = Exercise(
    name="dead_share",
    task="Return the share of units, 0 to 1, that give 0 for every example.",
    stub='''\
def dead_share(outputs):
    return (outputs == 0).mean()
''',
    arguments=("outputs",),
    results=("share of dead units",),
    answer=lambda outputs: (outputs == 0).all(axis=0).mean(),
    checks=(
        Check("two units of eight are dead", [(_outputs(5, 8, dead=(2, 6)),)]),
        Check("none is dead, though each rests now and then", [(_outputs(6, 4),)]),
        Check("all are dead", [(np.zeros((4, 3)),)]),
        Check("another number of examples", [(_outputs(20, 10, dead=(0, 4, 9)),)]),
    ),
    mutants=(
        Mutant("it is the share of zeros", lambda outputs: (outputs == 0).mean(),
               "a unit that rests for some examples is not dead: it has to give 0 for every one"),
        Mutant("a unit counts as dead if it rests once", lambda outputs: (outputs == 0).any(axis=0).mean(),
               "for every example: all, not any"),
        Mutant("examples are counted, not units", lambda outputs: (outputs == 0).all(axis=1).mean(),
               "rows are examples, columns are units: along which axis goes `all`?"),
        Mutant("dead units are counted", lambda outputs: (outputs == 0).all(axis=0).sum(),
               "a share lies between 0 and 1: of how many units?"),
        Mutant("it is the share of those that live", lambda outputs: 1 - (outputs == 0).all(axis=0).mean(),
               "if all are dead the share is 1"),
        Mutant("the share is given as a percentage", lambda outputs: 100 * (outputs == 0).all(axis=0).mean(),
               "a share lies between 0 and 1"),
        Mutant("only the first example is looked at", lambda outputs: (outputs[0] == 0).mean(),
               "another example may wake the unit"),
        Mutant("the dead units are divided by the number of examples", lambda outputs: (
               outputs == 0).all(axis=0).sum() / len(outputs), "len(outputs) counts rows: those are examples"),
    ),
    hints=(
        "outputs has a row for each example and a column for each unit",
        "first ask of each column whether all its entries are 0, then take the share of those that say yes",
    ),
)  # fmt: skip
