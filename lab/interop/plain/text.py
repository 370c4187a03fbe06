"""Values, names and remarks as text of Python that means them and nothing else."""

from __future__ import annotations

import base64
import keyword
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.errors import ArgumentError, UnsupportedError
from lab.graph.values import number_text

_CONSTANT = re.compile(r"[CW]\d+$|__")
INLINE = 16
"""The most entries of an array that are written as numbers; others are written as bytes."""
WIDTH = 100


def dtype_text(dtype: Any) -> str:
    """A dtype as NumPy's name.

    Example:
        >>> dtype_text(np.dtype(bool)), dtype_text("float32")
        ('np.bool_', 'np.float32')
    """
    name = np.dtype(dtype).name
    return f"np.{'bool_' if name == 'bool' else name}"


def remark(text: str) -> str:
    r"""What may stand behind a `#` or in a docstring: one line of printable letters, no quotes, no backslash.

    Example:
        >>> remark("model.py:3\nimport os")
        'model.py:3?import os'
    """
    return "".join(c if c.isprintable() and c not in "\"'\\" else "?" for c in text)


def place(origin: str) -> str:
    """Where an equation comes from, as a remark: the last part of the file's name, and the line."""
    return remark(origin.replace("\\", "/").rsplit("/", 1)[-1])


def scalar_text(value: Any) -> str:
    """A number of Python: nan and inf by NumPy's names.

    Example:
        >>> scalar_text(2.0), scalar_text(float("-inf")), scalar_text(True)
        ('2.0', '-np.inf', 'True')
    """
    return number_text(value).replace("nan", "np.nan").replace("inf", "np.inf")


def typed_text(value: Any) -> str:
    """One number with its dtype.

    Example:
        >>> typed_text(np.float32(0.1)), typed_text(np.array(3))
        ('np.float32(0.1)', 'np.int64(3)')
    """
    one = np.asarray(value)[()]
    return f"{dtype_text(one.dtype)}({_digits(one)})"


def array_text(array: Any) -> str:
    """An array as numbers if it has few of them, else as the bytes of its entries, the lowest first.

    Example:
        >>> array_text(np.array([[1.5, 2.0]], np.float32))
        'np.array([[1.5, 2.0]], np.float32)'
        >>> array_text(np.zeros((0, 3)))
        'np.zeros((0, 3), np.float64)'
    """
    array = np.asarray(array)
    dtype = dtype_text(array.dtype)
    if not array.size:
        return f"np.zeros({array.shape}, {dtype})"
    if array.size <= INLINE:
        return f"np.array({_nested(array)}, {dtype})"
    packed = base64.b64encode(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()).decode()
    lines = "\n".join(packed[i : i + WIDTH] for i in range(0, len(packed), WIDTH))
    return f'stored("{array.dtype.newbyteorder("<").str}", {array.shape}, """\n{lines}\n""")'


def _nested(array: Any) -> str:
    return f"[{', '.join(map(_nested, array))}]" if array.ndim else _digits(array[()])


def _digits(one: Any) -> str:
    """As many digits as give the same number again."""
    text = scalar_text(one)
    if one.dtype.kind == "f" and np.isfinite(one) and one.dtype.type(float(text)) != one:
        return repr(float(one))  # rounding twice, to float64 and on, would miss it
    return text


def parameter_text(value: Any, keep: Callable[[Any], str]) -> str:
    """A parameter of an op; `keep` gives a name to an array.

    Raises:
        UnsupportedError: nothing that can be written.
    """
    if isinstance(value, np.ndarray):
        return keep(value) if value.ndim else typed_text(value)
    if isinstance(value, bool | np.bool_ | int | np.integer | float | np.floating):
        return scalar_text(value)
    if isinstance(value, str):
        return ascii(value)
    if value is None or value is ...:
        return "None" if value is None else "..."
    if isinstance(value, slice):
        return f"slice({', '.join(parameter_text(v, keep) for v in (value.start, value.stop, value.step))})"
    if isinstance(value, tuple | list):
        inner = ", ".join(parameter_text(v, keep) for v in value)
        tail = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return f"({inner}{tail})" if isinstance(value, tuple) else f"[{inner}]"
    raise UnsupportedError(
        "this parameter cannot be written as Python",
        given=type(value).__name__,
        hint="numbers, texts, arrays, slices and tuples",
    )


def index_text(index: Any, keep: Callable[[Any], str]) -> str:
    """What stands between the brackets of `x[...]`.

    Example:
        >>> index_text((slice(0, 2), None, ..., -1), repr), index_text(slice(None, None, 2), repr)
        ('0:2, None, ..., -1', '::2')
    """
    if isinstance(index, tuple):
        return ", ".join(_one_index(v, keep) for v in index) + ("," if len(index) == 1 else "") if index else "()"
    return _one_index(index, keep)


def _one_index(index: Any, keep: Callable[[Any], str]) -> str:
    if not isinstance(index, slice):
        return parameter_text(index, keep)
    start, stop, step = ("" if v is None else parameter_text(v, keep) for v in (index.start, index.stop, index.step))
    return f"{start}:{stop}" + (f":{step}" if step else "")


def checked_names(names: Sequence[str], taken: frozenset[str], n: int) -> tuple[str, ...]:
    """The names of inputs that a user chose.

    Raises:
        ArgumentError: as many as there are inputs, each once, and words that Python and the file leave free.
    """
    given = names
    words = [word if type(word) is str else "" for word in names]
    names = [unicodedata.normalize("NFKC", word) for word in words]  # as Python reads them
    bad = [own for own, name in zip(given, names, strict=True) if not _is_free(name, taken)]
    if len(names) != n or len(set(names)) != n or bad:
        raise ArgumentError(
            f"the names of {n} inputs cannot be these",
            given=", ".join(map(ascii, bad or given)) or "no names",
            hint="one word for each, as x or token_ids; words that the file uses itself, as np, are taken",
        )
    return tuple(names)


def _is_free(name: str, taken: frozenset[str]) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in taken and not _CONSTANT.match(name)
