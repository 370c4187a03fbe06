"""Who is there: workers of a cluster and the ranks that they hold, as events told it; the state of a ClusterView."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from lab.events import (
    ClockAligned,
    CollectiveFinished,
    CollectiveStarted,
    Event,
    RankFinished,
    RankLost,
    RankStarted,
    StrangerRefused,
    TrainingResumed,
    WorkerHandled,
    WorkerSeen,
)
from widgets.pictures.theme import MINUS
from widgets.views.words import why_lost

LISTENS: tuple[type[Event], ...] = (
    WorkerSeen, RankStarted, RankFinished, RankLost, ClockAligned, StrangerRefused, WorkerHandled, TrainingResumed,
)  # fmt: skip
CALLS = (CollectiveStarted, CollectiveFinished)
"""Told many times in each step: only who wants to know in which call a rank is listens to them."""


class Worker(NamedTuple):
    """A worker as it was when somebody looked last."""

    address: str
    state: str = "leased"
    """As in WorkerSeen; one that only a rank told of is taken for leased."""
    holds: str = ""
    pid: int = 0
    n_bytes: int = -1
    """Memory; -1 while nobody looked."""
    limit: int = 0
    cpu_percent: float = 0.0
    hand: str = ""
    """What somebody did to it by hand: "killed", "stopped", or "slowed to 25 %"; "" for nothing, or no more."""


class Rank(NamedTuple):
    """A rank of the latest launch."""

    worker: str
    pid: int
    state: str = "running"
    """"running", "finished", "failed", "stopped" or "lost"."""
    reason: str = ""
    elapsed_ms: float = 0.0
    offset_ns: int = 0
    error_ns: int = -1
    """-1 while its clock was not compared."""
    same_clock: bool = False
    n_refused: int = 0
    refused: str = ""
    """Why the latest stranger was."""
    call: str = ""
    """The collective that it is in, "" for none."""
    replaces: bool = False
    """Its number was another worker's, which was lost."""


@dataclass(frozen=True, slots=True)
class Gang:
    """The state of a ClusterView.

    Attributes:
        workers: by address, in order of appearance.
        ranks: those of the latest launch.
        generation: its number, -1 before the first; world_size: how many ranks it has.
        crew: how many ranks the launch had that lost one last, -1 if none did.
        last: what happened last, as one sentence.
    """

    workers: Mapping[str, Worker] = field(default_factory=lambda: MappingProxyType({}))
    ranks: Mapping[int, Rank] = field(default_factory=lambda: MappingProxyType({}))
    generation: int = -1
    world_size: int = 0
    crew: int = -1
    last: str = ""

    def folded(self, events: Iterable[Event]) -> Gang:
        """With more events."""
        workers, ranks = dict(self.workers), dict(self.ranks)
        changes: dict[str, Any] = {
            "generation": self.generation, "world_size": self.world_size, "crew": self.crew,
        }  # fmt: skip
        for event in events:
            _take(event, workers, ranks, changes)
        return replace(self, workers=MappingProxyType(workers), ranks=MappingProxyType(ranks), **changes)

    def rank_on(self, address: str) -> tuple[int, Rank] | None:
        """The rank that a worker holds or held in the latest launch."""
        return next(((rank, r) for rank, r in self.ranks.items() if r.worker == address), None)

    def name(self, address: str) -> str:
        """What a worker is called: by its number, in order of appearance."""
        return f"worker {list(self.workers).index(address)}" if address in self.workers else "a worker"


def _take(event: Event, workers: dict[str, Worker], ranks: dict[int, Rank], changes: dict[str, Any]) -> None:
    match event:
        case WorkerSeen():
            before = workers.get(event.worker)
            same = before is not None and event.pid in (0, before.pid)
            workers[event.worker] = Worker(
                event.worker, event.state, event.holds, event.pid or (before.pid if before else 0), event.memory_bytes,
                event.memory_limit_bytes, event.cpu_percent, before.hand if before is not None and same else "",
            )  # fmt: skip
            if before is None or before.state != event.state:
                changes["last"] = _seen(list(workers).index(event.worker), before, workers[event.worker], ranks)
        case RankStarted():
            _started(event, workers, ranks, changes)
        case RankFinished() if event.rank in ranks:
            why = _line(event.reason)
            now = ranks[event.rank]._replace(state=event.state, reason=why, elapsed_ms=event.elapsed_ms)
            ranks[event.rank] = now
            changes["last"] = f"Rank {event.rank} {event.state}{because(why)}."
        case RankLost():
            why = why_lost(event.lost_rank, _line(event.reason))
            old = ranks.get(event.lost_rank, Rank(event.worker, 0))
            ranks[event.lost_rank] = old._replace(state="lost", reason=why)
            workers.setdefault(event.worker, Worker(event.worker))
            changes["crew"] = changes["world_size"]
            changes["last"] = f"Rank {event.lost_rank} was lost{because(why)}."
        case ClockAligned():
            old = ranks.get(event.rank, Rank("", 0))
            old = old if old.state == "running" else Rank("", 0)  # that one was of an earlier launch
            ranks[event.rank] = now = old._replace(
                offset_ns=event.offset_ns, error_ns=event.error_ns, same_clock=event.same_clock
            )
            changes["last"] = f"The clock of rank {event.rank} was compared: {clock(now)}."
        case WorkerHandled() | TrainingResumed():
            _taken_up(event, workers, ranks, changes)
        case CollectiveStarted() | CollectiveFinished() if event.rank in ranks:
            begins = isinstance(event, CollectiveStarted)
            call = f"{event.operation}, {event.algorithm}" if begins else ""
            ranks[event.rank] = ranks[event.rank]._replace(call=call)
        case StrangerRefused():
            old = ranks.get(event.rank, Rank("", 0))
            ranks[event.rank] = old._replace(n_refused=old.n_refused + 1, refused=_line(event.reason))
            changes["last"] = f"Rank {event.rank} showed a stranger out{because(_line(event.reason))}."


