"""Keeping a recording while it grows: what a kill leaves is a whole recording of the run until a moment before.

Each time all of it is written anew, in the place of the one before. So the pauses grow with it: all that this has cost,
and what the next time will, stay within a share of the time of the training. The first time may take a moment more:
until then nobody knows what it costs, and a kill would leave nothing.
"""

from __future__ import annotations

import logging
from pathlib import Path
from time import monotonic, thread_time

from lab.errors import RecordingError
from lab.events import Recording, StepFinished

log = logging.getLogger("lab.cli")

SHARE = 0.02
"""Of the time of the training, in seconds of a processor: the rest of a write waits for the disk."""
LEAST_S = 2.0
"""Between two writes."""
FIRST_S = 0.2
"""That the first write may take."""
GUESS_S = 5e-6
"""What one event costs before it was measured, as on a busy laptop."""


class Pace:
    """When to write next. Times in seconds since the beginning.

    Example:
        >>> pace = Pace()
        >>> pace.due(1.0, 100), pace.due(2.0, 100)
        (False, True)
        >>> pace.wrote(2.0, 100, cost=0.04)  # twice as many will take twice as long, and 2 % of 5 s are 0.1 s
        >>> pace.due(5.0, 200), pace.due(6.5, 200)
        (False, True)
    """

    def __init__(self) -> None:
        self.spent, self._each, self._at = 0.0, GUESS_S, 0.0

    def due(self, now: float, n_events: int) -> bool:
        """Whether so many events may be written now."""
        cost = self.spent + self._each * n_events
        return now >= self._at + LEAST_S and cost <= max(SHARE * now, 0.0 if self._at else FIRST_S)

    def wrote(self, now: float, n_events: int, cost: float) -> None:
        """They were, and took so long."""
        self._at, self.spent, self._each = now, self.spent + cost, cost / max(n_events, 1)


class Keeper:
    """Writes a recording to its file when it is due; None is no file."""

    def __init__(self, recording: Recording, path: Path | None) -> None:
        self._recording, self._path, self._pace = recording, path, Pace()
        self._start = monotonic()

    def look(self) -> None:
        """Write it, if it is due and a step was recorded; a file that cannot be written is given up until the end."""
        if self._path is None or not self._pace.due(monotonic() - self._start, len(self._recording)):
            return
        if not len(self._recording.positions(StepFinished)):
            return
        n_events, before = len(self._recording), thread_time()
        try:
            self._recording.save(self._path)
        except RecordingError as error:
            log.warning("it is tried again at the end of the training: %s", error)
            self._path = None
        self._pace.wrote(monotonic() - self._start, n_events, thread_time() - before)
