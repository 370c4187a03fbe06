"""Networks for simulations: how long a message takes over a link, and how fast ranks add.

The model is alpha and beta: a message of N bytes takes latency + N / bandwidth. It knows no congestion inside a network
and no cache; it is right where one of the two terms is large, and tells which algorithm suits which size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lab.checks import number, whole
from lab.errors import ArgumentError
from lab.words import shown

Floats = npt.NDArray[np.float64]
Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Link:
    """A way from one rank to another, for simulations.

    Args:
        latency_s: seconds until a message of no bytes has arrived; 0 or more.
        bytes_per_s: in one direction; inf for a link on which only messages count.
        source: where the two numbers are from.

    Raises:
        ArgumentError: a latency that is no number or below 0, a bandwidth that is not above 0.

    Example:
        >>> Link(1e-6, 1e9).seconds(1000)
        2e-06
    """

    latency_s: float
    bytes_per_s: float
    source: str = ""

    def __post_init__(self) -> None:
        latency = number("latency_s", self.latency_s, hint="seconds, for example 5e-6")
        speed = number("bytes_per_s", self.bytes_per_s, hint="for example 1e9")
        if not 0 <= latency < math.inf:
            raise ArgumentError("a latency is 0 seconds or more", given=f"latency_s={shown(self.latency_s)}",
                                hint="seconds, for example 5e-6")  # fmt: skip
        if not speed > 0:
            raise ArgumentError("a link moves bytes", given=f"bytes_per_s={shown(self.bytes_per_s)}",
                                hint="above 0, for example 1e9; inf if only messages count")  # fmt: skip

    def seconds(self, n_bytes: float) -> float:
        """How long a message takes."""
        return self.latency_s + n_bytes / self.bytes_per_s


LINKS: Mapping[str, Link] = {
    "nvlink": Link(2e-6, 450e9, "NVIDIA H100 data sheet: 18 links, 900 GB/s both ways; a few us is usual for a copy"),
    "infiniband": Link(1.5e-6, 50e9, "NDR, 400 Gbit/s a port; 1 to 2 us between hosts is usual"),
    "pcie": Link(3e-6, 31.5e9, "PCI Express 4.0 x16: 16 GT/s, 16 lanes, 128b/130b; a few us is usual for a copy"),
    "ethernet_10g": Link(30e-6, 1.25e9, "10 Gbit/s line rate; 20 to 50 us is usual for TCP between hosts"),
    "loopback": Link(15e-6, 2e9, "TCP within a machine; the order of what laptops do, no measurement of yours"),
}
"""Links by name, with sources: line rates are from the standards, latencies are orders of magnitude."""

LinksOf: TypeAlias = "str | Link | Mapping[tuple[int, int], Link] | Callable[[int, int], Link]"
"""One link for all pairs, one for each (source, destination), or a function of both."""


@dataclass(frozen=True)
class Network:
    """Which link is between which ranks, and how fast ranks add, for simulations.

    Args:
        links: a `Link` or the name of one of `LINKS` for all pairs; or by (source, destination), a dictionary or a
            function. All are full duplex.
        n_cores: so many ranks can add at the same time; None for as many as there are.
        reduce_bytes_per_s: how many received bytes a core adds in a second; None adds in no time.

    Raises:
        ArgumentError: something else than links, cores that are not at least 1, a speed that is not above 0.

    Example:
        >>> Network("ethernet_10g").between(0, 1).bytes_per_s
        1250000000.0
        >>> far, near = Link(50e-6, 1e9), Link(1e-6, 50e9)
        >>> racks = Network(lambda src, dst: near if src // 4 == dst // 4 else far)
        >>> racks.between(0, 3) is near, racks.between(0, 4) is far
        (True, True)
    """

    links: LinksOf
    n_cores: int | None = None
    reduce_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        known = isinstance(self.links, Link | Mapping) or (isinstance(self.links, str) and self.links in LINKS)
        if not (known or callable(self.links)):
            raise ArgumentError("a network has links", given=f"links={shown(self.links)}",
                                hint=f"Link(latency_s, bytes_per_s), or one of {', '.join(LINKS)}")  # fmt: skip
        if self.n_cores is not None:
            whole("n_cores", self.n_cores, least=1)
        if self.reduce_bytes_per_s is not None:
            speed = number("reduce_bytes_per_s", self.reduce_bytes_per_s, hint="for example 5e9")
            if not speed > 0:
                raise ArgumentError("a core adds some bytes in a second", given=f"reduce_bytes_per_s={shown(speed)}",
                                    hint="above 0, for example 5e9; None adds in no time")  # fmt: skip

    @cached_property
    def _one(self) -> Link | None:
        if isinstance(self.links, str):
            return LINKS[self.links]
        return self.links if isinstance(self.links, Link) else None

    def between(self, src: int, dst: int) -> Link:
        """The link from one rank to another.

        Raises:
            ArgumentError: there is none.
        """
        if self._one is not None:
            return self._one
        assert not isinstance(self.links, str | Link)
        found = self.links.get((src, dst)) if isinstance(self.links, Mapping) else self.links(src, dst)
        if not isinstance(found, Link):
            raise ArgumentError(f"there is no link from rank {src} to rank {dst}", given=shown(found),
                                hint="a Link for each pair that the plan uses, in each direction")  # fmt: skip
        return found

    def seconds(self, src: Ranks, dst: Ranks, n_bytes: Floats) -> Floats:
        """How long each of many messages takes over its link; each pair is asked for once.

        Raises:
            ArgumentError: a pair without a link.
        """
        if self._one is not None:
            return self._one.latency_s + n_bytes / self._one.bytes_per_s
        pairs, which = np.unique(np.stack([src, dst]), axis=1, return_inverse=True)
        links = [self.between(int(a), int(b)) for a, b in pairs.T]
        latency, speed = (np.array([getattr(link, name) for link in links], np.float64)[which.reshape(-1)]
                          for name in ("latency_s", "bytes_per_s"))  # fmt: skip
        seconds: Floats = latency + n_bytes / speed
        return seconds

    def adding(self, n_bytes: Floats) -> Floats:
        """How long a core adds."""
        return np.zeros_like(n_bytes) if self.reduce_bytes_per_s is None else n_bytes / self.reduce_bytes_per_s
