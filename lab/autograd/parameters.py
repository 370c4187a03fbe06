"""Parameters of an op as text and back: what a recording keeps of them, so that a rule can be evaluated again.

They are data: what is read back is made of numbers, slices and arrays only; a text that is anything else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

DEEPEST = 8
"""Containers within containers."""


def packed(params: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Parameters as JSON, and the arrays among them, to which the text refers by number.

    Example:
        >>> packed({"axis": (0, -1), "keepdims": False})
        ('{"axis":{"tuple":[0,-1]},"keepdims":false}', [])
        >>> packed({"index": (slice(1, None), ..., np.array([0, 2]))})
        ('{"index":{"tuple":[{"slice":[1,null,null]},{"ellipsis":0},{"array":0}]}}', [array([0, 2])])
    """
    arrays: list[Any] = []
    named = {name: _packed(value, arrays) for name, value in params.items()}
    return json.dumps(named, separators=(",", ":")), arrays


def _packed(value: Any, arrays: list[Any]) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, np.generic):
        return _packed(value.item(), arrays)
    if isinstance(value, float):
        return {"float": float(value).hex()}  # exact, nan and infinity too
    if value is ...:
        return {"ellipsis": 0}
    if isinstance(value, slice):
        return {"slice": [_packed(part, arrays) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic | float | int)):
        return {"dtype": np.dtype(value).name}
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, list | tuple):
        return {"tuple" if isinstance(value, tuple) else "list": [_packed(part, arrays) for part in value]}
    return {"other": type(value).__name__}


def unpacked(text: str, array: Callable[[int], Any]) -> dict[str, Any]:
    """The parameters that a text of `packed` holds; `array(k)` gives its k-th array.

    Raises:
        ValueError: the text is none of `packed`, or one of them could not be kept.

    Example:
        >>> unpacked('{"axis":{"tuple":[0,-1]},"index":{"slice":[1,null,null]}}', [].__getitem__)
        {'axis': (0, -1), 'index': slice(1, None, None)}
    """
    match json.loads(text):
        case dict(found):
            return {name: _unpacked(value, array, DEEPEST) for name, value in found.items()}
    raise ValueError("its parameters are damaged")


def _unpacked(value: Any, array: Callable[[int], Any], deep: int) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if deep and isinstance(value, dict) and len(value) == 1:
        match value:
            case {"tuple": list(parts)}:
                return tuple([_unpacked(part, array, deep - 1) for part in parts])
            case {"list": list(parts)}:
                return [_unpacked(part, array, deep - 1) for part in parts]
            case {"slice": [start, stop, step]} if all(type(p) in (int, type(None)) for p in (start, stop, step)):
                return slice(start, stop, step)
            case {"float": str(number)}:
                return float.fromhex(number)
            case {"ellipsis": 0}:
                return ...
            case {"dtype": str(name)}:
                return _dtype(name)
            case {"array": int(k)} if k >= 0:
                return array(k)
            case {"other": str(name)}:
                raise ValueError(f"a parameter is a {name[:40]}, which a recording does not keep")
    raise ValueError("its parameters are damaged")


def _dtype(name: str) -> Any:
    try:
        dtype = np.dtype(name)
    except TypeError:
        raise ValueError(f"the dtype {name[:40]!r} is not known here") from None
    if dtype.kind not in "fiubV" or dtype.fields is not None or dtype.itemsize > 16:
        raise ValueError("its parameters are damaged")
    return dtype
