"""Two recordings on one clock: step beside step, walk beside walk, and between them stop beside stop."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from widgets.fold import Positions
from widgets.landmarks import Ints, Landmarks

Pairs = npt.NDArray[np.int64]
"""Of shape (n, 2): for each moment how many events of each recording have been folded."""


def aligned(stops: tuple[Positions, Positions], marks: tuple[Landmarks, Landmarks]) -> Pairs:
    """Moments of two recordings: common landmarks fall together, and who has fewer stops on the way waits before.

    Example:
        >>> step = lambda *where: Landmarks.of([("step", np.array(where), np.arange(1, len(where) + 1))])
        >>> a, b = np.array([1, 2, 3, 4]), np.array([1, 2, 3, 4, 5, 6])
        >>> aligned((a, b), (step(1, 3), step(3, 5))).tolist()
        [[1, 1], [1, 2], [1, 3], [2, 4], [3, 5], [4, 6]]
    """
    ends = _common_ends(stops, marks)
    starts = [np.concatenate([[0], e[:-1]]) for e in ends]
    lengths = [e - s for e, s in zip(ends, starts, strict=True)]
    rows = np.maximum(*lengths)
    section = np.repeat(np.arange(len(rows)), rows)
    within = np.arange(len(section)) - np.repeat(np.cumsum(rows) - rows, rows)
    meets = (within == rows[section] - 1) & (section < len(rows) - 1)  # the landmark; behind the last there is none
    tail = section == len(rows) - 1
    columns = []
    for own, start, length in zip(stops, starts, lengths, strict=True):
        last = length[section] - 1
        index = start[section] + np.where(meets, last, np.minimum(within, last - ~tail))
        columns.append(np.concatenate([[0], own])[index + 1])  # before the first stop nothing has been folded
    return np.stack(columns, axis=1) if len(section) else np.zeros((1, 2), np.int64)


def _common_ends(stops: tuple[Positions, Positions], marks: tuple[Landmarks, Landmarks]) -> tuple[Ints, Ints]:
    """One more than the stop of each common landmark, and at last the number of all stops."""
    names = {name: k for k, name in enumerate(dict.fromkeys((*marks[0].names, *marks[1].names)))}
    keys = []
    for m in marks:
        word = np.array([names[name] for name in m.names] or [0], np.int64)
        keys.append(word[m.words] << 40 | m.numbers & (1 << 40) - 1)
    _, i, j = np.intersect1d(keys[0], keys[1], return_indices=True)  # of equal ones the first
    order = np.argsort(i)
    i, j = i[order], j[order]
    same_order = j == np.maximum.accumulate(j) if len(j) else j.astype(bool)
    ends = []
    for m, own, k in zip(marks, stops, (i[same_order], j[same_order]), strict=True):
        at = m.at(own)[k] + 1 if len(own) else np.zeros(len(k), np.int64)
        ends.append(np.append(at, len(own)).astype(np.int64))
    return ends[0], ends[1]
