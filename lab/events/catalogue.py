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
