"""What goes into a transform and what comes out of it: functions, leaves of containers, axes; checked where they enter.

Arrays enter as read-only views, so that nothing that a transform returns can write into the caller's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor, wrap
from lab.errors import ArgumentError, ShapeError, TransformError, UnsupportedError


def function(f: Any, what: str) -> Callable[..., Any]:
    """`f`, if it is a function.

    Raises:
        ArgumentError: it is not.
    """
    if not callable(f):
        raise ArgumentError(
            f"{what} needs a function", given=repr(f)[:60], hint=f"lab.{what}(f, ...) with f itself, not f(x)"
        )
    return f  # type: ignore[no-any-return]


def positions(argnums: Any) -> tuple[int, ...]:
    """`argnums` as a tuple.

    Raises:
        ArgumentError: neither an integer nor several.

    Example:
        >>> positions(1), positions([0, -1])
        ((1,), (0, -1))
    """
    try:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    except TypeError:
        numbers = (None,)
    if not all(isinstance(n, int) for n in numbers):
        raise ArgumentError("argnums is an integer or several", given=repr(argnums)[:60], hint="positions of arguments")
    return numbers


def chosen(
    f: Callable[..., Any], numbers: tuple[int, ...], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], list[Any]]:
    """A function of the arguments at these positions alone, and those arguments.

    Raises:
        ArgumentError: a position that was not given, or given twice.

    Example:
        >>> g, primals = chosen(lambda x, y, z: (x, y, z), (-1,), (1, 2, 3), {})
        >>> g(30), primals
        ((1, 2, 30), [3])
    """
    if any(not -len(args) <= n < len(args) for n in numbers):
        raise ArgumentError(
            "argnums names an argument that was not given",
            given=f"{', '.join(map(str, numbers))} of {len(args)} positional arguments",
            hint="positions of positional arguments, from 0",
        )
    if len({n % len(args) for n in numbers}) < len(numbers):
        raise ArgumentError(
            "argnums names an argument twice",
            given=f"{numbers} of {len(args)} arguments",
            hint="each position once",
        )

    def of_chosen(*values: Any) -> Any:
        full = list(args)
        for n, value in zip(numbers, values, strict=True):
            full[n] = value
        return f(*full, **kwargs)

    return of_chosen, [args[n] for n in numbers]


def _array(x: Any) -> Any:
    """A read-only array of numbers, None if x is not made of numbers."""
    if hasattr(x, "filled"):  # a masked array: its mask would be lost
        return None
    try:
        array = np.asarray(x).view()
    except (TypeError, ValueError):
        return None
    array.flags.writeable = False
    return array if array.dtype.kind in "fiub" else None


def taken(x: Any, what: str) -> Tensor:
    """A leaf of an argument as a Tensor; one that is a Tensor stays what it is.

    Raises:
        UnsupportedError: not numbers.

    Example:
        >>> taken(2.0, "vmap")
        tensor(2.)
    """
    if isinstance(x, Tensor):
        return x
    array = _array(x)
    if array is None:
        raise UnsupportedError(
            f"{what} takes numbers only",
            given=_said(x),
            hint=_method_hint(x, what) or f"for anything else close over it: lab.{what}(lambda x: f(x, other))",
        )
    return wrap(array)


def _said(x: Any) -> str:
    return f"{type(x).__name__} {x!r}"[:60]


def _method_hint(x: Any, what: str) -> str:
    """What to write where x may be the `self` of a method under a decorator; "" where it is none."""
    if type(x).__module__ in ("builtins", "numpy", "types") or isinstance(x, type):
        return ""
    return f"of a method write self.f = lab.{what}(self.f) in __init__; anything else is closed over"


def floating(x: Any, what: str) -> Tensor:
    """The same for an argument that is differentiated.

    Raises:
        TransformError: not a float.
    """
    array = x if isinstance(x, Tensor) else _array(x)
    if array is None or array.dtype.kind != "f":
        raise TransformError(
            f"{what} needs float inputs",
            given=_said(x) if array is None else f"{array.dtype} of shape {array.shape}",
            hint=(array is None and _method_hint(x, what)) or "write 2.0 instead of 2, or choose argnums",
        )
    return array if isinstance(array, Tensor) else wrap(array)


def returned(x: Any, what: str) -> Tensor:
    """A leaf of what a function returned, as the user gets it: a Tensor.

    Raises:
        UnsupportedError: not numbers.
    """
    if isinstance(x, Tensor):
        return x
    array = _array(x)
    if array is None:
        raise UnsupportedError(
            f"{what} returns numbers only",
            given=_said(x),
            hint="return tensors, arrays or numbers",
        )
    return wrap(array)


def fitting(given: Any, primal: Tensor, word: str) -> Tensor:
    """A tangent or a cotangent of `primal`: of its shape and dtype, and a copy if it is the caller's array.

    Raises:
        ShapeError: another shape.
        UnsupportedError: not numbers.
    """
    value = given if isinstance(given, Tensor) else _array(given)
    if value is None or value.dtype.kind not in "fiub":
        raise UnsupportedError(
            f"a {word} must be numbers",
            given=f"{type(given).__name__} {given!r}"[:60],
            hint="arrays, tensors or numbers, as np.ones_like(x)",
        )
    if tuple(value.shape) != primal.shape:
        raise ShapeError(
            f"a {word} has the shape of its value",
            given=f"{tuple(value.shape)} for {primal.shape}",
            hint="np.ones_like(value) has it",
        )
    if isinstance(value, Tensor):
        return value if value.dtype == primal.dtype else value.astype(primal.dtype)
    return wrap(value.astype(primal.dtype))


def axes_of(axes: Any, x: Any, word: str, *, none: bool) -> list[int | None]:
    """The mapped axis of each leaf of x: `axes` is an integer, None, or a container that begins like x.

    Raises:
        ArgumentError: anything else.

    Example:
        >>> axes_of((0, None), ({"w": 1.0, "b": 2.0}, 3.0), "in_axes", none=True)
        [0, 0, None]
    """
    kinds = "integers and None" if none else "integers"

    def is_axis(a: Any) -> bool:
        return (a is None and none) or (isinstance(a, int | np.integer) and not isinstance(a, bool))

    def check(a: Any) -> bool:
        if is_axis(a):
            return True
        if not isinstance(a, tuple | list | dict):
            raise ArgumentError(f"{word} holds {kinds}", given=repr(a)[:60], hint=f"{word}=0 maps the first axis")
        return False

    return tree.spread(axes, x, check, word=word)
