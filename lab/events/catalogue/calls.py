"""What jitted functions tell of their calls, and experiments about capturing a function: traced, read, built each time.

A call of a jitted function tells at most one of them, so none is `per_operation`.
"""

from __future__ import annotations

from lab.events.event import Event, event

# --- calls of jitted functions ------------------------------------------------------------------------------------


@event
class Traced(Event):
    """A jitted function had no graph for a call: it was traced, which gave one."""

    function: str
    file: str
    line: int
    """Of its definition; "" and 0 where there is none."""
    graph: int
    """Among the graphs that it keeps, from 1 on; 0 for one that is good for this call only."""
    reason: str
    """What is new in the call, in words."""
    n_equations: int
    elapsed_ms: float
    """Of tracing, and of preparing the graph to be run."""
    kept: bool


@event
class CacheHit(Event):
    """A jitted function had a graph for a call."""

    function: str
    file: str
    line: int
    graph: int


# --- first call and later calls -----------------------------------------------------------------------------------


@event
class CallsBegun(Event):
    """`lab.measure_calls` begins: the same calls of a function, as it is and jitted."""

    function: str
    executor: str
    n_calls: int
    told: bool
    """Whether somebody recorded single operations meanwhile, which makes every call slower."""


@event
class CallMeasured(Event):
    """What a part of one call took."""

    number: int
    """Of the call, from 1 on."""
    way: str
    """"eager" or "jit"."""
    part: str
    """"trace", "passes", "code", "loops" or "run"; an eager call has the last alone."""
    elapsed_ms: float
    words: str
    """About it: how many equations, how many loops came from the cache; "" for nothing."""


@event
class CallsPaid(Event):
    """From so many calls on, jit and all that it prepared has taken less time than running the function as it is."""

    n_calls: float
    """inf for never."""
    seen: bool
    """Whether it was reached among the calls that were made; else it is computed from the medians of what they took."""


# --- a graph for each step, or one for all ------------------------------------------------------------------------


@event
class BuildBegun(Event):
    """`lab.measure_build` begins: value and gradients of a function, by graphs that are built each time or once."""

    function: str
    ways: tuple[str, ...]
    repeats: int
    told: bool


@event
class BuildMeasured(Event):
    """One way, step by step."""

    way: str
    once_ms: float
    """What it takes before the first step."""
    step_ms: float
    """Median of a step."""
    graph_ms: float
    """Of it the part that builds the graph again; nan where building and running are one thing."""
    paid_from: float
    """From so many steps on it has taken less in all than the first way, by these numbers; inf for never."""


# --- a function captured by a trace and by its source ----------------------------------------------------------------


@event
class CapturesBegun(Event):
    """`lab.compare_captures` begins: a function is run, traced and read for some inputs."""

    function: str
    first: int
    """Number of the first line of its source."""
    lines: tuple[str, ...]
    """The source, without the indentation of all."""
    inputs: tuple[str, ...]
    """In words."""


@event
class GraphCaptured(Event):
    """A function became a graph, or did not."""

    way: str
    """"trace" or "script"."""
    ok: bool
    text: str
    """The graph, or why there is none."""
    lines: tuple[int, ...]
    """Of the source, from 1 on: of a trace those that ran meanwhile, in their order, so that the last is where one that
    was refused stopped; of a script those that equations come from."""


@event
class CaptureCompared(Event):
    """What one way gave for one input, held against the function as it is."""

    number: int
    """Of the input, from 0 on."""
    way: str
    """"eager", "trace" or "script"."""
    result: str
    """In words; of an error its problem."""
    verdict: str
    """"equal", "wrong", "error", or "none" where there is no graph; of "eager" "equal" or "error"."""
    lines: tuple[int, ...]
    """Of "eager": the lines of the source, from 1 on, that ran, in the order in which they ran first."""
