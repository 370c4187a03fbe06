"""The fan of slopes at a kink: every one between those of the two sides touches the function, and a library takes one.

The slopes are measured by one-sided differences; what the lab takes is its derivative under each convention.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lab.checks import number
from lab.config import KINKS, settings
from lab.errors import ArgumentError, LabError
from lab.events import Event, Recording, bus, record
from lab.events.catalogue import ChoiceKnown, SlopesBegun, SlopesMeasured
from lab.experiments.choices import CHOICES, Choice
from lab.experiments.subject import one_number, place, subject
from lab.graph.ir import Var
from lab.graph.make import trace
from lab.transforms.gradients import grad

KINDS: tuple[type[Event], ...] = (SlopesBegun, SlopesMeasured, ChoiceKnown)
STEPS = (1e-3, 1e-5, 1e-7)
SHORTER = (1e-9, 1e-11)
"""Slopes that are infinite grow until here; those of a quick oscillation have settled."""
POINTS = 201
NEAR = tuple(float(h) for h in np.geomspace(1e-6, 5e-3, 20))
"""Shares of the reach, beside the point: a jump there is upright on a picture, and a quick wave is seen."""
MOST = 16
"""Entries that are looked at."""


class Slopes(NamedTuple):
    """By one entry of the argument.

    Attributes:
        entry: its name.
        left, right: the slopes from the two sides; nan where there are none.
        taken: what the lab takes, by convention.
        choices: what other libraries take, where it is known; not run.
    """

    entry: str
    left: float
    right: float
    taken: dict[str, float]
    choices: tuple[Choice, ...]

    @property
    def is_kink(self) -> bool:
        """Whether the two sides differ, or one of them has a slope and the other none."""
        if np.isfinite(self.left) and np.isfinite(self.right):
            return abs(self.left - self.right) > 1e-6 * max(1.0, abs(self.left), abs(self.right))
        return self.left != self.right and not (np.isnan(self.left) and np.isnan(self.right))


class Fan(NamedTuple):
    """What `measure_slopes` found.

    Attributes:
        entries: one for each entry of the argument.
        recording: of the experiment, for SlopesView.
    """

    entries: tuple[Slopes, ...]
    recording: Recording

    def __repr__(self) -> str:
        words = (f"{s.entry}: {s.left:.4g} to {s.right:.4g}, taken {s.taken['zero']:.4g}" for s in self.entries)
        return f"<slopes by {'; '.join(words)}>"


def measure_slopes(f: Callable[[Any], Any], x: Any, *, reach: float = 1.0) -> Fan:
    """Look at a function from both sides of a point: the slopes there, what the lab takes, what others take.

    Where the sides differ, every slope between is as good (a subgradient, if f is convex; else of Clarke's). SlopesView
    draws the fan. Where f is one operation alone, what other libraries take is told as well: from their documentation
    and source, they do not run.

    Args:
        f: takes what x is and returns one number.
        x: a number or an array of up to 16; f runs in float64.
        reach: how far around the point the function is sampled for the picture.

    Raises:
        ArgumentError: f does not return one number, x has more than 16 entries or is not finite, or reach is no length.

    Example:
        >>> import lab
        >>> (kink,) = lab.measure_slopes(lab.relu, 0.0).entries
        >>> kink.left, kink.right, kink.taken
        (0.0, 1.0, {'zero': 0.0, 'half': 0.5, 'one': 1.0})
        >>> [c.library for c in kink.choices]
        ['PyTorch', 'JAX', 'TensorFlow']
    """
    subject(f, 1, "measure_slopes")
    at = place(x, "measure_slopes", most=MOST).astype(np.float64)
    reach = number("reach", reach, hint="reach=1.0")
    if not 0 < reach < np.inf:
        raise ArgumentError("reach is how far to both sides one looks", given=f"reach={reach}", hint="reach=1.0")

    def value(moved: Any) -> float:
        return one_number(f, moved, "measure_slopes")

    here = value(at)
    taken = [_derivative(f, at, convention) for convention in KINKS]
    found = []
    with record(kinds=KINDS) as rec:
        rec.meta["title"] = name = getattr(f, "__name__", type(f).__name__)
        bus.emit(SlopesBegun(name))
        for k in range(at.size):

            def along(step: float, k: int = k) -> float:
                moved = at.copy()
                moved.reshape(-1)[k] += step
                return value(moved)

            entry = f"x[{', '.join(str(int(i)) for i in np.unravel_index(k, at.shape))}]" if at.ndim else "x"
            mine = {c: float(t.reshape(-1)[k]) for c, t in zip(KINKS, taken, strict=True)}
            far = max(1.0, abs(float(at.reshape(-1)[k])))
            left, right = (side(along, here, sign, reach=far) for sign in (-1.0, 1.0))
            slopes = Slopes(entry, left, right, mine, ())
            found.append(slopes._replace(choices=tuple(_known(f, at)) if slopes.is_kink else ()))
            _tell(found[-1], float(at.reshape(-1)[k]), here, along, reach)
    return Fan(tuple(found), rec)


def _tell(slopes: Slopes, at: float, here: float, along: Callable[[float], float], reach: float) -> None:
    beside = reach * np.array(NEAR)
    steps = np.unique(np.concatenate([np.linspace(-reach, reach, POINTS), beside, -beside]))
    xs, ys = tuple(float(at + s) for s in steps), tuple(along(float(s)) for s in steps)
    bus.emit(SlopesMeasured(slopes.entry, at, here, slopes.left, slopes.right, tuple(slopes.taken.values()), xs, ys))
    for choice in slopes.choices:
        bus.emit(ChoiceKnown(slopes.entry, *choice))


def _derivative(f: Callable[[Any], Any], at: Any, convention: str) -> Any:
    with settings(kinks=convention), np.errstate(all="ignore"):
        return np.asarray(grad(f)(at).numpy(), np.float64)


def side(along: Callable[[float], float], here: float, sign: float, *, reach: float = 1.0) -> float:
    """The slope from one side: of ever shorter steps what they settle at, infinite if they grow, nan if neither.

    Args:
        reach: the steps are shares of it; where numbers are large a short step would vanish in them.

    Example:
        >>> side(abs, 0.0, -1.0), side(lambda s: s ** 0.5, 0.0, 1.0), side(lambda s: s * s + s, 0.0, 1.0)
        (-1.0, inf, 1.0)
    """

    def slope(h: float) -> float:
        return (along(sign * h * reach) - here) / (sign * h * reach)

    first, second, last = slopes = [slope(h) for h in STEPS]
    if not np.isfinite(slopes).all():
        return float("nan")
    if abs(last - second) <= 1e-2 * max(1.0, abs(last)):
        return round(2.0 * slope(STEPS[1] / 2) - second, 9)  # the share that goes with the step is gone
    ever = [first, second, last, *(slope(h) for h in SHORTER)]
    grows = all(abs(b) > abs(a) for a, b in pairwise(ever)) and abs(last - second) >= 0.5 * abs(second - first)
    return float(np.copysign(np.inf, last)) if grows else float("nan")


def _known(f: Callable[[Any], Any], at: Any) -> list[Choice]:
    """What others take, if the function is one operation of its argument and a constant."""
    try:
        graph = trace(f, (at,), {}, weak=False)[0]
    except LabError:  # it looks at numbers
        return []
    if len(graph.equations) != 1 or at.ndim:
        return []
    (e,) = graph.equations
    operands = [i for i, a in enumerate(e.inputs) if isinstance(a, Var) and a.number == graph.inputs[0].number]
    return CHOICES.get((e.op.name, operands[0]), []) if len(operands) == 1 else []
