"""Collectives by size: how long they really take, what a network of simple links would make of them, and who wins when.

And by number of ranks: the bytes on the link of the root, which a broadcast and an all-reduce load in other ways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lab.checks import whole
from lab.errors import ArgumentError
from lab.events import ChunkMoved, Event, Recording, bus, record
from lab.events.catalogue import (
    CrossingFound,
    LinkFitted,
    RootLinkBegun,
    RootLinkMeasured,
    TimeMeasured,
    TimesBegun,
    TimeSimulated,
)
from lab.experiments.cost import crossing as crossing_of_lines
from lab.kernels.cores import n_cores
from lab.parallel.paper.cost import Link, Network
from lab.parallel.paper.plans import plan_of
from lab.parallel.paper.simulate import crossing, predict
from lab.parallel.ranks.threads import run_local, run_ranks
from lab.words import shown

if TYPE_CHECKING:
    from lab.parallel.cluster.cluster import Cluster
    from lab.parallel.ranks.runtime import Comm

KINDS: tuple[type[Event], ...] = (TimesBegun, TimeMeasured, LinkFitted, TimeSimulated, CrossingFound)
SIZES = tuple(4**k for k in range(5, 13))
"""1 KiB to 16 MiB."""
HINT = "sizes=[1024, 65536, 4194304]"


class Timed(NamedTuple):
    """What an algorithm took for a size; both in milliseconds."""

    algorithm: str
    n_bytes: int
    measured_ms: float
    simulated_ms: float


class Times(NamedTuple):
    """What `measure_collectives` found.

    Attributes:
        rows: every algorithm with every size.
        link: of the simulation.
        crossings: by ("measured" or "simulated", slower, faster) the bytes from which on one is faster than the other.
        recording: of the experiment, for TimesView.
    """

    rows: tuple[Timed, ...]
    link: Link
    crossings: dict[tuple[str, str, str], float]
    recording: Recording

    def __repr__(self) -> str:
        words = (f"{way} {f} beats {s} from {at:,.0f} bytes on" for (way, s, f), at in self.crossings.items())
        return f"<times of {len(self.rows)} collectives: {', '.join(words) or 'no crossing'}>"


def measure_collectives(
    on: Cluster | None = None,
    algorithms: Sequence[str] = ("ring", "tree"),
    sizes: Sequence[int] = SIZES,
    *,
    operation: str = "all_reduce",
    world_size: int = 4,
    repeats: int = 5,
    link: Link | None = None,
) -> Times:
    """Run collectives of several sizes, and simulate them on a link; TimesView draws both.

    Every rank waits at a barrier, then takes its time; a run lasts as long as on the rank where it lasts longest. The
    link of the simulation has a latency and a bandwidth, fitted to the smallest and the largest buffer of the first
    algorithm: all other lines are predictions. It knows nothing of ranks that wait for a core.

    Args:
        on: a Cluster, whose workers are the ranks; without it they are threads of this process.
        algorithms: of the operation, as in `lab.parallel.COLLECTIVES`.
        sizes: bytes of a buffer of float32, ascending.
        repeats: the median of so many is taken; one more, before them, is not counted.
        link: of the simulation, if it is not to be fitted.

    Raises:
        ArgumentError: sizes or algorithms that are none.
        PlanError: no such operation or algorithm.

    Example:
        >>> import lab
        >>> found = lab.measure_collectives(sizes=[1024, 65536], world_size=2, repeats=1)
        >>> [(row.algorithm, row.n_bytes) for row in found.rows]
        [('ring', 1024), ('tree', 1024), ('ring', 65536), ('tree', 65536)]
    """
    wanted = _sizes(sizes)
    names = [algorithms] if isinstance(algorithms, str) else list(algorithms)
    for name in names:
        plan_of(operation, name)
    if not names:
        raise ArgumentError("algorithms are some names", given="none", hint='algorithms=["ring", "tree"]')
    world_size, repeats = whole("world_size", world_size, least=2), whole("repeats", repeats, least=1)
    told, measured = bool(bus.listeners), dict[tuple[str, int], float]()
    with record(kinds=KINDS) as rec:
        rec.meta["title"] = f"{operation} by size"
        where = "threads" if on is None else "workers"
        bus.emit(TimesBegun(operation, world_size, where, n_cores(), repeats, told))
        for n_bytes in wanted:
            took = _launched(on, world_size, operation, names, n_bytes, repeats)
            for k, name in enumerate(names):
                measured[name, n_bytes] = 1e3 * median(max(times) for times in zip(*(t[k] for t in took), strict=True))
                bus.emit(TimeMeasured(name, n_bytes, measured[name, n_bytes]))
        used = link or _fitted((operation, names[0]), world_size, {n: measured[names[0], n] for n in wanted})
        bus.emit(LinkFitted(used.latency_s, used.bytes_per_s, "" if link else names[0]))
        rows = list[Timed]()
        for n_bytes in wanted:
            for name in names:
                ms = 1e3 * predict((operation, name), world_size, n_bytes, Network(used)).total_s
                rows.append(Timed(name, n_bytes, measured[name, n_bytes], ms))
                bus.emit(TimeSimulated(name, n_bytes, ms))
        crossings = _crossings(operation, names, world_size, rows, used)
        for (way, slower, faster), at in crossings.items():
            bus.emit(CrossingFound(way, slower, faster, at))
    return Times(tuple(rows), used, crossings, rec)


def _sizes(sizes: Sequence[int]) -> list[int]:
    """Ascending sizes; two at least, since a link has two numbers."""
    wanted = [whole("size", n, least=4, hint=HINT) for n in np.atleast_1d(sizes)]
    if len(wanted) < 2 or any(a >= b for a, b in pairwise(wanted)):
        raise ArgumentError("sizes are two numbers of bytes or more, ascending", given=f"sizes={shown(sizes)}",
                            hint=HINT)  # fmt: skip
    return wanted


def timed(comm: Comm, operation: str, names: list[str], n_bytes: int, repeats: int) -> list[list[float]]:
    """The program of a rank: by algorithm the seconds of each repeat; they take turns, so a busy moment hits all."""
    buffer = np.ones(n_bytes // 4, np.float32)
    took: list[list[float]] = [[] for _ in names]
    for repeat in range(repeats + 1):
        for k, name in enumerate(names):
            comm.barrier()
            start = perf_counter()
            comm.run_(buffer, operation, name)
            if repeat:
                took[k].append(perf_counter() - start)
            buffer.fill(1.0)
    return took


def _launched(on: Cluster | None, world_size: int, *args: Any) -> list[list[list[float]]]:
    if on is None:
        return run_ranks(timed, *args, world_size=world_size)
    return on.launch(timed, *args, world_size=world_size)


def _fitted(plan: tuple[str, str], world_size: int, measured: dict[int, float]) -> Link:
    """The link on which the smallest and the largest buffer would take as long as they took."""
    small, large = min(measured), max(measured)
    steps = predict(plan, world_size, small, Network(Link(1.0, math.inf))).total_s
    one, other = (predict(plan, world_size, n, Network(Link(0.0, 1.0))).total_s for n in (small, large))
    slope = max((measured[large] - measured[small]) / 1e3 / (other - one), 1e-15)  # noise may turn a line around
    latency = (measured[small] / 1e3 - one * slope) / steps
    return Link(max(latency, 0.0), 1.0 / slope, source="fitted to two measurements")


def _crossings(operation: str, names: list[str], world_size: int, rows: list[Timed], link: Link) -> dict[
    tuple[str, str, str], float
]:  # fmt: skip
    """Where the lines of two algorithms cross, measured and simulated."""
    found = dict[tuple[str, str, str], float]()
    for a, b in combinations(names, 2):
        one, other = ([row for row in rows if row.algorithm == name] for name in (a, b))
        sizes = [row.n_bytes for row in one]
        at, first_is_slower = crossing_of_lines(sizes, *([row.measured_ms for row in line] for line in (one, other)))
        if at is not None:
            found["measured", *((a, b) if first_is_slower else (b, a))] = at
        exact = crossing((operation, a), (operation, b), world_size, Network(link))
        if exact is not None:
            beyond = [predict((operation, name), world_size, 4 * exact, Network(link)).total_s for name in (a, b)]
            found["simulated", *((a, b) if beyond[0] > beyond[1] else (b, a))] = float(exact)
    return found


# --- the link of the root -----------------------------------------------------------------------------------------

ROOTED = (("broadcast", "flat"), ("broadcast", "tree"), ("broadcast", "pipelined"), ("all_reduce", "naive"),
          ("all_reduce", "tree"), ("all_reduce", "ring"))  # fmt: skip


class OnRootLink(NamedTuple):
    """What rank 0 sent and received; fields as of the event RootLinkMeasured."""

    operation: str
    algorithm: str
    world_size: int
    sent_bytes: int
    received_bytes: int


class RootLink(NamedTuple):
    """What `measure_root_link` found.

    Attributes:
        rows: one for each plan and number of ranks.
        n_bytes: of the buffer.
        recording: of the experiment, for RootLinkView.
    """

    rows: tuple[OnRootLink, ...]
    n_bytes: int
    recording: Recording

    def __repr__(self) -> str:
        most = max(self.rows, key=lambda row: row.sent_bytes + row.received_bytes)
        times = (most.sent_bytes + most.received_bytes) / self.n_bytes
        return f"<link of rank 0: most {times:.3g} buffers, {most.operation} by {most.algorithm}>"


def measure_root_link(
    world_sizes: Sequence[int] = (2, 3, 4, 5, 6, 7, 8), *, plans: Sequence[tuple[str, str]] = ROOTED,
    n_bytes: int = 13440,
) -> RootLink:  # fmt: skip
    """Run broadcasts and all-reduces on more and more ranks, and count the bytes that rank 0 sends and receives.

    RootLinkView draws it.

    Args:
        world_sizes: numbers of ranks, each 2 or more; ranks are threads of this process.
        plans: (operation, algorithm), as in `lab.parallel.COLLECTIVES`.
        n_bytes: of the buffer of float32; 13,440 is divided by all numbers of ranks up to 8.

    Raises:
        ArgumentError: world sizes that are none.
        PlanError: no such plan.

    Example:
        >>> import lab
        >>> found = lab.measure_root_link([4], plans=[("broadcast", "flat"), ("all_reduce", "ring")])
        >>> [(row.sent_bytes / found.n_bytes, row.received_bytes / found.n_bytes) for row in found.rows]
        [(3.0, 0.0), (1.5, 1.5)]
    """
    sizes = [whole("world_size", n, least=2, hint="world_sizes=[2, 4, 8]") for n in np.atleast_1d(world_sizes)]
    if not sizes or not plans:
        raise ArgumentError("there is nothing to measure", given=f"{len(sizes)} world sizes, {len(plans)} plans",
                            hint="world_sizes=[2, 4, 8]")  # fmt: skip
    n_bytes, rows = 4 * (whole("n_bytes", n_bytes, least=4) // 4), list[OnRootLink]()
    with record(kinds=(RootLinkBegun, RootLinkMeasured)) as rec:
        rec.meta["title"] = "the link of rank 0"
        bus.emit(RootLinkBegun(n_bytes))
        for operation, algorithm in plans:
            for n in sizes:
                with record(kinds=[ChunkMoved], detail="shape") as ran:
                    run_local(operation, algorithm, [np.ones(n_bytes // 4, np.float32)] * n)
                hops = ran.columns(ChunkMoved)
                sent, received = (int(hops["n_bytes"][hops[end] == 0].sum()) for end in ("src", "dst"))
                rows.append(OnRootLink(operation, algorithm, n, sent, received))
                bus.emit(RootLinkMeasured(*rows[-1]))
    return RootLink(tuple(rows), n_bytes, rec)
