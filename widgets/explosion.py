"""Training that exploded although every number is finite: worse than at its beginning, and since when."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lab.events import StepFinished
from widgets.fold import Events
from widgets.pictures.theme import short

TIMES = 3.0
"""As in `lab.training`: a loss of so many times the first one is no state to come back to."""
LATEST = 5
"""So many steps in a row, so that one unlucky batch is none."""


Losses = npt.NDArray[np.float64]


def over(losses: Losses, first: float) -> npt.NDArray[np.bool_]:
    """Which losses are no state to come back to: over TIMES the first, or no number."""
    return ~(losses <= TIMES * first)


def has_exploded(losses: Losses) -> bool:
    """Whether so many in a row were.

    Example:
        >>> has_exploded(np.array([2.0, 1.0, 40.0, 1.0, 1.0, 1.0, 1.0]))
        False
        >>> has_exploded(np.array([2.0, 40.0, 90.0, 80.0, 70.0, 95.0, 1.0]))
        True
    """
    if len(losses) <= LATEST:
        return False
    return bool(np.lib.stride_tricks.sliding_window_view(over(losses, losses[0]), LATEST).all(axis=1).any())


def exploded(recording: Events, step: int) -> str:
    """One line on an explosion that is still going on after `step` steps, and since which step; "" if there is none.

    The text stays the same while it lasts, so that a screen reader says it once.

    Example:
        >>> import lab
        >>> with lab.record() as rec:
        ...     for k, loss in enumerate([2.0, 1.0, 0.5, 40.0, 90.0, 80.0, 70.0, 95.0], 1):
        ...         lab.events.bus.emit(StepFinished(k, 0, loss, 64, 1.0))
        >>> exploded(rec, 8)
        'the loss exploded: since step 4 it is over 3 times that of the first step (2.0)'
        >>> exploded(rec, 3)
        ''
    """
    where = recording.positions(StepFinished)
    if len(where) <= LATEST:
        return ""
    first = recording.columns(StepFinished, int(where[0]), int(where[0]) + 1)["loss"][0]
    latest = recording.columns(StepFinished, int(where[-LATEST]), int(where[-1]) + 1)
    if step < int(latest["step"][-1]) or not over(np.asarray(latest["loss"]), first).all():
        return ""  # a run that went back has fewer steps than were recorded
    every: Any = recording.columns(StepFinished, 0, int(where[-1]) + 1)
    below = np.flatnonzero(~over(np.asarray(every["loss"]), first))
    began = int(every["step"][below[-1] + 1])
    start = short(float(first))
    return f"the loss exploded: since step {began:,} it is over {TIMES:g} times that of the first step ({start})"
