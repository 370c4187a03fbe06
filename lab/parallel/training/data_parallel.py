"""Data-parallel training: every rank has a copy of the model, takes its shard of each batch, and adds its gradient.

The step is that of `Training` itself. Between gradient and update the ranks sum what they found, so every copy makes
the same update, bit for bit, and training differs from that of one process by the order of additions alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lab.errors import ArgumentError, UnsupportedError
from lab.events import (
    ChunkMoved,
    ClockAligned,
    CollectiveFinished,
    CollectiveStarted,
    Event,
    GradientCompressed,
    LaneBusy,
    RankFinished,
    RankLost,
    RankStarted,
    ReplicaAdvanced,
    StateKept,
    StrangerRefused,
    TrainingResumed,
    WorkerHandled,
    WorkerSeen,
)
from lab.kernels import have_numba
from lab.kernels.blas import one_blas_thread
from lab.optim.flat import FlatParameters
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.cluster.preparing import prepared_by
from lab.parallel.compression.hook import CommHook, require_hook
from lab.parallel.paper.plans import Plan, plan_of
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.any_world import VirtualRank, require_any_world
from lab.parallel.training.buckets import BucketRank, require_buckets
from lab.parallel.training.cluster_job import ClusterJob
from lab.parallel.training.eager_sums import MICRO_BATCH, STEP, EagerRank, require_sync
from lab.parallel.training.hooked import HookedRank
from lab.parallel.training.keeping import FIRST, Going, Keeper
from lab.parallel.training.layers import NOTHING, SYNCHRONIZED, Chosen, Layers, chosen
from lab.parallel.training.needs import need_of
from lab.parallel.training.options import refuse_what_is_no_option
from lab.parallel.training.own_plans import refuse_a_wrong_sum
from lab.parallel.training.packing import rehearsed, unpacked
from lab.parallel.training.replicas import Rank
from lab.parallel.training.restarts import Restarts, refuse_no_restarts
from lab.parallel.training.separable import refuse_what_cannot_be_split
from lab.parallel.training.steering import Steering
from lab.training.job import RECORDED, Job
from lab.training.standing import Standing
from lab.training.trainer import Training
from lab.words import one_of, shown

if TYPE_CHECKING:
    from distributed import Client


_OF_RANKS = (
    *RECORDED, RankStarted, RankFinished, RankLost, TrainingResumed, ClockAligned, WorkerSeen, WorkerHandled,
    StrangerRefused,
)  # fmt: skip
_OF_REPLICAS = (ReplicaAdvanced, LaneBusy, StateKept, GradientCompressed)
_OF_CHUNKS = (CollectiveStarted, ChunkMoved, CollectiveFinished)
TOLD: dict[str, tuple[type[Event], ...]] = {
    "steps": _OF_RANKS,
    "replicas": (*_OF_RANKS, *_OF_REPLICAS),
    "chunks": (*_OF_RANKS, *_OF_REPLICAS, *_OF_CHUNKS),
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
    goes to the ranks.

    The loss of a rank costs seconds and no result: every rank keeps its last two states, and when one is lost another
    worker takes its number and the state of a survivor, and all go on from the last step that all survivors had done,
    to the same bits. When all are lost at once, the run goes on from where it was last paused, or from its beginning.

    Args:
        cluster: a Cluster, a Client or a scheduler's address; None starts workers for this run and closes them.
        world_size: number of ranks; one on every worker if not given.
        algorithm: with "all_reduce" a key of COLLECTIVES, or a plan of your own: how gradients are summed. Your own
            is checked before a step is made: that it sums, and adds in the same order on all ranks.
        told: how much of the ranks the run's recording takes: "steps" as of a training here, "replicas" also what each
            rank does in a step, "chunks" also what moves between them, for pictures. More of it costs a step more.
        timeout: seconds that a rank may wait for the others, an evaluation on rank 0 included; a stop waits as long
            for the end of a step.
        transport: "auto", "shared", "unix" or "tcp".
        wait: seconds to wait for workers that are busy with other runs, and for one in the place of a lost one.
        on_loss: what to do when a rank is lost: "replace" it by another worker, "shrink" to those that are left, which
            sums in another order, or "stop" the run with an error, the model as it was when last paused.
        max_restarts: how many losses a run outlives.
        batch_norm: what layers that normalise over the batch do. "synchronized": the whole batch's statistics, as one
            process, by all-reduces forward and backward; needs an example on each rank. "local": each rank normalises
            over its own examples, which is another training, as torch's; the running statistics are the ranks' mean.
        random: "per rank": random layers draw by their seed, the rank and the step; a run with as many ranks draws the
            same again, one with fewer does not (with `deterministic`: by the virtual shard, so it does).
        deterministic: "any world": as many ranks as you like, the same bits. The batch is cut into virtual `shards`;
            each one's gradient is computed alone and all are added in one tree. The number of ranks is a power of two
            that divides the shards; gradients are summed by halving where no other tree is given. A step costs more:
            small shards make small matrix products. The processors have to be of one kind.
        shards: how many virtual shards; another number gives other bits.
        bucket_bytes: cuts the gradient into buckets of so many bytes, each summed as soon as backward has found it,
            while it goes on; None sums all of it afterwards. The bits are the same for plans that add all entries in
            one order (naive, doubling, halving, tree); in others it hangs on where an entry lies (ring, direct).
            Summing needs a core beside those that compute: with as many ranks as cores it makes a step longer.
        sync: with `fit(accumulate=...)`, when gradients are summed over ranks: once a "step" (what torch calls
            `no_sync`), or after each "micro-batch", which sends them as many times, for the same result.
        comm_hook: sums gradients in place of `algorithm`: one of lab.parallel.compression, which send less, or your
            own (`CommHook`). What it keeps from step to step is a rank's own: after the loss of a rank all begin
            without it, so a run that lost one has other bits than one that did not.

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
    on_loss: str = "replace"
    max_restarts: int = 3
    batch_norm: str | None = None
    random: str | None = None
    deterministic: str | None = None
    shards: int = 8
    bucket_bytes: int | None = None
    sync: str = STEP
    comm_hook: CommHook | None = None

    def __post_init__(self) -> None:
        refuse_what_is_no_option(self.cluster, self.world_size, self.timeout, self.wait, self.transport)
        refuse_no_restarts(self.on_loss, self.max_restarts)
        self._chosen(self.world_size)
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
        choice = self._chosen(n_ranks or None)
        if training.accumulation.n > 1 and choice.batch_norm == SYNCHRONIZED:
            raise UnsupportedError("micro-batches would be normalised one by one", given=f"accumulate="
                                   f"{training.accumulation.n}, batch_norm={choice.batch_norm!r}",
                                   hint="leave out one of the two")  # fmt: skip
        restarts = Restarts(self.on_loss, self.max_restarts)
        job = ClusterJob(
            training, train, (self.algorithm, choice), kinds=TOLD[self.told], units=("hop",), cluster=self.cluster,
            world_size=self.world_size, timeout=self.timeout, wait=self.wait, transport=self.transport,
            restarts=restarts,
        )  # fmt: skip
        copy = unpacked(job.payload)
        refuse_what_cannot_be_split(copy, choice.shards or self.world_size, choice=choice)
        job.need = need_of(copy, len(job.payload), keeps=bool(restarts.key), choice=choice)
        return job

    def _chosen(self, world_size: int | None) -> Chosen:
        shards = require_any_world(self.deterministic, self.shards, world_size, self.algorithm, self.on_loss,
                                   self.batch_norm)  # fmt: skip
        bucket_bytes = require_buckets(self.bucket_bytes, self.deterministic, self.batch_norm)
        sync = require_sync(self.sync, {"bucket_bytes": bucket_bytes, "deterministic": self.deterministic})
        hook = require_hook(self.comm_hook, {"bucket_bytes": bucket_bytes, "deterministic": self.deterministic,
                                             "sync": sync if sync == MICRO_BATCH else ""})  # fmt: skip
        return chosen(self.batch_norm, self.random, shards, bucket_bytes, sync, hook)


@prepared_by(have_numba, rehearse=rehearsed)
def train(
    comm: Comm, payload: bytes, run: str, algorithm: str | Plan, choice: Chosen, going: Going = FIRST
) -> Standing | None:
    """What every rank runs; where the training stands in the end, on rank 0: there all stand alike."""
    standing = train_replica(comm, payload, run, algorithm, going, choice)
    return standing if comm.rank == 0 else None


def train_replica(
    comm: Comm, payload: bytes, run: str, algorithm: str | Plan, going: Going = FIRST, choice: Chosen = NOTHING
) -> Standing:
    """Lead this rank's copy of the training from a held beginning to its end; where it stands then.

    Raises:
        PlanError: a plan of one's own is wrong for so many ranks; all of them find that.
    """
    refuse_a_wrong_sum(algorithm, comm.world_size)
    training = unpacked(payload)
    steering = Steering(comm, list(training.hyperparameters))
    layers, groups = Layers(comm, training.model, choice), training.optimizer.groups
    training.replica = rank_of(comm, steering, algorithm, layers, groups, choice)
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the training looks for them itself
    with one_blas_thread(), quiet:
        keeper = Keeper(comm, steering, training, going)
        standing: Standing = steering.lead(training, keeper.begin(run), keeper.keep)
    return standing


def rank_of(
    comm: Comm, steering: Steering, algorithm: str | Plan, layers: Layers, groups: Sequence[FlatParameters],
    choice: Chosen,
) -> Rank:  # fmt: skip
    """The place of a rank that sums gradients as was chosen."""
    if choice.shards:
        return VirtualRank(comm, steering, algorithm, layers=layers, groups=groups, n_shards=choice.shards)
    if choice.bucket_bytes:
        return BucketRank(comm, steering, algorithm, layers=layers, groups=groups, bucket_bytes=choice.bucket_bytes)
    if choice.comm_hook is not None:
        return HookedRank(comm, steering, algorithm, layers=layers, groups=groups, hook=choice.comm_hook)
    if choice.sync == MICRO_BATCH:
        return EagerRank(comm, steering, algorithm, layers=layers, groups=groups)
    return Rank(comm, steering, algorithm, layers=layers, groups=groups)
