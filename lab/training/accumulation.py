"""A batch in micro-batches: forward and backward for one after the other, one update from the sum of their gradients.

The gradient is that of the whole batch but for the order of additions, and what backward needs is kept for one
micro-batch at a time. What is wrong again and again is how the parts are weighed; two mistakes are here as switches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lab.checks import whole
from lab.data import Batch
from lab.errors import ArgumentError
from lab.training.counting import Counts
from lab.words import one_of, shown

COUNTED, OF_MEANS, NO_DIVISION = "counted", "of means", "none"
MEANS = (COUNTED, OF_MEANS, NO_DIVISION)


class MicroBatch(NamedTuple):
    """A part of a batch.

    Attributes:
        share: what its mean loss is multiplied by before backward.
        counted: its part of all that the batch counts: what its loss is weighed by where the batch's is told.
        is_last: whether the gradient is complete with its own.
    """

    batch: Batch
    share: float
    counted: float
    is_last: bool


@dataclass(frozen=True)
class Accumulation:
    """How a batch is cut into micro-batches and their gradients become one: `lab.fit(..., accumulate=4)`.

    In a loop of your own the same is: for each part, `loss = f(part) * (len(part) / len(batch))` and `loss.backward()`,
    which adds to what `.grad` has; then one step. Normalisation over the batch is over a micro-batch then.

    Args:
        n: number of micro-batches, cut as `np.array_split` does; on ranks of each rank's shard.
        mean: "counted" divides once by all that was counted, so it is the gradient of the batch. Two mistakes:
            "of means" takes the mean of the parts' means, and parts that count less weigh too much; "none" does not
            divide, and the gradient is `n` times as large, as if the learning rate was.

    Raises:
        ArgumentError: no such mean, or no number of parts.

    Example:
        >>> import numpy as np
        >>> batch = Batch(np.ones((5, 2)), np.ones(5))
        >>> [(len(part.batch.inputs), part.share) for part in Accumulation(2).parts(batch)]
        [(3, 0.6), (2, 0.4)]
        >>> [part.share for part in Accumulation(2, mean="of means").parts(batch)]
        [0.5, 0.5]
    """

    n: int
    mean: str = COUNTED

    def __post_init__(self) -> None:
        whole("accumulate", self.n, least=1, hint="accumulate=4 updates after 4 micro-batches; 1 does not cut")
        mean: object = self.mean
        if not (isinstance(mean, str) and mean in MEANS):
            raise ArgumentError("there is no such mean of micro-batches", given=f"mean={shown(self.mean)}",
                                hint=one_of(self.mean, MEANS))  # fmt: skip

    def parts(self, batch: Batch, counts: Counts | None = None) -> Iterator[MicroBatch]:
        """The micro-batches, `n` of them; those without an example, or that count nothing, have shares of 0.

        Args:
            counts: how much each example counts; None is 1.
        """
        if self.n == 1:
            yield MicroBatch(batch, 1.0, 1.0, is_last=True)
            return
        each, n_longer = divmod(len(batch.inputs), self.n)
        ends = [each * part + min(part, n_longer) for part in range(self.n + 1)]
        cuts = list(itertools.pairwise(ends))
        counted = [float(b - a) if counts is None else float(counts[a:b].sum()) for a, b in cuts]
        total, n_real = sum(counted), sum(count > 0 for count in counted)
        last = max((i for i, count in enumerate(counted) if count), default=-1)
        for i, ((a, b), count) in enumerate(zip(cuts, counted, strict=True)):
            part = count / total if count else 0.0
            share = {COUNTED: part, OF_MEANS: 1 / max(n_real, 1), NO_DIVISION: 1.0}[self.mean] if count else 0.0
            yield MicroBatch(Batch(*(rows[a:b] for rows in batch)), share, part, i == last)


WHOLE = Accumulation(1)
"""Batches are not cut."""


def accumulation_of(accumulate: object) -> Accumulation:
    """The Accumulation that was meant by a number.

    Raises:
        ArgumentError: it is no whole number, or below 1.

    Example:
        >>> accumulation_of(4)
        Accumulation(n=4, mean='counted')
    """
    if isinstance(accumulate, Accumulation):
        return accumulate
    return Accumulation(whole("accumulate", accumulate, least=1,
                              hint="accumulate=4 updates after 4 micro-batches; 1 does not cut"))  # fmt: skip
