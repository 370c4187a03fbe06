"""Links made slow on purpose: real data, held back on the side that sends it, as long as a slower network would take.

A rank sends one message at a time, as in the alpha-beta model: latency once for each, then its bytes by the bandwidth.
Nothing is invented and nothing is lost; what the machine itself takes comes on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter

from lab.checks import number
from lab.errors import ArgumentError
from lab.parallel.transport.alarm import Alarm
from lab.words import counted, shown

SPUN = 0.0005
"""Seconds at the end of a delay that are spent looking at the clock: a sleep ends that much too late."""


@dataclass(frozen=True)
class Throttle:
    """How slow links are.

    Args:
        bytes_per_s: bandwidth; None does not limit it.
        latency_s: seconds that each message takes, whatever its size.
        links: single directions that are slower or faster than the others, by (from, to).

    Raises:
        ArgumentError: a bandwidth that is not above 0, a latency below 0, or links that are none.

    Example:
        >>> slow = Throttle(bytes_per_s=1e8, latency_s=1e-4, links={(0, 1): Throttle(bytes_per_s=1e6)})
        >>> str(slow)
        '100 MB/s, 0.1 ms; 1 link apart'
        >>> slow.seconds(1, 0, 1_000_000), slow.seconds(0, 1, 1_000_000), slow.seconds(1, 0, 0, first=False)
        (0.0101, 1.0, 0.0)
    """

    bytes_per_s: float | None = None
    latency_s: float = 0.0
    links: Mapping[tuple[int, int], Throttle] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.bytes_per_s is not None and not number("bytes_per_s", self.bytes_per_s, hint="for example 1e9") > 0:
            raise ArgumentError("a bandwidth is above 0", given=f"bytes_per_s={self.bytes_per_s}",
                                hint="for example 1e9; None does not limit it")  # fmt: skip
        if not 0 <= number("latency_s", self.latency_s, hint="in seconds, for example 1e-4") < float("inf"):
            raise ArgumentError("a latency is no less than 0 seconds", given=f"latency_s={self.latency_s}",
                                hint="for example 1e-4")  # fmt: skip
        if not isinstance(self.links, Mapping):
            raise ArgumentError("links are given by their ends", given=f"links={shown(self.links)}",
                                hint="{(0, 1): Throttle(bytes_per_s=1e6)}")  # fmt: skip
        for ends, throttle in self.links.items():
            _require_link(ends, throttle)

    def seconds(self, src: int, dst: int, n_bytes: int, *, first: bool = True) -> float:
        """How long a message takes from `src` to `dst`; one that is not the `first` piece has no latency."""
        link = self.links.get((src, dst), self)
        return first * link.latency_s + (n_bytes / link.bytes_per_s if link.bytes_per_s else 0.0)

    def __str__(self) -> str:
        speed = f"{self.bytes_per_s / 1e6:g} MB/s" if self.bytes_per_s else "any bandwidth"
        apart = f"; {counted(len(self.links), 'link')} apart" if self.links else ""
        return f"{speed}, {self.latency_s * 1e3:g} ms{apart}"


def _require_link(ends: object, throttle: object) -> None:
    match ends:
        case (int(src), int(dst)) if min(src, dst) >= 0 and src != dst:
            if isinstance(throttle, Throttle) and not throttle.links:
                return
    raise ArgumentError("a link has two ends and a Throttle of its own", given=f"{shown(ends)}: {shown(throttle)}",
                        hint="{(0, 1): Throttle(bytes_per_s=1e6)}")  # fmt: skip


class Brake:
    """What holds one rank's messages back."""

    def __init__(self, throttle: Throttle, rank: int, alarm: Alarm) -> None:
        self.throttle, self._rank, self._alarm = throttle, rank, alarm

    def hold(self, messages: Iterable[tuple[int, int]], *, first: bool = True) -> None:
        """Wait as long as these messages take, each a peer and its bytes, one after the other.

        Raises:
            MeshError, LostRankError: the group has ended meanwhile.
        """
        seconds = sum(self.throttle.seconds(self._rank, peer, n_bytes, first=first) for peer, n_bytes in messages)
        until = perf_counter() + seconds
        while (left := until - perf_counter()) > 0:
            if left > SPUN and self._alarm.wait(left - SPUN):
                self._alarm.check()


def require_throttle(throttle: object) -> Throttle | None:
    """What may be given as `throttle`.

    Raises:
        ArgumentError: it is something else.
    """
    if throttle is None or isinstance(throttle, Throttle):
        return throttle
    raise ArgumentError("links are slowed down by a Throttle", given=f"throttle={shown(throttle)}",
                        hint="Throttle(bytes_per_s=1e8, latency_s=1e-4)")  # fmt: skip
