"""Learning rates that change with the step: a schedule is a pure function `step -> rate`, with steps counted from 0.

Given to an optimiser instead of a number, it is asked for each step with the steps done before. Whoever goes back to an
earlier step goes back to its rate, so that a state needs no more than the step count.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lab.checks import number, whole
from lab.errors import ArgumentError

Rate = float | Callable[[int], float]
"""A learning rate: a number, a Schedule, or any function of your own `step -> rate`."""


class Schedule(ABC):
    """Base of the schedules below; a function of your own need not be one."""

    @abstractmethod
    def __call__(self, step: int) -> float:
        """The learning rate of the step after `step` steps."""

    def rates(self, n_steps: int) -> npt.NDArray[np.float64]:
        """Those of the first `n_steps` steps: (n_steps,), to be drawn.

        Example:
            >>> StepDecay(1.0, every=2, factor=0.5).rates(5).tolist()
            [1.0, 1.0, 0.5, 0.5, 0.25]
        """
        return np.array([self(step) for step in range(n_steps)])


@dataclass(frozen=True)
class Constant(Schedule):
    """The same rate at each step.

    Example:
        >>> Constant(0.1)(1000)
        0.1
    """

    rate: float

    def __post_init__(self) -> None:
        _refuse(self, "rate")

    def __call__(self, step: int) -> float:
        return self.rate


@dataclass(frozen=True)
class StepDecay(Schedule):
    """`rate * factor ** (step // every)`: lower by a factor after each `every` steps.

    Example:
        >>> StepDecay(0.5, every=100, factor=0.5)(250)
        0.125
    """

    rate: float
    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        _refuse(self, "rate", "factor", counts=("every",))

    def __call__(self, step: int) -> float:
        return self.rate * self.factor ** (step // self.every)


@dataclass(frozen=True)
class Exponential(Schedule):
    """`rate * factor ** step`: lower by a factor after each step.

    Example:
        >>> Exponential(0.5, factor=0.5).rates(4).tolist()
        [0.5, 0.25, 0.125, 0.0625]
    """

    rate: float
    factor: float = 0.999

    def __post_init__(self) -> None:
        _refuse(self, "rate", "factor")

    def __call__(self, step: int) -> float:
        return self.rate * self.factor**step


@dataclass(frozen=True)
class Cosine(Schedule):
    """From `rate` to `end` along half a cosine in `n_steps` steps, and `end` from then on (arXiv:1608.03983, eq. 5).

    `lab.fit` does epochs * ceil(examples / batch_size) steps.

    Example:
        >>> Cosine(1.0, n_steps=4).rates(6).round(3).tolist()
        [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    rate: float
    n_steps: int
    end: float = 0.0

    def __post_init__(self) -> None:
        _refuse(self, "rate", "end", counts=("n_steps",))

    def __call__(self, step: int) -> float:
        return _eased(self.rate, self.end, step / self.n_steps)


@dataclass(frozen=True)
class Warmup(Schedule):
    """A straight line up to another schedule's first rate, which then begins (Goyal et al., arXiv:1706.02677).

    Step t of the `n_steps` of warming up has (t + 1) / (n_steps + 1) of that rate, so none is 0.

    Args:
        then: a rate, or a schedule whose step 0 is step `n_steps`.

    Example:
        >>> Warmup(3, then=1.0).rates(5).tolist()
        [0.25, 0.5, 0.75, 1.0, 1.0]
        >>> Warmup(1, then=Exponential(1.0, factor=0.5)).rates(4).tolist()
        [0.5, 1.0, 0.5, 0.25]
    """

    n_steps: int
    then: Rate

    def __post_init__(self) -> None:
        _refuse(self, *(() if callable(self.then) else ("then",)), counts=("n_steps",))

    def __call__(self, step: int) -> float:
        share = min(1.0, (step + 1) / (self.n_steps + 1))
        return share * (self.then(max(0, step - self.n_steps)) if callable(self.then) else self.then)


@dataclass(frozen=True)
class OneCycle(Schedule):
    """Up to `peak` and far down again in `n_steps` steps, each way half a cosine (Smith and Topin, arXiv:1708.07120).

    As torch's: from peak / 25 up to the peak at step `rise * n_steps - 1`, down to peak / 250,000 at the last.

    Args:
        rise: the share of the steps that goes up.

    Example:
        >>> OneCycle(1.0, n_steps=10, rise=0.5).rates(12).round(2).tolist()
        [0.04, 0.18, 0.52, 0.86, 1.0, 0.9, 0.65, 0.35, 0.1, 0.0, 0.0, 0.0]
    """

    peak: float
    n_steps: int
    rise: float = 0.3

    def __post_init__(self) -> None:
        _refuse(self, "peak", "rise", counts=("n_steps",))
        if self.rise >= 1:
            raise ArgumentError("one cycle goes up in a share of its steps", given=f"rise={self.rise}",
                                hint="below 1, for example rise=0.3")  # fmt: skip

    def __call__(self, step: int) -> float:
        top, last, start = self.rise * self.n_steps - 1, self.n_steps - 1, self.peak / 25
        if step < top:
            return _eased(start, self.peak, step / top)
        return _eased(self.peak, start / 1e4, (step - top) / (last - top) if last > top else 1.0)


def _eased(start: float, end: float, share: float) -> float:
    """From `start` to `end` along half a cosine; what is beyond the end stays there."""
    return end + (start - end) * (1 + math.cos(math.pi * min(max(share, 0.0), 1.0))) / 2


def _refuse(schedule: Schedule, *rates: str, counts: tuple[str, ...] = ()) -> None:
    """Refuse what is no rate of at least 0, and what is no whole number of at least 1.

    Raises:
        ArgumentError: so it is.
    """
    hint = f"{type(schedule).__name__} takes finite numbers of at least 0 for {', '.join(rates) or 'its rates'}"
    for name in rates:
        value = getattr(schedule, name)
        if not 0 <= number(name, value, hint=hint) < math.inf:
            raise ArgumentError(f"{name} is out of range", given=f"{name}={value!r}", hint=hint)
    for name in counts:
        whole(name, getattr(schedule, name), least=1)
