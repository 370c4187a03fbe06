"""Whether this Python and this NumPy keep arrays where compiled loops look for them; where their functions are."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.kernels.native_math import SYMBOLS
from lab.kernels.native_wrapper import (
    ALIGNED,
    API,
    CONTIGUOUS,
    DATA,
    DTYPE,
    FLAGS,
    HEAD,
    NDIM,
    NUMBER,
    OBJECTS,
    ORDER,
    SHAPE,
    WRITEABLE,
)


def addresses() -> dict[str, int]:
    """The addresses of what compiled loops call of Python, and of its objects."""
    functions = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in API}
    return functions | {name: id(object_) for name, object_ in OBJECTS.items()}


def fits_this_python() -> bool:
    """Whether everything is where the loops look: asked of real arrays, since no header says it."""
    if sys.implementation.name != "cpython" or os.name != "posix" or sys.byteorder != "little":
        return False
    if object.__basicsize__ != HEAD or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    process = ctypes.CDLL(None)
    return all(hasattr(process, name) for name in SYMBOLS) and all(map(_lies_as_known, ("f4", "f8", "i8", "?")))


def _lies_as_known(dtype: str) -> bool:
    writable, closed = np.zeros((3, 5), dtype), np.zeros(7, dtype)[1:4]
    closed.flags.writeable = False
    return all(_is_there(a) for a in (writable, closed, writable.T))


def _is_there(a: NDArray[Any]) -> bool:
    def at(where: int, kind: type[ctypes._SimpleCData]) -> int:  # type: ignore[type-arg]
        return int(kind.from_address(where).value or 0)

    word, pointer = ctypes.c_int32, ctypes.c_void_p
    x, shape, descr = id(a), at(id(a) + SHAPE, pointer), at(id(a) + DTYPE, pointer)
    flags = {CONTIGUOUS: a.flags.c_contiguous, ALIGNED: a.flags.aligned, WRITEABLE: a.flags.writeable}
    return (
        at(x + 8, pointer) == id(np.ndarray)
        and at(x + DATA, pointer) == a.ctypes.data
        and at(x + NDIM, word) == a.ndim
        and tuple(at(shape + 8 * i, ctypes.c_int64) for i in range(a.ndim)) == a.shape
        and descr == id(a.dtype)
        and at(descr + NUMBER, word) == a.dtype.num
        and chr(at(descr + ORDER, ctypes.c_uint8)) == a.dtype.byteorder
        and all(bool(at(x + FLAGS, word) & bit) == value for bit, value in flags.items())
    )
