"""What the runs of a graph tell, the same from every executor: which equation ran when, in which thread, after which.

Times are nanoseconds since the run began. Those of equations are `per_equation`: they are told where somebody asks for
them and nobody for single operations; with these a graph goes through the ops, and they tell.
"""

from __future__ import annotations

from typing import ClassVar

from lab.events.event import Event, event


@event
class GraphRunBegun(Event):
    """A graph began to run; told with its equations when it is over, so that telling costs nothing in between."""

    executor: str
    """"interpreted", "compiled" or "parallel"."""
    n_equations: int
    """Those that run, of the graph that the executor made: views of a buffer that is kept do not."""
    n_threads: int

    per_operation: ClassVar[bool] = True
    per_equation: ClassVar[bool] = True


@event
class EquationRan(Event):
    """One equation of a graph ran; in the order in which they came to an end."""

    number: int
    """In the graph, from 0 on."""
    text: str
    op: str
    """Its name; of a fused one what was fused."""
    made_by: str
    """"file:line" of the code that made it, "" where unknown."""
    needs: tuple[int, ...]
    """Numbers of the equations for which it had to wait: whose values it reads, or whose buffer it writes over."""
    lane: int
    """The thread: 0 is that of the caller."""
    start_ns: int
    stop_ns: int

    per_operation: ClassVar[bool] = True
    per_equation: ClassVar[bool] = True


@event
class GraphRunFinished(Event):
    """All equations of a graph have run, and its results are there."""

    executor: str
    elapsed_ns: int
    busy_ns: int
    """Time in equations, of all threads together."""

    per_operation: ClassVar[bool] = True
    per_equation: ClassVar[bool] = True


@event
class ScheduleBegun(Event):
    """`lab.measure_schedule` begins: a function was traced, and its graph is run by every executor."""

    function: str
    n_cores: int
    """That this process may use."""
    repeats: int


@event
class ScheduleMeasured(Event):
    """One executor ran the graph: some times in silence, then once more, told equation by equation just before this."""

    executor: str
    n_threads: int
    n_tasks: int
    """What was handed to threads: equations, or some of them together."""
    run_ms: float
    """Median time of a run in silence."""
    work_ms: float
    """Of the run that was told: time in equations, of all threads together."""
    critical_ms: float
    """Of that run: the longest chain of equations that wait for each other."""
    utilisation: float
    """Of that run: the part of all threads' time that was spent in equations, 0 to 1."""
    bound: float
    """What no number of threads goes beyond: work by critical path."""
    speed_up: float
    """Against the interpreted executor, by `run_ms`."""


@event
class StageRan(Event):
    """One item went through a stage of loading: it was loaded, preprocessed, or computed with."""

    stage: str
    """"load", "preprocess" or "compute"."""
    item: int
    """Its number, from 0 on."""
    lane: int
    """The thread: 0 is that of the loop, 1 works ahead of it."""
    start_ns: int
    """Since the loop began."""
    stop_ns: int


@event
class PrefetchBegun(Event):
    """`lab.measure_prefetch` begins: the same items are gone over with each depth."""

    n_cores: int
    """That this process may use."""
    n_items: int
    depths: tuple[int, ...]
    repeats: int


@event
class PrefetchRunBegun(Event):
    """A loop over all items begins, of which each stage is told."""

    depth: int
    """Of the prefetch; 0: all in the loop itself."""


@event
class PrefetchMeasured(Event):
    """What a depth came to."""

    depth: int
    elapsed_ms: float
    """Median of the loops in silence."""
    load_ms: float
    """Of the loop that was told: time in this stage, of all items together."""
    preprocess_ms: float
    compute_ms: float
    told_ms: float
    """What that loop took."""
    loss: float
    """After the last step: the same at every depth."""
