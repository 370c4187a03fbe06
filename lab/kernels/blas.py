"""One BLAS thread while runs go on: matrix products share the machine with a notebook, and lose badly when they spin.

OpenBLAS splits a product of 64 x 128 matrices over all cores and spins until the slowest is done: with one of two cores
busy, a step of the digits network took 17 ms instead of 0.6. The number of threads is a setting of the whole process.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
"""Where a user says how many threads to use; that is respected."""
_AFFIXES = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))

_lock = threading.Lock()
_before: list[tuple[int, ...]] = []  # one entry for each block that is entered; the first has the numbers to restore


class Library(NamedTuple):
    """A loaded OpenBLAS: how to read and write its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], None]


@cache
def libraries() -> tuple[Library, ...]:
    """Every OpenBLAS of this process; none where NumPy uses another BLAS."""
    maps = Path("/proc/self/maps")
    if maps.exists():
        lines = [line.split(maxsplit=5) for line in maps.read_text("utf-8", errors="replace").splitlines()]
        paths = {Path(line[5]) for line in lines if len(line) == 6 and "openblas" in line[5]}
    else:
        home = Path(np.__file__).parent
        folders = home.with_name("numpy.libs"), home / ".dylibs"
        paths = {path for folder in folders for path in folder.glob("*openblas*")}
    return tuple(found for path in sorted(paths) if (found := _opened(path)))


def _opened(path: Path) -> Library | None:
    try:
        library = ctypes.CDLL(str(path))  # loaded already: this only finds it again
    except OSError:
        return None
    for before, after in _AFFIXES:
        get = getattr(library, f"{before}openblas_get_num_threads{after}", None)
        if get is not None:
            return Library(get, getattr(library, f"{before}openblas_set_num_threads{after}"))
    return None


def blas_threads() -> tuple[int, ...]:
    """The number of threads of each OpenBLAS.

    Example:
        >>> all(n >= 1 for n in blas_threads())
        True
    """
    return tuple(library.get() for library in libraries())


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One thread until the last of all that are in such a block leaves it; then as before.

    Example:
        >>> with one_blas_thread():
        ...     set(blas_threads()) <= {1}
        True
    """
    if any(name in os.environ for name in VARIABLES):
        yield
        return
    with _lock:
        _before.append(blas_threads())
        for library in libraries():
            library.set(1)
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before:
                for library, n in zip(libraries(), first, strict=True):
                    library.set(n)
