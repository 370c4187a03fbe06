"""Events in words: one of them on one line, the operation it belongs to, and where two runs differ in three lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lab.events.catalogue import (
    AccumulationBegun,
    AccumulationMeasured,
    ActionFinished,
    ActionStarted,
    ActivationMoved,
    BackwardFinished,
    BackwardStarted,
    BestStepFound,
    BucketsBegun,
    BucketStepTold,
    BucketsTimed,
    ChoiceKnown,
    ChunkMoved,
    CollectiveFinished,
    CollectiveStarted,
    CostBegun,
    CostMeasured,
    CrossingFound,
    ErrorMeasured,
    ErrorsBegun,
    Evaluated,
    FaultFound,
    GradientCleared,
    GradientCompressed,
    GradientStored,
    HyperparameterChanged,
    JacobianCompared,
    LaneBusy,
    LayerMeasured,
    LeafUsed,
    LinkFitted,
    LossScaled,
    MeansBegun,
    MeansStepped,
    MemoryBegun,
    MemorySampled,
    MethodRefused,
    NodeVisited,
    OpBatched,
    OperandKept,
    OpRecorded,
    OrderMeasured,
    ParameterMeasured,
    ParametersKept,
    PeakFound,
    RankFinished,
    RankLost,
    RankStarted,
    ReplicaAdvanced,
    ReplicaMet,
    RootLinkBegun,
    RootLinkMeasured,
    RuleApplied,
    RuleCheckBegun,
    RunFinished,
    RunStarted,
    SlopesBegun,
    SlopesMeasured,
    SnapshotWritten,
    SpreadBegun,
    SpreadMeasured,
    StateKept,
    StepFinished,
    SwellBegun,
    SwellMeasured,
    TangentPushed,
    TimeMeasured,
    TimesBegun,
    TimeSimulated,
    TrainingResumed,
    ValueSeen,
    ValueWritten,
    WorkerHandled,
)
from lab.events.cells import cell_of
from lab.events.event import Event, fields_of
from lab.words import counted

if TYPE_CHECKING:
    from lab.events.diff import Difference, Side
    from lab.events.recording import Recording

MOST = 90
"""Letters of a value or a source line."""


class Place(NamedTuple):
    """The operation that an event belongs to.

    Attributes:
        op: its name, "" if the event belongs to none.
        called: of a leaf its name, "" where it has none.
        module: in whose forward it ran.
        text: of the source line, as recorded.
    """

    op: str = ""
    called: str = ""
    module: str = ""
    file: str = ""
    line: int = 0
    text: str = ""

    @property
    def name(self) -> str:
        """What to call it: the operation, or the leaf."""
        return self.op or (f"leaf {self.called}" if self.called else "")

    @property
    def where(self) -> str:
        """File, line and text, "" where they are not known.

        Example:
            >>> Place("tanh", file="/home/me/model.py", line=12, text="y = lab.tanh(x)").where
            'line 12 of model.py: y = lab.tanh(x)'
        """
        if not self.line:
            return ""
        file = cell_of(self.file) or self.file.replace("\\", "/").rsplit("/", 1)[-1]
        return f"line {self.line} of {file}{f': {short(self.text)}' if self.text else ''}"


def place_of(recording: Recording, event: Event, position: int, rank: int) -> Place:
    """The operation or leaf that an event of a recording belongs to: that of its node, as it was then."""
    node = getattr(event, "node", getattr(event, "root", None))
    if not event.per_operation or node is None:
        return Place()
    return place_of_node(recording, node, position, rank)


def place_of_node(recording: Recording, node: int, position: int, rank: int) -> Place:
    """The operation or leaf that had this number at a position."""
    for kind in (OpRecorded, TangentPushed, LeafUsed):
        columns = recording.columns(kind, 0, position + 1)
        rows = np.flatnonzero((columns["node"] == node) & (columns["rank"] == rank))
        if not len(rows):
            continue
        found = recording[int(columns["position"][rows[-1]])]
        if isinstance(found, OpRecorded | TangentPushed) and found.op:
            text = recording.source(found.file, found.line)
            return Place(found.op, "", getattr(found, "module", ""), found.file, found.line, text)
        if isinstance(found, LeafUsed | TangentPushed):
            return Place(called=found.name or "without a name")
    return Place()


# --- one event -------------------------------------------------------------------------------------------------------


def told(event: Event, place: Place = Place()) -> str:  # noqa: B008 -- a NamedTuple: frozen
    """What happened, on one line.

    Args:
        place: the operation that it belongs to.

    Example:
        >>> told(StepFinished(3, 0, 0.25, 64, 1.5))
        'step 3: loss 0.25'
        >>> told(RuleApplied(7, "tanh", (6,), 0))
        'backward of tanh'
    """
    words = WORDS.get(type(event))
    if words is not None:
        return words(event, place.name or "a value")
    fields = (f"{name} {shown(getattr(event, name))}" for name in fields_of(type(event)))
    return short(f"{type(event).__name__}: {', '.join(fields)}")


def _seen(event: ValueSeen, name: str) -> str:
    what = "contribution to" if event.role == "contribution" else f"{event.role} of"
    number = shown(event.value) if event.value is not None else f"mean {digits(event.mean)}, norm {digits(event.norm)}"
    return short(f"{what} {name}: {number}")


_SHAPE: Callable[[tuple[int, ...]], str] = lambda shape: "" if not shape else f", shape {shape}"  # noqa: E731


def _operand(event: OperandKept) -> str:
    return shown(event.value) if event.value is not None else f"{event.shape} {event.dtype}"


def _replica(event: ReplicaAdvanced) -> str:
    known = {name: getattr(event, name) for name in ("loss", "norm")}
    words = [f", {name} {digits(value)}" for name, value in known.items() if not math.isnan(value)]
    return "".join(words) + (f", checksum {event.checksum}" if event.phase == "updated" else "")


def _buckets(bucket_bytes: int) -> str:
    return f"buckets of {bucket_bytes:,} bytes" if bucket_bytes else "all at once"


WORDS: Mapping[type[Event], Callable[..., str]] = {
    LeafUsed: lambda e, _: f"leaf {e.name or 'without a name'}{_SHAPE(e.shape)}, {e.dtype}",
    OpRecorded: lambda e, _: f"{e.op}{f' ({e.params})' * bool(e.params)}{_SHAPE(e.shape)}, {e.dtype}",
    ValueSeen: _seen,
    OperandKept: lambda e, name: short(f"operand {e.argument} of {name}: {_operand(e)}"),
    ParametersKept: lambda e, name: short(f"parameters of {name}: {e.parameters}"),
    NodeVisited: lambda e, name: f"visit {e.number} of the {e.order} walk, at {name}",
    TangentPushed: lambda e, _: f"tangent of {e.op or e.name or 'an input'}{_SHAPE(e.shape)}, {e.dtype}",
    OpBatched: lambda e, _: f"{e.op or e.name or 'an input'} of {counted(e.size, 'member')}{_SHAPE(e.shape)}",
    BackwardStarted: lambda e, name: f"backward starts at {name}: {counted(e.n_nodes, 'node')}",
    RuleApplied: lambda e, _: f"backward of {e.op}",
    GradientStored: lambda e, name: f"gradient of {name} {'added' if e.accumulated else 'stored'}",
    GradientCleared: lambda _, name: f"gradient of {name} cleared",
    ValueWritten: lambda _, name: f"{name} written in place",
    BackwardFinished: lambda e, _: (
        short(f"backward stopped: {e.error}") if e.error else f"backward finished: {counted(e.n_nodes, 'node')}"
    ),
    RunStarted: lambda e, _: short(f"run started: {e.model}, {e.optimizer}"),
    RunFinished: lambda e, _: f"run {e.state} after {counted(e.n_steps, 'step')}",
    StepFinished: lambda e, _: f"step {e.step}: loss {digits(e.loss)}",
    LossScaled: lambda e, _: (
        f"step {e.step} not made: a gradient overflowed; the loss is scaled by {digits(e.next_scale)} from now on"
        if e.is_skipped else f"step {e.step}: loss scaled by {digits(e.scale)}"
    ),
    Evaluated: lambda e, _: f"{e.split} at step {e.step}: loss {digits(e.loss)}, accuracy {digits(e.accuracy)}",
    ParameterMeasured: lambda e, _: f"{e.role} of {e.name} at step {e.step}: norm {digits(e.norm)}",
    LayerMeasured: lambda e, _: (
        f"layer {e.name} ({e.kind}) at step {e.step}: {digits(e.mean)} ± {digits(e.deviation)}, {e.n_dead} of"
        f" {counted(e.n_units, 'unit')} dead"
    ),
    HyperparameterChanged: lambda e, _: f"{e.name} set to {digits(e.value)} at step {e.step}",
    RankStarted: lambda e, _: f"rank started, one of {e.world_size}",
    RankFinished: lambda e, _: f"rank {e.state}",
    RankLost: lambda e, _: f"rank {e.lost_rank} was lost",
    WorkerHandled: lambda e, _: f"worker {e.worker} was {e.action} by hand",
    TrainingResumed: lambda e, _: (
        f"training resumed from step {e.step} on {counted(e.world_size, 'rank')}, state from {e.source}"
    ),
    ReplicaMet: lambda e, _: (
        f"rank met {e.group or 'all ranks'} after {counted(e.n_steps, 'step')} of its own, {digits(e.distance)} from"
        " the mean"
    ),
    StateKept: lambda e, _: f"state of step {e.step} kept, {e.n_bytes:,} bytes",
    SnapshotWritten: lambda e, _: short(f"step {e.step} written to {e.path}, {e.n_bytes:,} bytes"),
    CollectiveStarted: lambda e, _: f"{e.operation} ({e.algorithm}) number {e.collective} entered, {e.n_bytes:,} bytes",
    CollectiveFinished: lambda e, _: f"{e.operation} ({e.algorithm}) number {e.collective} left",
    ChunkMoved: lambda e, _: (
        f"chunks {e.start} to {e.stop} from rank {e.src} to {e.dst}, {'added' if e.reduces else 'stored'}"
    ),
    ReplicaAdvanced: lambda e, _: f"replica at step {e.step}: {e.phase}{_replica(e)}",
    OrderMeasured: lambda e, _: (
        f"sum over {counted(e.n_ranks, 'rank')} by {e.algorithm}: {e.n_inexact:,} of {e.n_entries:,} entries inexact, "
        f"at most {digits(e.max_ulp)} ulp"
    ),
    GradientCompressed: lambda e, _: (
        f"gradient of {e.n_bytes:,} bytes at step {e.step}: {e.n_bytes_sent:,} bytes sent"
        f"{f', {digits(e.residual_norm)} left for later' if e.residual_norm == e.residual_norm else ''}"
    ),
    LaneBusy: lambda e, _: (
        f"{e.lane} at step {e.step}: {e.kind}{f' {e.bucket}, {e.n_bytes:,} bytes' if e.bucket >= 0 else ''}, "
        f"{digits(e.stop_ms - e.start_ms)} ms"
    ),
    ActivationMoved: lambda e, _: f"{e.kind} of micro-batch {e.micro} from stage {e.src_stage} to {e.dst_stage}",
    ActionStarted: lambda e, _: f"{e.kind} of micro-batch {e.micro} on stage {e.stage} began",
    ActionFinished: lambda e, _: f"{e.kind} of micro-batch {e.micro} on stage {e.stage} done",
    ErrorsBegun: lambda e, _: f"errors of the derivative of {e.function} at {digits(e.at)}, against {digits(e.truth)}",
    ErrorMeasured: lambda e, _: f"{e.method} with step {digits(e.h)}: error {digits(e.error)}",
    BestStepFound: lambda e, _: f"{e.method} is best with step {digits(e.h)}: error {digits(e.error)}",
    MethodRefused: lambda e, _: short(f"{e.method} is not possible: {e.reason}"),
    CostBegun: lambda e, _: f"cost of Jacobians of {e.function}",
    CostMeasured: lambda e, _: f"{e.way}, {e.n_inputs} inputs, {e.n_outputs} outputs: {digits(e.elapsed_ms)} ms",
    CrossingFound: lambda e, _: f"{e.faster} beats {e.slower} from {digits(e.at)} {e.sweep} on",
    TimesBegun: lambda e, _: f"{e.operation} by size, {counted(e.world_size, 'rank')}",
    TimeMeasured: lambda e, _: f"{e.algorithm}, {e.n_bytes:,} bytes: {digits(e.elapsed_ms)} ms",
    LinkFitted: lambda e, _: f"a link: {digits(1e6 * e.latency_s)} us and {digits(e.bytes_per_s / 1e6)} MB/s",
    TimeSimulated: lambda e, _: f"{e.algorithm}, {e.n_bytes:,} bytes: {digits(e.elapsed_ms)} ms, simulated",
    BucketsBegun: lambda e, _: f"steps by size of the buckets, {counted(e.world_size, 'rank')}",
    BucketsTimed: lambda e, _: f"{_buckets(e.bucket_bytes)}: {digits(e.elapsed_ms)} ms",
    BucketStepTold: lambda e, _: f"a step with {_buckets(e.bucket_bytes)}: {digits(e.elapsed_ms)} ms",
    SpreadBegun: lambda e, _: f"spread of {counted(e.world_size, 'replica')}",
    SpreadMeasured: lambda e, _: f"replicas {digits(e.largest)} apart at step {e.step}",
    RootLinkBegun: lambda e, _: f"bytes on the link of rank 0, buffers of {e.n_bytes:,}",
    RootLinkMeasured: lambda e, _: f"{e.operation} by {e.algorithm}, {counted(e.world_size, 'rank')}: rank 0 sent "
    f"{e.sent_bytes:,} bytes and received {e.received_bytes:,}",
    SwellBegun: lambda e, _: f"{e.function} put into itself",
    SwellMeasured: lambda e, _: f"depth {e.depth}: {counted(e.n_ops, 'operation')} in the derivative",
    SlopesBegun: lambda e, _: f"slopes of {e.function} from both sides",
    SlopesMeasured: lambda e, _: f"slopes by {e.entry}: {digits(e.left)} and {digits(e.right)}",
    ChoiceKnown: lambda e, _: f"{e.library} takes {digits(e.slope)} by {e.entry}",
    RuleCheckBegun: lambda e, _: f"derivatives of {e.function} held against differences",
    JacobianCompared: lambda e, _: f"{e.what} in {e.mode}: {'right' if e.ok else 'WRONG'}",
    FaultFound: lambda e, _: f"the rule of {e.op} for {e.argument} is at fault",
    MemoryBegun: lambda e, _: short(f"memory of {', '.join(e.ways)}"),
    MemorySampled: lambda e, _: f"{e.way}, {e.phase} of {e.op}: {e.n_bytes:,} bytes are held",
    PeakFound: lambda e, _: f"{e.way}: at most {e.n_bytes:,} bytes",
    AccumulationBegun: lambda e, _: f"steps by size of the micro-batches, {counted(e.batch_size, 'example')}",
    AccumulationMeasured: lambda e, _: f"{counted(e.n_micro, 'micro-batch', 'micro-batches')}: at most "
    f"{e.peak_bytes:,} bytes, {digits(e.elapsed_ms)} ms",
    MeansBegun: lambda e, _: f"trainings with {e.n_micro} micro-batches, weighed in several ways",
    MeansStepped: lambda e, _: f"{e.way}, step {e.step}: loss {digits(e.loss)}",
}
"""A line for each kind of the lab; others are told by their fields."""


def shown(value: object) -> str:
    """A value on a short line, its numbers with the digits that tell them from all others of their type.

    Example:
        >>> shown(0.1), shown(np.array([[1.0, 2.0]])), shown(np.array(3.5)), shown(np.array([0.1], np.float32))
        ('0.1', '[[1.0, 2.0]]', '3.5', '[0.1]')
    """
    if isinstance(value, np.ndarray):
        return short(_listed(value)) if value.size <= 8 else f"{value.shape} {value.dtype}"
    return short(value if isinstance(value, str) else digits(value))


def _listed(array: Any) -> str:
    """An array as nested lists."""
    if array.ndim:
        return f"[{', '.join(map(_listed, array))}]"
    return digits(array[()] if array.dtype.kind == "f" and array.dtype.itemsize < 8 else array.item())


def digits(value: object) -> str:
    """A number with as few digits as tell it from all others of its type; a float that is one of float32 as that one.

    Example:
        >>> digits(0.1), digits(np.float32(0.1)), digits(float(np.float32(0.1))), digits(1e300), digits(3)
        ('0.1', '0.1', '0.1', '1e+300', '3')
    """
    if isinstance(value, np.floating) and value.dtype.itemsize < 8:
        return str(value)
    if isinstance(value, float):
        with np.errstate(over="ignore", under="ignore"):
            narrow = np.float32(value)
        texts = [repr(float(value)), *([str(narrow)] if float(narrow) == value else [])]
        return min(texts, key=len)
    return repr(value)


def short(text: str) -> str:
    """A text on one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= MOST else f"{line[: MOST - 1]}…"


