"""Pipeline training: every rank has a stage of the model, micro-batches flow through, gradients flow back.

The order is a schedule's, proved on paper before anything starts; the gradients are those of the whole batch, so
training differs from that of one process by the order of additions alone.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.checks import whole
from lab.errors import ArgumentError, UnsupportedError
from lab.events import (
    ActionFinished,
    ActionStarted,
    ActivationMoved,
    ClockAligned,
    RankFinished,
    RankLost,
    RankStarted,
    StrangerRefused,
    WorkerHandled,
    WorkerSeen,
)
from lab.kernels import have_numba
from lab.kernels.blas import one_blas_thread
from lab.nn import Sequential
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.cluster.preparing import prepared_by
from lab.parallel.paper.check_schedule import ScheduleReport, check_schedule
from lab.parallel.paper.schedules import Schedule, Table
from lab.parallel.pipeline.pacing import Device, Paced, device_for
from lab.parallel.pipeline.pipeline_rank import PipelineRank
from lab.parallel.pipeline.pipeline_training import PipelineTraining
from lab.parallel.pipeline.stages import split
from lab.parallel.ranks.runtime import Comm
from lab.parallel.ranks.ticks import Ticks
from lab.parallel.training.cluster_job import ClusterJob
from lab.parallel.training.options import refuse_what_is_no_option
from lab.parallel.training.packing import rehearsed, unpacked
from lab.parallel.training.separable import refuse_what_cannot_be_split
from lab.parallel.training.steering import Steering
from lab.training.counting import Counted
from lab.training.job import RECORDED, Job
from lab.training.standing import Standing
from lab.training.trainer import Training
from lab.words import shown

if TYPE_CHECKING:
    from distributed import Client


TOLD = (
    *RECORDED, RankStarted, RankFinished, RankLost, ClockAligned, WorkerSeen, WorkerHandled, StrangerRefused,
    ActivationMoved, ActionStarted, ActionFinished,
)  # fmt: skip
"""What the recording of a run on a pipeline takes."""


@dataclass(frozen=True)
class Pipeline:
    """Train on ranks that each hold a stage of the model: `lab.fit(model, train, on=Pipeline(cluster))`.

    The model is a Sequential; `lab.parallel.split(model, n_stages)` shows its stages. Each batch is cut into `n_micro`
    micro-batches whose sizes differ by at most one; where a batch has fewer examples, the last ones are left out. The
    loss must be a mean over examples, and the answer to an example must not depend on the others of its batch. Both are
    tried out at the call on a few batches, from the first to the last of an epoch; what is otherwise on batches in
    between only is not noticed, and gives other numbers. Rank 0 evaluates the whole model, while the others wait. What
    is written into the parameters while the run is paused goes to the ranks.

    Args:
        cluster: a Cluster, a Client or a scheduler's address; None starts workers for this run and closes them.
        schedule: the name of one in SCHEDULES, a function of your own, or the order of every rank as
            `parse_table(text)` reads it.
        n_stages: number of stages and ranks; if not given, one on each worker, but no more than there are layers.
        n_micro: micro-batches of each batch.
        paced: nominal times of actions, which then last at least so long: `Paced(forward_ms=20, backward_ms=40)`.
        timeout: seconds that a rank may wait for the others, an evaluation on rank 0 included.
        wait: seconds to wait for workers that are busy with other runs.
        transport: "auto", "shared", "unix" or "tcp".

    Raises:
        ArgumentError: an option that is none. Whether the schedule works is known with the number of stages: `check`.
    """

    cluster: Cluster | Client | str | None = None
    _: KW_ONLY
    schedule: Schedule | str | Table = "1f1b"
    n_stages: int | None = None
    n_micro: int = 8
    paced: Paced | None = None
    timeout: float = 60.0
    wait: float = 30.0
    transport: str = "auto"

    def __post_init__(self) -> None:
        refuse_what_is_no_option(self.cluster, None, self.timeout, self.wait, self.transport)
        whole("n_micro", self.n_micro, least=1, hint="n_micro=8 is usual for 4 stages")
        if self.n_stages is not None:
            whole("n_stages", self.n_stages, least=1, hint="one rank for each; None takes all workers")
        if not isinstance(self.paced, Paced | None):
            raise ArgumentError("paced= takes nominal times", given=f"paced={shown(self.paced)}",
                                hint="paced=Paced(forward_ms=20, backward_ms=40)")  # fmt: skip
        if not (callable(self.schedule) or isinstance(self.schedule, str | tuple | list)):
            raise ArgumentError("schedule= is a name, a function or a table", given=f"schedule={shown(self.schedule)}",
                                hint='schedule="1f1b"; lab.parallel.SCHEDULES has the names')  # fmt: skip

    def check(self, n_stages: int) -> ScheduleReport:
        """See whether the schedule works, and what it costs.

        Raises:
            ScheduleError: it does not; nothing has been started.

        Example:
            >>> Pipeline(schedule="gpipe", n_micro=4).check(n_stages=2).peak_live
            (4, 4)
        """
        times = (self.paced.forward_ms, self.paced.backward_ms) if self.paced else (1.0, 2.0)
        return check_schedule(self.schedule, n_stages, self.n_micro, forward=times[0], backward=times[1])

    def job(self, training: Training) -> Job:
        """A job whose steps the ranks do.

        Raises:
            ArgumentError: the model cannot be cut into so many stages, or the training cannot be sent to workers.
            ScheduleError: the schedule would not work.
            UnsupportedError: micro-batches would not give what the batch does: a random layer, one that remembers calls
                or normalises over the batch, a loss that is no mean over examples. Or the training is to be written to
                disk, to cut its batches itself or to compute in 16 bits.
        """
        if training.snapshots is not None or training.is_resumed:
            raise UnsupportedError("a pipeline is not written to disk while it trains", given="snapshot= or resume=",
                                   hint="on=DataParallel(...) is, and so is a training in this process")  # fmt: skip
        _refuse_what_no_stage_does(training)
        n_stages = self.stages_of(training.model)
        split(training.model, n_stages)
        order = self.check(n_stages).order
        job = ClusterJob(
            training, train, (order, self.n_micro, self.paced), kinds=TOLD, units=("action",),
            cluster=self.cluster, world_size=n_stages, timeout=self.timeout, wait=self.wait, transport=self.transport,
        )  # fmt: skip
        refuse_what_cannot_be_split(unpacked(job.payload), self.n_micro, "micro-batches")
        return job

    def stages_of(self, model: object) -> int:
        """How many stages this model will have."""
        if self.n_stages is not None:
            return self.n_stages
        return min(_n_workers(self.cluster), len(model)) if isinstance(model, Sequential) else 1


@prepared_by(have_numba, rehearse=rehearsed)
def train(comm: Comm, payload: bytes, run: str, order: Table, n_micro: int, paced: Paced | None) -> Standing | None:
    """What every rank runs: its part of the training, from a held beginning to the end; where all stand then."""
    device = device_for(comm, paced)
    quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the training looks for them itself
    training = _part(comm, payload, order, n_micro, device)
    with one_blas_thread(), quiet:
        training.begin(run)
        standing: Standing | None = training.steering.lead(training)
    return standing


def _part(comm: Comm, payload: bytes, order: Table, n_micro: int, device: Device) -> PipelineTraining:
    """This rank's part; the rest of the model is let go with this function, except on rank 0."""
    whole = unpacked(payload)
    stages = split(whole.model, comm.world_size)
    pipe = PipelineRank(comm, stages, whole.loss, order, n_micro, device)

    def hold(number: int) -> None:
        pipe.ticks = Ticks(number, comm) if number else None

    return PipelineTraining(Steering(comm, list(whole.hyperparameters), hold), whole, stages, pipe)


def _n_workers(cluster: Cluster | Client | str | None) -> int:
    if cluster is None:
        return 4
    if isinstance(cluster, str):
        with Cluster(client=cluster) as found:
            return _n_workers(found)
    client: Any = cluster.client if isinstance(cluster, Cluster) else cluster
    # One that is being restarted after a crash counts, where whoever started the workers knows of it.
    return max(len(client.nthreads()), len(getattr(client.cluster, "plan", ())))


def _refuse_what_no_stage_does(training: Training) -> None:
    if training.accumulation.n > 1:
        raise UnsupportedError("a pipeline cuts each batch itself", given=f"accumulate={training.accumulation.n}",
                               hint="Pipeline(n_micro=...) says into how many micro-batches")  # fmt: skip
    if training.precision is not None:
        raise UnsupportedError("a pipeline computes in the dtype of the parameters", given=f"precision="
                               f"{training.precision.dtype!r}", hint="train on=DataParallel(...)")  # fmt: skip
    if isinstance(training.loss, Counted):
        raise UnsupportedError("a pipeline weighs its micro-batches by their examples", given=repr(training.loss),
                               hint="on=DataParallel(...) weighs them by what they count")  # fmt: skip
