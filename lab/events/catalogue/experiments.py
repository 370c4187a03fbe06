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
