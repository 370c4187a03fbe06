"""The difference of two pictures as a short list of changes, and how to apply it.

A picture is first turned into a JSON tree (`tree.py`); what travels to the browser, and from frame to frame of an
exported page, are these patches. `frontend/patch.js` applies them in the same way; a browser test holds both equal.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any
from weakref import ref

Json = Any
"""None, bool, int, float, str, or lists and string-keyed dictionaries of them."""
Op = list[Any]
"""[path, value] sets, [path] deletes, [path, tail, "extend"] appends to a list or a packed array."""

BLOCK = 64
"""So many parts are compared at once."""


class Grown(dict[str, Json]):
    """An object of a tree that was made from an earlier one: it knows which keys are not as they were there."""

    def __init__(self, earlier: dict[str, Json]) -> None:
        super().__init__(earlier)
        self._earlier = ref(earlier) if isinstance(earlier, Grown) else lambda: None
        self.changed: list[str] = []

    def from_(self, old: Json) -> bool:
        """Whether it was made from `old`; nothing is removed then."""
        return self._earlier() is old


FORBIDDEN = frozenset({"__proto__", "constructor", "prototype"})
"""Keys that a patch never walks through: in JavaScript they lead out of the tree."""


def diff(old: Json, new: Json) -> list[Op]:
    """Changes that turn `old` into `new`.

    Example:
        >>> diff({"a": 1, "b": [1, 2]}, {"a": 2, "b": [1, 2, 3]})
        [[['a'], 2], [['b'], [3], 'extend']]
    """
    ops: list[Op] = []
    _walk([], old, new, ops)
    return ops


def _walk(path: list[str | int], old: Json, new: Json, ops: list[Op]) -> None:
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict) and _plain(old) and _plain(new):
        if "bdata" in old and "bdata" in new:
            if old != new:
                ops.append(_packed(path, old, new))
            return
        _walk_keys(path, old, new, ops)
    elif type(old) is type(new) and old == new:
        return
    elif isinstance(old, list) and isinstance(new, list) and old and len(new) > len(old) and new[: len(old)] == old:
        ops.append([path, new[len(old) :], "extend"])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and _nested(old) and _nested(new):
        for i, (before, after) in enumerate(zip(old, new, strict=True)):
            _walk([*path, i], before, after, ops)
    else:
        ops.append([path, new])


def _plain(tree: dict[str, Json]) -> bool:
    return not any(key in tree for key in FORBIDDEN)


def _walk_keys(path: list[str | int], old: dict[str, Json], new: dict[str, Json], ops: list[Op]) -> None:
    """Two objects. What is the same in both is passed over by the block: a large picture shares nearly all of it."""
    if isinstance(new, Grown) and new.from_(old):
        for key in new.changed:
            if key in old:
                _walk([*path, key], old[key], new[key], ops)
            else:
                ops.append([[*path, key], new[key]])
        return
    names, there = list(new), list(old)
    if names[: len(there)] != there:
        ops.extend([[*path, key]] for key in there if key not in new)  # a set would have another order
        for key, value in new.items():
            if key in old:
                _walk([*path, key], old[key], value, ops)
            else:
                ops.append([[*path, key], value])
        return
    before, after = list(old.values()), list(new.values())
    for k in range(0, len(there), BLOCK):
        if (
            len(there) > BLOCK and before[k : k + BLOCK] == after[k : k + BLOCK]
        ):  # at once where they are the same objects
            continue
        for i in range(k, min(k + BLOCK, len(there))):
            if before[i] is not after[i]:
                _walk([*path, names[i]], before[i], after[i], ops)
    ops.extend([[*path, names[i]], after[i]] for i in range(len(there), len(names)))


def _nested(values: list[Json]) -> bool:
    return any(isinstance(value, (dict, list)) for value in values)


def _packed(path: list[str | int], old: dict[str, Json], new: dict[str, Json]) -> Op:
    """A packed array (plotly's {"dtype", "bdata"}): a curve that grew sends only its new points."""
    if old.get("dtype") == new["dtype"] and "shape" not in old and "shape" not in new:
        before, after = b64decode(old["bdata"]), b64decode(new["bdata"])
        if len(after) > len(before) and after.startswith(before):
            tail = b64encode(after[len(before) :]).decode("ascii")
            return [path, {"dtype": new["dtype"], "bdata": tail}, "extend"]
    return [path, new]


def apply(tree: Json, ops: Sequence[Op]) -> Json:
    """The tree after the changes; `tree` itself stays as it was, and unchanged parts are shared.

    Example:
        >>> apply({"a": 1}, [[["b", ], 2]])
        {'a': 1, 'b': 2}
    """
    box: dict[str | int, Json] = {"": tree}
    fresh: dict[int, Any] = {id(box): box}  # holds what it names, so that no id is used twice
    for op in ops:
        path: list[str | int] = ["", *op[0]]
        if FORBIDDEN.intersection(path):
            continue
        parent: Any = box
        for key in path[:-1]:
            child = parent[key]
            if id(child) not in fresh:
                child = child.copy()
                fresh[id(child)] = child
                parent[key] = child
            parent = child
        last = path[-1]
        if len(op) == 1:
            parent.pop(last, None)
        elif len(op) == 2:
            parent[last] = op[1]
        else:
            parent[last] = _extended(parent[last], op[1])
    return box[""]


def _extended(old: Json, tail: Json) -> Json:
    if isinstance(old, list):
        return [*old, *tail]
    return {**old, "bdata": b64encode(b64decode(old["bdata"]) + b64decode(tail["bdata"])).decode("ascii")}
