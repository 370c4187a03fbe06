"""Arrays as ranks exchange them: which are refused, how they become flat memory, and how they are reduced.

What is refused is refused on the rank that gives it, before anything is sent.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

import numpy as np

from lab.errors import ArgumentError, DTypeError
from lab.events.bus import bus
from lab.events.event import Array
from lab.words import one_of, shown

VALUES = 4096
"""Entries of an array that an event carries, at most."""
NUMERIC = "iufcb"
"""Kinds of dtypes that can be added."""
REDUCTIONS = ("sum", "mean", "max", "min")
"""What may be made of the parts of all ranks."""


def value_of(flat: Array) -> Array | None:
    """A copy for an event: if a listener wants values, and there are few, and they are numbers."""
    return flat.copy() if bus.values and flat.size <= VALUES and flat.dtype.kind in NUMERIC else None


def whole_number(value: object, what: str) -> int:
    """A whole number that an argument must be.

    Raises:
        ArgumentError: it is none.

    Example:
        >>> whole_number(np.uint8(7), "tag")
        7
    """
    if type(value) is int:
        return value
    try:
        return operator.index(value)  # type: ignore[arg-type]  # whether it can is the question
    except TypeError:
        raise ArgumentError(f"the {what} is a whole number", given=f"{what}={shown(value)}", hint="an int") from None


def kind_of_array(array: Any) -> str:
    """In words.

    Raises:
        ArgumentError: it is no array of NumPy's own.

    Example:
        >>> kind_of_array(np.ones((3, 4), np.float32))
        'float32[3, 4]'
    """
    if type(array) is not np.ndarray and (
        not isinstance(array, np.ndarray) or isinstance(array, np.matrix | np.ma.MaskedArray)
    ):  # these two do not reshape as arrays do, and a mask would be lost
        hint = "np.asarray makes one" + (", without the mask" if isinstance(array, np.ma.MaskedArray) else "")
        raise ArgumentError("ranks exchange NumPy arrays", given=type(array).__name__, hint=hint)
    return kind_in_words(array.dtype, array.shape)


@lru_cache(maxsize=1024)  # the name of a dtype is worth 4 us
def kind_in_words(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """As `kind_of_array`, of an array that may not be there yet."""
    return f"{dtype}{list(shape)}"


def require_numbers(array: Array, *, adds: bool) -> None:
    """Refuse objects, and where it `adds` also what cannot be added.

    Raises:
        DTypeError: so it is.
    """
    if array.dtype.hasobject or (adds and array.dtype.kind not in NUMERIC):
        hint = "convert it with astype to float32 or float64"
        raise DTypeError("ranks exchange numbers", given=f"dtype {array.dtype}", hint=hint)


def flat_of(array: Array, *, writes: bool = True, adds: bool = False) -> Array:
    """`array` as 1-D contiguous memory, its own or a copy.

    Raises:
        DTypeError: as `require_numbers`.
        ArgumentError: it shall be written to, and cannot.
    """
    require_numbers(array, adds=adds)
    if writes and not array.flags.writeable:
        raise ArgumentError("the array cannot be written to", given="a read-only array", hint="give a copy of it")
    return (array if array.flags.c_contiguous else array.copy(order="C")).reshape(-1)


def put_back(flat: Array, array: Array) -> None:
    """Write what `flat_of` gave into `array`, if it was a copy."""
    if not array.flags.c_contiguous:
        array[...] = flat.reshape(array.shape)


def combine_of(op: object, array: Array) -> str:
    """How what comes is combined with what is here, so that `op` of all parts is the result; a mean is a sum at first.

    Raises:
        ArgumentError: there is no such reduction.
        DTypeError: the array's dtype has none.

    Example:
        >>> combine_of("mean", np.ones(3)), combine_of("max", np.arange(3))
        ('sum', 'max')
        >>> combine_of("mean", np.arange(3, dtype=np.int32))
        Traceback (most recent call last):
        lab.errors.DTypeError: a mean of whole numbers is not one of them
        given: op='mean' of int32[3]
        hint:  convert with astype to float32 or float64, or take op="sum"
    """
    if not (isinstance(op, str) and op in REDUCTIONS):
        raise ArgumentError("there is no such reduction", given=f"op={shown(op)}", hint=one_of(op, REDUCTIONS))
    kind, given = array.dtype.kind, f"op={op!r} of {kind_of_array(array)}"
    if op == "mean" and kind in "iub":
        raise DTypeError("a mean of whole numbers is not one of them", given=given,
                         hint='convert with astype to float32 or float64, or take op="sum"')  # fmt: skip
    if op in {"max", "min"} and kind == "c":
        raise DTypeError("complex numbers have no order", given=given, hint="reduce the parts, or np.abs")
    return "sum" if op == "mean" else op


def divide(flat: Array, op: str, world_size: int) -> None:
    """Make of the sum over all ranks the mean, if that was asked for, in place."""
    if op == "mean":
        np.true_divide(flat, world_size, out=flat)
