"""For how long a worker has not been heard: counted in looks, so that no pause of who looks is taken for silence.

A notebook that is held for a minute, or a machine that slept, hears at its first look what came meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping

LOOK = 1.0
"""Seconds between two looks."""
QUIET = 5.0
"""Seconds for which a worker on a busy machine may be silent, however short the time-out of a run is."""


class Silence:
    """Told at every look when each worker was heard last.

    Example:
        >>> silence = Silence()
        >>> silence.look({"a": 7.0, "b": 7.0}), silence.look({"a": 7.5, "b": 7.0}), silence.look({"a": 8.0, "b": 7.0})
        ({'a': 0.0, 'b': 0.0}, {'a': 0.0, 'b': 1.0}, {'a': 0.0, 'b': 2.0})
    """

    def __init__(self) -> None:
        self._heard: dict[str, tuple[float, float]] = {}

    def look(self, last_seen: Mapping[str, float]) -> dict[str, float]:
        """Seconds of silence of each worker."""
        before = self._heard
        self._heard = {
            worker: (when, before[worker][1] + LOOK if worker in before and before[worker][0] == when else 0.0)
            for worker, when in last_seen.items()
        }
        return {worker: silent for worker, (_, silent) in self._heard.items()}
