"""The engine of a trace: operations as moments, for only when they ended is recorded, and backward walks as slices.

In a walk one node follows the other: each has the time since the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lab.events import BackwardFinished, BackwardStarted, GradientStored, OpRecorded, RuleApplied
from lab.interop.trace.form import CUT, Json, Teller, Track, Tracks, moment, span

SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass
class Walk:
    """A backward walk under way; `at_ns`: when the last thing in it was told."""

    started: BackwardStarted
    track: Track
    lane: int
    at_ns: int


class EngineTeller(Teller):
    """Each process has a track of operations and one of walks; a walk inside of another has one of its own."""

    hears = (OpRecorded, BackwardStarted, RuleApplied, GradientStored, BackwardFinished)

    def __init__(self, tracks: Tracks) -> None:
        super().__init__(tracks)
        self._walks: dict[int, list[Walk]] = {}

    def tell(self, event: Any) -> Iterator[Json]:
        now = event.time_ns
        if isinstance(event, OpRecorded):
            where = f"{event.file}:{event.line}" if event.file else ""
            yield moment(self.tracks.teller(event, "operations"), event.op, "forward,operation", now, node=event.node,
                         of=list(event.parents), shape=list(event.shape), dtype=event.dtype, module=event.module,
                         source=where)  # fmt: skip
            return
        process = self.tracks.teller(event, "backward")
        walks = self._walks.setdefault(process.pid, [])
        match event:
            case BackwardStarted():
                lane = next(k for k in range(len(walks) + 1) if all(walk.lane != k for walk in walks))
                track = self.tracks.teller(event, f"backward {lane + 1}") if lane else process
                walks.append(Walk(event, track, lane, now))
            case BackwardFinished():
                found = [w for w in walks if (w.started.root, w.started.level) == (event.root, event.level)]
                if found:
                    walks.remove(found[-1])
                    yield self._walked(found[-1], now, **({"error": event.error} if event.error else {}))
            case _:
                yield from self._in_walk(event, walks, process)

    def _in_walk(self, event: RuleApplied | GradientStored, walks: list[Walk], process: Track) -> Iterator[Json]:
        now = event.time_ns
        if isinstance(event, GradientStored):
            track = walks[-1].track if walks else process
            if walks:
                walks[-1].at_ns = now
            yield moment(track, f"gradient of {variable(event.node)} stored", "backward", now,
                         accumulated=event.accumulated)  # fmt: skip
            return
        about: Json = {"node": event.node, "targets": list(event.targets)}
        found = [walk for walk in walks if walk.started.level == event.level]
        if not found:  # its beginning was before the recording's
            yield moment(process, event.op, "backward,rule", now, **about)
            return
        start, found[-1].at_ns = found[-1].at_ns, now
        yield span(found[-1].track, event.op, "backward,rule", start, now, **about)

    def _walked(self, walk: Walk, now: int, **more: str) -> Json:
        name = f"backward from {variable(walk.started.root)}"
        return span(walk.track, name, "backward", walk.started.time_ns, now, n_nodes=walk.started.n_nodes, **more)

    def end(self) -> Iterator[Json]:
        for walks in self._walks.values():
            for walk in walks:
                yield self._walked(walk, max(walk.at_ns, self.tracks.last_ns), end=CUT)


def variable(node: int) -> str:
    """The name of a node's value, by its number.

    Example:
        >>> variable(12)
        'v₁₂'
    """
    return f"v{node}".translate(SUBSCRIPT)
