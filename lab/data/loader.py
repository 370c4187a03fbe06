"""Batches of a data set; a seed and the number of the epoch decide their order, so that any epoch can be made again.

Each epoch has a permutation of its own, drawn from (seed, epoch): nothing that happened before matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.checks import generator, whole
from lab.data.dataset import Batch, Dataset, Rng, as_dataset
from lab.errors import ArgumentError


class Loader:
    """Batches of a data set, over and over; each pass is the next epoch, with an order of its own.

    Args:
        rng: seed of all epochs; a Generator gives it by one draw.
        drop_last: leave out a last batch that is smaller than the others.

    Attributes:
        seed: what decides every order, together with the number of the epoch.
        next_epoch: number of the epoch that the next `for` will make; set it to resume.

    Raises:
        ArgumentError: a batch size below 1, one that leaves no batch, or no seed.

    Example:
        >>> loader = Loader((np.zeros((10, 2)), np.arange(10)), 4, rng=0)
        >>> [len(batch.inputs) for batch in loader]
        [4, 4, 2]
        >>> once, again = [b.targets.tolist() for b in loader.epoch(7)], [b.targets.tolist() for b in loader.epoch(7)]
        >>> once == again
        True
    """

    def __init__(
        self,
        dataset: Dataset | Sequence[npt.ArrayLike],
        batch_size: int,
        *,
        rng: Rng = None,
        shuffle: bool = True,
        drop_last: bool = False,
    ) -> None:
        self.dataset = as_dataset(dataset)
        batch_size = whole("batch_size", batch_size, least=1, hint="64 is a good beginning")
        if drop_last and batch_size > len(self.dataset):
            given = f"batch_size={batch_size}, {len(self.dataset)} examples, drop_last=True"
            raise ArgumentError("no batch is left", given=given, hint="a smaller batch, or drop_last=False")
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last
        drawing = generator(rng)
        self.seed = int(rng) if isinstance(rng, int | np.integer) else int(drawing.integers(2**63))
        self.next_epoch = 0

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        n, size = len(self.dataset), self.batch_size
        return n // size if self.drop_last else -(-n // size)

    def __iter__(self) -> Iterator[Batch]:
        epoch, self.next_epoch = self.next_epoch, self.next_epoch + 1
        return self.epoch(epoch)

    def epoch(self, number: int, first_batch: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, from `first_batch` on; asking again gives the same."""
        order, size = self.order(number), self.batch_size
        for i in range(first_batch, len(self)):
            yield self.dataset.take(order[i * size : (i + 1) * size])

    def order(self, number: int) -> npt.NDArray[np.int64]:
        """The row of each example in the order of that epoch, (n,)."""
        n = len(self.dataset)
        return np.random.default_rng([self.seed, number]).permutation(n) if self.shuffle else np.arange(n)

    def __repr__(self) -> str:
        kind: dict[bool, Any] = {True: f"shuffled, seed {self.seed}", False: "in order"}
        return f"Loader: {len(self)} batches of {self.batch_size} from {self.dataset!r}, {kind[self.shuffle]}"
