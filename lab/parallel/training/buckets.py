"""Gradients in buckets, whose all-reduces run while backward goes on: `DataParallel(bucket_bytes=...)`.

The parameters are cut into buckets from the last to the first, for backward meets them so. When the last gradient of a
bucket is there, its all-reduce is started, never before that of the bucket before: all ranks start all of them, in
one order, whatever their examples use. What has not come by the end of backward is started then.

Li and others, PyTorch Distributed (VLDB 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from lab.autograd import Leaf, Tensor
from lab.checks import whole
from lab.config import using
from lab.data import Batch
from lab.errors import ArgumentError
from lab.events import LaneBusy, bus
from lab.optim.flat import FlatParameters, Vector
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.handles import Handle
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.layers import SYNCHRONIZED, Layers
from lab.parallel.training.replicas import Rank
from lab.parallel.training.steering import Steering
from lab.training.counting import Counts
from lab.training.replica import Verdict


def require_buckets(bucket_bytes: object, deterministic: object, batch_norm: object) -> int:
    """Bytes of a bucket, 0 if there shall be none.

    Raises:
        ArgumentError: that is no size, or something else needs the gradient as a whole.

    Example:
        >>> require_buckets(1 << 20, None, None), require_buckets(None, None, None)
        (1048576, 0)
    """
    if bucket_bytes is None:
        return 0
    size = whole("bucket_bytes", bucket_bytes, least=1, hint="25 MiB are usual for large models; None sums at the end")
    if deterministic is not None:
        raise ArgumentError("the gradients of virtual shards are added before they are summed over ranks",
                            given=f"bucket_bytes={size}, deterministic={deterministic!r}",
                            hint="leave out one of the two")  # fmt: skip
    if batch_norm == SYNCHRONIZED:
        raise ArgumentError("synchronised batch normalisation talks in backward, when buckets do",
                            given=f"bucket_bytes={size}, batch_norm={batch_norm!r}",
                            hint='leave out one of the two, or take batch_norm="local"')  # fmt: skip
    return size


class Bucket(NamedTuple):
    """Neighbouring parameters of one group.

    Example:
        >>> import lab
        >>> flat = FlatParameters([lab.tensor([1.0] * n, requires_grad=True) for n in (2, 3, 1)])
        >>> [(bucket.first, bucket.last) for bucket in buckets_of([flat], 16)]
        [(2, 2), (1, 1), (0, 0)]
        >>> [(bucket.first, bucket.last) for bucket in buckets_of([flat], 40)]
        [(1, 2), (0, 0)]
    """

    group: int
    first: int
    last: int
    """Numbers of its parameters in the group; both are in it."""
    where: slice
    """In the group's vectors."""


def buckets_of(groups: Sequence[FlatParameters], bucket_bytes: int) -> list[Bucket]:
    """All buckets in the order of their all-reduces: as many parameters as fit, at least one."""
    found: list[Bucket] = []
    for number, group in reversed(list(enumerate(groups))):
        last = len(group.parameters) - 1
        for i in range(last, -1, -1):
            where = slice(group.slices[i].start, group.slices[last].stop)
            before = group.slices[i - 1].start if i else 0
            if not i or (where.stop - before) * group.values.itemsize > bucket_bytes:
                found.append(Bucket(number, i, last, where))
                last = i - 1
    return found


class BucketRank(Rank):
    """A rank that sums its gradient bucket by bucket, in a thread of its own, while it goes back through the model."""

    def __init__(
        self, comm: Comm, steering: Steering, algorithm: str | Plan, *, layers: Layers,
        groups: Sequence[FlatParameters], bucket_bytes: int,
    ) -> None:  # fmt: skip
        super().__init__(comm, steering, algorithm, layers=layers, groups=groups)
        self._buckets = buckets_of(groups, bucket_bytes)
        self._sums: list[Vector] = [np.empty_like(group.values) for group in groups]
        self._handles: list[Handle[Any]] = []
        self._missing: list[int] = []  # gradients, in each bucket
        self._place: dict[int, tuple[int, Vector]] = {}  # of each leaf: its bucket, and where its gradient goes
        self._began = self._went_back = self._waited = 0.0

    def take(self, step: int, batch: Batch, counts: Counts | None = None) -> Batch:
        self._began = perf_counter()
        return super().take(step, batch, counts)

    def differentiate(self, back: Callable[[Batch], float], mine: Batch) -> float:
        self._handles, self._place = [], {}
        self._missing = [bucket.last - bucket.first + 1 for bucket in self._buckets]
        for number, bucket in enumerate(self._buckets):
            group = self._groups[bucket.group]
            for i in range(bucket.first, bucket.last + 1):
                self._place[id(group.parameters[i].node)] = number, self._sums[bucket.group][group.slices[i]]
        loss = back(mine)
        self._went_back = perf_counter()
        for bucket in self._buckets[len(self._handles) :]:
            part = self._sums[bucket.group][bucket.where]
            part[...] = self._groups[bucket.group].gradients[bucket.where]
            self._shard.weigh_(part)
            self._start(bucket)
        return loss

    def backward(self, loss: Tensor, share: float, *, is_last: bool) -> None:
        with using(arrived=self._arrived) if is_last else nullcontext():
            super().backward(loss, share, is_last=is_last)

    def agree(self, loss: float) -> Verdict:
        for handle in self._handles:  # the agreement would wait for them, too
            handle.wait()
        self._waited = perf_counter()
        return super().agree(loss)

    def _arrived(self, leaf: Leaf, gradient: Any) -> None:
        """The gradient of a parameter is complete."""
        if id(leaf) not in self._place:
            return
        number, place = self._place[id(leaf)]
        place[...] = np.reshape(gradient, -1)
        if leaf.grad is not None:  # of the micro-batches before
            np.add(np.reshape(leaf.grad, -1), place, out=place)
        self._shard.weigh_(place)
        self._missing[number] -= 1
        while len(self._handles) < len(self._buckets) and not self._missing[len(self._handles)]:
            self._start(self._buckets[len(self._handles)])

    def _start(self, bucket: Bucket) -> None:
        self._handles.append(self.comm.start("all_reduce_", self._sums[bucket.group][bucket.where], self.algorithm))

    def _sum(self, groups: Sequence[FlatParameters]) -> None:
        for group, found in zip(groups, self._sums, strict=True):
            group.gradients[...] = found
        if bus.listeners and any(listener.wants(LaneBusy) for listener in bus.listeners):
            self._tell_lanes()

    def _tell_lanes(self) -> None:
        def ms(seconds: float) -> float:
            return 1000 * (seconds - self._began)

        for lane, kind, start, stop in (("compute", "differentiate", self._began, self._went_back),
                                        ("compute", "wait", self._went_back, self._waited)):  # fmt: skip
            bus.emit(LaneBusy(self._step, lane, kind, -1, 0, ms(start), ms(stop)))
        for number, (bucket, handle) in enumerate(zip(self._buckets, self._handles, strict=True)):
            n_bytes = self._sums[bucket.group][bucket.where].nbytes
            bus.emit(LaneBusy(self._step, "communication", "bucket", number, n_bytes, ms(handle.began),
                              ms(handle.ended)))  # fmt: skip
