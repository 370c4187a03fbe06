"""Recordings of launches written by hand: workers that are looked at, ranks that start, end, or are lost."""

from __future__ import annotations

from lab.events import ClockAligned, RankFinished, RankLost, RankStarted, Recording, StrangerRefused, WorkerSeen
from tests.widgets.golden_pipeline import MS, Told, recorded_by_ranks

MIB = 2**20


def address(k: int) -> str:
    return f"tcp://127.0.0.1:{40000 + k}"


def seen(
    k: int, state: str = "leased", holds: str = "run-1", used: int = 180, limit: int = 900, cpu: float = 35.0
) -> WorkerSeen:
    return WorkerSeen(address(k), state, holds if state == "leased" else "", 1000 + k, used * MIB, limit * MIB, cpu + k)


def beginning(n_ranks: int, n_workers: int, generation: int = 1, at: int = 0) -> list[Told]:
    """A look at all workers, clocks, ranks."""
    looked = [seen(k, "leased" if k < n_ranks else "idle", used=120 + 45 * (k % 5)) for k in range(n_workers)]
    rows: list[Told] = [(at, 0, event) for event in looked]
    for rank in range(n_ranks):
        rows.append((at + 1, rank, ClockAligned(0, 0, True)))
        rows.append((at + 2, rank, RankStarted(generation, n_ranks, address(rank), 1000 + rank)))
    return rows


def launch_of(n_ranks: int, *, n_workers: int = 6) -> Recording:
    """A launch that ends well, looked at twice."""
    rows = beginning(n_ranks, n_workers)
    rows += [(MS, 0, seen(k, "leased" if k < n_ranks else "idle", used=220 + 130 * (k % 5))) for k in range(n_workers)]
    rows += [(2 * MS, rank, RankFinished(1, "finished", 2.0, "")) for rank in range(n_ranks)]
    return recorded_by_ranks(rows, "digits")


def lost() -> Recording:
    """One rank is killed, a stranger knocks, a worker is paused, clocks are those of two hosts."""
    rows = beginning(4, 6)
    rows += [(3, 3, ClockAligned(-1_300_000, 42_000, False)), (4, 2, StrangerRefused("no key of this run"))]
    rows += [
        (5, 2, StrangerRefused("it spoke HTTP")),
        (6, 0, seen(3, "paused", used=820)),
        (6, 0, seen(1, "gone", used=0)),
    ]
    rows += [(7, 0, RankLost(1, 1, address(1), "its process was killed (signal 9)"))]
    rows += [(8, r, RankFinished(1, "stopped", 1.0, "rank 1 was lost")) for r in (0, 2, 3)]
    return recorded_by_ranks(rows, "digits")
