"""What Python and the C library do with memory behind an engine's back, and two switches for it.

By default glibc gives large arrays back to the system when they are freed, and each new one is mapped page by page, on
first touch, by the kernel: a third of the time of a chain of elementwise operations on a million numbers. And Python
looks for cycles among all young objects each time that their number has grown by some hundred: in a graph of 100,000
nodes, which has none, that is most of the time.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "LAB_KEEP_FREED_MB"
DEFAULT_MB = 128
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)
_MOST_FROM_HEAP = 32 << 20  # the largest value that glibc takes for the second


def keep_freed() -> bool:
    """Let this process keep up to LAB_KEEP_FREED_MB (128) megabytes of freed memory at the top of its heap.

    It is done when the engine is imported, holds for all of the process, and changes no result. 0 leaves the allocator
    as it was. Returns whether anything was set: other C libraries than glibc have no such switch and need none.

    Example:
        >>> import os
        >>> before = os.environ.get("LAB_KEEP_FREED_MB")
        >>> os.environ["LAB_KEEP_FREED_MB"] = "0"
        >>> keep_freed()
        False
        >>> os.environ.pop("LAB_KEEP_FREED_MB") and before and os.environ.update(LAB_KEEP_FREED_MB=before)
    """
    text = os.environ.get(VARIABLE, "").strip() or str(DEFAULT_MB)
    if not text.isdecimal():
        logging.getLogger("lab").warning("%s is a number of megabytes, not %r: %d is used", VARIABLE, text, DEFAULT_MB)
        text = str(DEFAULT_MB)
    n_bytes = min(int(text) << 20, 2**31 - 1)  # mallopt takes an int
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if not n_bytes or set_option is None:
        return False
    return bool(set_option(_TRIM_THRESHOLD, n_bytes)) and bool(set_option(_MMAP_THRESHOLD, _MOST_FROM_HEAP))


_COLLECTING = threading.Lock()
_asked: list[int] = []
_outside: tuple[int, int, int] = (0, 0, 0)


@contextmanager
def gc_threshold(n_objects: int = 50_000) -> Iterator[None]:
    """Inside, Python looks for cycles only when `n_objects` more objects were made than freed (`gc.set_threshold`).

    A tape has no cycles and is freed by reference counts, so nothing is lost but the search. It holds for all of the
    process, whatever thread asked: while several contexts are open, the largest number of them; then what was before.

    Args:
        n_objects: at least 1; each recorded operation makes between two and three objects.

    Raises:
        ArgumentError: less than 1, or no whole number.

    Example:
        >>> import gc
        >>> before = gc.get_threshold()
        >>> with gc_threshold(100_000):
        ...     gc.get_threshold()[0]
        100000
        >>> gc.get_threshold() == before
        True
    """
    from lab.checks import whole  # not above: the doctor reads this file where NumPy is missing

    global _outside  # noqa: PLW0603 - gc's own numbers are of the process as well
    n = whole("n_objects", n_objects, least=1)
    with _COLLECTING:
        if not _asked:
            _outside = gc.get_threshold()
        _asked.append(n)
        gc.set_threshold(max(_asked), *_outside[1:])
    try:
        yield
    finally:
        with _COLLECTING:
            _asked.remove(n)
            gc.set_threshold(*((max(_asked), *_outside[1:]) if _asked else _outside))
