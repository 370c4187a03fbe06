"""Runs a compiled plan on one rank over its sockets: rows become pieces of the array, step by step.

A large array goes through in segments that fit the cache, each chunk cut the same way everywhere; so no bit of the
result depends on where the cuts are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import NamedTuple

from lab.events.event import Array
from lab.parallel.plans import REDUCE, SEND, Plan, compile_plan
from lab.parallel.transport.sockets import Expected, Links
from lab.parallel.transport.wire import Call

SEGMENT = 1 << 20
"""Bytes of one chunk that go through at once."""


class Hop(NamedTuple):
    """A row of a compiled plan."""

    step: int
    peer: int
    start: int
    stop: int
    reduce: bool


class Wave(NamedTuple):
    """What moves at the same time; sends marked `copied` would be overwritten by a receive of the same wave."""

    sends: tuple[tuple[Hop, bool], ...]
    receives: tuple[Hop, ...]


@lru_cache(maxsize=1024)
def waves_of(plan: Plan, rank: int, world_size: int, n_chunks: int, root: int) -> tuple[Wave, ...]:
    """The steps of a rank; a step whose receives meet in a chunk becomes several, so that they add in order."""
    steps: dict[int, list[tuple[int, Hop]]] = {}
    for step, kind, peer, start, stop in compile_plan(plan, rank, world_size, n_chunks, root=root).tolist():
        steps.setdefault(step, []).append((kind, Hop(step, peer, start, stop, kind == REDUCE)))
    return tuple(wave for _, hops in sorted(steps.items()) for wave in _waves(hops))


def _waves(hops: list[tuple[int, Hop]]) -> Iterator[Wave]:
    receives = [hop for kind, hop in hops if kind != SEND]
    sends = tuple((hop, any(map(partial(_meet, hop), receives))) for kind, hop in hops if kind == SEND)
    wave: list[Hop] = []
    for hop in receives:
        if any(map(partial(_meet, hop), wave)):
            yield Wave(sends, tuple(wave))
            sends, wave = (), []
        wave.append(hop)
    yield Wave(sends, tuple(wave))


def _meet(a: Hop, b: Hop) -> bool:
    return a.start < b.stop and b.start < a.stop


def execute(
    links: Links,
    call: Call,
    flat: Array,
    waves: tuple[Wave, ...],
    n_chunks: int,
    moved: Callable[[Hop, int], object] | None = None,
) -> None:
    """Run `waves` on `flat` (1-D, contiguous); `moved(hop, n_bytes)` is told of each chunk range that has come.

    Raises:
        MeshError, LostRankError: as `Links.exchange`.
    """
    bounds = [len(flat) * chunk // n_chunks for chunk in range(n_chunks + 1)]
    longest = max(b - a for a, b in itertools.pairwise(bounds)) * flat.itemsize
    n_segments = max(1, -(-longest // SEGMENT))

    def pieces(hop: Hop, segment: int) -> Iterator[Array]:
        if n_segments == 1:
            yield flat[bounds[hop.start] : bounds[hop.stop]]
            return
        for a, b in itertools.pairwise(bounds[hop.start : hop.stop + 1]):
            yield flat[a + (b - a) * segment // n_segments : a + (b - a) * (segment + 1) // n_segments]

    def told(expected: Expected) -> None:
        if moved is not None and expected.last is not None:
            hop = waves[expected.last[0]].receives[expected.last[1]]
            moved(hop, (bounds[hop.stop] - bounds[hop.start]) * flat.itemsize)

    for segment in range(n_segments):
        for at, (sends, receives) in enumerate(waves):
            outgoing = [
                (hop.peer, piece.copy() if copied else piece) for hop, copied in sends for piece in pieces(hop, segment)
            ]
            incoming = [Expected(hop.peer, piece, hop.reduce) for hop in receives for piece in pieces(hop, segment)]
            if moved is not None and segment == n_segments - 1:  # one event a hop, when all of it is here
                end = -1
                for i, hop in enumerate(receives):
                    end += 1 if n_segments == 1 else hop.stop - hop.start
                    incoming[end] = incoming[end]._replace(last=(at, i))
            links.exchange(call, outgoing, incoming, told if moved is not None else None)
