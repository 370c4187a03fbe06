"""What an experiment is made on: a function and a place in its domain, checked before anything is measured."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.autograd.tensor import Tensor
from lab.errors import ArgumentError
from lab.transforms.arguments import function, returned


def subject(f: Any, n_arguments: int, what: str) -> Callable[..., Any]:
    """`f`, if it is a function that can be called with so many arguments.

    Raises:
        ArgumentError: it is none, or takes more or fewer.

    Example:
        >>> subject(lambda x, y: x + y, 1, "measure_errors")
        Traceback (most recent call last):
        lab.errors.ArgumentError: measure_errors needs a function of one argument
        given: <lambda>(x, y)
        hint:  fix the others: lambda x: f(x, other)
    """
    function(f, what)
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some built-in ones do not tell; calling them will
        return f  # type: ignore[no-any-return]
    try:
        signature.bind(*[None] * n_arguments)
    except TypeError:
        count = ("no argument", "one argument", "two arguments")[n_arguments]
        raise ArgumentError(
            f"{what} needs a function of {count}", given=f"{getattr(f, '__name__', repr(f))}{signature}"[:60],
            hint="fix the others: lambda x: f(x, other)" if n_arguments else "close over them: lambda: f(x)",
        ) from None  # fmt: skip
    return f  # type: ignore[no-any-return]


def place(x: Any, what: str, *, most: int = 1) -> np.ndarray[Any, Any]:
    """Where a function is looked at: an array of finite floats; whole numbers are read as such.

    Raises:
        ArgumentError: more numbers than `most`, none at all, one that is not finite, or what is no number.

    Example:
        >>> place(2, "measure_errors"), place(np.float32(0.5), "measure_errors").dtype
        (array(2.), dtype('float32'))
    """
    at = np.array(x.numpy() if isinstance(x, Tensor) else x)
    if at.dtype.kind not in "iuf":
        raise ArgumentError(
            f"{what} looks at a place", given=f"{type(x).__name__} {x!r}"[:60], hint="a number, like 1.0"
        )
    at = at.astype(np.float64) if at.dtype.kind in "iu" else at
    if not 0 < at.size <= most:
        raise ArgumentError(
            f"{what} looks at {'one number' if most == 1 else 'few numbers'}", given=f"shape {at.shape}",
            hint="a single number, like 1.0" if most == 1 else f"from 1 to {most} of them",
        )  # fmt: skip
    if not np.isfinite(at).all():
        raise ArgumentError(
            f"{what} looks at a place in the domain of the function", given=repr(x)[:60], hint="a finite number"
        )
    return at


def one_number(f: Callable[[Any], Any], at: Any, what: str) -> float:
    """What `f` returns there, if that is one number; beyond the edge of its domain it may be nan or infinite.

    Raises:
        ArgumentError: it has another shape.
        UnsupportedError: it is not made of numbers.

    Example:
        >>> one_number(lambda x: 2.0 * x, np.float64(3.0), "measure_errors")
        6.0
    """
    with np.errstate(all="ignore"):
        out = returned(f(at), what)
    if out.size != 1:
        raise ArgumentError(
            f"{what} needs a function that returns one number", given=f"shape {out.shape}",
            hint="one entry of the result, or its sum",
        )  # fmt: skip
    return float(out.numpy().reshape(-1)[0])
