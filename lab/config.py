"""What holds for the code that runs now: gradient mode, kinks, default dtype; one immutable State in a ContextVar.

A ContextVar and not globals, because ranks and runs are threads; threads that the lab starts get a copy of the context.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from lab.errors import ArgumentError

KINKS: tuple[str, ...] = ("zero", "half", "one")
"""Written convention for the slope of relu at 0 (and its kin): torch and TensorFlow say zero."""


@dataclass(frozen=True, slots=True)
class State:
    """One setting of everything that code can switch for what runs inside a `with` block.

    Attributes:
        frozen: tapes of this level and below do not record (-1: all record). `no_grad` stores the newest level here, so
            that it cannot switch off a transform that starts inside it.
        transforms: how many transforms are active; 0 lets `grad` use the ordinary tape.
        axes: names of the active `vmap(axis_name=...)` frames and axes of ranks with their sizes, outermost first (part
            of the jit key).
        kinks: slope at kinks, one of KINKS; fixed in the op's parameters when it is recorded.
        dtype: dtype of parameters ("float32" or "float64").
        anomaly: backward looks for nan and names the operation that made it.
        module: path of the module whose forward is running.
        revived: a function runs again as it ran while transforms that have ended were alive: their values may be used.
        staging: the trace whose function runs now, which writes down what is done with parameters alone, too.
        arrived: called with a leaf and its gradient, within backward, as soon as that is complete; None for nobody.
        watched: whether somebody wants to see each result that is recorded: anomaly mode or such a trace.
    """

    frozen: int = -1
    transforms: int = 0
    axes: tuple[tuple[str, int], ...] = ()
    kinks: str = "zero"
    dtype: str = "float32"
    anomaly: bool = False
    module: str = ""
    revived: bool = False
    staging: Any = None
    arrived: Any = None
    watched: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if self.anomaly or self.staging is not None:
            object.__setattr__(self, "watched", True)


STATE: ContextVar[State] = ContextVar("lab_state", default=State())


@contextmanager
def using(**changes: object) -> Iterator[State]:
    """Run a block under a changed State.

    Example:
        >>> with using(dtype="float64"):
        ...     STATE.get().dtype
        'float64'
    """
    token = STATE.set(dataclasses.replace(STATE.get(), **changes))  # type: ignore[arg-type]
    try:
        yield STATE.get()
    finally:
        STATE.reset(token)


@contextmanager
def settings(*, kinks: str | None = None, dtype: str | None = None, anomaly: bool | None = None) -> Iterator[None]:
    """Switch conventions for a block: what others do at a kink, the dtype of new parameters, anomaly mode.

    Raises:
        ArgumentError: a value that is not one of the choices.

    Example:
        >>> with settings(dtype="float64"):
        ...     STATE.get().dtype
        'float64'
    """
    if kinks is not None and kinks not in KINKS:
        raise ArgumentError("kinks is not a known convention", given=repr(kinks), hint=f"one of {', '.join(KINKS)}")
    if dtype is not None and dtype not in ("float32", "float64"):
        raise ArgumentError("parameters are float32 or float64", given=repr(dtype), hint='dtype="float64"')
    wanted = {"kinks": kinks, "dtype": dtype, "anomaly": anomaly}
    with using(**{name: value for name, value in wanted.items() if value is not None}):
        yield
