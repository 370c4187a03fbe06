"""Compile every kernel ahead of time, so that the first training step of a lesson does not wait for a compiler."""

from __future__ import annotations

from collections.abc import Callable

from lab.kernels.arguments import FLOATS
from lab.kernels.kernel import KERNELS


def warm(progress: Callable[[int, int, str], None] | None = None) -> None:
    """Compile all kernels for float32 and float64 and keep them in `cache_folder()`; quick when they are there already.

    Args:
        progress: called as progress(done, total, name) before each kernel, and with done == total at the end.

    Example:
        >>> seen = []
        >>> warm(lambda done, total, name: seen.append(done))
        >>> seen == list(range(len(KERNELS) * 2 + 1))
        True
    """
    work = [(record, dtype) for record in KERNELS.values() for dtype in FLOATS]
    for done, (record, dtype) in enumerate(work):
        if progress is not None:
            progress(done, len(work), f"{record.name} {dtype}")
        record.compile(dtype)
    if progress is not None:
        progress(len(work), len(work), "")
