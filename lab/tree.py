"""Containers flattened into leaves and rebuilt: dict, list, tuple, named tuple, dataclass, None, registered classes.

Dict keys are visited in sorted order, so that two dicts with equal keys have the same structure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from lab.errors import ArgumentError

Flatten = Callable[[Any], tuple[Sequence[tuple[str, Any]], Any]]
Rebuild = Callable[[Any, Sequence[Any]], Any]

_REGISTERED: dict[type, tuple[Flatten, Rebuild]] = {}
_LEAVES: set[type] = set()
"""Types that were met and are no containers; a few, so that no type of a notebook is kept alive by it."""
_MOST_LEAVES = 32


class Structure(NamedTuple):
    """What is left of a container without its leaves. Hashable where its keys are; a leaf has kind None."""

    kind: type | None
    data: Any
    children: tuple[Structure, ...]
    names: tuple[str, ...]

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return 1 if self.kind is None else sum(c.n_leaves for c in self.children)


LEAF = Structure(None, None, (), ())


def register(kind: type, flatten: Flatten, rebuild: Rebuild) -> None:
    """Teach the tree a class: `flatten(x) -> ((name, child), ...), data` and `rebuild(data, children) -> x`.

    Example:
        >>> class Box:
        ...     def __init__(self, inside): self.inside = inside
        >>> register(Box, lambda box: ([(".inside", box.inside)], None), lambda _, children: Box(*children))
        >>> map_leaves(lambda x: 10 * x, Box(2)).inside
        20
        >>> del _REGISTERED[Box]
    """
    _REGISTERED[kind] = flatten, rebuild
    _LEAVES.clear()


def _open(x: Any) -> tuple[Any, Sequence[tuple[str, Any]]] | None:
    """(data, named children) of a container, None for a leaf."""
    kind = type(x)
    for base, (flatten, _) in _REGISTERED.items():
        if isinstance(x, base):
            children, data = flatten(x)
            return data, children
    if x is None:
        return None, ()
    if kind is dict:
        try:
            keys = sorted(x)
        except TypeError:
            raise ArgumentError(
                "the keys of a dict in an argument cannot be sorted", given=repr(list(x)), hint="use keys of one type"
            ) from None
        return tuple(keys), [(f"[{k!r}]", x[k]) for k in keys]
    if isinstance(x, list | tuple):
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return None, [(f".{f}", v) for f, v in zip(x._fields, x, strict=True)]
        if kind in (list, tuple):
            return None, [(f"[{i}]", v) for i, v in enumerate(x)]
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        fields = [f.name for f in dataclasses.fields(x)]
        return tuple(fields), [(f".{f}", getattr(x, f)) for f in fields]
    return None


def flatten(x: Any) -> tuple[list[Any], Structure]:
    """The leaves of a container in order, and the structure to rebuild it.

    Example:
        >>> leaves, structure = flatten({"b": [1, 2], "a": (3, None)})
        >>> leaves
        [3, 1, 2]
        >>> unflatten(structure, [30, 10, 20])
        {'a': (30, None), 'b': [10, 20]}
    """
    leaves: list[Any] = []
    return leaves, _structure(x, leaves)


def _structure(x: Any, leaves: list[Any]) -> Structure:
    """The structure of a container, whose leaves are added to the list; lists, tuples and known leaves at once."""
    kind = type(x)
    if kind in _LEAVES:
        leaves.append(x)
        return LEAF
    if kind is list or kind is tuple:
        return Structure(kind, None, tuple([_structure(child, leaves) for child in x]), _numbered(len(x)))
    opened = _open(x)
    if opened is None:
        leaves.append(x)
        if len(_LEAVES) < _MOST_LEAVES:
            _LEAVES.add(kind)
        return LEAF
    data, children = opened
    structures = tuple([_structure(child, leaves) for _, child in children])
    return Structure(kind, data, structures, tuple([name for name, _ in children]))


@lru_cache(64)
def _numbered(n: int) -> tuple[str, ...]:
    return tuple(f"[{i}]" for i in range(n))


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The container of this structure with these leaves.

    Raises:
        ArgumentError: another number of leaves than the structure has.

    Example:
        >>> unflatten(flatten({"a": 1, "b": (2,)})[1], [10, 20])
        {'a': 10, 'b': (20,)}
    """
    if len(leaves) != structure.n_leaves:
        raise ArgumentError(
            "leaves do not fit the container",
            given=f"{len(leaves)} for {structure.n_leaves}",
            hint="as many leaves as the container had when it was flattened",
        )
    return rebuilt(structure, iter(leaves))


