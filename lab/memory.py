"""Memory that was freed is kept for the next array: a fresh page costs more than what is computed in it.

By default glibc gives large arrays back to the system when they are freed, and each new one is mapped page by page, on
first touch, by the kernel: a third of the time of a chain of elementwise operations on a million numbers.
"""

from __future__ import annotations

import ctypes
import logging
import os

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
