"""One rank's place among those that train copies of the same model: what it takes, agrees on, sums and tells."""

from __future__ import annotations

import math
import pickle
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np

from lab.autograd import Tensor
from lab.data import Batch
from lab.errors import RunError, UnsupportedError
from lab.events import ReplicaAdvanced, bus
from lab.events.gate import clock
from lab.nn.module import leaf_of
from lab.optim.flat import FlatParameters, Vector
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.member import CONTROL
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.layers import NOTHING, Layers
from lab.parallel.training.shards import Shard, shard_of
from lab.parallel.training.steering import Steering
from lab.training.counting import Counts
from lab.training.replica import Verdict, back_from
from lab.words import counted


class Rank:
    """This rank's place among the replicas: a `lab.training.replica.Replica` over a Comm."""

    def __init__(
        self, comm: Comm, steering: Steering, algorithm: str | Plan = "ring", *, layers: Layers | None = None,
        groups: Sequence[FlatParameters] = (),
    ) -> None:  # fmt: skip
        self.comm, self.steering, self.algorithm = comm, steering, algorithm
        comm.pace = None  # a step is told as a whole, or not at all: `told=` says how much of it
        self.rank, self.world_size, self.weight = comm.rank, comm.world_size, 1.0
        self.scale = 1.0
        self.lacking: list[Tensor] | None = []
        self._layers = layers or Layers(comm, None, NOTHING)
        self._groups, self._numbers = groups, {id(p): i for i, p in enumerate(p for g in groups for p in g.parameters)}
        self._shard, self._step, self._loss = Shard(0, 0, 1), 0, math.nan
        self._since = 0.0

    def together(self) -> AbstractContextManager[None]:
        return self._layers.together()

    def apart(self) -> AbstractContextManager[None]:
        return self._layers.apart()

    def guilty(self, culprit: int, is_mine: Callable[[], bool]) -> int:
        if not self._layers.meet:
            return culprit
        with self.apart():
            found = self.culprit(is_mine())
        return found if found >= 0 else culprit

    def all_finite(self, is_finite: bool) -> bool:
        if not self._layers.meet:
            return is_finite
        return not self.comm.agree(np.array([not is_finite], np.float64))[0]

    def take(self, step: int, batch: Batch, counts: Counts | None = None) -> Batch:
        self._since = clock()
        self._step, self._loss = step, math.nan
        self._shard = self._shard_of(len(batch.inputs), counts)
        self.weight = self._shard.share if self._layers.meet else 1.0
        self.lacking = []
        self._layers.begin(step)
        if self._layers.meet and len(batch.inputs) < self.world_size:
            raise too_few_to_meet(len(batch.inputs), self.world_size)
        self._tell("shard")
        return self._shard.of(batch)

    def differentiate(self, back: Callable[[Batch], float], mine: Batch) -> float:
        return back(mine)

    def backward(self, loss: Tensor, share: float, *, is_last: bool) -> None:
        back_from(loss, self.weight * share)

    def passed(self) -> None:
        """Gradients are summed once a step."""

    def agree(self, loss: float) -> Verdict:
        """The loss of the whole batch; the next order to all ranks comes with it."""
        self._loss, share = loss, self._shard.share
        is_bad = share > 0 and not math.isfinite(loss)
        words = np.zeros(2 + self.world_size)
        words[0], words[1 + self.rank] = loss * share if share and not is_bad else 0.0, is_bad
        words[-1] = bool(self.lacking)
        words = self.steering.agree(words)
        if words[-1]:
            self._refuse_unused(lacks_all=not self._shard.share)
        return Verdict(float(words[0]), first_of(words[1:-1]))

    def _refuse_unused(self, *, lacks_all: bool) -> None:
        """Some rank's examples have no gradient for a parameter: 0, if another rank's have one.

        Raises:
            GradientError: nobody has one, as in one process; on all ranks.
        """
        lacking = np.zeros(len(self._numbers), np.int64)
        lacking[[self._numbers[id(p)] for p in self.lacking or ()]] = 1
        if lacks_all:
            lacking[:] = 1
        for start in range(0, len(lacking), CONTROL):
            lacking[start : start + CONTROL] = self.comm.agree(lacking[start : start + CONTROL].copy())
        if (lacking == self.world_size).any():
            for parameter, n in zip((p for g in self._groups for p in g.parameters), lacking, strict=True):
                if n < self.world_size and (leaf := leaf_of(parameter)).grad is None:
                    leaf.grad = np.zeros_like(parameter.value)  # another rank's have one
            raise next(group.missing() for group in self._groups if any(leaf.grad is None for leaf in group.leaves))

    def reduce(self, groups: Sequence[FlatParameters]) -> None:
        self._weigh(groups)
        self._tell("gradient", [group.gradients for group in groups])
        self._sum(groups)
        self._tell("reduced", [group.gradients for group in groups])

    def updated(self, groups: Sequence[FlatParameters]) -> None:
        self._layers.end(self._shard.share)
        self._tell("updated", [group.values for group in groups])

    def culprit(self, is_guilty: bool) -> int:
        flags = np.zeros(self.world_size)
        flags[self.rank] = is_guilty
        return first_of(self.comm.agree(flags))

    def told(self, trouble: RunError | None, culprit: int) -> RunError:
        words = pickle.dumps(trouble) if trouble is not None else b""
        size = self.comm.agree(np.array([len(words)]))
        text = np.frombuffer(words, np.uint8) if words else np.empty(int(size[0]), np.uint8)
        if self.rank != culprit:
            self.comm.recv(text, culprit)
        else:
            for peer in set(range(self.world_size)) - {culprit}:
                self.comm.send(text, peer)
        found: RunError = pickle.loads(text.tobytes())  # noqa: S301 -- another rank's of this run
        return found

    def shared(self, numbers: Sequence[float]) -> list[float]:
        words = np.array(numbers if self.rank == 0 else [0.0] * len(numbers))
        return [float(word) for word in self.comm.agree(words)]

    def _shard_of(self, n_global: int, counts: Counts | None) -> Shard:
        return shard_of(self.rank, self.world_size, n_global, counts)

    def _weigh(self, groups: Sequence[FlatParameters]) -> None:
        for group in groups if self.weight == 1 else ():
            self._shard.weigh_(group.gradients)

    def _sum(self, groups: Sequence[FlatParameters]) -> None:
        for group in groups:
            self.comm.all_reduce_(group.gradients, self.algorithm)

    def _tell(self, phase: str, vectors: Sequence[Vector] = ()) -> None:
        """Say that this rank reached a phase, if somebody wants to know."""
        if not bus.listeners or not any(listener.wants(ReplicaAdvanced) for listener in bus.listeners):
            return
        elapsed_ms = 1000 * (clock() - self._since)
        norm = math.sqrt(sum(float(np.dot(v, v)) for v in vectors)) if vectors else math.nan
        if phase != "updated":
            norm /= self.scale
        checksum = 0
        for vector in vectors if phase == "updated" else ():
            checksum = zlib.crc32(vector.view(np.uint8), checksum)  # type: ignore[arg-type]  # an array is a buffer
        at = self._shard
        loss = math.nan if phase == "shard" else self._loss
        bus.emit(ReplicaAdvanced(self._step, phase, at.start, at.stop, at.n_global, loss, norm, checksum, elapsed_ms))
        self._since = clock()


def too_few_to_meet(n_examples: int, world_size: int) -> UnsupportedError:
    """What to raise where a rank has no example to normalise together with the others."""
    return UnsupportedError("synchronised batch normalisation needs an example on each rank",
                            given=f"a batch of {counted(n_examples, 'example')} for {counted(world_size, 'rank')}",
                            hint="Loader(..., drop_last=True), or fewer ranks")  # fmt: skip


def first_of(flags: Vector) -> int:
    """Where the first flag is set, -1 if none is."""
    return int(np.argmax(flags > 0)) if flags.any() else -1