def rebuilt(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The same for leaves that are known to be as many as it needs."""
    kind = structure.kind
    if kind is None:
        return next(leaves)
    children = [next(leaves) if c.kind is None else rebuilt(c, leaves) for c in structure.children]
    if kind is list:
        return children
    if kind is tuple:
        return tuple(children)
    data = structure.data
    for base, (_, rebuild) in _REGISTERED.items():
        if issubclass(kind, base):
            return rebuild(data, children)
    if kind is type(None):
        return None
    if kind is dict:
        return dict(zip(data, children, strict=True))
    if dataclasses.is_dataclass(kind):
        made = object.__new__(kind)  # not by __init__, which may refuse tracers or lack some fields
        for name, child in zip(data, children, strict=True):
            object.__setattr__(made, name, child)
        return made
    return kind(*children) if hasattr(kind, "_fields") else kind(children)


def paths(x: Any) -> list[str]:
    """A readable path for each leaf, in the order of `flatten`.

    Example:
        >>> paths({"w": [1, 2], "b": 3})
        ["['b']", "['w'][0]", "['w'][1]"]
    """
    opened = _open(x)
    if opened is None:
        return [""]
    return [name + rest for name, child in opened[1] for rest in paths(child)]


def spread(prefix: Any, x: Any, is_leaf: Callable[[Any], bool], *, word: str = "the prefix") -> list[Any]:
    """For each leaf of x the entry of `prefix` that stands in its place or above it.

    Args:
        is_leaf: tells the entries of the prefix from its containers.
        word: what the prefix is called in an error.

    Raises:
        ArgumentError: the prefix is no beginning of the structure of x.

    Example:
        >>> spread((0, {"a": 1, "b": 2}), ([5, 6], {"a": 7, "b": 8}), lambda p: isinstance(p, int))
        [0, 0, 1, 2]
    """
    if is_leaf(prefix):
        return [prefix] * flatten(x)[1].n_leaves
    above, below = _open(prefix), _open(x)
    if above is None or below is None or type(prefix) is not type(x) or len(above[1]) != len(below[1]) or (
        isinstance(x, dict) and above[0] != below[0]
    ):  # fmt: skip
        raise ArgumentError(
            f"{word} does not fit the container",
            given=f"{prefix!r} for {paths(x)}"[:200],
            hint=f"one {word} for all, or a container that begins like the other",
        )
    pairs = zip(above[1], below[1], strict=True)
    return [leaf for (_, p), (_, child) in pairs for leaf in spread(p, child, is_leaf, word=word)]


def map_leaves(function: Callable[..., Any], x: Any, *others: Any) -> Any:
    """The container with `function` applied to its leaves (and the leaves of others of the same structure).

    Raises:
        ArgumentError: the structures differ.

    Example:
        >>> map_leaves(lambda a, b: a + b, {"x": 1}, {"x": 2})
        {'x': 3}
    """
    leaves, structure = flatten(x)
    columns = [leaves]
    for other in others:
        more, found = flatten(other)
        if found != structure:
            raise ArgumentError(
                "containers differ in structure",
                given=f"{paths(x)} and {paths(other)}",
                hint="the same keys, lengths and kinds of containers",
            )
        columns.append(more)
    return unflatten(structure, [function(*row) for row in zip(*columns, strict=True)])
