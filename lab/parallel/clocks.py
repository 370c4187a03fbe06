"""How far a rank's clock is from the launcher's: by round trips, as NTP does it, unless both read one clock.

All times are `time.perf_counter_ns`: on Linux the monotonic clock, one for all processes of a host, except for those in
a time namespace of their own; other hosts count from another start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ROUNDS = 5
"""Round trips to each worker."""
ENOUGH = 0.1
"""Seconds after which no further round begins: a launch waits for this."""


class RoundTrip(NamedTuple):
    """A question after the time, and its answer."""

    asked_ns: int
    """In our clock, as `heard_ns`."""
    answered_ns: int
    """In theirs."""
    heard_ns: int


class Alignment(NamedTuple):
    """A clock beside ours: `offset_ns` is theirs less ours, right to within `error_ns`."""

    offset_ns: int
    error_ns: int
    same_clock: bool


HERE = Alignment(0, 0, same_clock=True)
UNKNOWN_NS = 2**62
"""The error of a clock that did not answer."""


def align(trips: Sequence[RoundTrip], *, same_host: bool) -> Alignment:
    """The offset of a clock by some round trips to it.

    Each answer was given between its question and its hearing, however unequal the two ways are: so each trip says
    between what bounds the offset is, and what all of them say is closer than the quickest alone. On one host, where
    both clocks should be one, an offset that may be 0 is 0; one that cannot is believed, for the clocks are two then.

    Example:
        >>> align([RoundTrip(100, 5_160, 200), RoundTrip(300, 5_330, 700)], same_host=False)
        Alignment(offset_ns=4995, error_ns=35, same_clock=False)
        >>> align([RoundTrip(100, 160, 200)], same_host=True)
        Alignment(offset_ns=0, error_ns=0, same_clock=True)
    """
    if not trips:
        return HERE if same_host else Alignment(0, UNKNOWN_NS, same_clock=False)
    least = max(trip.answered_ns - trip.heard_ns for trip in trips)
    most = min(trip.answered_ns - trip.asked_ns for trip in trips)
    if same_host and least <= 0 <= most:
        return HERE
    # Clocks that drift can make the bounds cross, by microseconds in the few ms that this takes.
    return Alignment((least + most) // 2, (abs(most - least) + 1) // 2, same_clock=False)
