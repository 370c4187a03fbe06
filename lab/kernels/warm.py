"""Compile every kernel ahead of time, so that the first training step of a lesson does not wait for a compiler."""

from __future__ import annotations

from collections.abc import Callable

from lab.kernels.arguments import FLOATS
from lab.kernels.kernel import KERNELS, Kernel
from lab.kernels.loops import LOOPS, Looped


def warm(progress: Callable[[int, int, str], None] | None = None) -> None:
    """Compile all kernels and loops for float32 and float64 into `cache_folder()`; quick when they are there already.

    Args:
        progress: called as progress(done, total, name) before each kernel, and with done == total at the end.

    Example:
        >>> seen = []
        >>> warm(lambda done, total, name: seen.append(done))
        >>> seen == list(range((len(KERNELS) + len(LOOPS)) * 2 + 1))
        True
    """
    named: list[tuple[str, Kernel | Looped]] = [*KERNELS.items(), *LOOPS.items()]
    work = [(name, record, dtype) for name, record in named for dtype in FLOATS]
    for done, (name, record, dtype) in enumerate(work):
        if progress is not None:
            progress(done, len(work), f"{name} {dtype}")
        record.compile(dtype)
    if progress is not None:
        progress(len(work), len(work), "")
