"""Local SGD: every rank makes steps of its own, and only every so many of them the ranks average what they have become.

It sends 1 / `every` of the messages and bytes of data-parallel training, and is another training, which no single
process does. (Stich, Local SGD converges fast and communicates little, ICLR 2019.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lab.checks import choice
from lab.errors import ArgumentError
from lab.events import ReplicaMet
from lab.kernels import have_numba
from lab.kernels.blas import one_blas_thread
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.cluster.preparing import prepared_by
from lab.parallel.local.local_rank import LocalRank
from lab.parallel.local.meetings import Meeting, Rhythm, rhythm_of
from lab.parallel.local.outer import MEAN, Outer, outer_of
from lab.parallel.local.rounds import LocalTraining
from lab.parallel.paper.plans import Plan, plan_of
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.cluster_job import ClusterJob
from lab.parallel.training.data_parallel import TOLD
from lab.parallel.training.keeping import FIRST, Going, Keeper
from lab.parallel.training.layers import Chosen, Layers
from lab.parallel.training.needs import need_of
from lab.parallel.training.options import refuse_what_is_no_option
from lab.parallel.training.own_plans import refuse_a_wrong_sum
from lab.parallel.training.packing import rehearsed, unpacked
from lab.parallel.training.restarts import Restarts, refuse_no_restarts
from lab.parallel.training.separable import refuse_what_cannot_be_split
from lab.parallel.training.steering import Steering
from lab.training.job import Job
from lab.training.standing import Standing
from lab.training.trainer import Training
from lab.words import one_of, shown

if TYPE_CHECKING:
    from distributed import Client

LOCAL, AVERAGED = "local", "averaged"
LAYERS = Chosen(batch_norm="local", random="per rank")
"""Each rank is a training of its own: its layers see its examples, and draw for themselves."""


@dataclass(frozen=True)
class LocalSGD:
    """Train on ranks that seldom average their parameters: `lab.fit(model, train, on=LocalSGD(cluster, every=8))`.

    Ranks take their examples of each batch as with `DataParallel`, but each steps by its own gradient. After `every`
    steps their parameters become the mean of all, weighted by the examples that each has seen. With `every=1` that is
    data-parallel training, to rounding, for rules that are linear in the gradient: gradient descent, and with momentum
    where each rank's part of a batch is the same in all batches, or the state is averaged. It is none for Adam, nor
    with `clip_norm`.

    A step of the run is a round here: a pause, a change, a stop take effect at its end, and `run.step()` makes one.
    Within it no rank waits for another. The losses of its steps, each the mean over all ranks, are told at its end, and
    so is a nan or a bound that a rank has met: the round is then not done, on any rank. What is evaluated at the end of
    an epoch is what ranks have at the end of the round. Layers that normalise over the batch take this rank's examples,
    with the mean of the running statistics in use; random layers draw on each rank for themselves.

    The loss of a rank is outlived as with `DataParallel`, from the last round. To the same bits where ranks have the
    same state then: gradient descent without momentum, or `state="averaged"`; with a local state the new rank begins
    with that of a survivor. An outer momentum begins at 0 after a rewind, after `resume=`, and where all ranks were
    lost at once.

    Args:
        cluster, world_size, algorithm, told, timeout, wait, transport, on_loss, max_restarts: as for `DataParallel`.
        every: steps from one average to the next.
        outer: an `Outer`, whose step is made of the mean of what ranks have gone since they last met (DiLoCo); None
            goes to the mean itself.
        groups: sizes of groups of neighbouring ranks, which average among themselves every `every` steps, and with all
            others every `every * outer_every`: for machines in racks. A round ends where all meet.
        outer_every: with groups, how many of their averages are one of all.
        state: "local": each rank's optimiser keeps what it has seen itself; "averaged": it is averaged, too, which
            sends as many more bytes.

    Raises:
        ArgumentError: an option that is none.
        PlanError: there is no such algorithm.

    Example:
        >>> LocalSGD(world_size=4, every=8).outer is None
        True
    """

    cluster: Cluster | Client | str | None = None
    world_size: int | None = None
    every: int = 8
    outer: Outer | None = None
    groups: tuple[int, ...] | None = None
    outer_every: int = 4
    state: str = LOCAL
    algorithm: str | Plan = "ring"
    told: str = "chunks"
    timeout: float = 60.0
    wait: float = 30.0
    transport: str = "auto"
    on_loss: str = "replace"
    max_restarts: int = 3

    def __post_init__(self) -> None:
        refuse_what_is_no_option(self.cluster, self.world_size, self.timeout, self.wait, self.transport)
        refuse_no_restarts(self.on_loss, self.max_restarts)
        outer_of(self.outer)
        choice("there is no such way for state=", self.state, (LOCAL, AVERAGED))
        plan_of("all_reduce", self.algorithm)
        told: object = self.told
        if not (isinstance(told, str) and told in TOLD):
            raise ArgumentError("ranks tell steps, replicas or chunks", given=f"told={shown(told)}",
                                hint=one_of(told, TOLD))  # fmt: skip
        self._refuse_groups_of_another_world(self.rhythm)

    @property
    def rhythm(self) -> Rhythm:
        """When ranks meet."""
        return rhythm_of(self.every, self.groups, self.outer_every)

    def _refuse_groups_of_another_world(self, rhythm: Rhythm) -> None:
        n = sum(rhythm.sizes)
        if n and self.world_size not in (None, n):
            raise ArgumentError("every rank is in one group", given=f"groups={shown(self.groups)} of {n} ranks, "
                                f"world_size={self.world_size}", hint=f"world_size={n}, or leave it out")  # fmt: skip
        if n and self.on_loss == "shrink":
            raise ArgumentError("groups do not shrink", given=f'groups={shown(self.groups)}, on_loss="shrink"',
                                hint='on_loss="replace" keeps their sizes')  # fmt: skip

    def job(self, training: Training) -> Job:
        """A job whose rounds the ranks do.

        Raises:
            ArgumentError: the training cannot be sent to workers.
            UnsupportedError: a model that remembers calls, an answer that depends on the others of the batch, a loss
                that is no mean.
        """
        world_size = sum(self.rhythm.sizes) or self.world_size
        known = world_size or (self.cluster.n_started if isinstance(self.cluster, Cluster) else 0)
        if known:
            refuse_a_wrong_sum(self.algorithm, known)
        restarts = Restarts(self.on_loss, self.max_restarts)
        args = self.rhythm, outer_of(self.outer), self.state, self.algorithm
        job = ClusterJob(
            training, train_locally, args, kinds=(*TOLD[self.told], *((ReplicaMet,) if self.told != "steps" else ())),
            units=("hop",), cluster=self.cluster, world_size=world_size, timeout=self.timeout, wait=self.wait,
            transport=self.transport, restarts=restarts,
        )  # fmt: skip
        copy = unpacked(job.payload)
        refuse_what_cannot_be_split(copy, world_size, choice=LAYERS)
        need, values = need_of(copy, len(job.payload), keeps=bool(restarts.key), choice=LAYERS), copy.optimizer.groups
        # Where the round began, and how far the mean has gone; state beside it where that is averaged.
        job.need = need._replace(model=need.model + 3 * sum(group.values.nbytes for group in values))
        return job


@prepared_by(have_numba, rehearse=rehearsed)
def train_locally(
    comm: Comm, payload: bytes, run: str, rhythm: Rhythm, outer: Outer = MEAN, state: str = LOCAL,
    algorithm: str | Plan = "ring", going: Going = FIRST,
) -> Standing | None:  # fmt: skip
    """What every rank runs; where the training stands in the end, on rank 0.

    Raises:
        PlanError: a plan of one's own is wrong for so many ranks; all of them find that.
    """
    refuse_a_wrong_sum(algorithm, comm.world_size)
    training = unpacked(payload, LocalTraining)
    steering, optimizer = Steering(comm, list(training.hyperparameters)), training.optimizer
    rank = LocalRank(comm, steering, algorithm, optimizer, Layers(comm, training.model, LAYERS))
    averages_state = state == AVERAGED
    meeting = Meeting(comm, optimizer, algorithm, outer, averages_state=averages_state)
    group = comm.group(rhythm.group_of(comm.rank)) if rhythm.sizes else None
    within = Meeting(group, optimizer, algorithm, averages_state=averages_state) if group is not None else None
    training.join(comm, steering, rank, rhythm, meeting, within)
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the training looks for them itself
    with one_blas_thread(), quiet:
        keeper = Keeper(comm, steering, training, going, meeting.velocities)
        standing: Standing = steering.lead(training, keeper.begin(run), keeper.keep)
    return standing if comm.rank == 0 else None
