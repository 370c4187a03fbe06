"""What a recording says of the tape up to a point: operations, values, gradients and what happened last.

A `Tape` is a value. Folding one event makes a new one that shares what did not change; folding a stretch copies once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from lab.events import (
    Array,
    BackwardFinished,
    BackwardStarted,
    Event,
    GradientCleared,
    GradientStored,
    LeafUsed,
    OpRecorded,
    RuleApplied,
    ValueSeen,
    ValueWritten,
)
from widgets.fold import Stretch
from widgets.tape.hooks import changed_by_hook

LISTENS: tuple[type[Event], ...] = (
    LeafUsed, OpRecorded, ValueSeen, BackwardStarted, RuleApplied, GradientStored, BackwardFinished,
    ValueWritten, GradientCleared,
)  # fmt: skip

FEW = 48
"""A stretch of so many events is folded one by one: to ask nine kinds for their columns costs more."""
FORGOTTEN = -2
"""In `Tape.targets`: the edge got something, but the gradient that it became part of was cleared since."""


class Seen(NamedTuple):
    """What an array looked like: statistics over its finite entries, and the entries where they were kept."""

    shape: tuple[int, ...]
    minimum: float
    maximum: float
    mean: float
    norm: float
    n_nonfinite: int
    value: Array | None

    @property
    def signed(self) -> bool:
        """Whether its entries do not differ in sign; an array without finite entries has none."""
        return self.minimum >= 0 or self.maximum <= 0

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


def seen_of(event: ValueSeen) -> Seen:
    """What an event tells of an array."""
    norm = event.norm if all(event.shape) else 0.0  # of no entries; earlier recordings say nan
    return Seen(event.shape, event.minimum, event.maximum, event.mean, norm, event.n_nonfinite, event.value)


class Entry(NamedTuple):
    """One node of the tape. `op` is "" for a leaf; the other fields are those of LeafUsed and OpRecorded."""

    node: int
    op: str
    name: str
    parents: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    constants: tuple[str, ...] = ()
    module: str = ""
    file: str = ""
    line: int = 0
    value: Seen | None = None
    gradient: Seen | None = None
    walk: int = -1
    """Number of the backward walk that the gradient is of (0: it began before the recording); -1: none yet."""
    accumulated: bool = False
    """The gradient was added to one that the leaf already had."""
    n_summed: int = 0
    """Of a leaf: of how many backward walks what it has stored is the sum; 0 where that is not known."""
    before: Array | None = None
    """What a leaf had stored before this walk, where the values are known."""
    operands: tuple[Seen | None, ...] = ()
    """What the operands looked like when the operation ran: a leaf can be written later."""
    cleared: bool = False
    """It had a gradient that was cleared."""
    params: str = ""
    """Parameters of the operation as one writes them: "axis=0", "[1:]"."""
    came: Seen | None = None
    """The sum of what came back, where a hook made another gradient of it."""
    walks: int = 0
    """Backward walks that had begun when it was recorded."""
    within: int = -1
    """Root of the backward walk that ran it, as under `create_graph`; -1: none did."""

    @property
    def stored(self) -> Array | None:
        """What a leaf has in `.grad` now, where values are known: the latest gradient, and what it was added to."""
        latest = None if self.gradient is None else self.gradient.value
        if latest is None or not self.accumulated:
            return latest
        return None if self.before is None else np.add(self.before, latest)

    @property
    def has_gradient(self) -> bool:
        """Whether its gradient is complete; 0 is a gradient too."""
        return self.walk >= 0


class Now(NamedTuple):
    """What happened last: "op", "start", "rule", "stored", "finish", "written", "cleared" at a node; "" at first."""

    kind: str = ""
    node: int = -1
    error: str = ""
    """Of a finish: what a rule or a hook raised, so that no gradient was stored."""


@dataclass(frozen=True, slots=True)
class Tape:
    """The state of a GraphView.

    Attributes:
        entries: by node, in order of creation. Never changed after the Tape was made, like all that follows.
        contributions: what the rule of a node sent to its operand number i, by (node, i), of the latest walk there.
        targets: for each node whose rules ran in the latest walk there, which edges got something: the node at the
            other end, -1 where no gradient was wanted, FORGOTTEN where it was cleared since.
        now: what happened last.
        n_walks: backward walks begun.
        root: node at which the latest walk began, -1 before.
        n_left_out: operations beyond the limit, counted and not kept.
        largest: of all gradients with a sign that were ever seen, so that a colour means the same at every stop.
        users: the operations that have a node as an operand, each once, in order.
        foreign: something came back from a node that is not known.
        walking: the backward walks that are under way, as (rank, root), the innermost last.
        bad: the first that was seen of an array with nan or infinity in it.
        touched: the nodes that differ from the Tape whose `mark` is `since`, so that a picture of that one can be
            brought up to date at the price of what changed.
    """

    entries: Mapping[int, Entry] = field(default_factory=dict)
    contributions: Mapping[tuple[int, int], Seen] = field(default_factory=dict)
    targets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    now: Now = field(default_factory=Now)
    n_walks: int = 0
    root: int = -1
    n_left_out: int = 0
    largest: float = 0.0
    users: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    foreign: bool = False
    bad: ValueSeen | None = None
    walking: tuple[tuple[int, int], ...] = ()
    touched: frozenset[int] = field(default=frozenset(), compare=False)
    since: object = field(default=None, compare=False)
    mark: object = field(default_factory=object, compare=False)

    @property
    def bad_node(self) -> int:
        """The node at which nan or infinity began: the operation that made it, or the leaf that brought it; or -1."""
        if self.bad is None:
            return -1
        return self.bad.source if self.bad.role == "contribution" else self.bad.node

    def folded(self, event: Event, limit: int) -> Tape:
        """This tape after one more event."""
        pen = _Pen(self, limit)
        pen.write(event)
        return pen.tape()

    def folded_many(self, stretch: Stretch, limit: int) -> Tape:
        """This tape after a stretch of events: what cannot matter is left out by columns."""
        pen = _Pen(self, limit)
        if stretch.stop - stretch.start <= FEW:
            for event in stretch.events[stretch.start : stretch.stop]:
                pen.write(event)
            return pen.tape()
        grows = np.sort(np.concatenate([stretch.positions(LeafUsed), stretch.positions(OpRecorded)]))
        room = max(0, limit - len(pen.entries))
        kept, cut = grows[:room], grows[room:]
        pen.n_left_out += int(np.isin(cut, stretch.positions(OpRecorded)).sum())
        known = list(pen.entries)
        for kind in (LeafUsed, OpRecorded):
            known += stretch.columns(kind)["node"][np.isin(stretch.positions(kind), kept)].tolist()
        parts = [kept, stretch.positions(BackwardStarted), stretch.positions(BackwardFinished)]
        for other in (ValueSeen, RuleApplied, GradientStored, ValueWritten, GradientCleared):
            positions = stretch.positions(other)
            if len(positions):
                parts.append(positions[np.isin(stretch.columns(other)["node"], known)])
        for event in stretch.at(np.sort(np.concatenate(parts))):
            pen.write(event)
        return pen.tape()


def newest_first(entries: Mapping[int, Entry]) -> Iterator[int]:
    """The nodes from the newest on: asking for a few costs no more than these."""
    return reversed(cast("dict[int, Entry]", entries))


class _Pen:
    """A Tape being written: what is written to is copied first, owned by one fold and handed over at its end."""

    def __init__(self, tape: Tape, limit: int) -> None:
        self.limit, self.old = limit, tape
        self.entries, self.contributions = dict(tape.entries), tape.contributions
        self.targets, self.users, self.now = tape.targets, tape.users, tape.now
        self.n_walks, self.root, self.n_left_out, self.largest = tape.n_walks, tape.root, tape.n_left_out, tape.largest
        self.foreign, self.bad, self.walking = tape.foreign, tape.bad, tape.walking
        self.touched: set[int] = set()

    def tape(self) -> Tape:
        return Tape(
            self.entries, self.contributions, self.targets, self.now,
            self.n_walks, self.root, self.n_left_out, self.largest, self.users, self.foreign, self.bad,
            self.walking,
            frozenset(self.touched), self.old.mark,
        )  # fmt: skip

    def put(self, node: int, entry: Entry) -> None:
        self.entries[node] = entry
        self.touched.add(node)

    def sent(self) -> dict[tuple[int, int], Seen]:
        """The contributions, to write to."""
        if self.contributions is self.old.contributions:
            self.contributions = dict(self.contributions)
        return self.contributions  # type: ignore[return-value]

    def aims(self) -> dict[int, tuple[int, ...]]:
        """The targets, to write to."""
        if self.targets is self.old.targets:
            self.targets = dict(self.targets)
        return self.targets  # type: ignore[return-value]

    def uses(self) -> dict[int, tuple[int, ...]]:
        """The users, to write to."""
        if self.users is self.old.users:
            self.users = dict(self.users)
        return self.users  # type: ignore[return-value]

    def write(self, event: Event) -> None:
        match event:
            case LeafUsed():
                self._grow(Entry(event.node, "", event.name, (), event.shape, event.dtype))
            case OpRecorded():
                within = [root for rank, root in self.walking if rank == event.rank][-1:]
                self._grow(_entry(event)._replace(within=within[0] if within else -1))
            case ValueSeen():
                self._see(event)
            case BackwardStarted():
                self._start(event.root)
                self.walking = (*self.walking, (event.rank, event.root))
            case RuleApplied() if event.node in self.entries:
                self.aims()[event.node] = event.targets
                self.touched.add(event.node)
                self.now = Now("rule", event.node)
            case GradientStored() if event.node in self.entries:
                entry = self.entries[event.node]
                before = entry.before if event.accumulated else None
                n_summed = (entry.n_summed + 1 if entry.n_summed else 0) if event.accumulated else 1
                stored = entry._replace(accumulated=event.accumulated, before=before, n_summed=n_summed)
                self.put(event.node, stored._replace(walk=self.n_walks))
                self.now = Now("stored", event.node)
            case ValueWritten() if event.node in self.entries:
                self.put(event.node, self.entries[event.node]._replace(value=None))  # its ValueSeen may follow
                self.now = Now("written", event.node)
            case GradientCleared() if event.node in self.entries:
                self._clear(event.node)
            case BackwardFinished():
                self.walking = tuple(walk for walk in self.walking if walk != (event.rank, event.root))
                self.now = Now("finish", event.root, event.error)
            case _:
                pass  # of a node beyond the limit

    def _grow(self, entry: Entry) -> None:
        if len(self.entries) >= self.limit:
            self.n_left_out += bool(entry.op)
            return
        if entry.op:
            operands = (self.entries.get(p) for p in entry.parents)
            known = tuple(None if e is None else e.value for e in operands)
            entry = entry._replace(operands=known, walks=self.n_walks)
            self.now = Now("op", entry.node)
            users = self.uses()
            for p in set(entry.parents):
                users[p] = (*users.get(p, ()), entry.node)
        self.put(entry.node, entry)

    def _see(self, event: ValueSeen) -> None:
        entry = self.entries.get(event.node)
        if entry is None:
            return
        seen = seen_of(event)
        if seen.n_nonfinite and self.bad is None:
            self.bad = event
        if event.role == "value":
            self.put(event.node, entry._replace(value=seen))
        elif event.role == "gradient":
            before = entry.stored if entry.walk != self.n_walks else entry.before
            came = self._hooked(entry, seen)
            self.put(event.node, entry._replace(gradient=seen, walk=self.n_walks, before=before, came=came))
            if seen.signed:
                self.largest = max(self.largest, abs(seen.mean))
        else:
            self.sent()[event.source, event.argument] = seen
            self.touched.add(event.source)
            self.foreign = self.foreign or event.source not in self.entries

    def _hooked(self, entry: Entry, gradient: Seen) -> Seen | None:
        if self.foreign:
            return None  # part of the graph is not known: what came back from there is not either
        came = [
            self.contributions.get((source, i))
            for source in self.users.get(entry.node, ())
            if self.entries[source].walk == self.n_walks
            for i, target in enumerate(self.targets.get(source, ()))
            if target == entry.node
        ]
        return changed_by_hook(gradient, came, entry.dtype)

    def _clear(self, node: int) -> None:
        """No gradient any more, and what came back for it is part of no gradient."""
        entry = self.entries[node]
        gone = entry._replace(gradient=None, walk=-1, accumulated=False, before=None, came=None, n_summed=0)
        self.put(node, gone._replace(cleared=entry.cleared or entry.has_gradient))
        self.now = Now("cleared", node)
        for source in self.users.get(node, ()):
            targets = self.targets.get(source, ())
            if node in targets:
                self.aims()[source] = tuple(FORGOTTEN if t == node else t for t in targets)
                self.touched.add(source)
                for i in (i for i, t in enumerate(targets) if t == node):
                    self.sent().pop((source, i), None)

    def _start(self, root: int) -> None:
        """A new walk: what an earlier one left on the same nodes is old; leaves keep what they have."""
        self.n_walks, self.root, self.now = self.n_walks + 1, root, Now("start", root)
        stack, seen = [root], {root}
        while stack:
            node = stack.pop()
            entry = self.entries.get(node)
            if entry is None or not entry.op:
                continue
            if entry.gradient is not None or node in self.targets:
                self.put(node, entry._replace(gradient=None, walk=-1, came=None))
                self.aims().pop(node, None)
                for i in range(len(entry.parents)):
                    self.sent().pop((node, i), None)
            fresh = [p for p in entry.parents if p not in seen]
            seen.update(fresh)
            stack.extend(fresh)


def _entry(event: OpRecorded) -> Entry:
    return Entry(
        event.node, event.op, "", event.parents, event.shape, event.dtype,
        event.constants, event.module, event.file, event.line, params=getattr(event, "params", ""),
    )  # fmt: skip
