"""The end of workers that were started here: what keeps it waiting is told, what Dask says of broken lines is not.

A worker that is stopped or hangs is asked for 4 seconds and then killed, all by its nanny; nothing is left behind. One
that only waits for a core, on a busy machine, is on its way out: it takes a quarter of a second of one.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from lab.words import counted

SAYS = 1.5
"""Seconds in which a worker could have ended, after which it is said that it has not."""
LOOK = 0.25
"""Seconds between two looks."""
NOISY = ("distributed", "tornado", "asyncio")
"""Loggers that tell of lines which break because we close what is at their end."""


@contextmanager
def told(alive: Callable[[], Sequence[int]]) -> Iterator[None]:
    """Say once, on the terminal or below the cell, which processes keep the block waiting.

    Args:
        alive: the ids of those that have not ended.

    Example:
        >>> with told(lambda: []):
        ...     pass
    """
    ended = threading.Event()

    def watch() -> None:
        began, before = monotonic(), queues(alive())
        now = before
        while not ended.wait(LOOK):
            # What a thread that has ended since had waited still counts.
            now = {process: {**now.get(process, {}), **waits} for process, waits in queues(alive()).items()}
            if left := late(monotonic() - began, before, now):
                say(left)
                return

    def say(left: Sequence[int]) -> None:
        if sys.stderr is not None:
            who = f"{counted(len(left), 'worker')} (process {', '.join(map(str, left))})"
            have = "has" if len(left) == 1 else "have"
            sys.stderr.write(f"Closing the cluster: {who} {have} not ended yet; what does not answer is killed ...\n")
            sys.stderr.flush()

    watcher = threading.Thread(target=watch, name="closing a cluster", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def are_up(nannies: Iterable[Any]) -> Callable[[], list[int]]:
    """What tells which processes that are up now have not ended.

    A worker that is only starting, as after another was killed, hears that it shall end when it has started.

    Example:
        >>> are_up([])()
        []
    """
    up = {n.pid: n for n in nannies if n.pid and n.process.status.name == "running"}
    return lambda: [pid for pid, n in up.items() if n.pid == pid]


Queues = Mapping[int, Mapping[str, float]]
"""For each process the seconds for which each of its threads wanted a core and had none."""


def queues(processes: Iterable[int]) -> Queues:
    """How long the threads of processes have waited for a core, as Linux counts it; elsewhere nothing is known of it.

    Example:
        >>> queues([-1])
        {-1: {}}
    """
    return {process: dict(_waits(Path(f"/proc/{process}/task"))) for process in processes}


def _waits(tasks: Path) -> Iterator[tuple[str, float]]:
    try:
        for line in tasks.glob("*/schedstat"):
            _, waited, _ = line.read_text("ascii").split()
            yield line.parent.name, int(waited) / 1e9
    except OSError:  # the process, or that thread of it, has ended since: the next look sees what is left
        return


def late(elapsed: float, before: Queues, now: Queues) -> list[int]:
    """The processes that have not ended though they could have: waiting for a core is not counted.

    Example:
        >>> late(2.0, {7: {"7": 3.0}, 8: {"8": 3.0}}, {7: {"7": 4.9}, 8: {"8": 3.1}})
        [8]
    """

    def waited(process: int) -> float:
        known = before.get(process, {})
        return sum(seconds - known.get(thread, 0.0) for thread, seconds in now[process].items())

    return [process for process in now if elapsed - waited(process) >= SAYS]


@contextmanager
def hushed() -> Iterator[None]:
    """Nothing of Dask is shown within the block.

    Example:
        >>> with hushed():
        ...     logging.getLogger("distributed.nanny").warning("Worker process still alive after 4 seconds, killing")
    """
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in NOISY]
    found = {handler for name in names for handler in logging.getLogger(name).handlers}
    for handler in found:
        handler.addFilter(_nothing)
    try:
        yield
    finally:
        for handler in found:
            handler.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False