def _taken_up(
    event: WorkerHandled | TrainingResumed, workers: dict[str, Worker], ranks: dict[int, Rank], changes: dict[str, Any]
) -> None:
    """What somebody did by hand, and what a training did about a loss."""
    if isinstance(event, TrainingResumed):
        changes["last"] = (
            f"The training went on at step {event.step + 1:,}, from the state of {event.source}, "
            f"{short_time(event.elapsed_ms * 1e6)} after the loss{who_was(event.lost_rank)}."
        )
        if event.lost_rank in ranks and event.world_size == changes["crew"]:
            ranks[event.lost_rank] = ranks[event.lost_rank]._replace(replaces=True)
        return
    worker = workers.get(event.worker, Worker(event.worker, pid=event.pid))
    part = f"{event.share:.0%}".replace("%", " %")
    hand = {"slowed": f"slowed to {part}", "let go on": ""}.get(event.action, event.action)
    workers[event.worker] = worker._replace(hand=hand)
    how = f", and runs for {part} of its time" * (event.action == "slowed")
    changes["last"] = f"Worker {list(workers).index(event.worker)} was {event.action} by hand{how}."


def _seen(number: int, before: Worker | None, now: Worker, ranks: Mapping[int, Rank]) -> str:
    """What a look at a worker found new: of one that is free, whether it was given back, and what its ranks came to."""
    if now.state != "idle":
        return f"Worker {number} is {now.state}."
    if before is None:
        return f"Worker {number} was seen: it is free."
    ends = Counter(r.state for r in ranks.values() if r.worker)
    held = next((f"rank {rank}" for rank, r in ranks.items() if r.worker == now.address and r.state == "lost"), "")
    if held:  # nobody gave it back
        return f"Worker {number} lost {held} and holds no rank any more."
    if not ends or "running" in ends:
        return f"Worker {number} was given back."
    ended = ", ".join(f"{n} rank{'s' * (n > 1)} {end}" for end, n in ends.items())
    return f"{ended}; worker {number} was given back."


def _started(event: RankStarted, workers: dict[str, Worker], ranks: dict[int, Rank], changes: dict[str, Any]) -> None:
    if event.generation != changes["generation"]:  # another launch: who went in an earlier one is history
        early = {rank: r for rank, r in ranks.items() if not r.worker}  # its clock was compared before it started
        ranks.clear()
        ranks.update(early)
        for address in [a for a, worker in workers.items() if worker.state == "gone"]:
            del workers[address]
        changes.update(generation=event.generation, world_size=event.world_size)
    address = event.worker or f"a thread of process {event.pid}, rank {event.rank}"
    workers.setdefault(address, Worker(address, pid=event.pid))
    ranks[event.rank] = ranks.get(event.rank, Rank("", 0))._replace(
        worker=address, pid=event.pid, state="running", reason="", call=""
    )
    where = f"worker {list(workers).index(address)}" if event.worker else "a thread"
    changes["last"] = f"Rank {event.rank} of {event.world_size} started on {where}."


def who_was(lost_rank: int) -> str:
    """Which rank was lost, as one says it behind "the loss".

    Example:
        >>> who_was(2), who_was(-1)
        (' of rank 2', ' of all ranks')
    """
    return f" of rank {lost_rank}" if lost_rank >= 0 else " of all ranks"


def _line(reason: str) -> str:
    """A reason on one line."""
    return " ".join(reason.split()).removeprefix("lab.errors.")


def because(reason: str) -> str:
    """A reason behind a colon, without its last full stop; "" if there is none.

    Example:
        >>> because("killed."), because("")
        (': killed', '')
    """
    return f": {reason.rstrip('.')}" if reason else ""


def clock(rank: Rank) -> str:
    """How well the clock of a rank is known.

    Example:
        >>> clock(Rank("", 0, error_ns=42_000, offset_ns=-1_300_000)), clock(Rank("", 0, error_ns=0, same_clock=True))
        ('off by −1.3 ms, known to ± 42 µs', 'the same as the launcher')
    """
    if rank.error_ns < 0:
        return "not compared"
    if rank.same_clock:
        return "the same as the launcher"
    return f"off by {short_time(rank.offset_ns)}, known to ± {short_time(rank.error_ns)}"


def short_time(ns: float) -> str:
    """A small time as one says it.

    Example:
        >>> short_time(800), short_time(2_500_000_000)
        ('800 ns', '2.5 s')
    """
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}".replace("-", MINUS)
    return f"{ns:.0f} ns".replace("-", MINUS)
