"""Bounds of a step's loss and of the norm of its gradient: above one of them the run is paused before its update."""

from __future__ import annotations

from collections.abc import Mapping

from lab.training.job import BreakpointError


def beyond(bounds: Mapping[str, float], found: Mapping[str, float], step: int) -> BreakpointError | None:
    """What to tell of the first bound that is passed; None if none is.

    Example:
        >>> print(beyond({"loss": 2.0}, {"loss": 2.5}, 7))
        the loss of step 7 is above 2, before its update
        given: 2.5
        hint:  the update is not done yet: run.resume() goes on, run.rewind() goes back
        >>> beyond({"loss": 2.0}, {"loss": 1.5}, 8) is None
        True
    """
    above = [(n, bound) for n, bound in bounds.items() if found[n] > bound]
    if not above:
        return None
    name, bound = above[0]
    what = f"{'the loss' if name == 'loss' else 'the norm of the gradient'} of step {step:,}"
    limit = f"{bound:g}".replace("-", "\N{MINUS SIGN}")
    return BreakpointError(f"{what} is above {limit}, before its update", given=f"{found[name]:.6g}",
                           hint="the update is not done yet: run.resume() goes on, run.rewind() goes back")  # fmt: skip
