"""Every event that the lab can emit: past tense, ids and numbers, units in the names.

One list, because it is also the schema of the recording file: a view or a test starts reading here.
"""

from __future__ import annotations

from typing import ClassVar

from lab.events.event import Array, Event, event

# --- the graph grows ---------------------------------------------------------------------------------------------


@event
class LeafUsed(Event):
    """A leaf (a tensor that the user made) took part in an operation for the first time in this recording."""

    node: int
    name: str
    """Given name, parameter path, or the variable that held it; "" when unknown."""
    shape: tuple[int, ...]
    dtype: str

    per_operation: ClassVar[bool] = True


@event
class OpRecorded(Event):
    """An operation ran and its node was put on the tape."""

    node: int
    op: str
    """Key of `lab.ops.PRIMITIVES`: its record has the formula and the rule of each edge."""
    parents: tuple[int, ...]
    """Node of each operand, in order of the arguments; -1 for an operand that is not tracked."""
    shape: tuple[int, ...]
    dtype: str
    level: int
    """0 for the ordinary tape, higher for the tape of an enclosing transform."""
    constants: tuple[str, ...] = ()
    """Short text for each operand that is not tracked ("" for a tracked one); empty unless sources are recorded."""
    module: str = ""
    """Path of the module in whose forward it ran, as "1.weight's owner": "1", "encoder.0"; "" outside."""
    file: str = ""
    line: int = 0
    params: str = ""
    """Parameters that are not the defaults, as "axis=0", and for getitem the index, as "[1:]"; as for `constants`."""

    per_operation: ClassVar[bool] = True


@event
class ValueSeen(Event):
    """What a value, a gradient, or one edge's contribution to a gradient looked like; from detail "statistics" on.

    `role` is "value" (output of `node`), "gradient" (the complete cotangent of `node`), or "contribution" (what the
    rule of `source` for its operand number `argument` sent to `node`). Statistics are over finite entries; nan if
    there are none.
    """

    node: int
    role: str
    source: int
    argument: int
    shape: tuple[int, ...]
    minimum: float
    maximum: float
    mean: float
    norm: float
    n_nonfinite: int
    value: Array | None
    """A copy, when a listener asked for detail "value" and the array has at most 4,096 entries; else None."""

    per_operation: ClassVar[bool] = True


@event
class OperandKept(Event):
    """What the rules of `node` read and no node holds: a constant operand; from detail "value" on, after its values.

    With these, the rules can be evaluated again, as `lab.why` does.
    """

    node: int
    argument: int
    """Number of the operand; from the number of operands on: the arrays among the parameters, in order."""
    shape: tuple[int, ...]
    dtype: str
    value: Array | None
    """A copy, if a rule reads its entries and there are at most 4,096 of them; else None."""

    per_operation: ClassVar[bool] = True


@event
class ParametersKept(Event):
    """The parameters with which the operation of `node` ran, where it has any; from detail "value" on."""

    node: int
    parameters: str
    """JSON by name; `lab/autograd/parameters.py` says how a slice, a dtype or an array is written."""

    per_operation: ClassVar[bool] = True


# --- the backward walk -------------------------------------------------------------------------------------------


@event
class BackwardStarted(Event):
    """A backward walk begins at `root` and will visit `n_nodes` nodes."""

    root: int
    n_nodes: int
    level: int

    per_operation: ClassVar[bool] = True


@event
class RuleApplied(Event):
    """The backward rules of `node` ran: its gradient was complete, and a contribution went to each of `targets`."""

    node: int
    op: str
    targets: tuple[int, ...]
    """Parent node of each edge that was computed, in order of the arguments; -1 where no gradient was wanted."""
    level: int

    per_operation: ClassVar[bool] = True


@event
class GradientStored(Event):
    """A leaf received its gradient, from a walk or by hand; `accumulated` if it was added to one that was there."""

    node: int
    accumulated: bool

    per_operation: ClassVar[bool] = True


@event
class GradientCleared(Event):
    """The gradient of a leaf was forgotten: it is back to "no gradient yet".

    Only where there was one. Like ValueWritten it may be of a leaf that this recording has not met (yet).
    """

    node: int

    per_operation: ClassVar[bool] = True


@event
class ValueWritten(Event):
    """The array of a leaf was written in place: by hand, by an optimiser, from a saved state.

    From detail "statistics" on its ValueSeen(role="value") is the next event. An optimiser's step tells its parameters
    in their order, after all of that dtype were written.
    """

    node: int

    per_operation: ClassVar[bool] = True


@event
class BackwardFinished(Event):
    """The walk ended."""

    root: int
    n_nodes: int
    level: int

    per_operation: ClassVar[bool] = True


# --- training ----------------------------------------------------------------------------------------------------


@event
class RunStarted(Event):
    """A training run began."""

    name: str
    n_steps: int
    """Planned number of optimiser steps; 0 when unknown."""
    n_epochs: int
    n_parameters: int
    model: str
    """One-line description of the model."""
    optimizer: str


@event
class RunStateChanged(Event):
    """A run went to "running", "paused", "stopping"."""

    step: int
    state: str


@event
class StepFinished(Event):
    """One optimiser step is done; `loss` is of the batch before the update."""

    step: int
    epoch: int
    loss: float
    n_examples: int
    elapsed_ms: float
    """Of this step alone: forward, backward, update."""


@event
class Evaluated(Event):
    """Loss and accuracy over a whole split ("train", "test")."""

    step: int
    epoch: int
    split: str
    loss: float
    accuracy: float
    """Share of right answers, 0 to 1; nan where accuracy has no meaning."""
    n_examples: int


@event
class ParameterMeasured(Event):
    """Norm and histogram of a parameter ("value") or its gradient ("gradient") at a step."""

    step: int
    name: str
    role: str
    n_entries: int
    norm: float
    minimum: float
    maximum: float
    n_nonfinite: int
    edges: tuple[float, ...]
    """Bin edges of the histogram, one more than `counts`; empty when no entry is finite."""
    counts: tuple[int, ...]


@event
class HyperparameterChanged(Event):
    """A hyperparameter was set, at the start or by hand while training ran."""

    step: int
    name: str
    value: float


@event
class RunFinished(Event):
    """A run ended: "finished", "stopped" or "failed"; `reason` is the failure's first line."""

    name: str
    state: str
    n_steps: int
    elapsed_ms: float
    reason: str


# --- ranks, collectives, pipelines -------------------------------------------------------------------------------


@event
class RankStarted(Event):
    """A rank of a launch began to run its program."""

    generation: int
    """Number of the launch; ranks of an older one are refused."""
    world_size: int
    worker: str
    """Address of the worker that it is pinned to; "" when it is a thread of this process."""
    pid: int


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
class CollectiveStarted(Event):
    """A rank entered a collective."""

    collective: int
    """Number of the call, counted from 0 in each launch; the same on all ranks."""
    operation: str
    algorithm: str
    """With the operation a key of `lab.parallel.COLLECTIVES`."""
    n_bytes: int
    """Of the whole buffer."""
    n_chunks: int
    world_size: int
    value: Array | None = None
    """A copy of what the rank's buffer held, flat, if a listener asked for values and it has at most 4,096 entries."""


@event
class CollectiveFinished(Event):
    """A rank left a collective: its buffer holds the result."""

    collective: int
    operation: str
    algorithm: str
    n_bytes: int
    n_chunks: int
    world_size: int


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
