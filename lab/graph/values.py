"""Constants and parameters of equations: as text that reads back exactly, and as keys that can be compared.

An array that is too long for a line stands in the text as `const0:f64[64,10]`, and its numbers beside the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from lab.errors import GraphError
from lab.shapes import Spec

INLINE = 6
"""The most entries of an array that are written out."""

KINDS = {"f": "f", "i": "i", "u": "u", "b": "bool"}


def type_text(spec: Spec) -> str:
    """Dtype and shape in short.

    Example:
        >>> type_text(Spec((2, 3), np.dtype("float32"))), type_text(Spec((), np.dtype(bool)))
        ('f32[2,3]', 'bool[]')
    """
    kind = KINDS[spec.dtype.kind]
    bits = "" if kind == "bool" else str(8 * spec.dtype.itemsize)
    return f"{kind}{bits}[{','.join(map(str, spec.shape))}]"


def number_text(value: Any) -> str:
    """A number so that the same number is read back: 2.0 and not 2, nan, -inf.

    Example:
        >>> number_text(2.0), number_text(np.float32(0.1)), number_text(float("inf")), number_text(True)
        ('2.0', '0.1', 'inf', 'True')
    """
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if math.isnan(value):
        return "nan"
    text = repr(value) if type(value) is float else str(value)
    return text if set(text) & set(".enf") else f"{text}.0"


class Constants:
    """The arrays of a text that are too long for it, in the order in which it names them."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []

    def text(self, array: Any) -> str:
        """How the array stands in the text."""
        words = type_text(Spec(array.shape, array.dtype))
        if not array.ndim:
            return f"{number_text(array[()])}:{words}"
        if array.size <= INLINE:
            return f"{words}{{{', '.join(number_text(x) for x in array.reshape(-1))}}}"
        self.arrays.append(array)
        return f"const{len(self.arrays) - 1}:{words}"


def value_text(value: Any, constants: Constants) -> str:
    """A parameter or a constant as text.

    Raises:
        GraphError: something that a graph cannot hold.

    Example:
        >>> value_text((slice(0, 2), None, ...), Constants())
        '(slice(0, 2, None), None, ...)'
        >>> value_text(np.arange(3), Constants()), value_text(np.zeros((3, 3)), Constants())
        ('i64[3]{0, 1, 2}', 'const0:f64[3,3]')
    """
    if isinstance(value, np.ndarray):
        return constants.text(value)
    if isinstance(value, bool | int | float | np.generic):
        return number_text(value)
    if isinstance(value, str):
        return repr(value)
    if value is None:
        return "None"
    if value is ...:
        return "..."
    if isinstance(value, slice):
        return f"slice({', '.join(value_text(v, constants) for v in (value.start, value.stop, value.step))})"
    if isinstance(value, tuple):
        inner = ", ".join(value_text(v, constants) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(value_text(v, constants) for v in value)}]"
    raise GraphError(
        "a graph cannot hold this parameter",
        given=f"{type(value).__name__}",
        hint="numbers, texts, arrays, slices, tuples and graphs",
    )


def key_of(value: Any) -> Hashable:
    """What is equal for equal values, nan and arrays included, and different for 1, 1.0 and True.

    Example:
        >>> key_of(1.0) == key_of(1), key_of(float("nan")) == key_of(float("nan"))
        (False, True)
        >>> key_of(np.arange(3)) == key_of(np.arange(3))
        True
    """
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else value, math.copysign(1.0, value)
    if isinstance(value, slice):
        return "slice", key_of(value.start), key_of(value.stop), key_of(value.step)
    if isinstance(value, tuple | list):
        return type(value).__name__, tuple(map(key_of, value))
    return type(value).__name__, value


def map_values(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same parameter with `change` made to what stands in its tuples, lists and slices."""
    if isinstance(value, tuple | list):
        return type(value)(map_values(v, change) for v in value)
    if isinstance(value, slice):
        return slice(*(map_values(v, change) for v in (value.start, value.stop, value.step)))
    return change(value)


def leaves_of(value: Any) -> Iterator[Any]:
    """What stands in the tuples, lists and slices of a parameter."""
    if isinstance(value, tuple | list):
        for v in value:
            yield from leaves_of(v)
    elif isinstance(value, slice):
        yield from leaves_of((value.start, value.stop, value.step))
    else:
        yield value
