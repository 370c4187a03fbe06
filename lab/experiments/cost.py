"""What a whole Jacobian costs: numerically and in forward mode a run for each input, in reverse a walk for each output.

So forward mode is for few inputs and reverse mode for few outputs; where the lines cross depends on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from lab.checks import whole
from lab.errors import ArgumentError
from lab.events import Event, Recording, bus, record
from lab.events.catalogue import CostBegun, CostMeasured, CrossingFound
from lab.experiments.subject import subject
from lab.ops import tanh
from lab.transforms.arguments import function, returned
from lab.transforms.gradients import jvp, vjp
from lab.transforms.numeric import numeric_jacobian

KINDS: tuple[type[Event], ...] = (CostBegun, CostMeasured, CrossingFound)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
WIDTH = 32
"""Hidden numbers of the function that is measured if none is given."""


class Cost(NamedTuple):
    """What one Jacobian took.

    Attributes:
        sweep: what grows, "inputs" or "outputs".
        way: "numeric", "forward" or "reverse".
        n_inputs, n_outputs: the shape of the function.
        elapsed_ms: median of the repeats.
        runs, walks: how often the function ran, and how often a walk went back.
    """

    sweep: str
    way: str
    n_inputs: int
    n_outputs: int
    elapsed_ms: float
    runs: int
    walks: int


class Costs(NamedTuple):
    """What `measure_cost` found.

    Attributes:
        rows: every Jacobian.
        crossings: by (sweep, slower, faster) the size from which on one way is cheaper than the other.
        told: whether single operations were recorded meanwhile, which makes all of them slower.
        recording: of the experiment, for CostView.
    """

    rows: tuple[Cost, ...]
    crossings: dict[tuple[str, str, str], float]
    told: bool
    recording: Recording

    def __repr__(self) -> str:
        words = (f"{f} beats {s} from {at:.3g} {sweep} on" for (sweep, s, f), at in self.crossings.items())
        return f"<cost of {len(self.rows)} Jacobians: {', '.join(words) or 'no crossing'}>"


def network(n: int, m: int) -> Callable[[Any], Any]:
    """A function of n numbers that returns m: one hidden layer, with weights from a fixed seed.

    Example:
        >>> network(3, 2)(np.ones(3)).shape
        (2,)
    """
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(n, WIDTH)) / np.sqrt(n), rng.normal(size=(WIDTH, m)) / np.sqrt(WIDTH)
    return lambda x: tanh(x @ first) @ second


def measure_cost(
    make: Callable[[int, int], Callable[[Any], Any]] = network,
    *,
    sizes: Sequence[int] = SIZES,
    fixed: int = 8,
    repeats: int = 7,
) -> Costs:
    """Make whole Jacobians in three ways, with more and more inputs and then outputs; measure time, count passes.

    CostView draws it. Each column is asked for by itself, so that passes are what they are called: `numeric` runs the
    function once for each input and once more, `forward` once for each input with a tangent, `reverse` once, and then
    walks back once for each output. (`jacfwd` and `jacrev` make all columns in one pass over a batch.)

    Args:
        make: for (n, m) a function that takes an array of n floats and returns one of m.
        sizes: inputs, then outputs, ascending.
        fixed: outputs while the inputs grow, and the other way round.
        repeats: the median of so many is taken; one more, before them, is not counted.

    Raises:
        ArgumentError: sizes that are none, or a function that returns something else than m numbers.

    Example:
        >>> import lab
        >>> found = lab.measure_cost(sizes=[1, 16], fixed=4, repeats=1)
        >>> [(c.way, c.n_inputs, c.n_outputs, c.runs, c.walks) for c in found.rows[3:6]]
        [('numeric', 16, 4, 17, 0), ('forward', 16, 4, 16, 0), ('reverse', 16, 4, 1, 4)]
    """
    subject(make, 2, "measure_cost")
    fixed, repeats = whole("fixed", fixed, least=1), whole("repeats", repeats, least=1)
    sizes = [whole("size", n, least=1, hint="sizes=[1, 2, 4, 8]") for n in np.atleast_1d(sizes)]
    if not sizes or sorted({*sizes}) != sizes:
        raise ArgumentError("sizes are whole numbers, ascending", given=repr(sizes)[:60], hint="sizes=[1, 2, 4, 8]")
    rows, crossings, told = list[Cost](), dict[tuple[str, str, str], float](), bus.operations
    with record(kinds=KINDS) as rec:
        rec.meta["title"] = name = getattr(make, "__name__", type(make).__name__)
        bus.emit(CostBegun(name, fixed, repeats, told))
        for sweep in ("inputs", "outputs"):
            series: dict[str, list[float]] = {way: [] for way in WAYS}
            for size in sizes:
                n, m = (size, fixed) if sweep == "inputs" else (fixed, size)
                f = _fitting(make(n, m), n, m)
                for way, measured in _measured(f, n, m, repeats).items():
                    rows.append(Cost(sweep, way, n, m, *measured))
                    bus.emit(CostMeasured(*rows[-1]))
                    series[way].append(rows[-1].elapsed_ms)
            for other in ("numeric", "forward"):
                at, first_is_slower = crossing(sizes, series[other], series["reverse"])
                if at is not None:
                    slower, faster = (other, "reverse") if first_is_slower else ("reverse", other)
                    crossings[sweep, slower, faster] = at
                    bus.emit(CrossingFound(sweep, slower, faster, at))
    return Costs(tuple(rows), crossings, told, rec)


def crossing(sizes: Sequence[float], a: Sequence[float], b: Sequence[float]) -> tuple[float | None, bool]:
    """Where two lines on logarithmic axes cross, None if nowhere; and whether the first is the higher one then.

    Times are noisy: taken is the place that has the most points on the side where they belong, so that one that was
    disturbed moves nothing; of equals the last.

    Example:
        >>> crossing([1, 4, 16], [1.0, 4.0, 16.0], [8.0, 8.0, 8.0])
        (8.0, True)
        >>> crossing([1, 2, 4, 8, 16], [1.0, 2.0, 4.0, 8.0, 1.0], [3.0, 3.0, 3.0, 3.0, 3.0])  # the last was disturbed
        (3.0, True)
    """
    gap = np.log(a) - np.log(b)
    above, n = gap > 0, len(gap)
    splits = [(int((above[:k] != rises).sum() + (above[k:] == rises).sum()), k, rises)
              for k in range(1, n) for rises in (False, True)]  # fmt: skip
    n_fit, k, rises = max(splits, default=(0, 0, False))
    if n_fit <= max(above.sum(), n - above.sum()):
        return None, bool(above[-1])
    share = gap[k - 1] / (gap[k - 1] - gap[k]) if above[k - 1] != above[k] else 0.5
    return round(float(np.exp(np.log(sizes[k - 1]) + share * np.log(sizes[k] / sizes[k - 1]))), 9), rises


# --- the three ways, each of which returns how often it walked back -----------------------------------------------


def _numeric(f: Callable[[Any], Any], x: Any, m: int) -> int:
    numeric_jacobian(f, x, "forward")
    return 0


def _forward(f: Callable[[Any], Any], x: Any, m: int) -> int:
    for direction in np.eye(x.size):
        jvp(f, (x,), (direction,))
    return 0


def _reverse(f: Callable[[Any], Any], x: Any, m: int) -> int:
    pull = vjp(f, x)[1]
    for direction in np.eye(m):
        pull(direction)
    return m


WAYS: dict[str, Callable[[Callable[[Any], Any], Any, int], int]] = {
    "numeric": _numeric, "forward": _forward, "reverse": _reverse,
}  # fmt: skip


def _measured(f: Callable[[Any], Any], n: int, m: int, repeats: int) -> dict[str, tuple[float, int, int]]:
    """By way (median in ms, runs of the function, walks); the ways take turns, so that a busy moment hits all."""
    x, runs, passes = np.linspace(-1.0, 1.0, n), 0, dict[str, tuple[int, int]]()
    elapsed: dict[str, list[float]] = {way: [] for way in WAYS}

    def counted(x: Any) -> Any:
        nonlocal runs
        runs += 1
        return f(x)

    for name, way in WAYS.items():
        runs = 0
        walks = way(counted, x, m)
        passes[name] = runs, walks
    for _ in range(repeats):
        for name, way in WAYS.items():
            start = perf_counter()
            way(f, x, m)
            elapsed[name].append(1e3 * (perf_counter() - start))
    return {name: (median(elapsed[name]), *passes[name]) for name in WAYS}


def _fitting(f: Any, n: int, m: int) -> Callable[[Any], Any]:
    """A function that `make` made, if it takes n numbers and returns m."""
    out = returned(function(f, "measure_cost")(np.linspace(-1.0, 1.0, n)), "measure_cost")
    if out.shape != (m,):
        raise ArgumentError(
            "measure_cost needs a function of n numbers that returns m",
            given=f"for n = {n}, m = {m} a result of shape {out.shape}",
            hint="make=lambda n, m: lambda x: lab.tanh(x @ np.ones((n, m)))",
        )
    return f  # type: ignore[no-any-return]
