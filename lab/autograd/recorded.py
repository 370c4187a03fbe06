"""A recorded backward walk, read back: what stood on the tape, and what came back along each edge.

Everything that is asked for and not there is answered by a `NotKept` with the reason in words: never by a guess.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from lab.autograd.observe import LARGEST_COPY
from lab.events import (
    BackwardFinished,
    BackwardStarted,
    Event,
    GradientCleared,
    GradientStored,
    LeafUsed,
    OpRecorded,
    RuleApplied,
    ValueSeen,
)

Rows = np.ndarray[Any, np.dtype[np.int64]]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
BY_HAND = -1
"""Number of the walk of a gradient that was set by hand."""


class Events(Protocol):
    """What is needed of a Recording."""

    def __len__(self) -> int: ...
    def columns(self, kind: type[Event], start: int = 0, stop: int | None = None) -> Mapping[str, Any]:
        """The fields of all events of a kind at positions start <= p < stop, one array a field."""


class NotKept(Exception):  # noqa: N818 - no error of anybody: an answer, that it is not known, and why
    """Something that the recording does not hold; its text says why."""


def remembering(answer: Callable[[K], V]) -> Callable[[K], V]:
    """The same function, asked once for each key; that something is not known is remembered too."""
    known: dict[K, V | NotKept] = {}

    def ask(key: K) -> V:
        if key not in known:
            try:
                known[key] = answer(key)
            except NotKept as why:
                known[key] = why
        found = known[key]
        if isinstance(found, NotKept):
            raise found
        return found

    return ask


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
        self._operations: dict[int, Operation | None] = {}
        self._walks: dict[int, Walk] = {}

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
        if node not in self._operations:
            self._operations[node] = self._operation(node)
        return self._operations[node]

    def _operation(self, node: int) -> Operation | None:
        ops, leaves = self.kind(OpRecorded), self.kind(LeafUsed)
        for row in ops.rows(node)[-1:]:
            texts = (ops[name][row] for name in ("file", "line", "module"))
            file, line, module = texts
            return Operation(
                node, ops["op"][row], "", ints(ops["parents"][row]), ints(ops["shape"][row]), ops["dtype"][row],
                int(ops.position[row]), file, int(line), module,
            )  # fmt: skip
        for row in leaves.rows(node)[-1:]:
            name, shape, dtype = (leaves[word][row] for word in ("name", "shape", "dtype"))
            return Operation(node, "", name, (), ints(shape), dtype, int(leaves.position[row]))
        return None

    def named(self, name: str) -> list[int]:
        """The leaves of that name, each once."""
        leaves = self.kind(LeafUsed)
        names, nodes = np.asarray(leaves["name"]), np.asarray(leaves["node"])
        return list(dict.fromkeys(nodes[leaves.picked][names[leaves.picked] == name].tolist()))

    def names(self) -> list[str]:
        """The names of all leaves that have one."""
        return [name for name in dict.fromkeys(np.asarray(self.kind(LeafUsed)["name"]).tolist()) if name]

    def seen(self, row: int, what: str, shape: tuple[int, ...] | None) -> Any:
        """The array of a ValueSeen."""
        values = self.kind(ValueSeen)
        return whole(values["value"][row], ints(values["shape"][row]), what, shape)

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
            whole = bool(ends) and not finished["error"][ends[0]]
            found.append((root, start, int(finished.position[ends[0]]) if ends else following, whole))
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
        targets = {int(applied["node"][r]): ints(applied["targets"][r]) for r in applied.between(start, stop)}
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
            return self.seen(walk.gradients[node], "its gradient", shape)
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
        return self.seen(walk.contributions[edge], "what it sent", shape)

    def by_hand(self, node: int, shape: tuple[int, ...]) -> Any:
        """The gradient that was last set by hand."""
        stored, seen = self.kind(GradientStored), self.kind(ValueSeen)
        for row in reversed(stored.rows(node)):
            position = int(stored.position[row])
            if self._walk_at(node, position) == BY_HAND:
                before = [r for r in seen.rows(node, 0, position) if seen["role"][r] == "gradient"]
                if before:
                    return self.seen(before[-1], "the gradient set by hand", shape)
        raise NotKept("what was set by hand was not recorded")


def ints(values: Any) -> tuple[int, ...]:
    """A row of whole numbers as a tuple."""
    return tuple(int(v) for v in values)


def dtype_of(name: str) -> Any:
    """A dtype by its name."""
    try:
        return np.dtype(name)
    except TypeError:
        raise NotKept(f"the dtype {name[:40]!r} is not known here") from None


def typed(array: Any, dtype: str) -> Any:
    """In its own dtype: a recording keeps bfloat16 as float32."""
    wanted = dtype_of(dtype)
    return array if array.dtype == wanted else array.astype(wanted)


def whole(array: Any, shape: tuple[int, ...], what: str, wanted: tuple[int, ...] | None) -> Any:
    """The array itself, if it is there and is what it should be."""
    size = int(np.prod(shape, dtype=np.float64))
    if array is None and size > LARGEST_COPY:
        raise NotKept(f"{what} has {size:,} entries, and of up to {LARGEST_COPY:,} a copy is kept")
    if array is None:
        raise NotKept(f"{what} found no room in the recording, or was not asked for")
    if tuple(array.shape) != shape or (wanted is not None and shape != wanted):
        raise NotKept(f"{what} has shape {tuple(array.shape)} inside an enclosing vmap")
    return array
