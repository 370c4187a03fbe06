"""What a loop that shares memory with other processes needs of the processor and of the system, for numba to compile.

The functions here are their plain twins: the interpreter's lock makes each of them as good within one process.
"""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import NDArray


def load(words: NDArray[Any], i: int) -> int:
    """`words[i]` as another process wrote it; what that one wrote before can be read from here on (acquire).

    Example:
        >>> import numpy as np
        >>> load(np.array([3, 4]), 1)
        4
    """
    return int(words[i])


def store(words: NDArray[Any], i: int, value: int) -> None:
    """Write `words[i]` after all that was written before (release).

    Example:
        >>> import numpy as np
        >>> words = np.array([3, 4])
        >>> store(words, 1, 5)
        >>> words
        array([3, 5])
    """
    words[i] = value


def now() -> int:
    """Nanoseconds of the clock of `time.perf_counter_ns`.

    Example:
        >>> now() <= now()
        True
    """
    return time.perf_counter_ns()


def pause() -> None:
    """Let the processor's other half work for some nanoseconds: this one only waits."""


def give_way() -> None:
    """Let another thread have this core, if one wants it."""
    time.sleep(0)


def nap(microseconds: int) -> None:
    """Sleep; to be woken costs about as long again."""
    time.sleep(microseconds * 1e-6)
