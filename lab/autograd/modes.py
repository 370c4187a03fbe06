"""Switches for a block of code: no gradients, anomaly mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab.autograd import interpreter
from lab.config import STATE, using


@contextmanager
def no_grad() -> Iterator[None]:
    """Record nothing inside the block.

    It stops the tapes that exist when it is entered; a `grad` that starts inside it works as ever.

    Example:
        >>> import lab
        >>> x = lab.tensor(2.0, requires_grad=True)
        >>> with lab.no_grad():
        ...     (x * x).requires_grad
        False
    """
    with using(frozen=max(STATE.get().frozen, interpreter.newest_level())):
        yield


@contextmanager
def anomaly_mode() -> Iterator[None]:
    """Remember source lines, and stop backward at the first rule that makes nan or inf from a finite gradient.

    Example:
        >>> import lab
        >>> with lab.anomaly_mode():
        ...     x = lab.tensor(0.0, requires_grad=True)
        ...     lab.sqrt(x).backward()
        Traceback (most recent call last):
        lab.errors.GradientError: the rule of sqrt for x made a gradient that is not finite
        ...
    """
    with using(anomaly=True):
        yield
