"""Paths through a tape: what depends on a value, what a gradient goes back to, and how it came."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from widgets.tape.tape import Tape

KINDS = {
    "forward": ("Path forward", "Light everything that was computed from this value"),
    "back": ("Path back", "Light everything that this gradient goes back to"),
    "came": ("Gradient's way here", "Light the way on which the gradient came here from where the walk began"),
}
"""What a reader can ask for: the label of its button, and what that does."""


class Path(NamedTuple):
    """Which path is lit: one of KINDS ("" for none), and the box that it belongs to."""

    kind: str
    box: str


def path_of(path: Path, state: Tape, start: Iterable[int]) -> frozenset[int]:
    """The nodes of a path that starts at some nodes.

    Example:
        >>> path_of(Path("forward", "1"), Tape(users={1: (3,), 3: (4,)}), [1]) == {1, 3, 4}
        True
    """
    nodes = list(start)
    if path.kind == "forward":
        return _reached(nodes, lambda n: state.users.get(n, ()))
    if path.kind == "back":
        return _reached(nodes, lambda n: _wanted(state, n))
    onward = _reached(nodes, lambda n: state.users.get(n, ()))
    return onward & _reached([state.root], lambda n: _wanted(state, n))


def _wanted(state: Tape, node: int) -> Iterable[int]:
    """Where the gradient of a node goes: where it went, if its rules ran."""
    entry = state.entries.get(node)
    if entry is None:
        return ()
    return [t for t in state.targets.get(node, entry.parents) if t in state.entries]


def _reached(start: Iterable[int], onward: Callable[[int], Iterable[int]]) -> frozenset[int]:
    stack = list(start)
    seen = set(stack)
    while stack:
        fresh = [n for n in onward(stack.pop()) if n not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return frozenset(seen)
