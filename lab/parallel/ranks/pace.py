"""Which collectives of a rank are told: all, until they come so fast that to tell all of them would slow the program.

A loop of small all-reduces makes a hundred thousand events a second, and whoever brings them home and keeps them takes
the cores that the ranks need. So beyond a beginning, and where steps are not told as a whole anyway, one collective of
2, 4, 8 ... is told, whole; the events of the others are counted as lost.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

FREE = 1024
"""Collectives at the beginning of a program that are told in any case."""
BLOCK = 64
"""Collectives after which it is looked how fast they come."""
SHARE = 0.02
"""Of the time of a collective: what telling may take, on all cores together."""
COST, COST_OF_VALUES = 25e-6, 80e-6
"""Seconds that an event takes on its way from a rank into a recording, and one with an array; on two cores, with the
work of all processes in it."""


class Pace:
    """How a rank that makes collectives at some pace tells of them.

    Members look at their own clocks, and come to the same answer as they meet each time anyway; where they are between
    two answers, a few collectives are told by some of them only.

    Args:
        clock: in seconds.

    Attributes:
        stride: one collective of so many is told.

    Example:
        >>> ticks = iter(range(100))
        >>> pace = Pace(clock=lambda: next(ticks) * 1e-3)  # 64 collectives in a thousandth of a second
        >>> told = [number for number in range(4000) if pace.tells(number, 4, values=False)]
        >>> len(told[: FREE + BLOCK]), told[FREE + BLOCK :]
        (1088, [1536, 2048, 2560, 3072, 3584])
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.stride, self._clock = 1, clock
        self._number, self._at, self._next = 0, 0.0, FREE

    def tells(self, number: int, n_events: int, *, values: bool) -> bool:
        """Whether the collective with this number, which would be `n_events`, shall be told; asked once or twice."""
        if number >= self._next:
            self._look(number, n_events * (COST_OF_VALUES if values else COST))
        return not number % self.stride

    def _look(self, number: int, cost: float) -> None:
        now, before = self._clock(), self._at
        if self._number:
            seconds = max(now - before, 1e-9) / (number - self._number)
            wanted = 1 << (int(cost / (SHARE * seconds))).bit_length()
            if not self.stride // 2 <= wanted <= self.stride:  # near the edge, ranks would go to and fro
                self.stride = wanted
        self._number, self._at, self._next = number, now, number + BLOCK
