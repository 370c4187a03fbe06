"""What a rank tells whoever launched it, while its program runs: few words, in order, none lost.

Events may be dropped when there are too many, and carry no arrays; a trained parameter must come home. So the launcher
asks the rank's worker, and the worker answers as soon as there is something.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client, Worker

    from lab.parallel.runtime import Comm

STARTS = 0.01
"""Seconds between two looks for a rank that has not met the others yet."""


class Words:
    """What waits to be fetched.

    Example:
        >>> words = Words()
        >>> words.tell("step 3"); words.tell("held")
        >>> words.close()
        >>> words.take(), words.take()
        (['step 3', 'held'], None)
    """

    def __init__(self) -> None:
        self._waiting: deque[object] = deque()
        self._lock = threading.Lock()
        self._closed = False
        self._wake: Callable[[], object] | None = None

    def tell(self, word: object) -> None:
        """Add a word; never waits. It is pickled when it is fetched: give arrays that do not change any more."""
        with self._lock:
            self._waiting.append(word)
        self._stir()

    def close(self) -> None:
        """There will be no more."""
        self._closed = True
        self._stir()

    def take(self) -> list[object] | None:
        """All words that came since the last time; None when there will be no more."""
        with self._lock:
            taken = list(self._waiting)
            self._waiting.clear()
        return taken or (None if self._closed else [])

    def on_change(self, wake: Callable[[], object]) -> None:
        """Call `wake`, in whatever thread, at every change from now on; at once if there is something."""
        self._wake = wake
        if self._waiting or self._closed:
            wake()

    def _stir(self) -> None:
        if (wake := self._wake) is not None:
            wake()


# --- between launcher and worker, through the scheduler --------------------------------------------------------------


def hear(client: Client, run: str, worker: str, seconds: float) -> list[Any] | None:
    """The words of the rank of `run` on `worker`, at most `seconds` later; None when there will be no more."""
    asked: Any = client
    try:
        answer = asked.run(_fetch, run, seconds, workers=[worker])[worker]
    except OSError:  # the worker has died, or the scheduler: the launch knows more
        return None
    found: list[Any] | None = pickle.loads(answer)  # noqa: S301 -- it came over the cluster's own connection
    return found


async def _fetch(run: str, seconds: float, dask_worker: Worker) -> bytes:
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    # Looked for by the clock: the rank's thread, which brings it, knows of no event loop yet.
    while (comm := _comm(dask_worker, run)) is None and loop.time() < until:  # noqa: ASYNC110
        await asyncio.sleep(STARTS)
    if comm is None:
        return pickle.dumps([])
    changed = asyncio.Event()
    comm.words.on_change(lambda: loop.call_soon_threadsafe(changed.set))
    while (words := comm.words.take()) == [] and loop.time() < until:
        changed.clear()
        try:
            await asyncio.wait_for(changed.wait(), until - loop.time())
        except TimeoutError:
            break
    return pickle.dumps(words)


def _comm(worker: Worker, run: str) -> Comm | None:
    from lab.parallel.dask_side.names import NAME

    seat = worker.plugins[NAME].seats.at(run)  # type: ignore[attr-defined]
    return seat.comm if seat is not None else None
