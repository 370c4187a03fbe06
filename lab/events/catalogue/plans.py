"""What is told of a graph that goes through the compiler: its equations after each pass, and its plan of memory."""

from __future__ import annotations

from lab.events.event import Event, event


@event
class GraphMade(Event):
    """The equations of a graph after a pass, in order; the first is the graph as traced.

    What belongs to single equations stands in one row after another: the counts say how many entries each has.
    """

    number: int
    """Of the pass, as in PassFinished."""
    name: str
    inputs: tuple[int, ...]
    """Variables, by number, that the graph is given."""
    outputs: tuple[int, ...]
    """Variables that it gives; constants left out."""
    words: tuple[str, ...]
    """For each equation its first line, as "c:f64[2] = add(a, b)"; a fused one with the ops inside."""
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    """File and line that made it, "" where unknown."""
    n_outs: tuple[int, ...]
    outs: tuple[int, ...]
    """Variables that an equation makes."""
    n_reads: tuple[int, ...]
    reads: tuple[int, ...]
    """Variables that it reads."""
    n_sources: tuple[int, ...]
    sources: tuple[int, ...]
    """Variables of the graph before the pass for which it stands; none where the pass left it as it was."""


@event
class MemoryPlanBegun(Event):
    """`lab.measure_plan` begins: one function's graph is given several plans of memory."""

    function: str
    plans: tuple[str, ...]
    """In words, in their order."""
    most_bytes: int
    """What the largest of them takes."""
    most_equations: int
    """Of the longest."""
    told: bool
    """Whether somebody recorded single operations meanwhile."""


@event
class ValuePlaced(Event):
    """One value in one plan: where it lies, and from when to when."""

    plan: str
    value: str
    """Its name in the text of the graph."""
    op: str
    line: str
    """File and line that made it, "" where unknown."""
    start: int
    """The equation that makes it."""
    stop: int
    """The last that reads it; the number of equations if it is given out."""
    n_bytes: int
    buffer: int
    """-1: none, it is given out or made anew by its op."""
    offset: int
    """Bytes below it, all buffers of the plan stacked."""
    again: bool
    """Whether it was there before, and is made again."""


@event
class MemoryPlanMade(Event):
    """A plan is complete."""

    plan: str
    budget: int
    """In bytes; -1 without."""
    n_equations: int
    n_again: int
    """Equations that make again what was there before."""
    n_values: int
    n_bytes: int
    """What buffers, outputs and other results take together."""
    peak_bytes: int
    """The most that is alive at once."""
    peak_at: int
    """The equation at which it is, the first of several."""
    alive_bytes: tuple[int, ...]
    """While each equation runs."""


@event
class RunHeld(Event):
    """A run of the graph, measured: the most that it held beyond its inputs, as tracemalloc saw it."""

    way: str
    """"equation by equation", or the plan by which it ran compiled."""
    n_bytes: int
    planned_bytes: int
    """What was to be expected."""
