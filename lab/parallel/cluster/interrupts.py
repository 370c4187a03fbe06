"""Ctrl-C while workers start: the first one lets them finish and ends them in order, the second one kills them.

A worker that is half started is left behind, or tells of its end with a page of its own. A terminal and Jupyter send
the signal to the whole group: what starts here never sees it.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from lab.parallel.cluster.children import Children

T = TypeVar("T")

LOOKS = 0.1
"""Seconds between two looks: the system may give a signal to a thread that does not wake the one that waits."""


def uninterrupted(work: Callable[[], T], undo: Callable[[], object]) -> T:
    """What comes of `work`; Ctrl-C is told at once, waits until the work is over and undone, and then interrupts.

    A second Ctrl-C waits for nothing: the processes that the work has started are killed (on Linux), the rest is undone
    behind the scenes. Work that fails is undone as well. Both run in a thread of their own.

    Example:
        >>> def work():
        ...     signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        ...     print("goes on")
        >>> try:
        ...     uninterrupted(work, undo=lambda: print("undone"))
        ... except KeyboardInterrupt:
        ...     print("interrupted")
        goes on
        undone
        interrupted
    """
    resource_tracker.ensure_running()  # started later, with the first worker, it would let the signal through to it
    before = Children()
    with _counted() as came:
        working, done = _begin(work)
        in_time = _over(working, came)
        if undone := in_time and (bool(came) or done.exception() is not None):
            in_time = _over(_begin(undo)[0], came)
    if not in_time:

        def undo_in_the_end() -> None:
            working.join()
            undo()

        before.end(reap=False)  # their nannies wait for them
        threading.Thread(target=undo_in_the_end, daemon=True).start()
    elif came and not undone:  # it came at the very end
        undo()
    if came:
        signal.raise_signal(signal.SIGINT)
        raise KeyboardInterrupt  # whoever handles it otherwise: there is nothing to return
    return done.result()


@contextmanager
def _counted() -> Iterator[list[int]]:
    """Each Ctrl-C in the block; only the main thread is interrupted, and only a handler of Python can be put back."""
    came: list[int] = []

    def tell(number: int, _: object) -> None:
        came.append(number)
        if len(came) == 1:
            line = "\n" if sys.stderr.isatty() else ""  # after the ^C of the terminal
            sys.stderr.write(f"{line}Stopping ... (once more to stop at once)\n")
            sys.stderr.flush()

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield came
        return
    signal.signal(signal.SIGINT, tell)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


def _begin(work: Callable[[], T]) -> tuple[threading.Thread, Future[T]]:
    """A thread in which a call runs, and what comes of it. Processes and threads that it starts have its mask."""
    done: Future[Any] = Future()

    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):  # Windows has neither it nor the need
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 -- raised again by who waits
            done.set_exception(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), name="lab-starts-workers", daemon=True)
    thread.start()
    return thread, done


def _over(thread: threading.Thread, came: list[int]) -> bool:
    """Wait for the end of a thread, but not beyond a second Ctrl-C; whether it has ended."""
    while thread.is_alive() and len(came) < 2:
        thread.join(LOOKS)
    return not thread.is_alive()
