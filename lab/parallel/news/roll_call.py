"""The roll call of a cluster: how each worker is, told as events, and who of those seen before is gone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from lab.events.bus import bus
from lab.events.catalogue import WorkerSeen

log = logging.getLogger("lab.parallel")


class RollCall:
    """Emits a WorkerSeen for each worker whenever it is called.

    Args:
        look: the workers that there are, each as the fields of a WorkerSeen.
    """

    def __init__(self, look: Callable[[], Iterable[dict[str, Any]]]) -> None:
        self._look = look
        self._known: dict[str, WorkerSeen] = {}

    def __call__(self) -> None:
        """Look, and tell."""
        try:
            seen = {fields["worker"]: WorkerSeen(**fields) for fields in self._look()}
        except OSError as error:  # the launch itself tells that the scheduler has gone
            log.info("the workers cannot be seen: %s", error)
            return
        gone = [last for worker, last in self._known.items() if worker not in seen]
        self._known = seen
        for each in seen.values():
            bus.emit(each)
        for last in gone:
            bus.emit(WorkerSeen(last.worker, "gone", "", last.pid, 0, last.memory_limit_bytes, 0.0))
