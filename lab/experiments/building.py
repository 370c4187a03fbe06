"""What it costs to build a graph in every step, as define-by-run does, against building it once and replaying it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf, nan
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor, tensor
from lab.checks import whole
from lab.errors import ArgumentError
from lab.events import Event, Recording, bus, record
from lab.events.catalogue import BuildBegun, BuildMeasured
from lab.transforms.arguments import function
from lab.transforms.compilation import Jitted, jit
from lab.transforms.gradients import value_and_grad

KINDS: tuple[type[Event], ...] = (BuildBegun, BuildMeasured)
EAGER, TRACED, KEPT, COMPILED = "define by run", "traced each step", "kept, interpreted", "kept, compiled"
WAYS = (EAGER, TRACED, KEPT, COMPILED)
WARM = 2
"""Steps of each way that are made before and not counted."""


class Built(NamedTuple):
    """One way; fields as of the event BuildMeasured."""

    way: str
    once_ms: float
    step_ms: float
    graph_ms: float
    paid_from: float


class Builds(NamedTuple):
    """What `measure_build` found.

    Attributes:
        ways: by name.
        told: whether single operations were recorded meanwhile, which makes all slower.
        recording: of the experiment, for BuildView.
    """

    ways: dict[str, Built]
    told: bool
    recording: Recording

    def __repr__(self) -> str:
        return f"<a step: {', '.join(f'{way} {b.step_ms:.3g} ms' for way, b in self.ways.items())}>"


def measure_build(f: Callable[..., Any], *args: Any, repeats: int = 15) -> Builds:
    """Make value and gradients by a graph that is built in each step, and by one that is kept; BuildView draws it.

    Define by run records every operation on a tape while it runs, and walks that back. The three others trace the
    function with its gradients into one graph: in each step, or once, to be replayed op by op or compiled.

    Args:
        f: a function that returns one number.
        args: its arguments, arrays or containers of them; gradients are for those that are made of floats.
        repeats: the median of so many steps is taken; the ways take turns.

    Raises:
        ArgumentError: no argument is made of floats.
        GradientError: f returns more than one number.
        ConcretizationError: f asks for the value of a traced variable.

    Example:
        >>> import lab, numpy as np
        >>> found = lab.measure_build(lambda x: lab.sum(lab.tanh(x) * x), np.ones(3), repeats=1)
        >>> [*found.ways]
        ['define by run', 'traced each step', 'kept, interpreted', 'kept, compiled']
    """
    function(f, "measure_build")
    repeats, told = whole("repeats", repeats, least=1), bus.operations
    numbers = [i for i, a in enumerate(args) if _is_float(a)]
    if not numbers:
        raise ArgumentError("measure_build needs an argument made of floats", given="none", hint="np.ones(3)")
    step = value_and_grad(f, tuple(numbers))
    kept = {KEPT: jit(step), COMPILED: jit(step, executor="compiled")}
    once = {EAGER: 0.0, TRACED: 0.0, **{way: _ms(lambda j=j: j(*args)) for way, j in kept.items()}}  # type: ignore[misc]
    found = _measured(f, step, args, numbers, kept, repeats)
    first = found[EAGER][0]
    rows = {way: Built(way, once[way], *found[way], paid_from(once[way], first - found[way][0])) for way in WAYS}
    rows[EAGER] = rows[EAGER]._replace(paid_from=nan)
    with record(kinds=KINDS) as rec:
        name = getattr(f, "__name__", type(f).__name__)
        rec.meta["title"] = name
        bus.emit(BuildBegun(name, WAYS, repeats, told))
        for row in rows.values():
            bus.emit(BuildMeasured(*row))
    return Builds(rows, told, rec)


def paid_from(once_ms: float, gain_ms: float) -> float:
    """From how many steps on a way that costs something once, and less in each step, has cost less in all.

    Example:
        >>> paid_from(10.0, 4.0), paid_from(0.0, 4.0), paid_from(10.0, -1.0)
        (3, 1, inf)
    """
    return max(1, ceil(once_ms / gain_ms)) if gain_ms > 0 else inf


def _measured(
    f: Callable[..., Any],
    step: Callable[..., Any],
    args: Sequence[Any],
    numbers: Sequence[int],
    kept: dict[str, Jitted],
    repeats: int,
) -> dict[str, tuple[float, float]]:
    """For each way the median of a step and of what builds its graph; the ways take turns."""
    given = [tree.map_leaves(_tracked, a) if i in numbers else a for i, a in enumerate(args)]
    leaves: list[Tensor] = [x for i in numbers for x in tree.flatten(given[i])[0]]
    steps: dict[str, list[float]] = {way: [] for way in WAYS}
    builds = list[float]()

    def by_run() -> None:
        for leaf in leaves:
            leaf.grad = None
        f(*given).backward()

    def traced() -> None:
        fresh = jit(step)
        fresh(*args)
        builds.append(fresh.misses[0].elapsed_ms)

    again = {way: lambda j=j: j(*args) for way, j in kept.items()}
    runs = {EAGER: by_run, TRACED: traced, **again}
    for n in range(WARM + repeats):
        for way, run in runs.items():
            took = _ms(run)
            if n >= WARM:
                steps[way].append(took)
    graph = {EAGER: nan, TRACED: median(builds[WARM:]), KEPT: 0.0, COMPILED: 0.0}
    return {way: (median(steps[way]), graph[way]) for way in WAYS}


def _tracked(x: Any) -> Tensor:
    return tensor(x, requires_grad=True)


def _is_float(a: Any) -> bool:
    leaves = tree.flatten(a)[0]
    return bool(leaves) and all(_dtype(x).kind == "f" for x in leaves)


def _dtype(x: Any) -> np.dtype[Any]:
    return np.dtype(x.dtype) if hasattr(x, "dtype") else np.asarray(x).dtype


def _ms(run: Callable[[], Any]) -> float:
    start = perf_counter()
    run()
    return 1e3 * (perf_counter() - start)
