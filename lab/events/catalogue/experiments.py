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
