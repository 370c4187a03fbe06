"""Threads that run parts of graphs: started when they are first needed, and kept for the next run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context

MOST = 32
"""Threads that are kept at the most; so many start only if so many are asked for at once."""

_lock = threading.Lock()
_kept: list[ThreadPoolExecutor] = []


def handed(work: Callable[[int], None], lane: int) -> Future[None]:
    """Have `work(lane)` done by a kept thread, in a copy of the caller's context.

    Example:
        >>> done = []
        >>> handed(done.append, 1).result()
        >>> done
        [1]
    """
    with _lock:
        if not _kept:
            _kept.append(ThreadPoolExecutor(MOST, thread_name_prefix="lab.graph"))
        return _kept[0].submit(copy_context().run, work, lane)


def _forked() -> None:
    """A forked child has none of the threads, and perhaps a lock that nobody will open."""
    global _lock  # noqa: PLW0603 - the one thing that a fork leaves unusable
    _lock = threading.Lock()
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
