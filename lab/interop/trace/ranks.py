"""The ranks of a trace: programs, phases of a data-parallel step, collectives hop by hop, actions of a pipeline.

Arrows go from sender to receiver. When something was sent is not recorded, only when it came: an arrow of a collective
begins where its sender had all that it sends, one of a pipeline where the sender's action ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lab.events import (
    ActionFinished,
    ActivationMoved,
    ChunkMoved,
    CollectiveFinished,
    CollectiveStarted,
    Event,
    RankFinished,
    RankLost,
    RankStarted,
    ReplicaAdvanced,
    StrangerRefused,
    WorkerSeen,
)
from lab.interop.trace.form import CUT, Json, Teller, Track, Tracks, arrow, level, moment, span, within

Who = tuple[str, int]
"""Run and rank."""
PHASES = {"shard": "take the shard", "gradient": "forward and backward", "reduced": "all-reduce", "updated": "update"}


def who(event: Event) -> Who:
    """The run and the rank of an event."""
    return event.run, event.rank


class ProgramTeller(Teller):
    """The program of each rank as one slice; who was lost; what its worker took of memory and processor."""

    hears = (RankStarted, RankFinished, RankLost, StrangerRefused, WorkerSeen)

    def __init__(self, tracks: Tracks) -> None:
        super().__init__(tracks)
        self._open: dict[Who, RankStarted] = {}

    def tell(self, event: Any) -> Iterator[Json]:
        now = event.time_ns
        match event:
            case RankStarted():
                yield from self._ran(who(event), now, CUT)
                self._open[who(event)] = event
            case RankFinished():
                yield from self._ran(who(event), now, event.state, event.reason)
            case RankLost():
                track = self.tracks.rank(event.lost_rank, event.run, "program")
                yield moment(track, f"rank {event.lost_rank} lost", "rank", now, everywhere=True, reason=event.reason)
            case StrangerRefused():
                yield moment(self.tracks.teller(event, "program"), "stranger refused", "rank", now, reason=event.reason)
            case WorkerSeen():
                track = self.tracks.host(event.run, "run")
                if event.state != "gone":
                    yield from level(track, f"MB of {event.worker}", now, event.memory_bytes / 1e6)
                    yield from level(track, f"CPU % of {event.worker}", now, event.cpu_percent)

    def _ran(self, rank: Who, now: int, state: str, reason: str = "") -> Iterator[Json]:
        if start := self._open.pop(rank, None):
            yield span(self.tracks.rank(start.rank, start.run, "program"), f"program of rank {start.rank}", "rank",
                       start.time_ns, now, state=state, reason=reason, world_size=start.world_size,
                       worker=start.worker, process=start.pid)  # fmt: skip

    def end(self) -> Iterator[Json]:
        for rank in list(self._open):
            yield from self._ran(rank, self.tracks.last_ns, CUT)


class ReplicaTeller(Teller):
    """The phases of a data-parallel step, inside of the step."""

    hears = (ReplicaAdvanced,)

    def __init__(self, tracks: Tracks) -> None:
        super().__init__(tracks)
        self._step: dict[Who, tuple[int, int]] = {}
        self._until: dict[Who, int] = {}

    def tell(self, event: ReplicaAdvanced) -> Iterator[Json]:
        rank, now = who(event), event.time_ns
        track = self.tracks.rank(event.rank, event.run, "steps")
        start = min(now, max(now - round(event.elapsed_ms * 1e6), self._until.get(rank, 0)))
        if self._step.get(rank, (-1, 0))[0] != event.step:
            self._step[rank] = event.step, start
        self._until[rank] = now
        yield span(track, PHASES.get(event.phase, event.phase), "training,phase", start, now, step=event.step,
                   phase=event.phase, examples=f"{event.start} to {event.stop} of {event.n_global}", loss=event.loss,
                   norm=event.norm, elapsed_ms=event.elapsed_ms)  # fmt: skip
        if event.phase == "updated":
            step, begin = self._step.pop(rank)
            yield span(track, f"step {step}", "training,step", begin, now, step=step)


@dataclass
class Call:
    """A collective, as far as it was told: when each rank entered and left it, and the hops in order of telling."""

    about: CollectiveStarted
    entered: dict[int, int] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    came: dict[int, int] = field(default_factory=dict)
    """When the last hop came to each rank."""
    hops: list[tuple[int, ChunkMoved]] = field(default_factory=list)
    """With the time at which the receiver began to wait for it."""


class RingTeller(Teller):
    """Collectives as slices with their hops inside, and an arrow for each hop."""

    hears = (CollectiveStarted, ChunkMoved, CollectiveFinished)

    def __init__(self, tracks: Tracks) -> None:
        super().__init__(tracks)
        self._calls: dict[tuple[str, int], Call] = {}

    def tell(self, event: Any) -> Iterator[Json]:
        key = event.run, event.collective
        call = self._calls.get(key)
        match event:
            case CollectiveStarted():
                if call is not None and event.rank in call.entered:  # of an earlier launch, which never ended it
                    yield from self._ended(key)
                self._calls.setdefault(key, Call(event)).entered[event.rank] = event.time_ns
            case ChunkMoved() if call is not None and event.dst in call.entered:
                call.hops.append((call.came.get(event.dst, call.entered[event.dst]), event))
                call.came[event.dst] = event.time_ns
            case CollectiveFinished() if call is not None:
                call.left[event.rank] = event.time_ns
                if len(call.left) == call.about.world_size:
                    yield from self._ended(key)

    def end(self) -> Iterator[Json]:
        for key in list(self._calls):
            yield from self._ended(key)

    def _ended(self, key: tuple[str, int]) -> Iterator[Json]:
        call, run = self._calls.pop(key), key[0]
        about, tracks = call.about, {r: self.tracks.rank(r, run, "collectives") for r in call.entered}
        ends = {rank: call.left.get(rank, self.tracks.last_ns) for rank in call.entered}
        name = f"{about.operation.replace('_', '-')} ({about.algorithm})"
        for rank, start in call.entered.items():
            cut = {} if rank in call.left else {"end": CUT}
            yield span(tracks[rank], name, "collective", start, ends[rank], collective=about.collective,
                       n_bytes=about.n_bytes, n_chunks=about.n_chunks, world_size=about.world_size, **cut)  # fmt: skip
        had: dict[int, list[ChunkMoved]] = {}
        for start, hop in call.hops:
            chunks = f"chunk {hop.start}" if hop.stop == hop.start + 1 else f"chunks {hop.start} to {hop.stop - 1}"
            yield span(tracks[hop.dst], f"{chunks} from rank {hop.src}", "collective,hop", start, hop.time_ns,
                       step=hop.step, src=hop.src, dst=hop.dst, n_bytes=hop.n_bytes,
                       then="added" if hop.reduces else "stored")  # fmt: skip
            had.setdefault(hop.dst, []).append(hop)
        for start, hop in call.hops:
            if hop.src in tracks:
                came = [h.time_ns for h in had.get(hop.src, ()) if h.step < hop.step]
                ready = min(max([call.entered[hop.src], *came]), hop.time_ns)
                begin = within(ready, call.entered[hop.src], ends[hop.src])
                yield from arrow(self.tracks.arrow(), "sends", "collective,hop", tracks[hop.src], begin,
                                 tracks[hop.dst], within(hop.time_ns, start, hop.time_ns))  # fmt: skip


@dataclass
class Sent:
    """What a stage sent on: the action that made it."""

    track: Track
    action: ActionFinished


class PipelineTeller(Teller):
    """The actions of a pipeline as slices, an arrow from each to the one that takes what it made, and what is live."""

    hears = (ActionFinished, ActivationMoved)

    def __init__(self, tracks: Tracks) -> None:
        super().__init__(tracks)
        self._made: dict[tuple[str, str, int, int], Sent] = {}
        self._came: dict[tuple[str, str, int, int], Sent] = {}

    def tell(self, event: Any) -> Iterator[Json]:
        run = event.run
        if isinstance(event, ActivationMoved):
            sent = self._made.pop((run, event.kind, event.src_stage, event.micro), None)
            if sent is not None:
                self._came[run, event.kind, event.dst_stage, event.micro] = sent
            return
        track = self.tracks.rank(event.rank, run, "pipeline")
        way = "forward" if event.kind == "F" else "backward"
        paced = {"paced": True} if event.paced else {}
        yield span(track, f"{way} {event.micro}, stage {event.stage}", f"pipeline,{way}", event.start_ns, event.end_ns,
                   micro_batch=event.micro, stage=event.stage, live_activations=event.n_live, **paced)  # fmt: skip
        yield from level(track, "live activations", event.end_ns, event.n_live)
        self._made[run, event.kind, event.stage, event.micro] = Sent(track, event)
        sent = self._came.pop((run, event.kind, event.stage, event.micro), None)
        if sent is not None:
            yield from self._sent(sent, track, event)

    def _sent(self, sent: Sent, track: Track, event: ActionFinished) -> Iterator[Json]:
        made = sent.action
        begin = within(made.end_ns, made.start_ns, made.end_ns)
        word = "activation" if made.kind == "F" else "gradient"
        yield from arrow(self.tracks.arrow(), word, "pipeline", sent.track, begin, track,
                         max(begin, within(event.start_ns, event.start_ns, event.end_ns)))  # fmt: skip
