"""Small equations put together into tasks, so that one lasts long enough to be handed to another thread.

Two rules, each of which leaves the order of tasks without a circle. A small task joins its only follower, or the only
one that it waits for; and so does, of whatever size, one of two that only have each other, as nothing could run beside
them. Small tasks that wait for the same, or for which the same wait, run one after the other as one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from lab.graph.dependencies import Needs

GRAIN_MS = 0.1
"""What is shorter is small. To hand one of two equations to another thread and have its result took 30 to 60 us on two
cores, where both together took 8: so a task is to last about twice as long as that."""


class Tasks(NamedTuple):
    """Equations in tasks.

    Attributes:
        members: of each task the numbers of its equations, ascending: an order in which they can run.
        needs: of each task those for which it waits, all before it.
        costs: of each.
    """

    members: tuple[tuple[int, ...], ...]
    needs: Needs
    costs: tuple[float, ...]


def grouped(needs: Needs, costs: Sequence[float], grain: float = GRAIN_MS) -> Tasks:
    """The equations of a graph in tasks.

    Args:
        grain: a task that costs less is small; with 0 only chains are put together.

    Example:
        >>> grouped(((), (), (0,), (1,), (2, 3)), (5.0, 5.0, 0.01, 5.0, 5.0)).members
        ((0, 2), (1, 3), (4,))
        >>> grouped(((), (0,), (1,)), (5.0, 5.0, 5.0)).members
        ((0, 1, 2),)
    """
    return _Grouping(needs, costs, grain).tasks()


class _Grouping:
    """Tasks while they are put together, by the number of their first equation."""

    def __init__(self, needs: Needs, costs: Sequence[float], grain: float) -> None:
        self.grain = grain
        self.cost = dict(enumerate(costs))
        self.joined = dict.fromkeys(range(len(needs)), 0.0)  # what each took up, that might have run beside something
        self.members = {k: [k] for k in range(len(needs))}
        self.before = {k: set(waits) for k, waits in enumerate(needs)}
        self.after: dict[int, set[int]] = {k: set() for k in range(len(needs))}
        for k, waits in enumerate(needs):
            for j in waits:
                self.after[j].add(k)

    def tasks(self) -> Tasks:
        n = -1
        while n != len(self.members):
            n = len(self.members)
            for k in list(self.members):
                while k in self.members and self._joins_follower(k):
                    pass
            self._siblings(lambda k: frozenset(self.before[k]))
            self._siblings(lambda k: frozenset(self.after[k]))
        return self._in_order()

    def _joins_follower(self, k: int) -> bool:
        """Put a task and one that follows it together, if a rule allows it."""
        for f in sorted(self.after[k]):
            only_after, only_before = len(self.after[k]) == 1, len(self.before[f]) == 1
            if only_after and only_before:
                self._merge(k, f, 0.0)
                return True
            small = self.cost[k] if only_after else self.cost[f] if only_before else self.grain
            if small + self.joined[k] + self.joined[f] < self.grain:
                self._merge(k, f, small)
                return True
        return False

    def _siblings(self, alike: Callable[[int], Hashable]) -> None:
        """Put small tasks together that have the same before them, or behind them: there is no way between such."""
        first: dict[Hashable, int] = {}
        for k in list(self.members):
            if self.cost[k] >= self.grain:
                continue
            key = alike(k)
            j = first.setdefault(key, k)
            if j == k:
                continue
            if self.cost[j] + self.cost[k] < self.grain:
                self._merge(j, k, 0.0)
                if alike(j) != key:  # what it takes up may change what is before or behind it
                    first.pop(key, None)
            else:
                first[key] = k

    def _merge(self, j: int, k: int, small: float) -> None:
        """Put task k into task j."""
        self.members[j] += self.members.pop(k)
        self.cost[j] += self.cost.pop(k)
        self.joined[j] += self.joined.pop(k) + small
        for mine, theirs in ((self.before, self.after), (self.after, self.before)):
            for other in mine.pop(k):
                theirs[other].discard(k)
                if other != j:
                    theirs[other].add(j)
                    mine[j].add(other)

    def _in_order(self) -> Tasks:
        """The tasks so that each comes after those for which it waits."""
        missing = {k: len(waits) for k, waits in self.before.items()}
        order: list[int] = []
        ready = sorted((k for k, n in missing.items() if not n), reverse=True)
        while ready:
            k = ready.pop()
            order.append(k)
            for f in sorted(self.after[k], reverse=True):
                missing[f] -= 1
                if not missing[f]:
                    ready.append(f)
        assert len(order) == len(self.members), "tasks wait for each other in a circle"
        number = {k: i for i, k in enumerate(order)}
        return Tasks(
            tuple(tuple(sorted(self.members[k])) for k in order),
            tuple(tuple(sorted(number[j] for j in self.before[k])) for k in order),
            tuple(self.cost[k] for k in order),
        )