# --- a difference ----------------------------------------------------------------------------------------------------


def words_of(found: Difference, names: tuple[str, str] = ("a", "b")) -> tuple[str, str, str]:
    """A difference in three lines: where, what on both sides, and how much agreed before.

    Args:
        names: what to call the runs.
    """
    a, b = names
    side = found.a if found.a.event is not None else found.b
    place = found.a.place if found.a.place.where else found.b.place
    where = f" ({place.where})" if place.where else ""
    n = f"{found.agreed:,} event{'s' * (found.agreed != 1)} of rank {found.rank}"
    if found.ran_on:
        goes_on, ended = (a, b) if found.ran_on == "a" else (b, a)
        longer = found.a if found.ran_on == "a" else found.b
        what = told(longer.event, longer.place) if longer.event is not None else ""
        why = f" ({ended}: {found.why_short})" if found.why_short else ""
        return (
            f"{ended} has ended where {goes_on} goes on, on rank {found.rank}; until there they agree{why}.",
            f"{goes_on} goes on with: {what}.",
            f"{n} agreed before.{_later(found)}",
        )
    event = side.event
    if found.field and event is not None:
        name = found.a.place.name or found.b.place.name
        what = f"{_field_words(found.field, event)}{f' of {name}' * bool(name and event.per_operation)}"
        first = f"First difference on rank {found.rank}: the {what}{where or _at_step(event)}."
        return first, _both(found, a, b), f"{n} agreed before.{_later(found)}"
    first = f"First difference on rank {found.rank}: the runs do different things{where}."
    return first, f"{a}: {_did(found.a)}; {b}: {_did(found.b)}.", f"{n} agreed before.{_later(found)}"


