"""How much of a graph can run at once, and how much of that threads make of it: each executor runs it and tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor
from lab.checks import whole
from lab.errors import ArgumentError
from lab.events import EquationRan, GraphRunBegun, GraphRunFinished, Recording, bus, record
from lab.events.catalogue import ScheduleBegun, ScheduleMeasured
from lab.graph.compiled import Compiled
from lab.graph.dependencies import critical_path
from lab.graph.execute import Replay, run_arrays, tell_arrays
from lab.graph.keys import drawn
from lab.graph.make import trace
from lab.graph.scheduled import Scheduled
from lab.kernels.blas import one_blas_thread
from lab.kernels.cores import n_cores
from lab.transforms.arguments import function
from lab.words import shown

KINDS = (ScheduleBegun, GraphRunBegun, EquationRan, GraphRunFinished, ScheduleMeasured)


class Account(NamedTuple):
    """What a run of a graph comes to.

    Attributes:
        work_ms: time in equations, of all threads together.
        path: numbers of the equations on the critical path, in their order.
        critical_ms: how long that takes: no number of threads is faster.
        bound: how many times as fast as one thread a run can be: work by critical path.
    """

    work_ms: float
    path: tuple[int, ...]
    critical_ms: float
    bound: float


def account_of(ran: Sequence[EquationRan]) -> Account:
    """The work and the critical path of equations that ran.

    Example:
        >>> def ran(number, needs, start, stop):
        ...     return EquationRan(number, "", "exp", "", needs, 0, start * 1_000_000, stop * 1_000_000)
        >>> account_of([ran(0, (), 0, 1), ran(1, (), 0, 3), ran(2, (0, 1), 3, 5)])
        Account(work_ms=6.0, path=(1, 2), critical_ms=5.0, bound=1.2)
    """
    by_number = sorted(ran, key=lambda e: e.number)
    place = {e.number: i for i, e in enumerate(by_number)}
    costs = [(e.stop_ns - e.start_ns) / 1e6 for e in by_number]
    needs = tuple(tuple(place[j] for j in e.needs if j in place) for e in by_number)
    path = critical_path(needs, costs)
    longest = sum(costs[i] for i in path)
    return Account(
        sum(costs), tuple(by_number[i].number for i in path), longest, sum(costs) / longest if longest else 1.0
    )


class Row(NamedTuple):
    """What one executor did; fields as of the event ScheduleMeasured."""

    executor: str
    n_threads: int
    n_tasks: int
    run_ms: float
    work_ms: float
    critical_ms: float
    utilisation: float
    bound: float
    speed_up: float


class Schedule(NamedTuple):
    """What `measure_schedule` found.

    Attributes:
        rows: the interpreted executor, the compiled one, the parallel one with each number of threads.
        n_cores: that there were.
        recording: of a run of each, for ScheduleView.
    """

    rows: tuple[Row, ...]
    n_cores: int
    recording: Recording

    def __repr__(self) -> str:
        best = min((r for r in self.rows if r.executor == "parallel"), key=lambda r: r.run_ms)
        return (
            f"<{best.run_ms:.3g} ms on {best.n_threads} of {self.n_cores} cores, {best.speed_up:.2f} times as fast as"
            f" one by one; at most {best.bound:.2f} times>"
        )


def measure_schedule(f: Callable[..., Any], *args: Any, threads: Sequence[int] = (1, 2), repeats: int = 3) -> Schedule:
    """Run the graph of a function interpreted, compiled and in threads; ScheduleView draws who ran what when.

    BLAS has one thread meanwhile: else products alone would keep all cores.

    Args:
        f: as for `lab.jit`.
        args: its arguments, arrays or containers of them.
        threads: numbers of threads of the parallel executor.
        repeats: the median of so many runs is taken; one more, before them, is not counted.

    Raises:
        ConcretizationError: f asks for the value of a traced variable.
        ArgumentError: f is no function, a number of threads is none.

    Example:
        >>> import lab
        >>> x = np.ones((300, 300))
        >>> found = lab.measure_schedule(lambda x: (x @ x) + (x.T @ x), x, repeats=1)
        >>> [(row.executor, row.n_threads) for row in found.rows]
        [('interpreted', 1), ('compiled', 1), ('parallel', 1), ('parallel', 2)]
    """
    function(f, "measure_schedule")
    repeats, counts = whole("repeats", repeats, least=1), _threads(threads)
    graph = trace(f, args, {}, weak=False)[0]
    given = [*tree.flatten((args, {}))[0], *drawn(graph.captured)]
    arrays = [x.numpy() if isinstance(x, Tensor) else np.asarray(x) for x in given]
    compiled = Compiled(graph)
    compiled.compile()
    ways: list[tuple[str, int, int, Replay, Replay]] = [
        ("interpreted", 1, len(graph.equations), lambda xs: run_arrays(graph, xs), lambda xs: tell_arrays(graph, xs))
    ]
    ways.append(("compiled", 1, len(compiled.optimized.equations), compiled.arrays, compiled.told))
    for n in counts:
        made = Scheduled(graph, n)
        ways.append(("parallel", n, len(made.tasks.members), made.arrays, made.told))
    with record(kinds=KINDS) as rec, one_blas_thread():
        name = getattr(f, "__name__", type(f).__name__)
        rec.meta["title"] = name
        bus.emit(ScheduleBegun(name, n_cores(), repeats))
        rows: list[Row] = []
        for executor, n, n_tasks, silent, told in ways:
            run_ms = _timed(silent, arrays, repeats)
            ran, finished = _one_told(told, arrays)
            account = account_of(ran)
            used = finished.busy_ns / (n * finished.elapsed_ns)
            first = rows[0].run_ms if rows else run_ms
            whole_of_it = account.work_ms, account.critical_ms, used, account.bound, first / run_ms
            rows.append(Row(executor, n, n_tasks, run_ms, *whole_of_it))
            bus.emit(ScheduleMeasured(*rows[-1]))
    return Schedule(tuple(rows), n_cores(), rec)


def _threads(threads: object) -> list[int]:
    if not isinstance(threads, Sequence) or isinstance(threads, str) or not threads:
        given, hint = f"threads={shown(threads)}", "for example threads=(1, 2, 4)"
        raise ArgumentError("threads are some numbers of threads", given=given, hint=hint)
    return [whole("threads", n, least=1, hint="for example threads=(1, 2, 4)") for n in threads]


def _timed(run: Replay, arrays: Sequence[Any], repeats: int) -> float:
    """Median milliseconds of one run."""
    run(arrays)
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run(arrays)
        times.append(1e3 * (perf_counter() - start))
    return median(times)


def _one_told(told: Replay, arrays: Sequence[Any]) -> tuple[list[EquationRan], GraphRunFinished]:
    """The equations of one run; all recordings that are open have them, too."""
    with record(kinds=(EquationRan, GraphRunFinished)) as own:
        told(arrays)
    *ran, finished = own
    return ran, finished  # type: ignore[return-value]
