"""Landmarks: the places of a recording that one looks for, as training steps, backward walks and collectives.

Positions are columns and names are made when somebody asks, so that a recording of a million steps has a million
landmarks at no cost.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.events import BackwardStarted, CollectiveStarted, StepFinished, ValueSeen
from widgets.fold import Events, Positions

Ints = npt.NDArray[np.int64]
SEVERAL = 3
"""So many landmarks of one stop are named one by one."""


class Landmarks(NamedTuple):
    """Landmarks of a recording, in order.

    Attributes:
        positions: how many events have been folded at each, ascending.
        words: for each the number of its word in `names`.
        numbers: which of that word it is: step 12 has 12; -1 for what there is only one of.
        names: the words.

    Example:
        >>> marks = Landmarks.of([("step", np.array([3, 9]), np.array([1, 2])), ("test", np.array([5]), np.array([1]))])
        >>> marks.positions.tolist(), [marks.name(k) for k in range(3)]
        ([4, 6, 10], ['step 1', 'test 1', 'step 2'])
    """

    positions: Positions
    words: Ints
    numbers: Ints
    names: tuple[str, ...]

    @classmethod
    def of(cls, groups: Sequence[tuple[str, Positions, Ints]]) -> Landmarks:
        """Landmarks after the events at these positions: word, positions and numbers of each group."""
        names = tuple(dict.fromkeys(word for word, _, _ in groups))
        empty = np.empty(0, np.int64)
        positions = np.concatenate([empty, *(where + 1 for _, where, _ in groups)])
        words = np.concatenate([empty, *(np.full(len(where), names.index(word)) for word, where, _ in groups)])
        numbers = np.concatenate([empty, *(np.asarray(n, np.int64) for _, _, n in groups)])
        order = np.argsort(positions, kind="stable")
        return cls(positions[order], words[order], numbers[order], names)

    def name(self, k: int) -> str:
        """What the k-th is called."""
        word, number = self.names[self.words[k]], int(self.numbers[k])
        return word if number < 0 else f"{word} {number}"

    def at(self, stops: Positions) -> Ints:
        """For each landmark the stop at which it is seen: the first that is not before it."""
        found: Ints = np.minimum(np.searchsorted(stops, self.positions), len(stops) - 1)
        return found

    def named_at(self, stops: Positions, most: int = 400) -> dict[int, str]:
        """Stops that have landmarks, with their names; of more than `most` stops some, evenly chosen."""
        at = self.at(stops)
        where = np.unique(at)
        if len(where) > most:
            where = where[np.unique(np.linspace(0, len(where) - 1, most).astype(int))]
        first, last = np.searchsorted(at, where), np.searchsorted(at, where, side="right")
        return {
            int(i): self._several(f, t)
            for i, f, t in zip(where, first.tolist(), last.tolist(), strict=True)
        }


    def _several(self, first: int, end: int) -> str:
        """What those from the first up to the end are called together.

        Example:
            >>> Landmarks.of([("step", np.arange(9), np.arange(9))])._several(2, 7)
            'step 2 to step 6'
        """
        n, words = end - first, self.words[first:end]
        if n <= SEVERAL:
            return ", ".join(self.name(k) for k in range(first, end))
        if (words == words[0]).all():
            return f"{self.name(first)} to {self.name(end - 1)}"
        return f"{', '.join(self.name(k) for k in range(first, first + SEVERAL - 1))} and {n - SEVERAL + 1} more"


def landmarks_of(events: Events) -> Landmarks:
    """Steps, backward walks and collectives, of what many ranks do that of the lowest; the first nan or infinity."""
    steps, walks = events.columns(StepFinished), events.columns(BackwardStarted)
    calls = events.columns(CollectiveStarted)
    where, step = _of_lowest(steps, "step")
    groups = [("step", where, step)]
    where, _ = _of_lowest(walks, "root")
    groups.append(("backward walk", where, np.arange(1, len(where) + 1)))
    where, call = _of_lowest(calls, "collective")
    mine = np.asarray(calls["operation"])[np.isin(calls["position"], where)]
    groups += [(f"{name}".replace("_", "-"), where[mine == name], call[mine == name]) for name in dict.fromkeys(mine)]
    seen = events.columns(ValueSeen)
    bad = np.flatnonzero(seen["n_nonfinite"])[:1]
    groups.append(("first nan or infinity", seen["position"][bad], np.full(len(bad), -1)))
    return Landmarks.of(groups)


def _of_lowest(rows: Mapping[str, Any], number: str) -> tuple[Positions, Ints]:
    """Where the events of the lowest rank stand, and a field of theirs."""
    mine = rows["rank"] == np.min(rows["rank"], initial=sys.maxsize)
    return rows["position"][mine], np.asarray(rows[number])[mine]
