"""What sums gradients in place of an all-reduce: a hook, called on every rank with the gradient and what it remembers.

A hook may send less than all of it. What it leaves out need not be lost: with error feedback it is kept, and added to
the gradient of the next step, so that over the steps all of it arrives (Seide and others, Interspeech 2014; Karimireddy
and others, ICML 2019).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lab.errors import ArgumentError
from lab.parallel.ranks.runtime import Comm
from lab.words import shown

Vector = npt.NDArray[Any]
Shapes = Sequence[tuple[int, ...]]


class CommHook(Protocol):
    """Sums a gradient over ranks: `DataParallel(comm_hook=hook)`. Any function or object of this form is one."""

    def __call__(self, comm: Comm, gradient: Vector, memory: dict[str, Any], shapes: Shapes) -> None:
        """Make `gradient`, this rank's part of it, the sum over all ranks, or what stands for that; in place.

        Every rank must end with the same bits, or the copies of the model part.

        Args:
            gradient: (n,), finite, of the parameters in their order.
            memory: this rank's, empty at the first step, then what the hook left in it; lost with the rank.
            shapes: of the parameters.
        """


@dataclass(frozen=True)
class Compressor:
    """A hook that sends a smaller thing; subclasses say which in `send`.

    Args:
        error_feedback: keep what was not sent for the next step.
    """

    error_feedback: bool = True

    def __call__(self, comm: Comm, gradient: Vector, memory: dict[str, Any], shapes: Shapes) -> None:
        """Send what this step has and what was left before; keep what is left now."""
        if not self.error_feedback:
            self.send(comm, gradient, memory, shapes)
            return
        residual = memory.setdefault("residual", np.zeros_like(gradient))
        gradient += residual
        residual[...] = gradient
        residual -= self.send(comm, gradient, memory, shapes)

    @abstractmethod
    def send(self, comm: Comm, gradient: Vector, memory: dict[str, Any], shapes: Shapes) -> Vector:
        """Make `gradient` the sum of what all ranks sent; this rank's part of that sum, as the others have it."""


def require_hook(hook: object, others: dict[str, object]) -> CommHook | None:
    """The hook, if it is one.

    Args:
        others: what else was chosen that sums gradients in its own way, by name.

    Raises:
        ArgumentError: it cannot be called, or something else stands against it.

    Example:
        >>> require_hook(None, {}) is None
        True
    """
    if hook is None:
        return None
    if not callable(hook) or isinstance(hook, type):
        raise ArgumentError("comm_hook= is called to sum gradients", given=f"comm_hook={shown(hook)}",
                            hint="TopK(0.01) from lab.parallel.compression, or a function of "
                            "(comm, gradient, memory, shapes)")  # fmt: skip
    for name, value in others.items():
        if value:
            raise ArgumentError("something else sums gradients in its own way", given=f"comm_hook={shown(hook)}, "
                                f"{name}={shown(value)}", hint="leave out one of the two")  # fmt: skip
    return hook


def sum_of_rows(rows: Vector, into: Vector) -> None:
    """The sum of what ranks sent, added in their order, so that it is the same bits on all of them.

    Example:
        >>> out = np.zeros(2)
        >>> sum_of_rows(np.array([[1.0, 2.0], [3.0, 4.0]]), out); out
        array([4., 6.])
    """
    into[...] = rows[0]
    for row in rows[1:]:
        into += row
