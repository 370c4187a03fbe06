"""Plain values: what an answer may be made of when it crosses from the learner's process to the check.

Only numbers, arrays, text and tuples of them cross, copied bit by bit; an object of the learner's own arrives as its
name, so that no `__eq__`, `__array__` or pickle of theirs ever runs on the side that compares.
"""

from __future__ import annotations

import base64
import numbers
import sys
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

MAX_ENTRIES = 1_000_000
"""An answer with more numbers than this is refused: no exercise asks for it."""
MAX_DEPTH = 8


class Foreign(NamedTuple):
    """Something that is no plain value: its type, and why or how it looks."""

    type: str
    text: str


Plain = Any
"""None, bool, int, float, str, ndarray, Foreign, or a tuple of Plain."""


def encode(value: object, depth: int = 0) -> dict[str, Any]:
    """A JSON-ready description of a value, made of copies only.

    Example:
        >>> decode(encode((1.0, np.arange(2))))
        (1.0, array([0, 1]))
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return {"kind": "scalar", "value": _json_safe(value)}
    if isinstance(value, list | tuple) and depth < MAX_DEPTH:
        if len(value) > MAX_ENTRIES:
            return _foreign(value, f"with {len(value)} entries: too many")
        return {"kind": "tuple", "items": [encode(v, depth + 1) for v in value]}
    array = _as_array(value)
    if array is None:
        number = _as_number(value)
        return _foreign(value, _text(value)) if number is None else encode(number)
    if array.size > MAX_ENTRIES:
        return _foreign(value, f"of shape {array.shape}, {array.nbytes / 1e6:.0f} MB: too large to compare")
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"kind": "array", "dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def decode(data: dict[str, Any]) -> Plain:
    """The value that `encode` described."""
    match data["kind"]:
        case "scalar":
            value = data["value"]
            return float(value["float"]) if isinstance(value, dict) else value
        case "tuple":
            return tuple(decode(item) for item in data["items"])
        case "array":
            raw = np.frombuffer(base64.b64decode(data["data"]), dtype=np.dtype(data["dtype"]))
            return raw.reshape(data["shape"])
        case _:
            return Foreign(str(data["type"]), str(data["text"]))


def _json_safe(value: object) -> object:
    # nan and inf are not JSON, and an int may have more digits than any parser takes
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return {"float": "inf" if value > 0 else "-inf"}
    return value[:10_000] if isinstance(value, str) else value


def _as_array(value: object) -> np.ndarray[Any, np.dtype[Any]] | None:
    engine: Any = sys.modules.get("lab.autograd")  # not loaded: then this is no Tensor, and no need to load it
    if engine is not None and isinstance(value, engine.Tensor):
        value = value.detach().numpy()
    if not isinstance(value, np.ndarray | np.generic):
        return None
    array = np.asarray(value)  # of the base class, whatever the learner's own class redefines; copied by `encode`
    return array if array.dtype.kind in "biuf" else None


def _as_number(value: object) -> float | None:
    if not isinstance(value, numbers.Real | Decimal):  # also a Fraction
        return None
    try:
        return float(float(value))  # outside, what a learner's own `__float__` gives may be of a class of theirs
    except Exception:  # noqa: BLE001 - a learner's __float__ may do anything; then it is no number
        return None


def _foreign(value: object, text: str) -> dict[str, Any]:
    return {"kind": "foreign", "type": type(value).__name__, "text": text}


def _text(value: object) -> str:
    try:
        return repr(value)[:200]
    except Exception as why:  # noqa: BLE001 - a learner's __repr__ may do anything, and its failure is what we show
        return f"(its repr fails: {type(why).__name__})"


def describe(value: Plain) -> str:
    """A short text of a plain value, as a learner would write it.

    Example:
        >>> describe((1.0, np.zeros((2, 2)))), describe(None)
        ('(1, array of shape (2, 2))', 'None')
    """
    if isinstance(value, Foreign):
        return f"a {value.type} {value.text}"
    if isinstance(value, tuple):
        return f"({', '.join(map(describe, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return f"{value.item():.6g}"
        small = np.array2string(value, precision=4, separator=", ", threshold=6)
        return small if value.size <= 6 and "\n" not in small else f"array of shape {value.shape}"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def first_difference(
    got: Plain, expected: Plain, names: tuple[str, ...], tolerance: float
) -> tuple[str, str, str] | None:
    """Where two plain values first differ: (what, as got, as expected), or None if they agree to `tolerance`.

    Example:
        >>> first_difference((2.0, 2.0), (3.0, 2.0), ("gradient of x", "gradient of y"), 1e-6)
        ('the gradient of x', '2', '3')
    """
    if isinstance(expected, tuple):
        if isinstance(got, np.ndarray) and got.ndim > 0:
            got = tuple(got)
        if not isinstance(got, tuple):
            return "the number of results", f"one: {describe(got)}", f"{len(expected)}: {', '.join(names)}"
        if len(got) != len(expected):
            return "the number of results", f"{len(got)}: {describe(got)}", f"{len(expected)}: {', '.join(names)}"
        for i, (g, e) in enumerate(zip(got, expected, strict=True)):
            found = first_difference(g, e, names[i : i + 1] or (f"result {i + 1}",), tolerance)
            if found:
                return found
        return None
    what = f"the {names[0]}" if names else "the result"
    if got is None or isinstance(got, str | tuple | Foreign):
        return what, describe(got), describe(expected)
    g, e = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    if g.shape != e.shape:
        return f"the shape of {what}", str(g.shape), str(e.shape)
    wrong = ~np.isclose(g, e, rtol=tolerance, atol=tolerance, equal_nan=True)
    if not wrong.any():
        return None
    if g.ndim == 0:
        return what, describe(float(g)), describe(float(e))
    index = tuple(int(i[0]) for i in np.nonzero(wrong))
    return f"entry {list(index)} of {what}", describe(float(g[index])), describe(float(e[index]))
