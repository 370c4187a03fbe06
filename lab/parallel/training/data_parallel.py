"""Data-parallel training: every rank has a copy of the model, takes its shard of each batch, and adds its gradient.

The step is that of `Training` itself. Between gradient and update the ranks sum what they found, so every copy makes
the same update, bit for bit, and training differs from that of one process by the order of additions alone.
"""

from __future__ import annotations

import math
import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lab.data import Batch
from lab.errors import ArgumentError, RunError
from lab.events import (
    ChunkMoved,
    ClockAligned,
    CollectiveFinished,
    CollectiveStarted,
    Event,
    RankFinished,
    RankLost,
    RankStarted,
    ReplicaAdvanced,
    StrangerRefused,
    WorkerSeen,
    bus,
)
from lab.events.gate import clock
from lab.optim.flat import FlatParameters, Vector
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.paper.plans import Plan, plan_of
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.cluster_job import ClusterJob
from lab.parallel.training.options import refuse_what_is_no_option
from lab.parallel.training.own_plans import refuse_a_wrong_sum
from lab.parallel.training.packing import unpacked
from lab.parallel.training.separable import refuse_what_cannot_be_split
from lab.parallel.training.shards import Shard, shard_of
from lab.parallel.training.steering import Steering
from lab.training.blas import one_blas_thread
from lab.training.job import RECORDED, Job
from lab.training.replica import Verdict
from lab.training.trainer import Standing, Training
from lab.words import one_of, shown

if TYPE_CHECKING:
    from distributed import Client


_OF_RANKS = (*RECORDED, RankStarted, RankFinished, RankLost, ClockAligned, WorkerSeen, StrangerRefused)
_OF_CHUNKS = (CollectiveStarted, ChunkMoved, CollectiveFinished)
TOLD: dict[str, tuple[type[Event], ...]] = {
    "steps": _OF_RANKS,
    "replicas": (*_OF_RANKS, ReplicaAdvanced),
    "chunks": (*_OF_RANKS, ReplicaAdvanced, *_OF_CHUNKS),
}
"""What the recording of a run on ranks takes, by how much is told."""


@dataclass(frozen=True)
class DataParallel:
    """Train on ranks that each hold the whole model: `lab.fit(model, train, on=DataParallel(cluster))`.

    Every rank draws the same batches and takes the examples between the bounds of `np.array_split`; a rank may have
    none. Rank 0 evaluates, while the others wait. The loss must be a mean over examples, and the answer to an example
    must not depend on the others of its batch. Both are tried out at the call on a few batches, from the first to the
    last of an epoch; what is otherwise on batches in between only is not noticed, and gives other numbers.

    The model here has the ranks' parameters whenever the run is paused, and at its end; what is written into them then
    goes to the ranks. When a rank is lost it is as it
    was when the run was last paused, or began.

    Args:
        cluster: a Cluster, a Client or a scheduler's address; None starts workers for this run and closes them.
        world_size: number of ranks; one on every worker if not given.
        algorithm: with "all_reduce" a key of COLLECTIVES, or a plan of your own: how gradients are summed. Your own
            is checked before a step is made: that it sums, and adds in the same order on all ranks.
        told: how much of the ranks the run's recording takes: "steps" as of a training here, "replicas" also what each
            rank does in a step, "chunks" also what moves between them, for pictures. More of it costs a step more.
        timeout: seconds that a rank may wait for the others, an evaluation on rank 0 included; a stop waits as long
            for the end of a step.
        wait: seconds to wait for workers that are busy with other runs.
        transport: "auto", "unix" or "tcp".

    Raises:
        ArgumentError: no such detail, or another option that is none.
        PlanError: there is no such algorithm.

    Example:
        >>> DataParallel(world_size=2, told="steps").algorithm
        'ring'
    """

    cluster: Cluster | Client | str | None = None
    world_size: int | None = None
    algorithm: str | Plan = "ring"
    told: str = "chunks"
    timeout: float = 60.0
    wait: float = 30.0
    transport: str = "auto"

    def __post_init__(self) -> None:
        refuse_what_is_no_option(self.cluster, self.world_size, self.timeout, self.wait, self.transport)
        if not (callable(self.algorithm) or isinstance(self.algorithm, str)):
            raise ArgumentError("algorithm= is a name or a plan", given=f"algorithm={shown(self.algorithm)}",
                                hint='algorithm="ring"; lab.parallel.COLLECTIVES has the names')  # fmt: skip
        plan_of("all_reduce", self.algorithm)
        told: object = self.told
        if not (isinstance(told, str) and told in TOLD):
            raise ArgumentError("ranks tell steps, replicas or chunks", given=f"told={shown(told)}",
                                hint=one_of(told, TOLD))  # fmt: skip

    def job(self, training: Training) -> Job:
        """A job whose steps the ranks do.

        Raises:
            ArgumentError: the training cannot be sent to workers.
            PlanError: a plan of your own is wrong for that many ranks. Where that number shows only when workers have
                been found, it ends the run before its first step.
            UnsupportedError: replicas would not do what one process does: a random layer, one that remembers calls or
                normalises over the batch, a loss that is no mean.
        """
        n_ranks = self.world_size or (self.cluster.n_started if isinstance(self.cluster, Cluster) else 0)
        if n_ranks:
            refuse_a_wrong_sum(self.algorithm, n_ranks)
        job = ClusterJob(
            training, train, (self.algorithm,), kinds=TOLD[self.told], units=("hop",), cluster=self.cluster,
            world_size=self.world_size, timeout=self.timeout, wait=self.wait, transport=self.transport,
        )  # fmt: skip
        refuse_what_cannot_be_split(unpacked(job.payload), self.world_size)
        return job


