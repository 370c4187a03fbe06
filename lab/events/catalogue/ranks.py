"""What ranks and their cluster tell: launches, collectives hop by hop, data-parallel steps and pipelines.

Who told it stands in the origin of the event, so a field `rank` is in none of them.
"""

from __future__ import annotations

from typing import ClassVar

from lab.events.event import Array, Event, event


@event
class RankStarted(Event):
    """A rank of a launch began to run its program."""

    generation: int
    """Number of the launch; ranks of an older one are refused."""
    world_size: int
    worker: str
    """Address of the worker that it is pinned to; "" when it is a thread of this process."""
    pid: int
    n_cores: int = 0
    """Cores of its machine that it may use, together with all others there; 0: not known."""


@event
class RankFinished(Event):
    """The program of a rank ended: "finished", "failed" or "stopped"; `reason` is the failure's first line."""

    generation: int
    state: str
    elapsed_ms: float
    reason: str


@event
class RankLost(Event):
    """A rank died, was stopped or was cut off, as told by the one who noticed."""

    generation: int
    lost_rank: int
    worker: str
    reason: str


@event
class TrainingResumed(Event):
    """Ranks that train go on after a loss, from a step that all of them had done; as told by who launched them."""

    restart: int
    """How many losses the run has outlived, this one included."""
    step: int
    """Steps done in the state that they went on from."""
    lost_rank: int
    """-1 if all were lost."""
    world_size: int
    """Ranks from here on."""
    source: str
    """Where the state is from: "ranks", "disk", "launcher" (the last pause) or "beginning"."""
    elapsed_ms: float
    """From the word of the loss to that of the first step done after it; where the run is paused, until ranks stood."""


@event
class StateKept(Event):
    """A rank kept a copy of parameters and optimiser in its process, for when another rank is lost."""

    step: int
    n_bytes: int
    elapsed_ms: float


@event
class ClockAligned(Event):
    """The clock of a rank was compared with that of who launched; times of its events are in the launcher's clock."""

    offset_ns: int
    """Rank's clock less the launcher's, subtracted from the times of its events; 0 where both read one clock."""
    error_ns: int
    """The offset is right to within so much: half of the quickest round trip, or less; 0 where both read one clock."""
    same_clock: bool
    """True where both are on one host, whose processes share one monotonic clock, and the round trips agree with it."""


@event
class StrangerRefused(Event):
    """Somebody who is no rank of this run knocked at a rank's data port, and was shown out."""

    reason: str


@event
class WorkerSeen(Event):
    """How a worker of the cluster was, when a launch looked: at its start, its end, and about once a second between."""

    worker: str
    """Its address."""
    state: str
    """"idle", "leased" (holds a rank of this run or of another), "paused", or "gone"."""
    holds: str
    """The run whose rank it holds; "" for none."""
    pid: int
    memory_bytes: int
    memory_limit_bytes: int
    """0 for no limit."""
    cpu_percent: float


@event
class WorkerHandled(Event):
    """Somebody killed, stopped or slowed a worker by hand, or let it go on."""

    worker: str
    """Its address."""
    pid: int
    action: str
    """"killed", "stopped", "slowed" or "let go on"."""
    share: float
    """Of its time in which it runs from now on: 0 to 1."""


@event
class CollectiveStarted(Event):
    """A rank entered a collective."""

    collective: int
    """Number of the call, counted from 0 in each launch; the same on all ranks. In a group of ranks
    counted from a number of the group's own."""
    operation: str
    algorithm: str
    """With the operation a key of `lab.parallel.COLLECTIVES`."""
    n_bytes: int
    """Of the whole buffer."""
    n_chunks: int
    world_size: int
    value: Array | None = None
    """A copy of what the rank's buffer held, flat, if a listener asked for values and it has at most 4,096 entries."""
    group: str = ""
    """Name of the group of ranks that calls, "" for all."""
    throttle: str = ""
    """How slow the links of this rank were made, in words; "" for as fast as they are."""
    transport: str = ""
    """How its chunks go: "shared" memory, "unix" or "tcp" sockets, "tls" over TCP; "" for a rank alone, or unknown."""


@event
class CollectiveFinished(Event):
    """A rank left a collective: its buffer holds the result."""

    collective: int
    operation: str
    algorithm: str
    n_bytes: int
    n_chunks: int
    world_size: int
    group: str = ""


