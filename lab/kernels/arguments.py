"""What a kernel takes, told by the annotations of its function: element type, dimensions, read or written.

A kernel is compiled for contiguous arrays of one float type "T" and for plain numbers, nothing else. What a caller
gives is brought into that form when it can be (read only: a contiguous copy) and refused with three lines when it
cannot.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.errors import DTypeError, KernelError

FLOATS: tuple[str, ...] = ("float32", "float64")
"""What "T" may be; half-precision arrays stay with NumPy."""
FLOAT_CHARS = "fd"
"""The same as `dtype.char`, which takes a tenth of the time of `dtype.name`."""


class Argument(NamedTuple):
    """One parameter of a kernel.

    Attributes:
        name: as in the function's signature.
        dtype: "T" (float32 or float64, the same for all), or a NumPy dtype name.
        ndim: 0 for a plain number.
        written: the kernel writes into it, so a copy will not do.
    """

    name: str
    dtype: str
    ndim: int
    written: bool


class _Kind(NamedTuple):
    dtype: str
    ndim: int
    written: bool


Vector = Annotated[NDArray[Any], _Kind("T", 1, False)]
Matrix = Annotated[NDArray[Any], _Kind("T", 2, False)]
Labels = Annotated[NDArray[Any], _Kind("int64", 1, False)]
OutVector = Annotated[NDArray[Any], _Kind("T", 1, True)]
OutMatrix = Annotated[NDArray[Any], _Kind("T", 2, True)]


def arguments_of(function: Callable[..., Any]) -> tuple[Argument, ...]:
    """Read the annotations of a kernel.

    Example:
        >>> def double(x: Vector, out: OutVector, times: float) -> None: ...
        >>> [(a.dtype, a.ndim, a.written) for a in arguments_of(double)]
        [('T', 1, False), ('T', 1, True), ('float64', 0, False)]
    """
    plain = {float: _Kind("float64", 0, False), int: _Kind("int64", 0, False), bool: _Kind("bool", 0, False)}
    hints = typing.get_type_hints(function, include_extras=True)
    kinds = {name: plain.get(hint) or hint.__metadata__[0] for name, hint in hints.items() if name != "return"}
    return tuple(Argument(name, *kinds[name]) for name in inspect.signature(function).parameters)


def dtype_of(kernel: str, arguments: tuple[Argument, ...], values: tuple[Any, ...]) -> str:
    """The float type that all "T" arrays of a call share.

    Raises:
        DTypeError: they differ, or it is none of FLOATS.
    """
    found = {
        a.name: str(np.asarray(v).dtype.newbyteorder("="))
        for a, v in zip(arguments, values, strict=True)
        if a.dtype == "T"
    }
    if len(set(found.values())) != 1 or next(iter(found.values())) not in FLOATS:
        given = ", ".join(f"{name} {dtype}" for name, dtype in found.items())
        raise DTypeError(f"kernel {kernel} takes arrays of one dtype, float32 or float64", given=given)
    return next(iter(found.values()))


def prepared(kernel: str, argument: Argument, value: Any, dtype: str) -> Any:
    """`value` in the form that the kernel was compiled for.

    Raises:
        KernelError: an array that is written has gaps, is read-only, or the dimensions differ.
        DTypeError: labels that are no integers.
    """
    if not argument.ndim:
        return {"float64": float, "int64": int, "bool": bool}[argument.dtype](value)
    wanted = np.dtype(dtype if argument.dtype == "T" else argument.dtype)
    array = np.asarray(value)
    if array.ndim != argument.ndim:
        raise KernelError(
            f"kernel {kernel} wants {argument.name} with {argument.ndim} dimension(s)", given=f"shape {array.shape}"
        )
    if argument.written:
        if array is not value or not (array.flags.carray and array.dtype == wanted and array.dtype.isnative):
            raise KernelError(
                f"kernel {kernel} writes into {argument.name}, which must be one writable contiguous block of {wanted}",
                given=f"{array.dtype}, strides {array.strides}, writeable {array.flags.writeable}",
                hint="pass the array itself, not a view with gaps",
            )
        return array
    if wanted.kind == "i" and array.dtype.kind not in "iub":
        raise DTypeError(f"kernel {kernel} wants integers for {argument.name}", given=f"{array.dtype}")
    ready = np.require(array, wanted, ["C", "A", "W"])
    return ready if ready.dtype.isnative else ready.astype(wanted)