def train(comm: Comm, payload: bytes, run: str, algorithm: str | Plan) -> Standing | None:
    """What every rank runs; where the training stands in the end, on rank 0: there all stand alike."""
    standing = train_replica(comm, payload, run, algorithm)
    return standing if comm.rank == 0 else None


def train_replica(comm: Comm, payload: bytes, run: str, algorithm: str | Plan) -> Standing:
    """Lead this rank's copy of the training from a held beginning to its end; where it stands then.

    Raises:
        PlanError: a plan of one's own is wrong for so many ranks; all of them find that.
    """
    refuse_a_wrong_sum(algorithm, comm.world_size)
    training = unpacked(payload)
    steering = Steering(comm, list(training.hyperparameters))
    training.replica = Rank(comm, steering, algorithm)
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the training looks for them itself
    with one_blas_thread(), quiet:
        training.begin(run)
        standing: Standing = steering.lead(training)
    return standing


class Rank:
    """This rank's place among the replicas: a `lab.training.replica.Replica` over a Comm."""

    def __init__(self, comm: Comm, steering: Steering, algorithm: str | Plan = "ring") -> None:
        self.comm, self.steering, self.algorithm = comm, steering, algorithm
        self.rank, self.world_size = comm.rank, comm.world_size
        self._shard, self._step, self._loss = Shard(0, 0, 1), 0, math.nan
        self._since = 0.0

    def take(self, step: int, batch: Batch) -> Batch:
        self._since = clock()
        self._step, self._loss = step, math.nan
        self._shard = shard_of(self.rank, self.world_size, len(batch.inputs))
        self._tell("shard")
        return self._shard.of(batch)

    def agree(self, loss: float) -> Verdict:
        """The loss of the whole batch; the next order to all ranks comes with it."""
        self._loss, share = loss, self._shard.share
        is_bad = share > 0 and not math.isfinite(loss)
        words = np.zeros(1 + self.world_size)
        words[0], words[1 + self.rank] = loss * share if share and not is_bad else 0.0, is_bad
        words = self.steering.agree(words)
        return Verdict(float(words[0]), _first(words[1:]))

    def reduce(self, groups: Sequence[FlatParameters]) -> None:
        for group in groups:
            self._shard.weigh_(group.gradients)
        self._tell("gradient", [group.gradients for group in groups])
        for group in groups:
            self.comm.all_reduce_(group.gradients, self.algorithm)
        self._tell("reduced", [group.gradients for group in groups])

    def updated(self, groups: Sequence[FlatParameters]) -> None:
        self._tell("updated", [group.values for group in groups])

    def culprit(self, is_guilty: bool) -> int:
        flags = np.zeros(self.world_size)
        flags[self.rank] = is_guilty
        return _first(self.comm.agree(flags))

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

    def _tell(self, phase: str, vectors: Sequence[Vector] = ()) -> None:
        """Say that this rank reached a phase, if somebody wants to know."""
        if not bus.listeners or not any(listener.wants(ReplicaAdvanced) for listener in bus.listeners):
            return
        elapsed_ms = 1000 * (clock() - self._since)
        norm = math.sqrt(sum(float(np.dot(v, v)) for v in vectors)) if vectors else math.nan
        checksum = 0
        for vector in vectors if phase == "updated" else ():
            checksum = zlib.crc32(vector.view(np.uint8), checksum)  # type: ignore[arg-type]  # an array is a buffer
        at = self._shard
        loss = math.nan if phase == "shard" else self._loss
        bus.emit(ReplicaAdvanced(self._step, phase, at.start, at.stop, at.n_global, loss, norm, checksum, elapsed_ms))
        self._since = clock()


def _first(flags: Vector) -> int:
    """Where the first flag is set, -1 if none is."""
    return int(np.argmax(flags > 0)) if flags.any() else -1
