"""Events of all ranks in one order: what has come is held until every rank has told as much, then sorted by time.

Pure: parcels' rows go in, rows in the launcher's clock come out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter

from lab.events.bus import Row
from lab.events.event import fields_of
from lab.parallel.news.relay import FOREVER_NS

PATIENCE_NS = 500_000_000
"""A rank that has not told anything for so long is not waited for: it may be stopped, or be loading its program."""
HELD = 200_000
"""More events than that are not held back."""

_time = itemgetter(1)


class Merge:
    """The rows of some ranks by time.

    Guaranteed: rows of a rank come out in that rank's order; over all ranks in the order of their aligned times, except
    those of a rank that told them more than `PATIENCE_NS` late, or that are over `HELD`.

    Args:
        offsets_ns: each rank's clock less ours.

    Example:
        >>> from lab.events import Origin, RankStarted
        >>> merge = Merge([0, 1000])
        >>> merge.take(0, 50, [Row(RankStarted, 40, Origin(0), ())])
        >>> merge.ready(now_ns=60)
        []
        >>> merge.take(1, 1050, [Row(RankStarted, 1030, Origin(1), ())])
        >>> [(row.time_ns, row.origin.rank) for row in merge.ready(now_ns=60)]
        [(30, 1), (40, 0)]
    """

    def __init__(self, offsets_ns: Sequence[int]) -> None:
        self._offsets = list(offsets_ns)
        self._until = [-FOREVER_NS] * len(self._offsets)
        self._held: list[Row] = []

    def take(self, rank: int, until_ns: int, rows: Sequence[Row]) -> None:
        """Rows of a rank, which has told all until then, both in its own clock."""
        offset = self._offsets[rank]
        self._until[rank] = until_ns if until_ns == FOREVER_NS else until_ns - offset
        self._held += [_moved(row, offset) for row in rows] if offset else rows

    @property
    def told_ns(self) -> int:
        """Until when every rank has told all, in our clock."""
        return min(self._until)

    def ready(self, now_ns: int) -> list[Row]:
        """What may be shown now, in order."""
        limit = FOREVER_NS if len(self._held) > HELD else max(self.told_ns, now_ns - PATIENCE_NS)
        self._held.sort(key=_time)  # nearly in order: 20 ns an entry
        n_ready = bisect_right(self._held, limit, key=_time)
        ready, self._held = self._held[:n_ready], self._held[n_ready:]
        return ready

    def rest(self) -> list[Row]:
        """All that is left, in order."""
        self._held.sort(key=_time)
        rest, self._held = self._held, []
        return rest


def _moved(row: Row, offset: int) -> Row:
    kind, time_ns, origin, values = row
    if kind.clocks:
        values = tuple(
            value - offset if name in kind.clocks else value  # type: ignore[operator]  # clocks are whole numbers
            for name, value in zip(fields_of(kind), values, strict=False)
        )
    return Row(kind, time_ns - offset, origin, values)
