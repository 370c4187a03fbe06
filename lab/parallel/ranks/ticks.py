"""A pipeline one tick at a time: before each tick all ranks agree whether it may begin, and wait together until it may.

Every rank takes part in the agreement of every tick, also where it rests: so all have finished the tick before when one
is held, none waits for a message of one that is held, and a step ends for all behind the same tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from lab.events.gate import leave_out
from lab.parallel.paper.ticks import Tick
from lab.parallel.ranks.hops import Allowed
from lab.parallel.ranks.machine import machine
from lab.parallel.ranks.runtime import Comm

BEAT = 0.5
"""Seconds between two agreements of ranks that are held: nobody's patience ends meanwhile."""
ALL = 1 << 62
"""As many ticks as there may ever be."""


class AtTick(NamedTuple):
    """Word home, of rank 0: all ranks wait in front of a tick."""

    hold: int
    tick: int
    """From 0, of `n_ticks` of this step."""
    n_ticks: int
    next: Tick
    n_allowed: float
    """As many as they knew to be allowed: who allowed more meanwhile need not take them for held."""

    @property
    def words(self) -> str:
        """Where ranks are held, as a run's `reason` says it.

        Example:
            >>> from lab.parallel.paper.schedules import Action
            >>> AtTick(1, 2, 6, (None, Action("B", 1, 0)), 2.0).words
            'held before tick 3 of 6: next B0 on rank 1; rank 0 rests'
        """
        doing = [f"{_name(action, rank)} on rank {rank}" for rank, action in enumerate(self.next) if action]
        resting = [str(rank) for rank, action in enumerate(self.next) if action is None]
        rest = f"; rank{'s' * (len(resting) > 1)} {', '.join(resting)} rest{'s' * (len(resting) == 1)}"
        return f"held before tick {self.tick + 1} of {self.n_ticks}: next {', '.join(doing)}{rest if resting else ''}"


def _name(action: tuple[str, int, int], rank: int) -> str:
    kind, stage, micro = action
    return f"{kind}{micro}" if stage == rank else f"{stage}{kind}{micro}"


class Ticks:
    """What holds the ranks of a pipeline in front of each tick. All of them make one, with the same hold.

    Time in which they are held is no time of the pipeline: `clock` stands still meanwhile, on all ranks alike, so that
    the spans of a step that was looked at stand beside each other as if nobody had looked.

    Args:
        hold: number of the hold; words of an older one are ignored.

    Example:
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     ticks = Ticks(1, comm)
        ...     comm.mailbox.put(Allowed(1, 2))
        ...     ticks.begin([(None, None)] * 2)
        ...     ticks.reach(2)
        ...     return ticks.at
        >>> run_ranks(program, world_size=2)
        [2, 2]
    """

    def __init__(self, hold: int, comm: Comm) -> None:
        self.hold, self._comm = hold, comm
        self._beat = min(BEAT, comm.links.timeout / 4)
        self._ticks: Sequence[Tick] = ()
        self._before = 0  # ticks of earlier steps in this hold
        self._allowed = 0  # as all ranks know it
        self._said = 0  # as rank 0 was told
        self._base = self._held_ns = 0
        self._machine = machine()
        self.at = 0
        """Ticks of this step that have begun."""

    def begin(self, ticks: Sequence[Tick]) -> None:
        """A step begins; it has these ticks, the same on all ranks."""
        self._before += len(self._ticks)
        self._ticks, self.at, self._held_ns = ticks, 0, 0

    def clock(self) -> int:
        """Nanoseconds like `perf_counter_ns`, without those for which ranks were held in this step."""
        return perf_counter_ns() - self._held_ns

    def reach(self, n: int) -> None:
        """Wait until the first `n` ticks of this step may begin.

        Raises:
            MeshError, LostRankError: the group has ended.
        """
        while self.at < n:
            if self._allowed < ALL:
                self._wait()
            self.at += 1

    def _wait(self) -> None:
        """In front of the next tick, where all ranks come."""
        came, is_told = self.clock(), False
        begins = self._agree(came)
        while self._allowed <= self._before + self.at:
            if self._comm.rank == 0:
                if not is_told:
                    self._tell()
                    is_told = True
                self._comm.mailbox.wait(self._beat, Allowed)
            self._agree(came)
        held_ns = self.clock() - begins
        self._held_ns += held_ns
        leave_out(held_ns / 1e9)

    def _agree(self, came: int) -> int:
        """Hear how many ticks are allowed; when on the clock of this rank the last of all came here."""
        comm, n = self._comm, self._comm.world_size
        if comm.rank == 0:
            said = [word.n_steps for word in comm.mailbox.take(Allowed) if word.hold == self.hold]
            self._said = max([self._said, *(int(min(number, ALL)) for number in said)])
        words = np.zeros(1 + 2 * n, np.int64)
        words[0] = self._said
        words[1 + comm.rank], words[1 + n + comm.rank] = came - (self._base if self.at else 0), self._machine
        comm.agree(words)
        self._allowed = int(words[0])
        times, machines = words[1 : 1 + n], words[1 + n :]
        if self.at == 0:  # on one machine all clocks are the same; else each counts from its own begin
            self._base = int(times.max()) if (machines == machines[0]).all() else came
            return self._base
        return self._base + int(times.max())

    def _tell(self) -> None:
        at = AtTick(self.hold, self.at, len(self._ticks), self._ticks[self.at], float(self._allowed))
        self._comm.home.put(at)
