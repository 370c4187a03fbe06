"""Which examples of a batch each rank takes, and how the ranks' gradients become the gradient of the whole batch.

The loss is a mean, so a rank's part counts as much as it has examples: n_shard / n_global of its own mean. Where a loss
is a mean of something else, such as tokens, it counts as many of these as it has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lab.data import Batch
from lab.optim.flat import Vector
from lab.training.counting import Counts


@dataclass(frozen=True)
class Shard:
    """A contiguous part of a global batch: examples `start` to `stop` (not included) of `n_global`.

    Attributes:
        counted: its part of what the batch counts, 0 to 1, where examples do not all count the same.
    """

    start: int
    stop: int
    n_global: int
    counted: float | None = None

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def share(self) -> float:
        """Its part of the whole, 0 to 1."""
        return len(self) / self.n_global if self.counted is None else self.counted

    def of(self, batch: Batch) -> Batch:
        """Its examples; views."""
        return Batch(*(rows[self.start : self.stop] for rows in batch))

    def weigh_(self, gradient: Vector) -> None:
        """Make the gradient of the mean over the shard this shard's part of that of the mean over the whole."""
        if self.share != 1:
            gradient *= gradient.dtype.type(self.share)


def shard_of(rank: int, world_size: int, n_global: int, counts: Counts | None = None) -> Shard:
    """The shard of a rank, with the bounds of `np.array_split`: the first ones are longer by one where it must be.

    Where there are fewer examples than ranks, the last ones take none.

    Args:
        counts: how much each example counts; None is 1.

    Example:
        >>> [shard_of(rank, 4, 10) for rank in (0, 3)]
        [Shard(start=0, stop=3, n_global=10, counted=None), Shard(start=8, stop=10, n_global=10, counted=None)]
        >>> [len(shard_of(rank, 4, 2)) for rank in range(4)]
        [1, 1, 0, 0]
    """
    each, longer = divmod(n_global, world_size)
    start = rank * each + min(rank, longer)
    return counted(Shard(start, start + each + (rank < longer), n_global), counts)


def counted(shard: Shard, counts: Counts | None) -> Shard:
    """The shard with its part of what the batch counts."""
    if counts is None:
        return shard
    whole = float(counts.sum())
    mine = float(counts[shard.start : shard.stop].sum())
    return replace(shard, counted=mine / whole if whole else 0.0)
