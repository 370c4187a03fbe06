"""Expression swell: a derivative as one expression repeats what it needs twice, and the tape has each value once.

A function is put into itself, again and again, and both are counted at every depth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.backward import Walk
from lab.autograd.tensor import tensor
from lab.checks import whole
from lab.errors import GradientError
from lab.events import Event, Recording, bus, record
from lab.events.catalogue import SwellBegun, SwellMeasured
from lab.experiments.subject import one_number, place, subject
from lab.graph.make import trace
from lab.ops import sin
from lab.transforms.expressions import symbolic
from lab.transforms.gradients import grad

KINDS: tuple[type[Event], ...] = (SwellBegun, SwellMeasured)
LONGEST = 120
"""Letters of an expression that are told."""


class Depth(NamedTuple):
    """The function put so many times into itself, and its derivative.

    Attributes:
        depth: 3 is f(f(f(x))).
        n_ops: operations in the derivative as sympy writes it, a tree.
        n_ops_shared: the same, if what occurs several times is computed once.
        n_tape: operations on the tape of the function.
        n_gradient: operations that function and backward walk run together.
        expression: the derivative, "" where it is long.
    """

    depth: int
    n_ops: int
    n_ops_shared: int
    n_tape: int
    n_gradient: int
    expression: str


class Swell(NamedTuple):
    """What `measure_swell` found.

    Attributes:
        rows: one for each depth.
        stopped: whether the expression became too large before the last depth.
        recording: of the experiment, for SwellView.
    """

    rows: tuple[Depth, ...]
    stopped: bool
    recording: Recording

    def __repr__(self) -> str:
        last = self.rows[-1]
        counts = f"{last.n_ops:,} operations in the derivative, {last.n_ops_shared:,} with shared parts"
        return f"<depth {last.depth}: {counts}, {last.n_tape:,} on the tape>"


def measure_swell(f: Callable[[Any], Any] = sin, depth: int = 8, *, at: float = 0.5, most: int = 5_000) -> Swell:
    """Put a function into itself and count: operations in the symbolic derivative, and on the tape.

    SwellView draws it. sin(sin(...)) swells with the square of its depth, 4 x (1 - x) by more than a factor of 2 each
    time; the tape grows by as many operations as f has.

    Args:
        f: takes and returns a number, in ops of the lab.
        depth: how deep to go.
        at: the number for which it runs on the tape.
        most: an expression of more operations than this is the last: the next may take minutes.

    Raises:
        ArgumentError: a depth below 1, or a function that does not take and return one number.
        GradientError: nothing of it is on the tape, as of a constant.
        UnsupportedError: an op that has no formula.
        ConcretizationError: f looks at numbers.

    Example:
        >>> import lab
        >>> lab.measure_swell(depth=3).rows[-1][:5], lab.measure_swell(depth=3).rows[-1].expression
        ((3, 8, 7, 3, 9), 'cos(x)*cos(sin(x))*cos(sin(sin(x)))')
    """
    subject(f, 1, "measure_swell")
    depth = whole("depth", depth, least=1, hint="depth=3 for f(f(f(x)))")
    most = whole("most", most, least=1)
    at = float(place(at, "measure_swell").reshape(()))
    one_number(f, np.float64(at), "measure_swell")
    rows, stopped = list[Depth](), False
    with record(kinds=KINDS) as rec:
        rec.meta["title"] = name = getattr(f, "__name__", type(f).__name__)
        bus.emit(SwellBegun(name, most))
        for d in range(1, depth + 1):
            rows.append(_counted(f, d, at))
            bus.emit(SwellMeasured(*rows[-1]))
            stopped = d < depth and rows[-1].n_ops > most
            if stopped:
                break
    return Swell(tuple(rows), stopped, rec)


def _counted(f: Callable[[Any], Any], depth: int, at: float) -> Depth:
    def nested(x: Any) -> Any:
        for _ in range(depth):
            x = f(x)
        return x

    slope = symbolic(nested, at).diff()
    with np.errstate(all="ignore"):  # how many there are does not depend on whether they are numbers
        out = nested(tensor(at, requires_grad=True))
    node = getattr(out, "node", None)
    if node is None:
        raise GradientError(
            "measure_swell found nothing on the tape", given=f"{out!r}"[:60],
            hint="a function of its argument, in lab ops",
        )  # fmt: skip
    n_gradient = len(trace(grad(nested), [np.float64(at)], {}, weak=False)[0].equations)
    text = repr(slope)
    return Depth(depth, slope.n_ops, slope.n_ops_shared, len(Walk(node).nodes), n_gradient,
                 text if len(text) <= LONGEST else "")  # fmt: skip
