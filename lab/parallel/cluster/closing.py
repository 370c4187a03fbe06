"""The end of workers that were started here: what keeps it waiting is told, what Dask says of broken lines is not.

A worker that is stopped or hangs is asked for 4 seconds and then killed, all by its nanny; nothing is left behind.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from lab.words import counted

SAYS = 1.5
"""Seconds of waiting after which it is said for what."""
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

    def say() -> None:
        if (left := alive()) and sys.stderr is not None:
            who = f"{counted(len(left), 'worker')} (process {', '.join(map(str, left))})"
            have = "has" if len(left) == 1 else "have"
            sys.stderr.write(f"Closing the cluster: {who} {have} not ended yet; what does not answer is killed ...\n")
            sys.stderr.flush()

    timer = threading.Timer(SAYS, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


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
