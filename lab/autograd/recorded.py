"""A recorded backward walk, read back: what stood on the tape, what came back along each edge, what each rule had read.

Everything that is asked for and not there is answered by a `NotKept` with the reason in words: never by a guess.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from lab.autograd.observe import LARGEST_COPY
from lab.autograd.parameters import unpacked
from lab.errors import LabError
from lab.events import (
    BackwardFinished,
    BackwardStarted,
    Event,
    GradientCleared,
    GradientStored,
    LeafUsed,
    OperandKept,
    OpRecorded,
    ParametersKept,
    RuleApplied,
    ValueSeen,
)
from lab.ops.primitive import PRIMITIVES, Op
from lab.shapes import Spec

Rows = np.ndarray[Any, np.dtype[np.int64]]
BY_HAND = -1
"""Number of the walk of a gradient that was set by hand."""


class Events(Protocol):
    """What is needed of a Recording."""

    def __len__(self) -> int: ...
    def columns(self, kind: type[Event], start: int = 0, stop: int | None = None) -> Mapping[str, Any]:
        """The fields of all events of a kind at positions start <= p < stop, one array a field."""


class NotKept(Exception):  # noqa: N818 - no error of anybody: an answer, that it is not known, and why
    """Something that the recording does not hold; its text says why."""


class Operation(NamedTuple):
    """An operation, or a leaf (op ""), as recorded."""

    node: int
    op: str
    name: str
    parents: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    position: int
    file: str = ""
    line: int = 0
    module: str = ""


class Rule(NamedTuple):
    """An op of the table with what its rules read when they ran: `record.rule(i).eager(ct, out, *operands, **params)`."""

    record: Op
    out: Any
    operands: tuple[Any, ...]
    params: dict[str, Any]
    shapes: tuple[tuple[int, ...], ...]
    """Of the operands; () where not known."""


class Kind:
    """The events of one kind up to a position, by field, and by node."""

    def __init__(self, events: Events, kind: type[Event], stop: int, rank: int | None, key: str = "node") -> None:
        columns = events.columns(kind, 0, stop)
        self._columns, self._key = columns, key
        self.position: Rows = np.asarray(columns["position"])
        mine = np.ones(len(self.position), bool) if rank is None else np.asarray(columns["rank"]) == rank
        self.picked = np.flatnonzero(mine)
        self._decoded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._decoded:
            self._decoded[name] = self._columns[name]
        return self._decoded[name]

    @functools.cached_property
    def _sorted(self) -> tuple[Rows, Rows]:
        keys = np.asarray(self[self._key])[self.picked]
        order = np.argsort(keys, kind="stable")
        return keys[order], self.picked[order]

    def rows(self, node: int, start: int = 0, stop: int | None = None) -> list[int]:
        """The rows of a node, in order, of positions start <= p < stop."""
        keys, rows = self._sorted
        first, last = np.searchsorted(keys, (node, node + 1))
        return [
            row
            for row in rows[first:last].tolist()
            if start <= self.position[row] and (stop is None or self.position[row] < stop)
        ]

    def between(self, start: int, stop: int) -> list[int]:
        """All rows of positions start <= p < stop, in order."""
        first, last = np.searchsorted(self.position, (start, stop))
        picked = self.picked
        return picked[np.searchsorted(picked, first) : np.searchsorted(picked, last)].tolist()  # type: ignore[no-any-return]


@dataclass
class Walk:
    """One backward walk.

    Attributes:
        number: 0 for the first of the recording.
        start, stop: positions of its events, start <= p < stop.
        finished: whether its end was recorded.
        consumers: for each node the edges along which something came back to it: (operation, number of its operand).
        gradients, contributions: rows of ValueSeen.
        twice: nodes that got two gradients meanwhile: another walk ran at the same time.
    """

    number: int
    root: int
    start: int
    stop: int
    finished: bool
    consumers: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    gradients: dict[int, int] = field(default_factory=dict)
    contributions: dict[tuple[int, int], int] = field(default_factory=dict)
    twice: set[int] = field(default_factory=set)


class Recorded:
    """What a recording says of its tape and walks.

    Args:
        events: a Recording.
        at: as of the first so many events; None for all.
        rank: whose; None where there is only one.
    """

    def __init__(self, events: Events, at: int | None = None, rank: int | None = None) -> None:
        self.events = events
        self.at = len(events) if at is None else max(0, min(at, len(events)))
        self.rank = rank
        self._kinds: dict[type[Event], Kind] = {}
        self._walks: dict[int, Walk] = {}
        self._rules: dict[int, Rule | NotKept] = {}

    @functools.cached_property
    def ranks(self) -> list[int]:
        """The ranks that recorded operations."""
        return np.unique(np.asarray(self.events.columns(OpRecorded, 0, self.at)["rank"])).tolist()  # type: ignore[no-any-return]

    def kind(self, kind: type[Event], key: str = "node") -> Kind:
        """The events of a kind, to be asked for by the number of a node."""
        if kind not in self._kinds:
            self._kinds[kind] = Kind(self.events, kind, self.at, self.rank, key)
        return self._kinds[kind]

    # --- what stood on the tape ---

    def operation(self, node: int) -> Operation | None:
        """The operation or the leaf of that number, None if the recording has none."""
        ops, leaves = self.kind(OpRecorded), self.kind(LeafUsed)
        for row in ops.rows(node)[-1:]:
            texts = (ops[name][row] for name in ("file", "line", "module"))
            file, line, module = texts
            return Operation(
                node, ops["op"][row], "", _ints(ops["parents"][row]), _ints(ops["shape"][row]), ops["dtype"][row],
                int(ops.position[row]), file, int(line), module,
            )  # fmt: skip
        for row in leaves.rows(node)[-1:]:
            name, shape, dtype = (leaves[word][row] for word in ("name", "shape", "dtype"))
            return Operation(node, "", name, (), _ints(shape), dtype, int(leaves.position[row]))
        return None

    def named(self, name: str) -> list[int]:
        """The leaves of that name, each once."""
        leaves = self.kind(LeafUsed)
        names, nodes = np.asarray(leaves["name"]), np.asarray(leaves["node"])
        return list(dict.fromkeys(nodes[leaves.picked][names[leaves.picked] == name].tolist()))

    def names(self) -> list[str]:
        """The names of all leaves that have one."""
        return [name for name in dict.fromkeys(np.asarray(self.kind(LeafUsed)["name"]).tolist()) if name]

    def _seen(self, row: int, what: str, shape: tuple[int, ...] | None) -> Any:
        """The array of a ValueSeen."""
        values = self.kind(ValueSeen)
        return _whole(values["value"][row], _ints(values["shape"][row]), what, shape)

    # --- walks ---

    @functools.cached_property
    def starts(self) -> list[tuple[int, int, int, bool]]:
        """(root, start, stop, finished) of each walk."""
        started, finished = self.kind(BackwardStarted, "root"), self.kind(BackwardFinished, "root")
        found = []
        rows = started.between(0, self.at)
        for k, row in enumerate(rows):
            root, start = int(started["root"][row]), int(started.position[row])
            ends = finished.rows(root, start)[:1]
            following = int(started.position[rows[k + 1]]) if k + 1 < len(rows) else self.at
            found.append((root, start, int(finished.position[ends[0]]) if ends else following, bool(ends)))
        return found

    def walk(self, number: int) -> Walk:
        """The walk of that number."""
        if number not in self._walks:
            self._walks[number] = self._read(number)
        return self._walks[number]

    def _read(self, number: int) -> Walk:
        root, start, stop, finished = self.starts[number]
        walk = Walk(number, root, start, stop, finished)
        applied, seen = self.kind(RuleApplied), self.kind(ValueSeen)
        targets = {int(applied["node"][r]): _ints(applied["targets"][r]) for r in applied.between(start, stop)}
        reached, stack = {root}, [root]
        while stack:  # and not simply all: another walk may have run at the same time, over other nodes
            source = stack.pop()
            for i, target in enumerate(targets.get(source, ())):
                if target >= 0:
                    walk.consumers.setdefault(target, []).append((source, i))
                    if target not in reached:
                        reached.add(target)
                        stack.append(target)
        for row in seen.between(start, stop):
            node, role = int(seen["node"][row]), seen["role"][row]
            if node not in reached:
                continue
            if role == "contribution":
                walk.contributions[int(seen["source"][row]), int(seen["argument"][row])] = row
            elif role == "gradient":
                if node in walk.gradients:
                    walk.twice.add(node)
                walk.gradients[node] = row
        return walk

    def walks_of(self, node: int) -> tuple[list[int], bool]:
        """The walks whose sum is the gradient of a leaf (BY_HAND: set by hand), and whether more was there before.

        For a node that was computed: the latest walk over it. No walk: no gradient.
        """
        if self.kind(OpRecorded).rows(node):
            return self._latest(node, "gradient"), False
        stored = self.kind(GradientStored)
        since = self.cleared(node)
        rows = stored.rows(node, since + 1)
        if not rows:  # a functional gradient is handed out and stored nowhere
            return self._latest(node, "contribution") if since < 0 else [], False
        fresh = [k for k, row in enumerate(rows) if not stored["accumulated"][row]]
        first = fresh[-1] if fresh else 0
        return [self._walk_at(node, int(stored.position[row])) for row in rows[first:]], not fresh

    def cleared(self, node: int) -> int:
        """Where the gradient of a leaf was last cleared, -1 if never."""
        cleared = self.kind(GradientCleared)
        return max((int(cleared.position[row]) for row in cleared.rows(node)), default=-1)

    def _latest(self, node: int, role: str) -> list[int]:
        """The latest walk in which a gradient of that node is complete."""
        seen = self.kind(ValueSeen)
        for row in reversed(seen.rows(node)):
            if seen["role"][row] == role:
                for walk in self._walks_at(int(seen.position[row])):
                    if node in walk.gradients if role == "gradient" else walk.finished and node in walk.consumers:
                        return [walk.number]
        return []

    def _walks_at(self, position: int) -> list[Walk]:
        """The walks that ran then: one, unless several threads record."""
        spans = np.asarray([(start, stop) for _, start, stop, _ in self.starts], np.int64).reshape(-1, 2)
        found = np.flatnonzero((spans[:, 0] < position) & (position <= spans[:, 1]))
        return [self.walk(number) for number in found.tolist()]

    def _walk_at(self, node: int, position: int) -> int:
        """The walk that stored the gradient of a leaf then."""
        running = (w.number for w in self._walks_at(position) if w.root == node or node in w.consumers)
        return next(running, BY_HAND)

    def gradient(self, walk: Walk, node: int, shape: tuple[int, ...]) -> Any:
        """What the whole gradient of a node was in a walk.

        Raises:
            NotKept: it is not known.
        """
        if node in walk.twice:
            raise NotKept("two backward walks ran over it at the same time")
        if node in walk.gradients:
            return self._seen(walk.gradients[node], "its gradient", shape)
        edges = walk.consumers.get(node)
        if not edges:
            raise NotKept("its gradient was not recorded")
        return np.sum([self.contribution(walk, edge, shape) for edge in edges], axis=0)

    def contribution(self, walk: Walk, edge: tuple[int, int], shape: tuple[int, ...]) -> Any:
        """What came back along an edge.

        Raises:
            NotKept: it is not known.
        """
        if edge not in walk.contributions:
            raise NotKept("what it sent was not recorded")
        return self._seen(walk.contributions[edge], "what it sent", shape)

    def by_hand(self, node: int, shape: tuple[int, ...]) -> Any:
        """The gradient that was last set by hand."""
        stored, seen = self.kind(GradientStored), self.kind(ValueSeen)
        for row in reversed(stored.rows(node)):
            position = int(stored.position[row])
            if self._walk_at(node, position) == BY_HAND:
                before = [r for r in seen.rows(node, 0, position) if seen["role"][r] == "gradient"]
                if before:
                    return self._seen(before[-1], "the gradient set by hand", shape)
        raise NotKept("what was set by hand was not recorded")

    # --- what rules read ---

    def rule(self, node: int) -> Rule:
        """The record of an operation with what its rules had read.

        Raises:
            NotKept: some of it is not known.
        """
        found = self._rules.get(node)
        if found is None:
            try:
                found = self._rule(node)
            except NotKept as why:
                found = why
            self._rules[node] = found
        if isinstance(found, NotKept):
            raise found
        return found

    def _rule(self, node: int) -> Rule:
        operation = self.operation(node)
        if operation is None:
            raise NotKept("it was recorded before this recording began")
        record = PRIMITIVES.get(operation.op)
        if record is None:
            raise NotKept(f"this lab has no op of that name: {operation.op[:40]}")
        if record.collective:
            raise NotKept("it met other members, whose part is not in this recording")
        params = self._params(operation, record)
        wanted = [record.rule(i) for i, parent in enumerate(operation.parents) if parent >= 0]
        rules = [rule for rule in wanted if rule is not None]
        words = [
            {rule.reads[0 if record.variadic else i] for rule in rules if rule.reads}
            for i in range(len(operation.parents))
        ]
        needs_out = any(rule.reads_out for rule in rules) or record.tangent is not None
        out = self._value(operation, before=None) if needs_out else None
        operands = [self._operand(operation, i, word, record) for i, word in enumerate(words)]
        shapes = tuple(() if a is None else tuple(a.shape) for a in operands)
        self._check_shape(operation, record, operands, params)
        return Rule(record, out, tuple(operands), params, shapes)

    def _params(self, operation: Operation, record: Op) -> dict[str, Any]:
        kept = self.kind(ParametersKept)
        rows = kept.rows(operation.node)
        if not rows:
            if record.defaults or record.fixed:
                raise NotKept("its parameters are not in this recording: it is of an older lab, or values were not kept")
            return {}
        arrays = self._kept(operation)
        n = len(operation.parents)

        def array(k: int) -> Any:
            if n + k not in arrays:
                raise ValueError("an array among its parameters is not in this recording")
            value, shape, _ = arrays[n + k]
            return _whole(value, shape, "an array among its parameters", None)

        try:
            params = unpacked(kept["parameters"][rows[-1]], array)
        except (ValueError, RecursionError) as why:  # what json says of a text that was cut is a ValueError
            raise NotKept(f"its parameters cannot be read: {why}") from None
        if params.keys() != {*record.defaults, *record.fixed}:
            raise NotKept("it has other parameters in this lab than in the recording")
        return params

    def _kept(self, operation: Operation) -> dict[int, tuple[Any, tuple[int, ...], str]]:
        kept = self.kind(OperandKept)
        return {
            int(kept["argument"][row]): (kept["value"][row], _ints(kept["shape"][row]), kept["dtype"][row])
            for row in kept.rows(operation.node)
        }

    def _operand(self, operation: Operation, i: int, words: set[str], record: Op) -> Any:
        """An operand as the rules read it: an array, a Spec, or None for one that none reads."""
        parent, argument = operation.parents[i], record.arguments[0 if record.variadic else i]
        if parent >= 0:
            source = self.operation(parent)
            if source is None:
                raise NotKept(f"its operand {argument} was computed before this recording began")
            if "value" in words or record.tangent is not None:
                return self._value(source, before=operation.position)
            return Spec(source.shape, _dtype(source.dtype))
        if not words - {""}:
            return None
        kept = self._kept(operation)
        if i not in kept:
            raise NotKept(f"the constant {argument} is not in this recording: it is of an older lab")
        value, shape, dtype = kept[i]
        if "value" not in words:
            return Spec(shape, _dtype(dtype))
        return _typed(_whole(value, shape, f"the constant {argument}", None), dtype)

    def _value(self, of: Operation, before: int | None) -> Any:
        """What a node held; of a leaf, which can be written, what it held before a position."""
        seen = self.kind(ValueSeen)
        rows = [r for r in seen.rows(of.node, 0, None if of.op else before) if seen["role"][r] == "value"]
        if not rows:
            raise NotKept("the value of an operand was not recorded" if before else "its value was not recorded")
        return _typed(self._seen(rows[-1], f"the value of {of.op or of.name or 'a leaf'}", of.shape), of.dtype)

    def _check_shape(self, operation: Operation, record: Op, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Parameters from a file must give what was recorded, before anything is computed with them."""
        if any(a is None for a in operands) or not params:
            return
        try:
            spec = record.shape(*(Spec(tuple(a.shape), a.dtype) for a in operands), **params)
        except (LabError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as why:
            raise NotKept(f"its parameters do not fit its operands: {why}") from None
        if tuple(spec.shape) != operation.shape:
            raise NotKept(f"its parameters give shape {tuple(spec.shape)}, recorded was {operation.shape}")


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


def _dtype(name: str) -> Any:
    try:
        return np.dtype(name)
    except TypeError:
        raise NotKept(f"the dtype {name[:40]!r} is not known here") from None


def _typed(array: Any, dtype: str) -> Any:
    """In its own dtype: a recording keeps bfloat16 as float32."""
    wanted = _dtype(dtype)
    return array if array.dtype == wanted else array.astype(wanted)


def _whole(array: Any, shape: tuple[int, ...], what: str, wanted: tuple[int, ...] | None) -> Any:
    """The array itself, if it is there and is what it should be."""
    size = int(np.prod(shape, dtype=np.float64))
    if array is None and size > LARGEST_COPY:
        raise NotKept(f"{what} has {size:,} entries, and of up to {LARGEST_COPY:,} a copy is kept")
    if array is None:
        raise NotKept(f"{what} found no room in the recording, or was not asked for")
    if tuple(array.shape) != shape or (wanted is not None and shape != wanted):
        raise NotKept(f"{what} has shape {tuple(array.shape)} inside an enclosing vmap")
    return array
