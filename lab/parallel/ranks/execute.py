"""Runs a compiled plan on one rank, through shared memory or over sockets: rows become pieces of the array.

A large array goes through in segments that fit the cache, each chunk cut the same way everywhere; so no bit of the
result depends on where the cuts are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from lab.events.event import Array
from lab.parallel.paper.lockstep import require_even
from lab.parallel.paper.plans import REDUCE, SEND, Plan, compile_plan
from lab.parallel.ranks.shared import execute_shared
from lab.parallel.transport.sockets import Expected, Links, octets_of
from lab.parallel.transport.wire import Call

SEGMENT = 1 << 21
"""Bytes of one chunk that go through at once: at 64 MiB on two idle cores 1.1 times as fast as 512 KiB."""
SIZES = 16
"""Sizes of arrays whose stretches a plan remembers."""
COMBINES: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
"""What a receive that reduces does with what is here and what comes; nan stays nan in all of them."""


class Hop(NamedTuple):
    """A row of a compiled plan; `start` and `stop` of what is received are those of its place here."""

    step: int
    peer: int
    start: int
    stop: int
    reduce: bool


class Wave(NamedTuple):
    """What moves at the same time; sends marked `copied` would be overwritten by a receive of the same step."""

    sends: tuple[tuple[Hop, bool], ...]
    receives: tuple[Hop, ...]
    is_last: bool
    """Whether the step ends with it: only then must all have gone. A peer that takes the pieces of its own step in
    another order reads ours later, and we read its."""


class Piece(NamedTuple):
    """A stretch of the array that goes to or comes from `peer` at once."""

    peer: int
    start: int
    stop: int
    flag: bool
    """Of what goes out: send a copy. Of what comes in: add it."""
    last: tuple[Hop, int] | None = None
    """The hop that is complete with this piece, and its bytes."""


Turn = tuple[tuple[Piece, ...], tuple[Piece, ...], bool]
"""What goes out and what comes in at the same time, and whether all must have gone before the next turn."""


class Waves:
    """The steps of one rank, and the stretches of arrays of the sizes that it met last.

    Attributes:
        adds: whether this rank adds anything, and does not only copy.
        moves: whether it stores chunks in other places than they had, so that all must have one size.
        steps: of the plan, one for each wave.
        n_events: what this rank tells of it.
    """

    def __init__(self, waves: tuple[Wave, ...], n_chunks: int, *, moves: bool = False) -> None:
        self.waves, self.n_chunks, self.moves = waves, n_chunks, moves
        self.adds = any(hop.reduce for wave in waves for hop in wave.receives)
        self.n_events = 2 + sum(len(wave.receives) for wave in waves)
        self.steps = tuple((wave.receives or [hop for hop, _ in wave.sends])[0].step for wave in waves)
        self._met: dict[tuple[int, int, int], tuple[Turn, ...]] = {}

    def turns(self, n_elements: int, itemsize: int) -> Iterable[Turn]:
        """The steps as stretches of a flat array; those of one segment are kept, the others cost little beside it."""
        size = (n_elements, itemsize, SEGMENT)
        if (known := self._met.get(size)) is not None:
            return known
        if self.moves:
            require_even(n_elements, self.n_chunks)
        longest = -(-n_elements // self.n_chunks) * itemsize
        if longest > SEGMENT:
            return self._turns(n_elements, itemsize, -(-longest // SEGMENT))
        if len(self._met) >= SIZES:
            self._met.pop(next(iter(self._met)), None)
        made = self._met[size] = tuple(self._turns(n_elements, itemsize, 1))
        return made

    def _turns(self, n_elements: int, itemsize: int, n_segments: int) -> Iterator[Turn]:
        bounds = [n_elements * chunk // self.n_chunks for chunk in range(self.n_chunks + 1)]

        def stretches(hop: Hop, segment: int) -> list[tuple[int, int]]:
            if n_segments == 1:
                return [(bounds[hop.start], bounds[hop.stop])]
            chunks = itertools.pairwise(bounds[hop.start : hop.stop + 1])
            return [(a + (b - a) * segment // n_segments, a + (b - a) * (segment + 1) // n_segments) for a, b in chunks]

        for segment in range(n_segments):
            for sends, receives, is_last in self.waves:
                outgoing = [Piece(hop.peer, a, b, copied) for hop, copied in sends for a, b in stretches(hop, segment)]
                incoming = []
                for hop in receives:
                    incoming += [Piece(hop.peer, a, b, hop.reduce) for a, b in stretches(hop, segment)]
                    if segment == n_segments - 1:  # one event a hop, when all of it is here
                        last = hop, (bounds[hop.stop] - bounds[hop.start]) * itemsize
                        incoming[-1] = incoming[-1]._replace(last=last)
                yield tuple(outgoing), tuple(incoming), is_last


@lru_cache(maxsize=1024)
def waves_of(
    plan: Plan, rank: int, world_size: int, n_chunks: int, root: int, members: tuple[int, ...] = ()
) -> Waves:
    """The steps of a rank; a step whose receives meet in a chunk becomes several, so that they add in order.

    Args:
        members: of a group, the ranks of the launch that the plan's ranks 0, 1, ... are; all, if not given.
    """
    steps: dict[int, list[tuple[int, Hop]]] = {}
    rows = compile_plan(plan, rank, world_size, n_chunks, root=root)
    for step, kind, place, start, stop, at in rows.tolist():
        peer = members[place] if members else place
        steps.setdefault(step, []).append((kind, Hop(step, peer, at, at + stop - start, kind == REDUCE)))
    waves = tuple(wave for _, hops in sorted(steps.items()) for wave in _waves(hops))
    return Waves(waves, n_chunks, moves=bool((rows[:, 3] != rows[:, 5]).any()))


def _waves(hops: list[tuple[int, Hop]]) -> Iterator[Wave]:
    receives = [hop for kind, hop in hops if kind != SEND]
    sends = tuple((hop, any(map(partial(_meet, hop), receives))) for kind, hop in hops if kind == SEND)
    wave: list[Hop] = []
    for hop in receives:
        if any(map(partial(_meet, hop), wave)):
            yield Wave(sends, tuple(wave), is_last=False)
            sends, wave = (), []
        wave.append(hop)
    yield Wave(sends, tuple(wave), is_last=True)


def _meet(a: Hop, b: Hop) -> bool:
    return a.start < b.stop and b.start < a.stop


def execute(
    links: Links,
    call: Call,
    flat: Array,
    waves: Waves,
    moved: Callable[[Hop, int], object] | None = None,
    before: Callable[[int], object] | None = None,
    combine: str = "sum",
    later: Callable[[int, Hop, int], object] | None = None,
) -> None:
    """Run `waves` on `flat` (1-D, contiguous); `moved(hop, n_bytes)` is told of each chunk range that has come.

    `before(step)` is called before each step, of the first segment: a rank that is held there is held with all of it.
    `combine`, a key of COMBINES, says what "added" means. With `later(time_ns, hop, n_bytes)`, `moved` need not be
    called when a hop is there: what came may be told to `later` instead when all is over, also when that is an error.

    A sum that is too large for its dtype is inf, without a warning: it would point at the lab, not at a line of the
    program, and on some ranks only.

    Raises:
        MeshError, LostRankError: as `Links.exchange`.
    """
    joined = COMBINES[combine]
    if links.shared is not None and links.brake is None:  # a throttle holds back what goes over sockets
        if waves.moves:
            require_even(len(flat), waves.n_chunks)
        execute_shared(links, links.shared, call, flat, waves, moved, before, joined, later)
        return
    octets, size = octets_of(flat), flat.itemsize

    def told(expected: Expected) -> None:
        if moved is not None and expected.last is not None:
            moved(*expected.last)

    done = told if moved is not None else None
    with np.errstate(over="ignore", invalid="ignore") if waves.adds and flat.dtype.kind in "fc" else nullcontext():
        for turn, (sends, receives, is_last) in enumerate(waves.turns(len(flat), size)):
            if before is not None and turn < len(waves.steps):
                before(waves.steps[turn])
            step = waves.steps[turn % len(waves.steps)]  # each segment goes through all of them
            if links.brake is not None:
                links.brake.hold([(peer, (b - a) * size) for peer, a, b, _, _ in sends], first=turn < len(waves.steps))
            outgoing = []
            for peer, a, b, copied, _ in sends:
                piece = octets[a * size : b * size]
                outgoing.append((peer, memoryview(bytes(piece)) if copied else piece))
            incoming = [
                Expected(peer, octets[a * size : b * size], flat[a:b] if adds else None, last, step, joined)
                for peer, a, b, adds, last in receives
            ]
            links.exchange(call, outgoing, incoming, done, flushes=is_last)
