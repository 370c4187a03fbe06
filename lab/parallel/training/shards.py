"""Which examples of a batch each rank takes, and how the ranks' gradients become the gradient of the whole batch.

The loss is a mean, so a rank's part counts as much as it has examples: n_shard / n_global of its own mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.data import Batch
from lab.optim.flat import Vector


@dataclass(frozen=True)
class Shard:
    """A contiguous part of a global batch: examples `start` to `stop` (not included) of `n_global`."""

    start: int
    stop: int
    n_global: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def share(self) -> float:
        """Its part of the whole, 0 to 1."""
        return len(self) / self.n_global

    def of(self, batch: Batch) -> Batch:
        """Its examples; views."""
        return Batch(*(rows[self.start : self.stop] for rows in batch))

    def weigh_(self, gradient: Vector) -> None:
        """Make the gradient of the mean over the shard this shard's part of that of the mean over the whole."""
        if self.share != 1:
            gradient *= gradient.dtype.type(self.share)


def shard_of(rank: int, world_size: int, n_global: int) -> Shard:
    """The shard of a rank, with the bounds of `np.array_split`: the first ones are longer by one where it must be.

    Where there are fewer examples than ranks, the last ones take none.

    Example:
        >>> [shard_of(rank, 4, 10) for rank in (0, 3)]
        [Shard(start=0, stop=3, n_global=10), Shard(start=8, stop=10, n_global=10)]
        >>> [len(shard_of(rank, 4, 2)) for rank in range(4)]
        [1, 1, 0, 0]
    """
    each, longer = divmod(n_global, world_size)
    start = rank * each + min(rank, longer)
    return Shard(start, start + each + (rank < longer), n_global)
