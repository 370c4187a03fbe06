"""`passing.move`, compiled once for each machine and loaded in each process: what a rank does without the interpreter.

It takes some ten seconds to compile and a third of a second to load, so it is made ready before ranks meet.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

from lab.kernels.arguments import Argument
from lab.kernels.cache import cache_folder
from lab.kernels.cells import EXACT
from lab.kernels.kernel import HELPERS, have_numba
from lab.kernels.passing import move

DIMENSIONS = {"rows": 2}
OCTETS = {"octets", "spill", "cells"}
ORDER = ("octets", "spill", "rows", "setting", "head", "words", "cells", "state", "times", "flag")
ARGUMENTS = tuple(
    Argument(name, "uint8" if name in OCTETS else "int64", DIMENSIONS.get(name, 1), written=name != "head")
    for name in ORDER
)

_lock = threading.Lock()
_ready: list[Callable[..., int] | None] = []
_kept: list[Any] = []
"""What is called belongs to it."""


def mover() -> Callable[..., int] | None:
    """`move`, compiled; None where numba is missing or cannot compile it.

    It is what numba's dispatcher calls once it has looked at the dtypes of all arguments, which nobody does here: that
    would take longer than to send 4 KiB.

    Example:
        >>> callable(mover())
        True
    """
    if _ready:
        return _ready[0]
    with _lock:
        if not _ready:
            _ready.append(_made())
        return _ready[0]


def _made() -> Any:
    if sys.platform != "linux" or not have_numba():
        return None
    import fcntl

    import lab.kernels.atomics_backend  # noqa: F401 -- it teaches numba what the loop calls
    from lab.kernels import backend

    backend.teach(HELPERS)
    made = backend.dispatcher(move, "move", "move", EXACT)
    try:
        with (cache_folder() / "move.lock").open("w") as one:  # the processes of a cluster start at once: one compiles
            fcntl.flock(one, fcntl.LOCK_EX)
            backend.compile_for(made, ARGUMENTS, "float64")
    except Exception as why:  # noqa: BLE001 -- whatever a compiler cannot do here, sockets can
        logging.getLogger("lab.kernels").warning("ranks meet over sockets: shared memory needs %s", why)
        return None
    (only,) = made.overloads.values()
    _kept.append(made)
    return only.entry_point
