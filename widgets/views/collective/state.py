"""One collective as it was recorded: who entered, which chunks moved, who left; and whose parts each rank holds then.

The events of ranks come in an accidental order (a slow rank, a batch of another process), so what a chunk is the sum of
is worked out step by step: what a rank sends in a step is what it held when that step began.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from lab.events import ChunkMoved, CollectiveFinished, CollectiveStarted, Event, RankFinished, RankLost
from lab.events.event import Array
from lab.parallel import elements
from lab.parallel.paper.operations import AT_LEAST_ONCE

MOST_HOPS = 20_000
"""Of one collective; a ring of 64 ranks has 8,064. Later ones are counted, not kept."""

Counts = tuple[int, ...]
"""How often each rank's part is in a sum."""


@dataclass(frozen=True, slots=True)
class Collective:
    """The state of a RingView.

    Attributes:
        began: how each rank entered, by rank.
        hops: every chunk that moved, in order of arrival.
        finished: ranks that left with the result.
        lost: ranks that died, with the reason.
        failed: ranks whose program raised, with the reason.
        stopped: ranks that were ended because of another.
        n_left_out: hops beyond MOST_HOPS.
        left_ns: when the latest of those left, 0 before.
    """

    began: Mapping[int, CollectiveStarted] = field(default_factory=lambda: MappingProxyType({}))
    hops: tuple[ChunkMoved, ...] = ()
    finished: frozenset[int] = frozenset()
    lost: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    failed: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    stopped: frozenset[int] = frozenset()
    n_left_out: int = 0
    left_ns: int = 0

    @property
    def about(self) -> CollectiveStarted | None:
        """What was called: any rank's word for it."""
        return next(iter(self.began.values()), None)

    @property
    def number(self) -> int:
        """Of the call, -1 before the first."""
        return -1 if self.about is None else self.about.collective

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps in which something moved, ascending."""
        return tuple(sorted({hop.step for hop in self.hops}))

    @property
    def broken(self) -> tuple[int, ...]:
        """Ranks that were lost, raised or were ended before they left; if there are any, also who raised after that."""
        short = (self.lost.keys() | self.failed.keys() | self.stopped) - self.finished
        return tuple(sorted(short | self.failed.keys())) if short else ()

    @property
    def elapsed_ms(self) -> float:
        """From the first rank that entered to the last chunk that arrived, or the last rank that left."""
        first = min((event.time_ns for event in self.began.values()), default=0)
        return max(0, self.left_ns - first, *(hop.time_ns - first for hop in self.hops)) / 1e6

    @property
    def is_over(self) -> bool:
        """Whether all ranks left, or came to an end without."""
        about = self.about
        return about is not None and len(self.finished.union(self.broken)) >= about.world_size

    def folded(self, event: Event, wanted: int | None) -> Collective:
        """With one more event.

        Args:
            wanted: number of the call to follow; None follows the newest.
        """
        if isinstance(event, CollectiveStarted):
            return self._entered(event) if wanted in (None, event.collective) and not event.group else self
        if isinstance(event, RankLost):
            return replace(self, lost=MappingProxyType({**self.lost, event.lost_rank: event.reason}))
        if isinstance(event, RankFinished):
            return self._rank_ended(event)
        if isinstance(event, ChunkMoved) and event.collective == self.number:
            if len(self.hops) >= MOST_HOPS:
                return replace(self, n_left_out=self.n_left_out + 1)
            return replace(self, hops=(*self.hops, event))
        if isinstance(event, CollectiveFinished) and event.collective == self.number:
            return replace(self, finished=self.finished | {event.rank}, left_ns=max(self.left_ns, event.time_ns))
        return self

    def _rank_ended(self, event: RankFinished) -> Collective:
        if event.state == "failed":
            why = " ".join(event.reason.split()).removeprefix("lab.errors.")
            return replace(self, failed=MappingProxyType({**self.failed, event.rank: why}))
        return replace(self, stopped=self.stopped | {event.rank}) if event.state == "stopped" else self

    def _entered(self, event: CollectiveStarted) -> Collective:
        if event.rank in self.began or event.collective > self.number:
            return Collective(MappingProxyType({event.rank: event}))  # another call, or the same number of a new launch
        if event.collective < self.number:
            return self
        return replace(self, began=MappingProxyType({**self.began, event.rank: event}))

    def until(self, n_steps: int, *, ended: bool) -> Collective:
        """As it was after the first steps.

        Args:
            n_steps: how many of `steps`.
            ended: whether ranks have left by then.
        """
        last = self.steps[n_steps - 1] if n_steps else -1
        hops = tuple(hop for hop in self.hops if hop.step <= last) if n_steps < len(self.steps) else self.hops
        if ended:
            return replace(self, hops=hops)
        gone: Mapping[int, str] = MappingProxyType({})
        return replace(self, hops=hops, finished=frozenset(), lost=gone, failed=gone, stopped=frozenset(), left_ns=0)


def links_of(hops: Iterable[ChunkMoved]) -> dict[tuple[int, int], int]:
    """Bytes from each rank to each other, where any went.

    Example:
        >>> links_of([ChunkMoved(0, step, src=0, dst=1, start=0, stop=2, reduces=True, n_bytes=8) for step in (0, 1)])
        {(0, 1): 16}
    """
    found: dict[tuple[int, int], int] = {}
    for hop in hops:
        found[hop.src, hop.dst] = found.get((hop.src, hop.dst), 0) + hop.n_bytes
    return found


class Piece(NamedTuple):
    """A stretch of chunks that always move together: one cell of the picture."""

    start: int
    stop: int
    name: str


def pieces_of(cuts: set[int], n_chunks: int) -> tuple[Piece, ...]:
    """The cells of a buffer of `n_chunks`, cut at `cuts`; a buffer that always moves as a whole is one cell, "x".

    Example:
        >>> [piece.name for piece in pieces_of({1, 4}, 6)], pieces_of(set(), 4)
        (['c0', 'c1–c3', 'c4–c5'], (Piece(start=0, stop=4, name='x'),))
    """
    bounds = sorted({0, n_chunks} | {cut for cut in cuts if 0 < cut < n_chunks})
    if len(bounds) < 3:
        return (Piece(0, n_chunks, "x"),)
    return tuple(Piece(a, b, f"c{a}" if b == a + 1 else f"c{a}–c{b - 1}") for a, b in pairwise(bounds))


class Cell(NamedTuple):
    """What a rank holds in a piece."""

    counts: Counts
    value: Array | None
    """The numbers, where they were recorded."""
    came: bool = False
    """In the last step."""


class Hop(NamedTuple):
    """A move of the last step, with what was sent."""

    event: ChunkMoved
    pieces: tuple[int, ...]
    counts: Counts
    """Of the first piece that was sent."""
    payload: Array | None


class Holdings(NamedTuple):
    """Who holds what after the steps so far."""

    cells: Mapping[int, tuple[Cell, ...]]
    """By rank, one cell for each piece."""
    hops: tuple[Hop, ...]
    """Of the last step."""
    sent: Mapping[int, int]
    """Bytes by rank."""


def holdings(state: Collective, pieces: tuple[Piece, ...]) -> Holdings:
    """Follow every hop, step by step.

    Example:
        >>> events = [CollectiveStarted(0, "broadcast", "flat", 8, 2, 2, np.array([1.0, 2.0])) for rank in range(2)]
        >>> for rank, event in enumerate(events): event.rank = rank
        >>> moved = ChunkMoved(0, 0, src=0, dst=1, start=0, stop=2, reduces=True, n_bytes=8)
        >>> state = Collective({0: events[0], 1: events[1]}, (moved,))
        >>> holdings(state, pieces_of(set(), 2)).cells[1][0].counts
        (1, 1)
    """
    world = state.about.world_size if state.about else 0
    held = {rank: _own(state.began.get(rank), rank, world, pieces) for rank in range(world)}
    sent = dict.fromkeys(range(world), 0)
    # Of a barrier it only matters who was heard of, and one may be so twice.
    most = 1 if state.about is not None and state.about.operation in AT_LEAST_ONCE else MOST_HOPS
    last: tuple[Hop, ...] = ()
    for hops in _by_step(state.hops):
        before = {rank: tuple(cells) for rank, cells in held.items()}
        last = tuple(_moved(hop, before, held, pieces, most) for hop in hops if {hop.src, hop.dst} <= held.keys())
        for hop in hops:
            sent[hop.src] = sent.get(hop.src, 0) + hop.n_bytes
    came = {(hop.event.dst, k) for hop in last for k in hop.pieces}
    cells = {
        rank: tuple(cell._replace(came=(rank, k) in came) for k, cell in enumerate(own)) for rank, own in held.items()
    }
    return Holdings(cells, last, sent)


def values_of(state: Collective, pieces: tuple[Piece, ...]) -> Iterator[Array]:
    """The numbers of every cell at every moment, where they were recorded."""
    world = state.about.world_size if state.about else 0
    held = {rank: _own(state.began.get(rank), rank, world, pieces) for rank in range(world)}
    yield from (cell.value for cells in held.values() for cell in cells if cell.value is not None)
    for hops in _by_step(state.hops):
        before = {rank: tuple(cells) for rank, cells in held.items()}
        for hop in hops:
            if {hop.src, hop.dst} <= held.keys():
                moved = _moved(hop, before, held, pieces)
                came = (held[hop.dst][k].value for k in moved.pieces)
                yield from (value for value in came if value is not None)


def _by_step(hops: tuple[ChunkMoved, ...]) -> Iterator[list[ChunkMoved]]:
    for _, group in groupby(sorted(hops, key=lambda hop: hop.step), key=lambda hop: hop.step):
        yield list(group)


def _own(event: CollectiveStarted | None, rank: int, world: int, pieces: tuple[Piece, ...]) -> list[Cell]:
    counts = tuple(int(k == rank) for k in range(world))
    value = event.value if event is not None else None
    n_chunks = pieces[-1].stop
    return [
        Cell(counts, None if value is None else value.reshape(-1)[elements(p.start, p.stop, n_chunks, value.size)])
        for p in pieces
    ]


def _moved(
    hop: ChunkMoved, before: Mapping[int, tuple[Cell, ...]], held: dict[int, list[Cell]], pieces: tuple[Piece, ...],
    most: int = MOST_HOPS,
) -> Hop:
    """Apply a hop to `held`; senders give what they held `before` the step."""
    inside = tuple(k for k, piece in enumerate(pieces) if hop.start <= piece.start and piece.stop <= hop.stop)
    theirs, mine = ([cells[k] for k in inside] for cells in (before[hop.src], held[hop.dst]))
    values = _values(hop, mine)
    for k, there, here, value in zip(inside, theirs, mine, values, strict=True):
        added = tuple(min(a + b, most) for a, b in zip(here.counts, there.counts, strict=True))
        held[hop.dst][k] = Cell(added if hop.reduces else there.counts, value)
    return Hop(hop, inside, theirs[0].counts if theirs else (), _payload(hop, theirs))


def _values(hop: ChunkMoved, mine: list[Cell]) -> list[Array | None]:
    """The numbers of each piece after a hop, cut from the copy of what the receiver holds in all its chunks."""
    if hop.value is None:
        return [None] * len(mine)
    value = hop.value.reshape(-1)
    sizes = [-1 if cell.value is None else cell.value.size for cell in mine]
    if len(mine) == 1:
        return [value]
    if -1 in sizes or sum(sizes) != value.size:
        return [None] * len(mine)
    return list(np.split(value, np.cumsum(sizes)[:-1]))


def _payload(hop: ChunkMoved, theirs: list[Cell]) -> Array | None:
    """The numbers that were sent."""
    if not hop.reduces and hop.value is not None:
        return hop.value.reshape(-1)  # what was stored is what came
    known = [cell.value for cell in theirs if cell.value is not None]
    return np.concatenate(known) if known and len(known) == len(theirs) else None
