"""What the engine tells: the graph grows operation by operation, and the backward walk goes through it.

Many times a step: all are `per_operation`, so that whoever only follows a training can leave them out.
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
    rule of `source` for its operand number `argument` sent to `node`), or "tangent" (see TangentPushed). Statistics are
    over finite entries; nan if there are none.
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


@event
class NodeVisited(Event):
    """A walk that counts its visits (`lab.count_visits`) came by a node."""

    node: int
    source: int
    """The node whose rule sent it here, -1 at the root."""
    argument: int
    """Number of the operand of `source` that this is, -1 at the root."""
    order: str
    """"topological" or "path"."""
    number: int
    """Of this visit in its walk, from 1 on."""

    per_operation: ClassVar[bool] = True


# --- forward mode ------------------------------------------------------------------------------------------------


@event
class TangentPushed(Event):
    """In a jvp an operation ran and its rule pushed a tangent along; with `op` "" an input brought its own.

    From detail "statistics" on its ValueSeen(role="value") and ValueSeen(role="tangent") follow. An operation whose
    tangent is zero by its rule, as a comparison, is a constant from there on and is not told.
    """

    node: int
    """A number of its own: nothing of it is on the tape."""
    op: str
    parents: tuple[int, ...]
    """Of each operand, in order of the arguments; -1 for one that carries no tangent."""
    shape: tuple[int, ...]
    dtype: str
    level: int
    """Of the jvp; each has its own, and one that was begun later has a higher one."""
    name: str = ""
    """Of an input: the variable that held it; "" when unknown."""
    constants: tuple[str, ...] = ()
    """As in OpRecorded, like what follows."""
    params: str = ""
    file: str = ""
    line: int = 0

    per_operation: ClassVar[bool] = True


# --- many members at once ----------------------------------------------------------------------------------------


@event
class OpBatched(Event):
    """In a vmap an operation ran for all members at once; with `op` "" a value came in, mapped or shared by all."""

    node: int
    """A number of its own: nothing of it is on the tape."""
    op: str
    parents: tuple[int, ...]
    """Of each operand, in order of the arguments; -1 for a mere number."""
    shape: tuple[int, ...]
    """As one member has it."""
    size: int
    """How many members there are."""
    axis: int
    """Where the members lie: 0; of an input where they lay in what was given, before that axis was brought to the
    front; -1: the value is the same for all and has no such axis."""
    dtype: str
    level: int
    """Of the vmap; each has its own, and one that was begun later has a higher one."""
    became: tuple[str, ...]
    """The operations that ran instead, in order, with parameters and the shape of the result: "sum(axis=(1,)) 5×3"."""
    name: str = ""
    """Of an input: the variable that held it; "" when unknown."""
    constants: tuple[str, ...] = ()
    """As in OpRecorded, like what follows."""
    params: str = ""
    file: str = ""
    line: int = 0

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
    """The walk ended: it came to its end, or a rule or a hook raised."""

    root: int
    n_nodes: int
    level: int
    error: str
    """What was raised, "TypeError: ...": then no leaf has got a gradient. "" if it came to its end."""

    per_operation: ClassVar[bool] = True
