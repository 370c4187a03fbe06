"""Guards: the shortest way into a graph that was made for arguments like these, and its results into their container.

A call of a jitted function opens containers, looks at shapes and dtypes, and finds its graph by them. For the graph
that ran last all that is known before, so a few straight lines are written that either take the arrays out, or say that
something is new. Whatever they do not know goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor, wrap
from lab.transforms.arguments import taken

Opener = Callable[[Sequence[Any], Mapping[str, Any], bool], "list[Any] | None"]
Closer = Callable[[Sequence[Any]], Any]


def opener(structure: tree.Structure, kinds: Sequence[Any]) -> Opener | None:
    """A function of (args, kwargs, frozen) that gives the arrays and numbers of a call, or None if it is another kind.

    Args:
        structure: of (args, kwargs): lists, tuples, dicts and None in any nesting.
        kinds: of each leaf its shape and dtype, or the type of a Python number.

    Returns:
        None where a container is of another class.

    Example:
        >>> leaves, structure = tree.flatten(((wrap(np.ones(2)), [3.0]), {}))
        >>> take = opener(structure, [((2,), np.dtype(float)), float])
        >>> take((np.ones(2), [3.0]), {}, False), take((np.ones(3), [3.0]), {}, False)
        ([array([1., 1.]), 3.0], None)
    """
    writer = _Opening(kinds)
    if not writer.open(structure.children[0], "args") or not writer.open(structure.children[1], "kwargs"):
        return None
    head = ["def take(args, kwargs, frozen):", "    try:"]
    tail = [f"        return [{', '.join(writer.leaves)}]", "    except KeyError:", "        return None"]
    made: Opener = _made("take", [*head, *(f"        {line}" for line in writer.lines), *tail], writer.scope)
    return made


class _Opening:
    """Lines that open a container and look at what is in it."""

    def __init__(self, kinds: Sequence[Any]) -> None:
        self.kinds = kinds
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.scope: dict[str, Any] = {"Tensor": Tensor, "ndarray": np.ndarray, "NoneType": type(None)}
        self.scope["as_taken"] = taken
        self._numbers = count()

    def open(self, structure: tree.Structure, word: str) -> bool:
        kind, inner = structure.kind, [f"x{next(self._numbers)}" for _ in structure.children]
        if kind is None:
            self._leaf(word)
            return True
        if kind not in (list, tuple, dict, type(None)):
            return False
        self.lines.append(f"if type({word}) is not {kind.__name__}: return None")
        if kind is dict:
            keys = self._constant(structure.data)
            self.lines.append(f"if len({word}) != {len(inner)}: return None")
            self.lines += [f"{x} = {word}[{keys}[{i}]]" for i, x in enumerate(inner)]
        elif kind is not type(None):
            self.lines.append(f"if len({word}) != {len(inner)}: return None")
            self.lines += [f"[{', '.join(inner)}] = {word}"] if inner else []
        return all(self.open(child, x) for child, x in zip(structure.children, inner, strict=True))

    def _leaf(self, x: str) -> None:
        kind = self.kinds[len(self.leaves)]
        self.leaves.append(x)
        if isinstance(kind, type):
            self.lines.append(f"if type({x}) is not {kind.__name__}: return None")
            return
        shape, dtype = map(self._constant, kind)
        self.lines += [
            f"if type({x}) is Tensor:",
            f"    if {x}.node is not None and not frozen: return None",
            f"    {x} = {x}.value",
            f"elif type({x}) is ndarray: {x} = as_taken({x}, 'jit').value",
            f"if type({x}) is not ndarray or {x}.shape != {shape} or {x}.dtype is not {dtype}: return None",
        ]

    def _constant(self, value: Any) -> str:
        word = f"k{len(self.scope)}"
        self.scope[word] = value
        return word


def closer(structure: tree.Structure, copied: Sequence[bool]) -> Closer:
    """A function of arrays that gives them as tensors in a container; some of them as copies.

    Example:
        >>> _, structure = tree.flatten({"loss": 0.0, "new": [1.0, 2.0]})
        >>> closer(structure, [False] * 3)([np.float64(0.5), np.ones(1), np.ones(2)])
        {'loss': tensor(0.5), 'new': [tensor([1.]), tensor([1., 1.])]}
    """
    scope: dict[str, Any] = {"wrap": wrap, "array": np.array, "rebuilt": tree.rebuilt, "structure": structure}
    leaves = [f"wrap(array(outs[{i}]))" if copy else f"wrap(outs[{i}])" for i, copy in enumerate(copied)]
    text = _closed(structure, iter(leaves), scope)
    if text is None:
        text = f"rebuilt(structure, iter([{', '.join(leaves)}]))"
    made: Closer = _made("give", ["def give(outs):", f"    return {text}"], scope)
    return made


def _closed(structure: tree.Structure, leaves: Any, scope: dict[str, Any]) -> str | None:
    """An expression for the container, None where a class is in it that rebuilds itself."""
    if structure.kind is None:
        return str(next(leaves))
    parts = [_closed(child, leaves, scope) for child in structure.children]
    if structure.kind not in (list, tuple, dict, type(None)) or None in parts:
        return None
    if structure.kind is list:
        return f"[{', '.join(map(str, parts))}]"
    if structure.kind is tuple:
        return f"({''.join(f'{part}, ' for part in parts)})"
    if structure.kind is not dict:
        return "None"
    word = f"k{len(scope)}"
    scope[word] = structure.data
    return "{" + ", ".join(f"{word}[{i}]: {part}" for i, part in enumerate(parts)) + "}"


def _made(name: str, lines: Sequence[str], scope: dict[str, Any]) -> Any:
    exec(compile("\n".join(lines), f"<guard {name}>", "exec"), scope)  # noqa: S102 - nothing in it but what stands above
    return scope[name]
