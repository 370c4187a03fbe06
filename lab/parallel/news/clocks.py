"""How far a rank's clock is from the launcher's: by round trips, as NTP does it, unless both read one clock.

All times are `time.perf_counter_ns`: on Linux the monotonic clock, one for all processes of a host, except for those in
a time namespace of their own; other hosts count from another start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter_ns, time_ns
from typing import NamedTuple, TypeAlias

ROUNDS = 5
"""Round trips to each worker."""
ENOUGH = 0.1
"""Seconds after which no further round begins: a launch waits for this."""
UNKNOWN_NS = 2**62
"""The error of a clock that did not answer."""
SLEW = 1000
"""A host's time of day is corrected by at most one part in so many (Linux: 1 / 2000)."""

Bounds: TypeAlias = tuple[int, int]


class Reading(NamedTuple):
    """The time of day, read between two looks at the clock that is ours."""

    before_ns: int
    wall_ns: int
    after_ns: int


def read() -> Reading:
    """Both clocks of this process, now."""
    return Reading(perf_counter_ns(), time_ns(), perf_counter_ns())


class RoundTrip(NamedTuple):
    """A question after the time, its answer, and when it was heard, in our clock."""

    asked: Reading
    answered: Reading
    heard_ns: int


class Alignment(NamedTuple):
    """A clock beside ours: `offset_ns` is theirs less ours, right to within `error_ns`."""

    offset_ns: int
    error_ns: int
    same_clock: bool


HERE = Alignment(0, 0, same_clock=True)


def align(trips: Sequence[RoundTrip], *, same_host: bool) -> Alignment:
    """The offset of a clock by some round trips to it.

    Each answer was given between its question and its hearing, however unequal the two ways are: so each trip says
    between what bounds the offset is, and what all of them say is closer than the quickest alone. On one host, where
    both clocks should be one, an offset that may be 0 is 0. One that cannot is believed, for the clocks are two then;
    there the time of day, which both share, measures it to microseconds.

    Example:
        >>> def trip(asked, answered, heard):
        ...     return RoundTrip(Reading(asked, asked, asked), Reading(answered, answered, answered), heard)
        >>> align([trip(100, 5_160, 200), trip(300, 5_330, 700)], same_host=False)
        Alignment(offset_ns=4995, error_ns=35, same_clock=False)
        >>> align([trip(100, 160, 200)], same_host=True)
        Alignment(offset_ns=0, error_ns=0, same_clock=True)
    """
    if not trips:
        return HERE if same_host else Alignment(0, UNKNOWN_NS, same_clock=False)
    least, most = _common(map(_by_way, trips))
    if same_host and least <= 0 <= most:
        return HERE
    if same_host:
        by_day = _common(map(_by_time_of_day, trips))
        if least <= by_day[0] <= by_day[1] <= most:  # else somebody has just set it
            least, most = by_day
    return Alignment((least + most) // 2, (most - least + 1) // 2, same_clock=False)


def _by_way(trip: RoundTrip) -> Bounds:
    return trip.answered.before_ns - trip.heard_ns, trip.answered.after_ns - trip.asked.before_ns


def _by_time_of_day(trip: RoundTrip) -> Bounds:
    ours, theirs = trip.asked, trip.answered
    between = theirs.wall_ns - ours.wall_ns
    slack = abs(between) // SLEW
    return theirs.before_ns - ours.after_ns - between - slack, theirs.after_ns - ours.before_ns - between + slack


def _common(bounds: Iterable[Bounds]) -> Bounds:
    """What all bounds have in common; of clocks that drift apart meanwhile, what nearly all have."""
    leasts, mosts = zip(*bounds, strict=True)
    least, most = sorted((max(leasts), min(mosts)))
    return least, most
