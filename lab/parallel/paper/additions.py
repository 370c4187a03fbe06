"""In which order a plan adds: every sum that a rank comes to hold is a tree of additions, known by a number.

Equal trees have equal numbers, whoever built them; the two sides of one addition may be swapped, for a + b and b + a
have the same bits. So ranks that promise the same sum hold the same bits if the numbers are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.parallel.paper.operations import Counts

SHOWN = 6
"""So many additions, one inside the other, are written out; what lies deeper is "..."."""


class Additions:
    """The trees of one plan, and which of them each rank holds in each chunk.

    Args:
        world_size: number of ranks; number r is what rank r had.
        n_chunks: into how many chunks the buffer is cut.

    Example:
        >>> additions = Additions(3, 1)
        >>> additions.put(0, 0, additions.take(1, 0, 1), adds=True)
        >>> additions.put(1, 0, additions.take(0, 0, 1), adds=False)
        >>> additions.held, additions.words(additions.held[0][0])
        ([[3], [3], [2]], '0 + 1')
    """

    def __init__(self, world_size: int, n_chunks: int) -> None:
        self.held = [[rank] * n_chunks for rank in range(world_size)]
        self._world_size = world_size
        self._sides: list[tuple[int, int]] = []  # of number world_size, and those after it, as first added
        self._number: dict[tuple[int, int], int] = {}

    def take(self, rank: int, start: int, stop: int) -> list[int]:
        """What `rank` holds in these chunks, as a copy."""
        return self.held[rank][start:stop]

    def put(self, rank: int, start: int, came: Sequence[int], *, adds: bool) -> None:
        """Add what came to what `rank` holds from chunk `start` on, or store it there."""
        mine = self.held[rank]
        for chunk, theirs in enumerate(came, start):
            mine[chunk] = self._sum(mine[chunk], theirs) if adds else theirs

    def _sum(self, mine: int, theirs: int) -> int:
        key = (mine, theirs) if mine < theirs else (theirs, mine)
        if (known := self._number.get(key)) is not None:
            return known
        number = self._number[key] = self._world_size + len(self._sides)
        self._sides.append((mine, theirs))
        return number

    def disorder(self, promise: Counts) -> str:
        """Where two ranks that are promised the same end with another order of additions; "" if nowhere.

        Args:
            promise: as `promised` makes it; it has been kept.
        """
        for chunk in range(promise.shape[1]):
            first: dict[bytes, int] = {}
            for rank, row in enumerate(promise[:, chunk]):
                other = first.setdefault(np.ascontiguousarray(row).tobytes(), rank)
                mine, theirs = self.held[rank][chunk], self.held[other][chunk]
                if mine != theirs and (row >= 0).all():
                    return (f"chunk {chunk} is {self.words(theirs)} on rank {other}, "
                            f"{self.words(mine)} on rank {rank}")  # fmt: skip
        return ""

    def words(self, number: int, depth: int = SHOWN) -> str:
        """A tree as a sum of ranks."""
        if number < self._world_size:
            return str(number)
        if not depth:
            return "..."
        a, b = self._sides[number - self._world_size]
        left = self.words(a, depth - 1)  # a sum from the left needs no brackets: so does Python add
        right = self.words(b, depth - 1)
        return f"{left} + {right}" if b < self._world_size or not depth - 1 else f"{left} + ({right})"
