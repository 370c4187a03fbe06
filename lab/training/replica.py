"""What a step of training asks of others who train copies of the same model: nothing, where there is one.

`Training.advance` is the one implementation of a step. Between gradient and update it meets the other replicas through
this protocol; `lab.parallel.training.data_parallel` fills it in for ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from lab.data import Batch
from lab.errors import RunError
from lab.optim.flat import FlatParameters


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
    """

    rank: int
    world_size: int

    def take(self, step: int, batch: Batch) -> Batch:
        """This copy's examples of the batch; there may be none."""

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


class Alone:
    """The only copy.

    Example:
        >>> Alone().agree(0.5), Alone().agree(math.inf).culprit
        (Verdict(loss=0.5, culprit=-1), 0)
    """

    rank, world_size = 0, 1

    def take(self, step: int, batch: Batch) -> Batch:
        """All of it."""
        return batch

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
