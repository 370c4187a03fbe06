"""Gradients whose bits do not depend on the number of ranks: `DataParallel(deterministic="any world")`.

The batch is cut into virtual shards, as many in every world. The gradient of each is computed alone, so at the same
shape everywhere, and all are added in one tree: the halves of a rank's own shards first, then ranks 1, 2, 4 ... apart.
A rank holds a whole branch of that tree, so both their numbers have to fit: powers of two, and nothing left over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from lab.autograd import Tensor
from lab.checks import whole
from lab.data import Batch
from lab.errors import ArgumentError
from lab.optim.flat import FlatParameters, Vector
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.layers import Layers
from lab.parallel.training.replicas import Rank, first_of
from lab.parallel.training.shards import Shard, shard_of
from lab.parallel.training.shards import counted as counted_as
from lab.parallel.training.steering import Steering
from lab.training.counting import Counts
from lab.training.replica import Verdict
from lab.words import counted, one_of, shown

ANY_WORLD = "any world"
TREES = ("halving", "doubling", "tree")
"""Plans that add ranks in the order of the tree: (0 + 1) + (2 + 3) ..."""
MOST = 256
"""Virtual shards: the loss of each travels in a message of control."""


def require_any_world(
    deterministic: object, shards: object, world_size: int | None, algorithm: object, on_loss: str, batch_norm: object
) -> int:
    """The number of virtual shards, 0 if nothing was asked for.

    Raises:
        ArgumentError: there is no such wish, or something else stands against it.

    Example:
        >>> require_any_world("any world", 8, 4, "ring", "replace", None), require_any_world(None, 8, 3, "ring", "", "")
        (8, 0)
        >>> require_any_world("any world", 8, 3, "ring", "replace", None)
        Traceback (most recent call last):
        lab.errors.ArgumentError: a result for any world needs a power of two of ranks
        given: 3 ranks; a tree adds (0 + 1) + (2 + 3), and 3 is between 2 and 4
        hint:  1, 2, 4 or 8 ranks share 8 virtual shards
    """
    if deterministic is None:
        return 0
    if deterministic != ANY_WORLD:
        raise ArgumentError("there is no such way for deterministic=", given=f"deterministic={shown(deterministic)}",
                            hint=one_of(deterministic, (ANY_WORLD,)))  # fmt: skip
    n = whole("shards", shards, least=1, hint="8 serve 1, 2, 4 and 8 ranks")
    if n > MOST:
        raise ArgumentError("that are too many virtual shards", given=f"shards={n}", hint=f"at most {MOST}")
    if world_size is not None:
        refuse_another_world(world_size, n)
    _refuse_what_depends_on_the_world(algorithm, on_loss, batch_norm)
    return n


def _refuse_what_depends_on_the_world(algorithm: object, on_loss: str, batch_norm: object) -> None:
    if algorithm not in ("ring", *TREES):
        raise ArgumentError("this plan adds ranks in an order of its own", given=f"algorithm={shown(algorithm)}",
                            hint=f"for any world: {', '.join(TREES)}; where none is given, {TREES[0]}")  # fmt: skip
    if on_loss == "shrink":
        raise ArgumentError("fewer ranks cannot share the virtual shards evenly", given='on_loss="shrink"',
                            hint='on_loss="replace" keeps their number')  # fmt: skip
    if batch_norm is not None:
        raise ArgumentError("batch normalisation takes its statistics rank by rank", given=f"batch_norm={batch_norm!r}",
                            hint="with deterministic=, the model has to do without")  # fmt: skip


def refuse_another_world(world_size: int, shards: int) -> None:
    """Refuse a number of ranks that do not each hold a whole branch of the tree.

    Raises:
        ArgumentError: so it is.

    Example:
        >>> refuse_another_world(4, 8)
        >>> refuse_another_world(8, 12)
        Traceback (most recent call last):
        lab.errors.ArgumentError: ranks have to share the virtual shards evenly
        given: 12 shards over 8 ranks: 12 = 8 x 1 + 4
        hint:  1, 2 or 4 ranks share 12 virtual shards
    """
    fit = [str(1 << i) for i in range(shards.bit_length()) if shards % (1 << i) == 0]
    few = f"{', '.join(fit[:-1])} or {fit[-1]} ranks" if len(fit) > 1 else "1 rank"
    hint = f"{few} share {counted(shards, 'virtual shard')}"
    below = 1 << (world_size.bit_length() - 1)
    if world_size != below:
        raise ArgumentError("a result for any world needs a power of two of ranks", given=f"{world_size} ranks; a tree "
                            f"adds (0 + 1) + (2 + 3), and {world_size} is between {below} and {2 * below}",
                            hint=hint)  # fmt: skip
    if shards % world_size:
        raise ArgumentError("ranks have to share the virtual shards evenly", given=f"{shards} shards over {world_size} "
                            f"ranks: {shards} = {world_size} x {shards // world_size} + {shards % world_size}",
                            hint=hint)  # fmt: skip


def tree_of(algorithm: str | Plan) -> str | Plan:
    """The plan that ranks add by: the one that was chosen, if one was."""
    return TREES[0] if algorithm == "ring" else algorithm


class VirtualRank(Rank):
    """A rank that differentiates its virtual shards one by one, and adds them as the tree says."""

    def __init__(
        self, comm: Comm, steering: Steering, algorithm: str | Plan, *, layers: Layers,
        groups: Sequence[FlatParameters], n_shards: int,
    ) -> None:  # fmt: skip
        refuse_another_world(comm.world_size, n_shards)
        super().__init__(comm, steering, tree_of(algorithm), layers=layers, groups=groups)
        self._n_mine, self._n_shards = n_shards // comm.world_size, n_shards
        self._first = self.rank * self._n_mine
        self._parts: list[Shard] = []
        self._losses: list[float] = []
        self._is_sound = True

    def differentiate(self, back: Callable[[Batch], float], mine: Batch) -> float:
        self._losses, self._is_sound = [], True
        missed: list[list[Tensor]] = []

        def of_shards(first: int, n: int) -> list[Vector]:
            """The sum over some of its shards: half of them, and the other half."""
            if n == 1:
                return self._of_shard(first, back, mine, missed)
            sums = of_shards(first, n // 2)
            for ours, other in zip(sums, of_shards(first + n // 2, n - n // 2), strict=True):
                ours += other
            return sums

        for group, vector in zip(self._groups, of_shards(0, self._n_mine), strict=True):
            group.gradients[...] = vector
            self._is_sound = self._is_sound and bool(np.isfinite(vector).all())
        in_all = set.intersection(*({id(p) for p in some} for some in missed)) if missed else set()
        self.lacking = [p for p in missed[0] if id(p) in in_all] if missed else []
        known = [(part.share, loss) for part, loss in zip(self._parts, self._losses, strict=True) if part.share]
        return sum(share * loss for share, loss in known) / self._shard.share if known else math.nan

    def agree(self, loss: float) -> Verdict:
        """Each shard's loss has a place of its own in the message, so that all ranks add them in the tree's order."""
        self._loss = loss
        words = np.zeros(self._n_shards + self.world_size + 1)
        for number, (part, found) in enumerate(zip(self._parts, self._losses, strict=True), self._first):
            if part.share and math.isfinite(found):
                words[number] = found * part.share
            elif part.share:
                words[self._n_shards + self.rank] = True
        words[-1] = bool(self.lacking)
        words = self.steering.agree(words)
        if words[-1]:
            self._refuse_unused(lacks_all=not self._shard.share)
        return Verdict(tree_sum(words[: self._n_shards].tolist()), first_of(words[self._n_shards : -1]))

    def culprit(self, is_guilty: bool) -> int:
        return super().culprit(is_guilty or not self._is_sound)

    def _of_shard(
        self, at: int, back: Callable[[Batch], float], mine: Batch, missed: list[list[Tensor]]
    ) -> list[Vector]:
        part, offset = self._parts[at], self._shard.start
        self._layers.begin(self._step, self._first + at)
        lacking: list[Tensor] = []
        self.lacking = lacking
        batch = Batch(*(rows[part.start - offset : part.stop - offset].copy() for rows in mine))
        self._losses.append(back(batch))
        if part.share:
            missed.append(lacking)
        found = [group.gradients.copy() for group in self._groups]
        for vector in found:
            part.weigh_(vector)
        return found

    def _shard_of(self, n_global: int, counts: Counts | None) -> Shard:
        shards = range(self._first, self._first + self._n_mine)
        self._parts = [shard_of(number, self._n_shards, n_global, counts) for number in shards]
        return counted_as(Shard(self._parts[0].start, self._parts[-1].stop, n_global), counts)

    def _weigh(self, groups: Sequence[FlatParameters]) -> None:
        """Each shard was, before it was added."""


def tree_sum(numbers: Sequence[float]) -> float:
    """The sum in the order of the tree: half of them, and the other half.

    Example:
        >>> tree_sum([0.1, 0.2, 0.3, 0.4]) == (0.1 + 0.2) + (0.3 + 0.4)
        True
    """
    half = len(numbers) // 2
    return tree_sum(numbers[:half]) + tree_sum(numbers[half:]) if half else numbers[0]
