"""Hyperparameters: numbers with names and ranges, set between two steps; the learning rate may follow a schedule."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Mapping
from typing import ClassVar

from lab.checks import number
from lab.errors import ArgumentError
from lab.optim.schedules import Rate


class Tuned(ABC):
    """What an optimiser is as far as its hyperparameters go; its arguments are explained there.

    Attributes:
        n_steps: steps done so far, which a schedule is asked with.
        schedule: what the learning rate follows, None where it is a number.
    """

    n_steps: int
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Each hyperparameter with its least value and the value that it must stay below."""

    def __init__(self, learning_rate: Rate, *, clip_norm: float | None, **hyperparameters: float) -> None:
        self._values: dict[str, float] = {}
        self.schedule: Callable[[int], float] | None = None
        self.n_steps = 0
        self._ranges = dict(self.ranges)
        if clip_norm is not None:
            self._ranges["clip_norm"], hyperparameters["clip_norm"] = (0.0, math.inf), clip_norm
        self.learning_rate = learning_rate
        for name, value in hyperparameters.items():
            self.set(name, value)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """All of them by name, as the next step will use them."""
        return dict(self._values) if self.schedule is None else self._values | {"learning_rate": self.learning_rate}

    def check(self, name: str, value: float) -> None:
        """Refuse a hyperparameter that does not exist or cannot have this value.

        Raises:
            ArgumentError: so it is.
        """
        if name not in self._ranges:
            hint = f"one of {', '.join(self._ranges)}"
            raise ArgumentError(f"{type(self).__name__} has no such hyperparameter", given=repr(name), hint=hint)
        low, high = self._ranges[name]
        hint = f"at least {low:g}" + (f", below {high:g}" if high < math.inf else ", finite")
        if not low <= number(name, value, hint=hint) < high:
            raise ArgumentError(f"{name} is out of range", given=repr(value), hint=hint)

    def set(self, name: str, value: float) -> None:
        """Set a hyperparameter from the next step on.

        Raises:
            ArgumentError: it does not exist, or cannot have this value.

        Example:
            >>> from lab.autograd import tensor
            >>> from lab.optim import SGD
            >>> sgd = SGD([tensor([1.0], requires_grad=True)], learning_rate=0.1)
            >>> sgd.set("momentum", 0.9)
            >>> sgd
            SGD(learning_rate=0.1, momentum=0.9, weight_decay=0)
        """
        self.check(name, value)
        self._values[name] = float(value)
        if name == "learning_rate":
            self.schedule = None

    @property
    def learning_rate(self) -> float:
        """How far the next step goes; can be set to a number, or to a schedule.

        Example:
            >>> from lab.autograd import tensor
            >>> from lab.optim import SGD, Warmup
            >>> sgd = SGD([tensor([1.0], requires_grad=True)], learning_rate=Warmup(3, then=0.5))
            >>> sgd.learning_rate, sgd.schedule
            (0.125, Warmup(n_steps=3, then=0.5))
            >>> sgd.learning_rate = 0.25
            >>> sgd
            SGD(learning_rate=0.25, momentum=0, weight_decay=0)
        """
        if self.schedule is None:
            return self._values["learning_rate"]
        rate = self.schedule(self.n_steps)
        self.check("learning_rate", rate)
        return float(rate)

    @learning_rate.setter
    def learning_rate(self, value: Rate) -> None:
        self.set("learning_rate", value(self.n_steps) if callable(value) else value)
        self.schedule = value if callable(value) else None

    def __repr__(self) -> str:
        words = {name: f"{value:g}" for name, value in self._values.items()}
        if self.schedule is not None:
            words["learning_rate"] = repr(self.schedule)
        return f"{type(self).__name__}({', '.join(f'{name}={word}' for name, word in words.items())})"
