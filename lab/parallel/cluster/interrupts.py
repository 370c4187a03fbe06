"""Ctrl-C while workers start: kept until they all have, for one that is half started is left behind or tells of it.

A terminal and Jupyter send it to the whole group. What starts in the block never sees it; this process sees it then.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the block is over, and then does what it would have done.

    Example:
        >>> try:
        ...     with uninterrupted():
        ...         signal.raise_signal(signal.SIGINT)
        ...         print("goes on")
        ... except KeyboardInterrupt:
        ...     print("interrupted")
        goes on
        interrupted
    """
    came: list[int] = []
    with ExitStack() as stack:
        # Only the main thread is interrupted, and may say how. A handler that is not Python's could not be put back.
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not None:
            before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
            stack.callback(signal.signal, signal.SIGINT, before)
        if hasattr(signal, "pthread_sigmask"):  # which children inherit; Windows has neither it nor the need
            resource_tracker.ensure_running()  # started later, with the first worker, it would undo the next line
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            stack.callback(signal.pthread_sigmask, signal.SIG_SETMASK, mask)
        yield
    if came:
        signal.raise_signal(signal.SIGINT)
