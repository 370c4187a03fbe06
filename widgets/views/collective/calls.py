"""Which collectives a recording holds: where each begins, and where the launch that it belongs to ends.

Numbers of calls begin at 0 in each launch, so that the same number may come again; a recording may hold a million.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from lab.events import CollectiveFinished, CollectiveStarted, RankFinished, RankLost, RankStarted
from lab.parallel.transport.wire import COUNT_BITS
from widgets.fold import Events

LOOK_BACK = 200
"""Calls that are looked at, from the last one back, for one that is complete."""


class Call(NamedTuple):
    """A collective of a recording.

    Attributes:
        place: among all collectives, in the order in which they began.
        number: of the call in its launch.
        first: position at which the first rank entered.
        bound: position at which the next launch begins, or the length of the recording.
    """

    place: int
    number: int
    first: int
    bound: int


class Calls:
    """The collectives that all ranks of a recording made; `update` looks at what is new in it.

    Attributes:
        seen: how many events have been looked at.

    Example:
        >>> from lab.events import Bus, Recording
        >>> bus, rec = Bus(), Recording()
        >>> bus.attach(rec)
        >>> for number in (0, 2, 0):
        ...     bus.emit(CollectiveStarted(number, "all_reduce", "ring", 8, 1, 1))
        >>> bus.detach(rec)
        >>> calls = Calls(rec)
        >>> calls.update()
        >>> len(calls), calls[2]
        (3, Call(place=2, number=0, first=2, bound=3))
    """

    def __init__(self, events: Events) -> None:
        self.events = events
        self._first, self._number, self._launch = array("q"), array("q"), array("q")
        self._launches = [0]  # positions at which they begin
        self.seen = 0
        self._generation = self._world = -1
        self._latest: dict[int, int] = {}  # by rank, number of its latest call in this launch
        self._known: set[int] = set()  # numbers of the calls of this launch
        self._found: dict[int, bool] = {}  # complete or not, once it can not change any more

    def __len__(self) -> int:
        return len(self._first)

    def __getitem__(self, index: int) -> Call:
        launch = self._launch[index]
        bound = self._launches[launch + 1] if launch + 1 < len(self._launches) else self.seen
        return Call(range(len(self))[index], self._number[index], self._first[index], bound)

    def update(self) -> None:
        """Take what was recorded since the last time."""
        start, stop = self.seen, len(self.events)
        if start == stop:
            return
        ranks, calls = (self.events.columns(kind, start, stop) for kind in (RankStarted, CollectiveStarted))
        rows: list[tuple[int, ...]] = [(p, -1, number, 0) for p, number in _rows(ranks, "position", "generation")]
        rows += _rows(calls, "position", "rank", "collective", "world_size")
        for position, rank, number, world in sorted(rows):
            if rank < 0:
                self._rank_started(position, number)
            elif number >> COUNT_BITS == 0:  # a group's ranks are not numbered from 0, and its calls have other numbers
                self._entered(position, rank, number, world)
        self.seen = stop

    def _rank_started(self, position: int, generation: int) -> None:
        if generation != self._generation:
            self._generation = generation
            self._new_launch(position)

    def _entered(self, position: int, rank: int, number: int, world: int) -> None:
        if number <= self._latest.get(rank, -1) or (self._latest and world != self._world):
            self._new_launch(position)
        self._latest[rank], self._world = number, world
        if number not in self._known:
            self._known.add(number)
            self._first.append(position)
            self._number.append(number)
            self._launch.append(len(self._launches) - 1)

    def _new_launch(self, position: int) -> None:
        if self._latest:
            self._launches.append(position)
            self._latest, self._known = {}, set()

    def complete(self, call: Call) -> bool:
        """Whether all ranks have left it."""
        if call.place not in self._found:
            numbers = self.events.columns(CollectiveFinished, call.first, call.bound)["collective"]
            if np.count_nonzero(numbers == call.number) < self.started(call).world_size:
                return False
            self._found[call.place] = True
        return True

    def broken(self, call: Call) -> bool:
        """Whether a rank was lost or failed after it began, before all had left it."""
        if self.complete(call):
            return False
        ends = self.events.columns(RankFinished, call.first, call.bound)["state"]
        lost = self.events.columns(RankLost, call.first, call.bound)["lost_rank"]
        return bool(len(lost)) or "failed" in set(np.asarray(ends).tolist())

    def started(self, call: Call) -> CollectiveStarted:
        """What was called."""
        event = self.events[call.first]
        assert isinstance(event, CollectiveStarted)
        return event

    def latest(self, *, complete: bool) -> Call | None:
        """The latest call, if possible one that all left or that broke, and no barrier, where nothing is to be seen."""
        found: list[Call] = []
        for i in range(len(self) - 1, max(-1, len(self) - 1 - LOOK_BACK), -1):
            if self.started(self[i]).operation != "barrier":
                found.append(self[i])
                if not complete or self.complete(self[i]) or self.broken(self[i]):
                    return self[i]
        return next(iter(found), self[len(self) - 1] if len(self) else None)


def _rows(columns: Mapping[str, Any], *names: str) -> Iterator[tuple[int, ...]]:
    return zip(*(columns[name].tolist() for name in names), strict=True)
