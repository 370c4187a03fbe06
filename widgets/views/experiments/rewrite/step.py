"""What one pass did to each equation, read from two graphs as a recording holds them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from lab.events import GraphMade

_TYPE = re.compile(r":\w+\[[^\]]*\]")


class Line(NamedTuple):
    """One equation.

    Attributes:
        words: its text, with types.
        op: with the ops inside a fused one.
        origin: file and line.
        outs, reads, sources: variables that it makes, reads, and stands for in the graph before.
    """

    words: str
    op: str
    origin: str
    outs: tuple[int, ...]
    reads: tuple[int, ...]
    sources: tuple[int, ...]

    @property
    def short(self) -> str:
        """Its text without types; of a fused one the ops inside instead of the operands.

        Example:
            >>> Line("c:f64[2,3]@0 = add(a, 1.0:f64[])", "add", "", (2,), (0,), ()).short
            'c@0 = add(a, 1.0)'
        """
        text = _TYPE.sub("", self.words)
        outs, _, rest = text.partition(" = ")
        return text if self.op == rest.partition("(")[0] else f"{outs} = {self.op}"


Lines = tuple[Line, ...]
Link = tuple[int, int, bool]
"""Number before, number after, and whether the pass made something of it."""


def lines_of(event: GraphMade) -> Lines:
    """The equations of a graph."""
    columns = [_parts(*pair) for pair in ((event.outs, event.n_outs), (event.reads, event.n_reads),
                                          (event.sources, event.n_sources))]  # fmt: skip
    return tuple(Line(*row) for row in zip(event.words, event.ops, event.lines, *columns, strict=True))


def _parts(flat: Sequence[int], counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    ends = accumulate(map(int, counts), initial=0)
    return (tuple(map(int, flat[a:b])) for a, b in pairwise(ends))


class Step:
    """One pass.

    Attributes:
        before, after: the equations.
        links: which equation of the one is, or goes into, which of the other.
        left: of each equation before what became of it: "kept", "into" (others stand for it), "gone" or "moved".
        right: of each after: "kept", "new", "changed" (other operands, a buffer, or it stands for more) or "moved".
    """

    def __init__(self, before: Lines, after: Lines) -> None:
        self.before, self.after = before, after
        places = {v: i for i, line in enumerate(before) for v in line.outs}
        links: dict[tuple[int, int], bool] = {}
        for j, line in enumerate(after):
            for v in (*line.outs, *line.sources):
                if v in places:
                    i = places[v]
                    links[i, j] = not self._same(before[i], line)
        self.links: list[Link] = [(i, j, changed) for (i, j), changed in sorted(links.items())]
        kept = {i: j for i, j, changed in self.links if not changed}
        moved = set(kept) - _in_order(kept)
        into = {i for i, _, changed in self.links if changed} - set(kept)
        self.left = ["moved" if i in moved else "kept" if i in kept else "into" if i in into else "gone"
                     for i in range(len(before))]  # fmt: skip
        self.right = [self._arrival(j, {j: i for i, j in kept.items()}, moved) for j in range(len(after))]

    @staticmethod
    def _same(a: Line, b: Line) -> bool:
        return a.outs == b.outs and a.op == b.op

    def _arrival(self, j: int, kept: dict[int, int], moved: set[int]) -> str:
        line = self.after[j]
        if j not in kept:
            return "new"
        if line.sources or line.words != self.before[kept[j]].words:
            return "changed"
        return "moved" if kept[j] in moved else "kept"

    def near(self, most: int) -> tuple[list[int], list[int]]:
        """Numbers of the equations to show: all, or of a large graph those that changed and their neighbours.

        Args:
            most: on either side.
        """
        if max(len(self.before), len(self.after)) <= most:
            return list(range(len(self.before))), list(range(len(self.after)))
        left = [i for i, fate in enumerate(self.left) if fate != "kept"]
        right = [j for j, fate in enumerate(self.right) if fate != "kept"]
        left += [i for i, j, _ in self.links if j in set(right)]
        right += [j for i, j, _ in self.links if i in set(left)]
        return _with_neighbours(self.before, left, most), _with_neighbours(self.after, right, most)


def _in_order(kept: dict[int, int]) -> set[int]:
    """The most of these that stand in the same order in both: a longest rising row."""
    tails: list[int] = []
    ends: list[int] = []
    behind: dict[int, int | None] = {}
    for i, j in sorted(kept.items()):
        place = bisect_left(tails, j)
        tails[place : place + 1] = [j]
        ends[place : place + 1] = [i]
        behind[i] = ends[place - 1] if place else None
    found: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        found.add(last)
        last = behind[last]
    return found


def _with_neighbours(lines: Lines, changed: Iterable[int], most: int) -> list[int]:
    chosen = list(dict.fromkeys(changed))[:most]
    makers = {v: i for i, line in enumerate(lines) for v in line.outs}
    made = {v for i in chosen for v in lines[i].outs}
    beside = [makers[v] for i in chosen for v in lines[i].reads if v in makers]
    beside += [i for i, line in enumerate(lines) if made.intersection(line.reads)]
    return sorted(list(dict.fromkeys([*chosen, *beside]))[:most])
