"""How many cores there are to compute on."""

from __future__ import annotations

import os


def n_cores() -> int:
    """Cores that this process may use.

    Example:
        >>> n_cores() >= 1
        True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
