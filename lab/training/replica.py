"""What a step of training asks of others who train copies of the same model: nothing, where there is one.

`Training.advance` is the one implementation of a step. Between gradient and update it meets the other replicas through
this protocol; `lab.parallel.training.data_parallel` fills it in for ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

import numpy as np

from lab.autograd import Tensor
from lab.data import Batch
from lab.errors import RunError
from lab.optim.flat import FlatParameters
from lab.training.counting import Counts


class Verdict(NamedTuple):
    """What all replicas agree on after their forward: the loss over the whole batch, and who spoilt it.

    Attributes:
        loss: mean over all examples of the batch.
        culprit: the first replica whose own loss is no finite number, -1 if none.
    """

    loss: float
    culprit: int = -1


class Replica(Protocol):
    """This copy's place among all. Every copy makes the same calls in the same order.

    Attributes:
        rank: 0 tells what all have in common.
        world_size: how many copies there are.
        scale: what this step's losses are multiplied by, and so what it makes of gradients until it is over.
        lacking: collects the parameters that this copy's examples have no gradient for, which others' may
            have; None where that is an error.
    """

    rank: int
    world_size: int
    scale: float
    lacking: list[Tensor] | None

    def together(self) -> AbstractContextManager[None]:
        """Forward and backward happen within it: layers that meet the other copies do so there alone."""

    def apart(self) -> AbstractContextManager[None]:
        """Within it, layers that meet the other copies do with this copy's examples alone."""

    def guilty(self, culprit: int, is_mine: Callable[[], bool]) -> int:
        """Who spoilt the loss: `culprit`, or, where its numbers reach the others, the first that does so apart."""

    def all_finite(self, is_finite: bool) -> bool:
        """Whether to go back from this copy's loss: where layers meet in backward, all go or none does."""

    def take(self, step: int, batch: Batch, counts: Counts | None = None) -> Batch:
        """This copy's examples of the batch; there may be none. `counts` is how much each example counts."""

    def differentiate(self, back: Callable[[Batch], float], mine: Batch) -> float:
        """The loss of these examples; their gradient goes into the groups. `back` does that for a batch."""

    def backward(self, loss: Tensor, share: float, *, is_last: bool) -> None:
        """Go back from a `share` of this copy's loss, or from this copy's part of it, where that is what layers need.

        Args:
            is_last: the gradient is complete with this one; before it came others of the same step.
        """

    def passed(self) -> None:
        """A micro-batch has been gone through; each copy makes the call as often, also where it had no example."""

    def agree(self, loss: float) -> Verdict:
        """Of all losses, each the mean over a copy's own examples (nan without any)."""

    def reduce(self, groups: Sequence[FlatParameters]) -> None:
        """Make each group's gradient, of this copy's mean loss, that of the mean over the whole batch."""

    def updated(self, groups: Sequence[FlatParameters]) -> None:
        """The parameters were changed."""

    def culprit(self, is_guilty: bool) -> int:
        """The first copy that says that it is, -1 if none does."""

    def told(self, trouble: RunError | None, culprit: int) -> RunError:
        """The error that the culprit has to tell, on every copy; the others give None."""

    def shared(self, numbers: Sequence[float]) -> list[float]:
        """The numbers that rank 0 has; what the others give does not matter, but its length."""


def back_from(loss: Tensor, share: float) -> None:
    """Backward from so much of a loss."""
    loss.backward(None if share == 1 else np.full(loss.shape, share, loss.dtype))


class Alone:
    """The only copy.

    Example:
        >>> Alone().agree(0.5), Alone().agree(math.inf).culprit
        (Verdict(loss=0.5, culprit=-1), 0)
    """

    rank, world_size, scale = 0, 1, 1.0
    lacking: list[Tensor] | None = None

    def together(self) -> AbstractContextManager[None]:
        """With nobody."""
        return nullcontext()

    def apart(self) -> AbstractContextManager[None]:
        """It is."""
        return nullcontext()

    def guilty(self, culprit: int, is_mine: Callable[[], bool]) -> int:
        """Itself."""
        return culprit

    def all_finite(self, is_finite: bool) -> bool:
        """Its own is all."""
        return is_finite

    def take(self, step: int, batch: Batch, counts: Counts | None = None) -> Batch:
        """All of it."""
        return batch

    def differentiate(self, back: Callable[[Batch], float], mine: Batch) -> float:
        """All at once."""
        return back(mine)

    def backward(self, loss: Tensor, share: float, *, is_last: bool) -> None:
        """From all of it."""
        back_from(loss, share)

    def passed(self) -> None:
        """Nobody meets."""

    def agree(self, loss: float) -> Verdict:
        """Its own loss is everybody's."""
        return Verdict(loss, -1 if math.isfinite(loss) else 0)

    def reduce(self, groups: Sequence[FlatParameters]) -> None:
        """It is already."""

    def updated(self, groups: Sequence[FlatParameters]) -> None:
        """Nobody compares."""

    def culprit(self, is_guilty: bool) -> int:
        """Who else."""
        return 0 if is_guilty else -1

    def told(self, trouble: RunError | None, culprit: int) -> RunError:
        """What it knows itself."""
        assert trouble is not None
        return trouble

    def shared(self, numbers: Sequence[float]) -> list[float]:
        """Its own."""
        return list(numbers)
