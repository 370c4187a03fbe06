"""On the scheduler: how much memory a worker had when its nanny ended it for that, and how much it was to have."""
# ruff: noqa: TID253 -- this file is imported when the first cluster is used, and by nobody else

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from distributed.scheduler import WorkerState

TOPIC = "worker-restart-memory"
"""Under which a nanny logs that it ends a worker for its memory, before it does."""
REMEMBERED = 256
"""Workers of which something is known; one that is started again has another address."""
COMES = 0.3
"""Seconds in which the nanny's word comes, if it comes: the news that the worker is gone may be faster."""
NEAR = 0.5
"""Part of its limit that a worker had at its last heartbeat, half a second before, if its nanny's word may come."""


class Ends:
    """What is known of workers that are there, and of those that have gone."""

    def __init__(self) -> None:
        self._states: dict[str, WorkerState] = {}
        self._had: dict[str, int] = {}
        self._heard: dict[str, asyncio.Event] = {}

    def arrived(self, state: WorkerState) -> None:
        """A worker joined."""
        self._states[state.address], self._heard[state.address] = state, asyncio.Event()
        while len(self._states) > REMEMBERED:
            oldest = next(iter(self._states))
            for known in (self._states, self._had, self._heard):
                known.pop(oldest, None)

    def told(self, topic: str, message: Any) -> None:
        """Something was logged, by whomever."""
        if topic == TOPIC and message["worker"] in self._states:
            self._had[message["worker"]] = int(message["rss"])
            self._heard[message["worker"]].set()

    async def memory(self, worker: str) -> list[int] | None:
        """What a worker that has gone had when it was ended for its memory, and its limit; None if it was not."""
        if (state := self._states.get(worker)) is None or not state.memory_limit:
            return None
        if int((state.metrics or {}).get("memory", 0)) > NEAR * state.memory_limit:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._heard[worker].wait(), COMES)
        return [self._had[worker], int(state.memory_limit)] if worker in self._had else None
