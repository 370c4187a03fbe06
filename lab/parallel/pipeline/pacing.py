"""The paced device: each action of a pipeline lasts at least its nominal time, so that few cores can play many ranks.

Paced by deadlines: an action begins, on paper, when its rank is free and what it needs was done on paper, and what a
sleep is late is made up by the next one; sleeping so long in each action would add up all delays along the pipeline.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np

from lab.checks import number
from lab.errors import ArgumentError, MeshError
from lab.parallel.ranks.machine import machine
from lab.parallel.ranks.runtime import Comm
from lab.words import shown

LATE = 4
"""More than 1/4 of an action behind, the paper gives in: the action's times are the real ones."""
NAP_S = 0.05
"""A rank that sleeps looks around so often: a launch that is stopped must not wait for a slow device."""


@dataclass(frozen=True)
class Paced:
    """Nominal times of a paced device. Its pictures say "paced": they are no measure of this machine.

    The real work has to fit: with more ranks than cores, ranks / cores times the work is to be below the nominal time.

    Args:
        forward_ms: one micro-batch through one stage forwards, at least.
        backward_ms: backwards, at least.

    Raises:
        ArgumentError: a time that is not above 0, or over a minute.

    Example:
        >>> Paced(forward_ms=20, backward_ms=40).nominal_ns("B")
        40000000
    """

    forward_ms: float = 20.0
    backward_ms: float = 40.0

    def __post_init__(self) -> None:
        for name in ("forward_ms", "backward_ms"):
            hint = f"{name}=20 lasts 20 milliseconds"
            if not 0 < number(name, getattr(self, name), hint=hint) <= 60_000:
                raise ArgumentError("an action of a paced device lasts more than 0 ms and at most a minute",
                                    given=f"{name}={shown(getattr(self, name))}", hint=hint)  # fmt: skip

    def nominal_ns(self, kind: str) -> int:
        """How long an action of this kind ("F" or "B") lasts at least, in nanoseconds."""
        return round(1e6 * (self.forward_ms if kind == "F" else self.backward_ms))


class Device:
    """When an action begins and ends: as measured.

    Attributes:
        clock: nanoseconds, on all ranks alike; that of `time.perf_counter_ns`, where nobody holds the ranks.
    """

    paced = False

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        self.clock = clock

    def begin(self, kind: str, after_ns: int) -> int:
        """The start of an action whose needs were done at `after_ns`."""
        return self.clock()

    def end(self, kind: str, start_ns: int) -> int:
        """The end of an action whose work is done."""
        return self.clock()


class PacedDevice(Device):
    """When an action begins and ends, on paper; `end` waits until then.

    Args:
        clock: nanoseconds, of one clock on all ranks.
        sleep: waits so many seconds, or somewhat longer.

    Example:
        >>> device = PacedDevice(Paced(forward_ms=2, backward_ms=4))
        >>> start = device.begin("F", after_ns=0)
        >>> end = device.end("F", start)
        >>> end - start >= 2_000_000, perf_counter_ns() >= end
        (True, True)
    """

    paced = True

    def __init__(
        self, times: Paced, clock: Callable[[], int] = perf_counter_ns, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        super().__init__(clock)
        self._times, self._sleep = times, sleep
        self._free_ns = 0  # when this rank's last action ended, on paper

    def begin(self, kind: str, after_ns: int) -> int:
        return self._held_to(max(self._free_ns, after_ns), kind)

    def end(self, kind: str, start_ns: int) -> int:
        end_ns = start_ns + self._times.nominal_ns(kind)
        while (left_ns := end_ns - self.clock()) > 0:
            self._sleep(min(left_ns / 1e9, NAP_S))
        self._free_ns = self._held_to(end_ns, kind)
        return self._free_ns

    def _held_to(self, paper_ns: int, kind: str) -> int:
        """A time on paper, or the real one where the paper is too far behind."""
        now_ns = self.clock()
        return now_ns if now_ns - paper_ns > self._times.nominal_ns(kind) / LATE else paper_ns


def device_for(comm: Comm, paced: Paced | None) -> Device:
    """The device of this rank; all ranks call it together.

    Raises:
        MeshError: a paced device whose ranks are on several hosts: their clocks are not one.
    """
    if paced is None:
        return Device()
    hosts = np.zeros(comm.world_size, np.int64)
    hosts[comm.rank] = machine()
    n_hosts = len(set(comm.agree(hosts).tolist()))
    if n_hosts > 1:
        raise MeshError("a paced pipeline needs all ranks on one host", given=f"{comm.world_size} ranks on {n_hosts}",
                        hint="its times are those of one clock; leave out paced=")  # fmt: skip
    return PacedDevice(paced)
