"""Who is to blame when a rank has waited too long: whoever its wait leads to, from rank to rank, that does not wait.

Pure: the scheduler plugin asks all ranks where they are, and this reads the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

SHOWN = 4
"""Ranks of a circle that are told with their calls."""


class Place(NamedTuple):
    """Where a rank is.

    Attributes:
        state: "computes" outside of any call, "waits" in a `call` for `peers`, "ended" its program, or is "absent".
        call: what it is in, with its line.
    """

    state: str
    call: str = ""
    peers: tuple[int, ...] = ()


class Verdict(NamedTuple):
    """What ends the run: `kind` as of an Alarm, the reason in words, and the rank that it is about (-1: several)."""

    kind: str
    why: str
    rank: int


def blame(rank: int, call: str, peers: Iterable[int], places: Mapping[int, Place | None]) -> Verdict:
    """Who keeps `rank` waiting in `call` for `peers`.

    Args:
        places: of each rank, None for one that does not answer.

    Example:
        >>> waits, ended = Place("waits", "barrier at a.py:2", (2,)), Place("ended")
        >>> blame(0, "barrier at a.py:2", [1], {0: waits, 1: waits, 2: Place("computes"), 3: ended}).why
        'rank 2 has not made this call: rank 0 waited too long in barrier at a.py:2'
    """
    waiters = _reached(rank, peers, places)  # by rank that is waited for, the rank that waits
    for said, ranks in (
        ("does not answer", [r for r in waiters if places[r] is None]),
        ("has ended without making this call", [r for r in waiters if _state(places[r]) == "ended"]),
        ("has not made this call", [r for r in waiters if not _peers(places[r])]),
    ):
        if ranks:
            about = ranks[0]  # the nearest
            return Verdict("late", f"rank {about} {said}: {_because(rank, call, waiters[about], places)}", about)
    circle = _circle(rank, peers, places)
    told = "; ".join(f"rank {r} in {call if r == rank else _call(places[r])}" for r in circle[:SHOWN])
    return Verdict("stuck", f"ranks {circle} wait for each other: {told}", -1)


def places_in_words(places: Mapping[int, Place | None]) -> str:
    """Who does what, for a run that took too long: who keeps it up stands first.

    Example:
        >>> places_in_words({0: Place("ended"), 1: Place("computes"), 2: Place("waits", "barrier", (1,)), 3: None})
        'rank 3 does not answer; rank 1 computes; rank 2 waits in barrier; rank 0 has ended its program'
    """

    def words(place: Place | None) -> tuple[int, str]:
        if place is None:
            return 0, "does not answer"
        if place.state == "waits":
            return 2, f"waits in {place.call}"
        return (1, "computes") if place.state == "computes" else (3, "has ended its program")

    told = sorted((*words(place), rank) for rank, place in places.items())
    more = f"; and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return "; ".join(f"rank {rank} {said}" for _, said, rank in told[:SHOWN]) + more


def _reached(rank: int, peers: Iterable[int], places: Mapping[int, Place | None]) -> dict[int, int]:
    """Every rank that the wait leads to, and a rank that waits for it: the nearest."""
    waiters: dict[int, int] = {}
    level = [(peer, rank) for peer in sorted(peers)]
    while level:
        new = []
        for peer, waiter in level:
            if peer != rank and peer not in waiters and peer in places:
                waiters[peer] = waiter
                new += [(further, peer) for further in _peers(places[peer])]
        level = new
    return waiters


def _circle(rank: int, peers: Iterable[int], places: Mapping[int, Place | None]) -> list[int]:
    """Ranks that wait for each other, lowest first; all of them wait."""
    path, now = [rank], min(peers, default=rank)
    while now not in path:
        path.append(now)
        now = min(_peers(places[now]), default=rank)
    return sorted(path[path.index(now) :])


def _because(rank: int, call: str, waiter: int, places: Mapping[int, Place | None]) -> str:
    """Why that matters to `rank`."""
    late = f"rank {rank} waited too long in {call}"
    theirs = _call(places[waiter])
    if waiter == rank or _text(theirs) == _text(call):
        return late
    return f"rank {waiter} waits in {theirs}, and {late}"


def _state(place: Place | None) -> str:
    return place.state if place is not None else ""


def _peers(place: Place | None) -> tuple[int, ...]:
    return place.peers if place is not None and place.state == "waits" else ()


def _call(place: Place | None) -> str:
    return place.call if place is not None else ""


def _text(call: str) -> str:
    """What was called, without the line."""
    return call.rpartition(" at ")[0] or call
