"""The Trace Event Format: the few of its events that we write, and the numbers of processes and tracks.

A slice lies wholly in another of its track or beside it; an arrow leaves one slice and ends in another. Source: the
format's definition (github.com/google/perfetto, docs/getting-started/other-formats.md, leads to it).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count
from typing import Any, ClassVar, NamedTuple

from lab.events import ActionFinished, CollectiveStarted, Event, RankStarted, Recording, ReplicaAdvanced, RunStarted

Json = dict[str, Any]
RANKS = (RankStarted, CollectiveStarted, ActionFinished, ReplicaAdvanced)
"""Kinds of events that only ranks tell."""
CUT = "not in this recording"
"""What is said of an end that was never told."""


class Track(NamedTuple):
    """A row of a process, by its numbers; the format calls it a thread."""

    pid: int
    tid: int


class Tracks:
    """Numbers for processes and their tracks, given when they are first asked for.

    The launcher of a run and rank 0 of it tell their events under one origin; so what trains has a process of its own.

    Args:
        recording: tells who is a rank.

    Attributes:
        last_ns: the latest time so far: where that ends whose end is not told.

    Example:
        >>> tracks = Tracks(Recording())
        >>> tracks.host("", "steps"), tracks.host("", "run"), tracks.rank(1, "", "pipeline")
        (Track(pid=1, tid=1001), Track(pid=1, tid=1002), Track(pid=2, tid=2001))
    """

    def __init__(self, recording: Recording) -> None:
        self.last_ns = 0
        self._arrows = count(1)
        self._processes: dict[tuple[str, int], int] = {}
        self._tracks: dict[int, dict[str, int]] = {}
        self._ranks: set[tuple[str, int]] = set()
        for kind in RANKS:
            rows = recording.columns(kind)
            self._ranks |= set(zip(rows["run"], rows["rank"].tolist(), strict=True))
        begun = recording.columns(RunStarted)
        self._runs = {run for run, _ in self._ranks} | set(begun["run"])
        self._trained = dict(zip(begun["run"], begun["name"], strict=True))

    def host(self, run: str, track: str) -> Track:
        """A track of who launched a run."""
        return self._track((run, -1), track)

    def rank(self, rank: int, run: str, track: str) -> Track:
        """A track of a rank."""
        return self._track((run, rank), track)

    def teller(self, event: Event, track: str) -> Track:
        """A track of whoever told an event: a rank, or a process that is none."""
        key = (event.run, event.rank)
        return self._track(key if key in self._ranks else (event.run, -1), track)

    def arrow(self) -> int:
        """A number for an arrow."""
        return next(self._arrows)

    def _track(self, process: tuple[str, int], track: str) -> Track:
        pid = self._processes.setdefault(process, len(self._processes) + 1)  # 0 is the idle task to viewers
        tracks = self._tracks.setdefault(pid, {})
        return Track(pid, tracks.setdefault(track, 1000 * pid + len(tracks) + 1))

    def names(self) -> Iterator[Json]:
        """The names of all that was asked for: launchers first, then ranks."""
        for (run, rank), pid in self._processes.items():
            several = f" of {run}" if len(self._runs) > 1 else ""
            name = f"rank {rank}{several}" if rank >= 0 else self._host_name(run)
            yield _named("process_name", pid, 0, name=name)
            yield _named("process_sort_index", pid, 0, sort_index=rank + 1)
            for place, (track, tid) in enumerate(self._tracks[pid].items()):
                yield _named("thread_name", pid, tid, name=track)
                yield _named("thread_sort_index", pid, tid, sort_index=place)

    def _host_name(self, run: str) -> str:
        if run in self._trained:
            return f"training {self._trained[run]}"
        return f"launcher of {run}" if run else "this process"


class Teller(ABC):
    """Takes the events of some kinds, in the order of the recording; gives trace events."""

    hears: ClassVar[tuple[type[Event], ...]] = ()

    def __init__(self, tracks: Tracks) -> None:
        self.tracks = tracks

    @abstractmethod
    def tell(self, event: Any) -> Iterator[Json]:
        """What one event adds."""

    def end(self) -> Iterator[Json]:
        """What is left when there are no more events."""
        yield from ()


def span(track: Track, name: str, category: str, start_ns: int, end_ns: int, **args: Any) -> Json:
    """A slice.

    Example:
        >>> span(Track(1, 2), "step 1", "training", 1000, 3500, loss=0.5)["dur"]
        2.5
    """
    return {"ph": "X", "name": name, "cat": category, "ts": micro(start_ns), "dur": micro(max(0, end_ns - start_ns)),
            "pid": track.pid, "tid": track.tid, "args": _plain(args)}  # fmt: skip


def moment(track: Track, name: str, category: str, time_ns: int, *, everywhere: bool = False, **args: Any) -> Json:
    """A point in time of a track, or (`everywhere`) of all."""
    return {"ph": "i", "s": "g" if everywhere else "t", "name": name, "cat": category, "ts": micro(time_ns),
            "pid": track.pid, "tid": track.tid, "args": _plain(args)}  # fmt: skip


def level(track: Track, name: str, time_ns: int, value: float) -> Iterator[Json]:
    """A counter's new value, nothing where it is no number: the viewers would draw it as 0."""
    if math.isfinite(value):
        yield {"ph": "C", "name": name, "ts": micro(time_ns), "pid": track.pid, "tid": track.tid,
               "args": {name: value}}  # fmt: skip


def arrow(
    number: int, name: str, category: str, source: Track, start_ns: int, target: Track, end_ns: int
) -> list[Json]:
    """An arrow from what `source` does at one time to what `target` does at another."""
    both = {"name": name, "cat": category, "id": number}
    return [
        {"ph": "s", **both, "ts": micro(start_ns), "pid": source.pid, "tid": source.tid},
        {"ph": "f", "bp": "e", **both, "ts": micro(max(start_ns, end_ns)), "pid": target.pid, "tid": target.tid},
    ]


def within(time_ns: int, start_ns: int, end_ns: int) -> int:
    """The time, moved into the slice from start to end (not included): only there an arrow finds it.

    Example:
        >>> within(9, 2, 9), within(1, 2, 9), within(2, 2, 2)
        (8, 2, 2)
    """
    return max(start_ns, min(time_ns, end_ns - 1))


def micro(time_ns: int) -> float:
    """Nanoseconds as microseconds."""
    return round(time_ns / 1000, 3)


def _plain(args: Json) -> Json:
    """Arguments that JSON can hold: it knows no nan."""
    return {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in args.items() if v != ""}


def _named(kind: str, pid: int, tid: int, **args: Any) -> Json:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}