def _did(side: Side) -> str:
    return "nothing more" if side.event is None else told(side.event, side.place)


def _later(found: Difference) -> str:
    if not found.later:
        return ""
    ranks = ", ".join(map(str, found.later))
    return f" Rank{'s' * (len(found.later) > 1)} {ranks} differ{'s' * (len(found.later) == 1)} later."


def _field_words(field: str, event: Event) -> str:
    if isinstance(event, ValueSeen):
        what = {"gradient": "gradient", "contribution": "contribution to the gradient"}.get(event.role, "value")
        return what if field == "value" else f"{field.replace('_', ' ')} of the {what}"
    if isinstance(event, HyperparameterChanged):
        return event.name
    if isinstance(event, OpRecorded):
        return {"op": "operation", "parents": "operands", "constants": "constants"}.get(field, field)
    if isinstance(event, OperandKept) and field == "value":
        return f"operand {event.argument}"
    kind = {"ReplicaAdvanced": "replica", "Evaluated": "evaluation", "ParameterMeasured": "parameter",
            "LayerMeasured": "layer"}
    owner = kind.get(type(event).__name__, "")
    return f"{owner} {field}".replace("_", " ").strip()


def _at_step(event: Event) -> str:
    step = getattr(event, "step", None)
    return "" if step is None else f" at step {step}"


def _both(found: Difference, a: str, b: str) -> str:
    """The values on both sides; of arrays the first entry that differs."""
    x, y = found.a.value, found.b.value
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape == y.shape and x.dtype == y.dtype:
        unlike = (x != y) & ~((x != x) & (y != y)) if x.dtype.kind in "fc" else x != y  # noqa: PLR0124 -- nan
        at = np.argwhere(unlike)
        if len(at) and x.ndim:
            index = tuple(at[0].tolist())
            n = f"{len(at):,} of {x.size:,} entries differ, first {list(index)}: "
            return f"{n}{shown(x[index][()])} in {a}, {shown(y[index][()])} in {b}."
    if found.field == "constants" and isinstance(x, tuple) and isinstance(y, tuple):
        x, y = (", ".join(filter(None, texts)) for texts in (x, y))
    elif found.field in ("parents", "targets"):
        return f"{a}: {_did(found.a)}, from other values than {b}: {_did(found.b)}."
    texts = shown(x), shown(y)
    if texts[0] == texts[1]:  # one is of float32, the other beside it
        texts = short(repr(x)), short(repr(y))
    return f"{texts[0]} in {a}, {texts[1]} in {b}."