@event
class ChunkMoved(Event):
    """One hop of a collective: chunks `start` to `stop` (not included) came from `src` to `dst`, added or stored."""

    collective: int
    step: int
    """Of the receiver's plan."""
    src: int
    dst: int
    start: int
    stop: int
    reduces: bool
    """True if they were added to those that `dst` had."""
    n_bytes: int
    value: Array | None = None
    """A copy of what `dst` holds in these chunks now, as for CollectiveStarted."""
    group: str = ""
    """As for CollectiveStarted; `src` and `dst` are numbers of the launch."""


@event
class OrderMeasured(Event):
    """`measure_orders` summed the arrays of all ranks in one order, and compared the sum with the exact one."""

    algorithm: str
    n_entries: int
    n_inexact: int
    """Entries that are not the exact sum's, which is rounded once."""
    n_other: int
    """Entries that are not those of the order that was measured first."""
    mean_ulp: float
    """Distance from the exact sum, in units in its last place, as is `max_ulp`."""
    max_ulp: float
    n_ranks: int
    dtype: str


# --- data-parallel training ---


@event
class ReplicaAdvanced(Event):
    """A rank of data-parallel training, with its copy of the model, reached a phase of a step."""

    step: int
    phase: str
    """"shard": it took its examples; "gradient": its own backward is done; "reduced": the all-reduce is; "updated"."""
    start: int
    stop: int
    """Its examples, start to stop (not included) of the global batch."""
    n_global: int
    """Examples of the global batch."""
    loss: float
    """Mean over its examples, nan before "gradient" and for an empty shard."""
    norm: float
    """Euclidean norm: of the gradient that it contributes ("gradient"), of the sum ("reduced"), of the parameters
    ("updated"); nan at "shard"."""
    checksum: int
    """CRC-32 of the bytes of the parameters at "updated", to see that all replicas are alike; else 0."""
    elapsed_ms: float
    """That this phase took."""


@event
class GradientCompressed(Event):
    """A hook of data-parallel training summed a rank's gradient over ranks, and perhaps sent less than all of it."""

    step: int
    n_bytes: int
    """Of the gradient."""
    n_bytes_sent: int
    """By this rank, to all others, as counted where they left."""
    norm: float
    """Euclidean norm of this rank's gradient."""
    residual_norm: float
    """Of what it keeps for the next step; nan where nothing is kept."""


@event
class ReplicaMet(Event):
    """A rank of Local SGD met others after steps of its own: what they had become was averaged."""

    step: int
    """The last of these steps."""
    n_steps: int
    """Since it last met these ranks."""
    group: str
    """Who met; "" for all ranks."""
    distance: float
    """From its own parameters to the mean, before the meeting, as a Euclidean norm."""
    n_bytes: int
    """Of what it brought: what collectives sent of it is told by them."""
    alone_ms: float
    """Of its own steps since it last met anybody."""
    met_ms: float
    """From the end of these steps to the end of the meeting, with the time that it waited for others."""


@event
class LaneBusy(Event):
    """A lane of a rank was busy for a while in a step of data-parallel training with buckets; told when all is done."""

    step: int
    lane: str
    """"compute" or "communication"."""
    kind: str
    """"differentiate": forward and backward; "bucket": all-reduce of one; "wait": for buckets after backward."""
    bucket: int
    """Its number in the order of the all-reduces, from 0; -1 for what is none."""
    n_bytes: int
    start_ms: float
    """Since the step began on this rank, as is `stop_ms`."""
    stop_ms: float


# --- pipelines ---


@event
class ActivationMoved(Event):
    """A micro-batch's activation (kind "F") or its gradient ("B") came from one stage to the next."""

    kind: str
    src_stage: int
    dst_stage: int
    micro: int
    n_bytes: int


@event
class ActionStarted(Event):
    """A rank of a pipeline began to take a micro-batch through a stage, "F" forwards or "B" backwards."""

    kind: str
    stage: int
    micro: int
    paced: bool
    """True on a paced device, where an action lasts at least its nominal time: no measure of this machine."""


@event
class ActionFinished(Event):
    """A rank of a pipeline is done with a micro-batch on a stage."""

    kind: str
    stage: int
    micro: int
    paced: bool
    start_ns: int
    end_ns: int
    """The span to draw, in the clock of `time_ns`: as measured, or on a paced device the nominal one."""
    n_live: int
    """Activations that this rank holds afterwards: forwards whose backward is still to come."""

    clocks: ClassVar[tuple[str, ...]] = ("start_ns", "end_ns")
