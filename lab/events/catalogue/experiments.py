"""What experiments about differentiation tell: a beginning with the question, then a row for each thing measured.

A few hundred a run at the most, so none is `per_operation`: whoever records only these does not slow what is measured.
"""

from __future__ import annotations

from lab.events.event import Event, event

# --- the error of a difference against its step ------------------------------------------------------------------


@event
class ErrorsBegun(Event):
    """`lab.measure_errors` begins: the derivative of a function at a number is known, methods are held against it."""

    function: str
    at: float
    dtype: str
    """In which the function is evaluated."""
    eps: float
    """Of that dtype."""
    truth: float
    """The derivative, rounded to a float; errors are taken against all of its digits."""
    source: str
    """Where it is from, in words."""


@event
class ErrorMeasured(Event):
    """One method gave one estimate of the derivative."""

    method: str
    """"forward", "central", "richardson", "complex" or "automatic"."""
    h: float
    """The step; nan for the automatic derivative, which has none."""
    estimate: float
    error: float
    """Relative to the truth, absolute where that is 0; nan for an estimate that is no number."""


@event
class BestStepFound(Event):
    """Of all steps of a method this one has the smallest error."""

    method: str
    h: float
    error: float
    theory: float
    """The step at which rounding and truncation balance; nan for a method without rounding."""
    rule: str
    """What that is, as "eps^(1/2)", times |x| where that is above 1; "" without one."""


@event
class MethodRefused(Event):
    """A method cannot run the function."""

    method: str
    reason: str


# --- cost of the ways to differentiate ----------------------------------------------------------------------------


@event
class CostBegun(Event):
    """`lab.measure_cost` begins: whole Jacobians of functions with more and more inputs, then outputs."""

    function: str
    fixed: int
    """Outputs while the inputs grow, and inputs while the outputs grow."""
    repeats: int
    told: bool
    """Whether somebody recorded single operations meanwhile, which takes longer than many an operation itself."""


@event
class CostMeasured(Event):
    """A whole Jacobian was made in one way, several times."""

    sweep: str
    """What grows: "inputs" or "outputs"."""
    way: str
    """"numeric", "forward" or "reverse"."""
    n_inputs: int
    n_outputs: int
    elapsed_ms: float
    """Median of the repeats."""
    runs: int
    """How often the function ran for one Jacobian, counted."""
    walks: int
    """How often a backward walk was made for it."""


@event
class CrossingFound(Event):
    """From here on one way is cheaper than another."""

    sweep: str
    slower: str
    faster: str
    at: float
    """Size of what grows, between two that were measured by their logarithms."""


# --- expression swell ---------------------------------------------------------------------------------------------


@event
class SwellBegun(Event):
    """`lab.measure_swell` begins: a function is put into itself, deeper and deeper."""

    function: str
    most: int
    """An expression of more operations than this is the last."""


@event
class SwellMeasured(Event):
    """The derivative of f(f(... x)) as an expression and on the tape, in operations."""

    depth: int
    n_ops: int
    """In the derivative as one expression, a tree."""
    n_ops_shared: int
    """The same, if what occurs several times is computed once."""
    n_tape: int
    """On the tape of the function."""
    n_gradient: int
    """That function and backward walk run together."""
    expression: str
    """The derivative, "" where it is long."""


# --- slopes at a kink ---------------------------------------------------------------------------------------------


@event
class SlopesBegun(Event):
    """`lab.measure_slopes` begins: a function is looked at from both sides of a point."""

    function: str


@event
class SlopesMeasured(Event):
    """By one entry of the argument: the slopes from both sides, and what the lab takes."""

    entry: str
    """"x", or as "x[0, 1]"."""
    at: float
    value: float
    """Of the function."""
    left: float
    right: float
    """Slopes from the two sides, by differences; nan where the function has none, infinite where they grow for ever."""
    taken: tuple[float, ...]
    """The derivative that the lab takes under each convention of `lab.config.KINKS`, in their order."""
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    """The function around the point."""


@event
class ChoiceKnown(Event):
    """What another library takes at the same place, as its documentation or source says: it did not run."""

    entry: str
    library: str
    slope: float
    source: str


# --- a rule held against differences ------------------------------------------------------------------------------


@event
class RuleCheckBegun(Event):
    """`lab.measure_rule` begins: derivatives of a function are held against differences, entry by entry."""

    function: str
    tolerance: float
    """What an entry may be off, relative to the larger of itself and a tenth of the largest."""


@event
class JacobianCompared(Event):
    """A Jacobian by one mode and the same by differences: at most 32 x 32 entries, among them the worst."""

    what: str
    """The function, or the operation at fault when it was checked alone."""
    mode: str
    """In words, as "reverse mode" or "forward mode of reverse mode"."""
    ok: bool
    arguments: tuple[str, ...]
    """Names of the columns."""
    results: tuple[str, ...]
    """Names of the rows."""
    expected: tuple[float, ...]
    """By differences, row by row."""
    actual: tuple[float, ...]
    """By the mode."""
    errors: tuple[float, ...]
    """Of each entry, as a multiple of what is allowed."""


@event
class FaultFound(Event):
    """The first operation whose derivative is wrong by itself."""

    op: str
    argument: str
    where: str
    """File and line, or cell and line, that asked for it."""


# --- memory over forward and backward -----------------------------------------------------------------------------


@event
class MemoryBegun(Event):
    """`lab.measure_memory` begins: functions run forward and back, one after the other."""

    ways: tuple[str, ...]


@event
class MemorySampled(Event):
    """How much memory was held right after one operation, or one node of the backward walk, beyond what was before."""

    way: str
    number: int
    """Of this sample in its run, from 1 on."""
    phase: str
    """"forward", "backward", or "replay": an operation that runs again while backward needs what it saved."""
    op: str
    n_bytes: int


@event
class PeakFound(Event):
    """The most that one run held, also between two samples."""

    way: str
    n_bytes: int
    n_ops: int
    """Operations that ran, those that were replayed counted again."""
    n_replayed: int


# --- passes over a graph ------------------------------------------------------------------------------------------


@event
class PassesBegun(Event):
    """`lab.measure_passes` begins: a function was traced, and its graph goes through the passes."""

    function: str
    passes: tuple[str, ...]
    """In their order, as traced first and compiled last."""
    repeats: int
    told: bool
    """Whether somebody recorded single operations meanwhile, which makes every run slower."""


@event
class PassFinished(Event):
    """A pass made a graph of a graph, and what it made was run; the first has the graph as traced."""

    number: int
    """Among the passes, from 0 on."""
    name: str
    n_kernels: int
    """Equations that compute: each reads and writes memory once. A fused one counts once."""
    n_equations: int
    """Equations, those inside fused ones included."""
    n_bytes: int
    """What the kernels read and write, computed from shapes: each operand and each result once."""
    run_us: float
    """Median time of one run, equation by equation; of "compiled" in fused loops over kept buffers."""
    pass_ms: float
    """What the pass took; of "compiled" the generation of code and the compilation of its loops."""
    n_made: int
    """Equations that were not there before."""
    n_merged: int
    """Equations for which another one stands now that was there before."""
    n_gone: int
    """Equations that are there no more, and that nothing stands for."""
    text: str
    """The graph after the pass; of "compiled" the generated code."""
