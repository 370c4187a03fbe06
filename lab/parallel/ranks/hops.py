"""Collectives one step at a time: a rank waits before each step of a plan until whoever watches lets it go on.

All ranks of a plan count its steps alike, and are allowed the same number of them; so they stop in front of the same
step, each by itself, and none waits for a message of one that is held.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

from lab.events.gate import leave_out
from lab.parallel.ranks.hearing import Told
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.transport.alarm import Alarm

LOOKS = 0.5
"""Seconds between two looks at the alarm."""


class Allowed(NamedTuple):
    """Word to ranks: since the hold of this number began, so many steps may be done in all; inf for all."""

    hold: int
    n_steps: float


class AtHop(NamedTuple):
    """Word home, of rank 0: it waits in front of a step."""

    hold: int
    collective: int
    operation: str
    algorithm: str
    step: int
    """From 0, of `n_steps` of this collective."""
    n_steps: int
    n_allowed: float
    """As many as it knew to be allowed: who allowed more meanwhile need not take it for held."""

    @property
    def words(self) -> str:
        """Where ranks are held, as a run's `reason` says it.

        Example:
            >>> AtHop(1, 3, "all_reduce", "ring", 0, 6, 0.0).words
            'held before step 1 of 6 of the ring all-reduce'
        """
        operation = self.operation.replace("_", "-")
        return f"held before step {self.step + 1} of {self.n_steps} of the {self.algorithm} {operation}"


class Hops:
    """What holds one rank in front of each step of its collectives.

    Args:
        hold: number of the hold; words of an older one are ignored.
        home: where rank 0 tells that it waits; None on the others.

    Example:
        >>> box, told = Mailbox(), Mailbox()
        >>> hops = Hops(1, box, Alarm(), told)
        >>> box.put(Allowed(1, 2))
        >>> hops.collective(0, "all_reduce", "ring", n_steps=2)
        >>> hops.before(0); hops.before(1)
        >>> told.take()
        []
    """

    def __init__(self, hold: int, mailbox: Mailbox, alarm: Alarm, home: Told | None) -> None:
        self.hold, self._mailbox, self._alarm, self._home = hold, mailbox, alarm, home
        self._allowed, self._before, self._n_steps = 0.0, 0, 0
        self._about = (0, "", "")

    def collective(self, number: int, operation: str, algorithm: str, n_steps: int) -> None:
        """The next collective begins; it has so many steps, the same number on all ranks."""
        self._before, self._n_steps = self._before + self._n_steps, n_steps
        self._about = number, operation, algorithm

    def before(self, step: int) -> None:
        """Wait until this step of the collective is allowed.

        Raises:
            MeshError, LostRankError: the group has ended.
        """
        number = self._before + step
        if self._may(number):
            return
        start = perf_counter()
        if self._home is not None:
            self._home.put(AtHop(self.hold, *self._about, step, self._n_steps, self._allowed))
        while not self._may(number):
            self._alarm.check()
            self._mailbox.wait(LOOKS, Allowed)
        leave_out(perf_counter() - start)

    def _may(self, number: int) -> bool:
        if self._allowed <= number:
            said = [word.n_steps for word in self._mailbox.take(Allowed) if word.hold == self.hold]
            self._allowed = max([self._allowed, *said])
        return self._allowed > number
