"""A card for each worker: the rank that it holds, its state in words and as a mark, its memory, its clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from widgets.pictures.scene import Mark, Node
from widgets.views.cluster.gang import Gang, Rank, Worker, clock, short_time

CARD, HIGH, GAP = 214.0, 116.0, 16.0
TOP = 34.0
"""Room for the words above the cards."""
INSET = 12.0
NEARLY_FULL = 0.8
"""Share of its memory above which a worker of Dask pauses."""


class Card(NamedTuple):
    """A worker with its place: left top corner."""

    number: int
    worker: Worker
    rank: int
    """-1 for none."""
    held: Rank | None
    x: float
    y: float


def cards_of(gang: Gang) -> list[Card]:
    """The cards, up to four in a row: by rank, then the workers without one."""
    placed = [(gang.rank_on(address), number, worker) for number, (address, worker) in enumerate(gang.workers.items())]
    placed.sort(key=lambda found: (found[0] is None, found[0][0] if found[0] else 0, found[1]))
    columns = columns_of(len(placed))
    return [
        Card(number, worker, found[0] if found else -1, found[1] if found else None,
             (k % columns) * (CARD + GAP), TOP + (k // columns) * (HIGH + GAP))
        for k, (found, number, worker) in enumerate(placed)
    ]  # fmt: skip


def columns_of(n: int) -> int:
    """How many cards stand in a row.

    Example:
        >>> [columns_of(n) for n in (1, 2, 3, 4, 5, 6, 8, 16)]
        [1, 2, 3, 4, 3, 3, 4, 4]
    """
    return n if n <= 4 else 3 if n in (5, 6, 9) else 4


def extent_of(n: int) -> tuple[float, float]:
    """Width and height of all cards; never so narrow that the words above are cut."""
    columns = max(1, columns_of(n))
    rows = -(-n // columns)
    return max(2, columns) * (CARD + GAP) - GAP, TOP + rows * (HIGH + GAP) - GAP


def node_of(card: Card) -> Node:
    """The box of a card."""
    return Node(f"w{card.number}", card.x + CARD / 2, card.y + HIGH / 2, CARD, HIGH, "", kind="device",
                state=look_of(card), aria=". ".join(_words(card)))  # fmt: skip


def look_of(card: Card) -> str:
    """State of a card's box."""
    worker, held = card.worker, card.held
    if worker.state == "gone" or (held is not None and held.state in ("lost", "failed")):
        return "trouble"
    if worker.state == "paused" or worker.hand:
        return "waiting"
    if held is None:
        return "idle"
    return {"running": "active", "stopped": "stopped"}.get(held.state, "done")


def state_words(card: Card) -> str:
    """The state of worker and rank in a few words."""
    worker, held = card.worker, card.held
    by_hand = f", {worker.hand}" if worker.hand else ""
    if held is None:
        return f"{worker.state}{by_hand}"
    words = {"running": "runs"}.get(held.state, held.state)
    if by_hand:
        return worker.hand if words == "runs" else f"{words}{by_hand}"
    return words if worker.state in ("leased", "idle") else f"{words}, {worker.state}"


def _words(card: Card) -> list[str]:
    """All that is known, a sentence each."""
    worker, held = card.worker, card.held
    who = f"Worker {card.number}, {worker.address}, {worker.state}{f' to {worker.holds}' if worker.holds else ''}"
    told = [who if held is None else f"{who}, holds rank {card.rank}: {held.state}"]
    told += [held.reason] if held is not None and held.reason else []
    told += [f"{worker.hand} by hand".capitalize()] if worker.hand else []
    told += [f"In {held.call}"] if held is not None and held.call else []
    told += ["It took the place of one that was lost"] if held is not None and held.replaces else []
    told += [
        f"pid {worker.pid}, {memory_words(worker)}, cpu {worker.cpu_percent:.0f} %"
        if worker.n_bytes >= 0
        else f"pid {worker.pid}"
    ]
    if held is not None:
        told.append(f"Its clock is {clock(held)}" if held.error_ns >= 0 else "Its clock was not compared")
        told += [f"{held.n_refused} strangers refused, the latest: {held.refused}"] if held.n_refused else []
    return told


def memory_words(worker: Worker) -> str:
    """Memory used of the limit.

    Example:
        >>> memory_words(Worker("", n_bytes=200 << 20, limit=1 << 30)), memory_words(Worker("", n_bytes=1 << 20))
        ('200 of 1,024 MiB', '1 MiB, no limit')
    """
    used = f"{worker.n_bytes / 2**20:,.0f}"
    return f"{used} of {worker.limit / 2**20:,.0f} MiB" if worker.limit else f"{used} MiB, no limit"


def marks_of(card: Card) -> Iterator[Mark]:
    """Words and bar on a card."""
    worker, held, k = card.worker, card.held, card.number
    left, room = card.x + INSET, CARD - 2 * INSET
    who = f"rank {card.rank}" if held is not None else "no rank"
    yield Mark(f"who{k}", "heading", left, card.y + 18, 0, 0, who)
    yield Mark(f"state{k}", "text", card.x + CARD - INSET - 6, card.y + 18, room - 66, 0, state_words(card), "end")
    name = worker.address.removeprefix("tcp://").removeprefix("tls://").split(", rank")[0]
    place = name if name.startswith("a thread") else f"worker {k} · {name}"
    yield Mark(f"name{k}", "text", left, card.y + 38, room, 0, place)
    if worker.n_bytes >= 0:
        yield from _memory(card, left, room)
    elif not name.startswith("a thread"):
        yield Mark(f"pid{k}", "text", left, card.y + 57, room, 0, f"pid {worker.pid}; nobody looked at it yet")
    if held is not None and (held.reason or held.n_refused):
        words = held.reason or f"{held.n_refused} refused: {held.refused}"
        yield Mark(
            f"note{k}", "warning" if held.state in ("lost", "failed") else "text", left, card.y + 102, room, 0, words
        )
    elif held is not None and (held.call or held.replaces):
        words = ", ".join(filter(None, (f"in {held.call}" if held.call else "", "replaced" * held.replaces)))
        yield Mark(f"note{k}", "text", left, card.y + 102, room, 0, words)
    elif held is not None and held.error_ns >= 0:
        words = "clock: as the launcher's" if held.same_clock else f"clock known to ± {short_time(held.error_ns)}"
        yield Mark(f"note{k}", "text", left, card.y + 102, room, 0, words)


def _memory(card: Card, left: float, room: float) -> Iterator[Mark]:
    worker, k = card.worker, card.number
    yield Mark(f"pid{k}", "text", left, card.y + 57, room, 0, f"pid {worker.pid} · cpu {worker.cpu_percent:.0f} %")
    if worker.limit:
        share = min(1.0, worker.n_bytes / worker.limit)
        yield Mark(f"track{k}", "track", left, card.y + 69, room, 7)
        if share > 0:
            yield Mark(f"used{k}", "full" if share >= NEARLY_FULL else "used", left, card.y + 69, share * room, 7)
    yield Mark(f"memory{k}", "text", left, card.y + 86, room, 0, memory_words(worker))
