"""What a graph keeps for backward: the arrays that its rules will read, by the operation that saved them.

The formula of a rule says it: `ct * cos(x)` reads x, `ct * out` its own result, `ct` alone nothing. An array is held
once, however many operations read it, and one that belongs to a leaf is there anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.observe import array_of
from lab.autograd.tape import AnyNode, Leaf, Node
from lab.autograd.tensor import Tensor
from lab.errors import GradientError
from lab.transforms.calls import Kept
from lab.transforms.checkpointing import Dropped
from lab.words import counted

MOST_ROWS = 24


class Saved(NamedTuple):
    """What one operation keeps.

    Attributes:
        op: its name.
        names: what its rules read, as their formulas have it: "out", or the name of an argument.
        n_bytes: of these, as far as neither a leaf nor an operation before holds them already.
        state: "kept"; "freed" by a backward; "replayed": under `checkpoint` they are made again when backward asks, and
            the first of its operations has the bytes of what went in.
    """

    op: str
    names: tuple[str, ...]
    n_bytes: int
    state: str = "kept"

    def __str__(self) -> str:
        kept = self.state == "kept"
        what = ", ".join(self.names) or "nothing" if kept else self.state
        held = f"{self.n_bytes:,} bytes" if self.n_bytes else "held already" * (kept and bool(self.names))
        return f"{self.op:<14}{what:<14}{held}".rstrip()


@dataclass(frozen=True, slots=True, repr=False)
class SavedValues:
    """What a graph keeps; its text is a table.

    Attributes:
        rows: in the order in which the operations ran.
        n_arrays, n_bytes: of all of it, each array once, those of leaves left out.
    """

    rows: tuple[Saved, ...]
    n_arrays: int
    n_bytes: int

    def __repr__(self) -> str:
        rows = [*map(str, self.rows[:MOST_ROWS])]
        more = [f"... and {len(self.rows) - MOST_ROWS:,} more"] * (len(self.rows) > MOST_ROWS)
        return "\n".join([*rows, *more, f"{counted(self.n_arrays, 'array')}, {self.n_bytes:,} bytes"])


def saved_values(tensor: Tensor) -> SavedValues:
    """The arrays that the graph of a result keeps for backward, by operation.

    A view counts as the array that it looks into. What a rule of the user's own hides in a function is not seen.

    Raises:
        GradientError: the tensor has no graph.

    Example:
        >>> import lab, numpy as np
        >>> x = lab.tensor(np.ones(1000), requires_grad=True)
        >>> loss = (lab.exp(lab.sin(x)) + 1.0).sum()
        >>> lab.saved_values(loss)
        sin           x             held already
        exp           out           8,000 bytes
        add           nothing
        sum           nothing
        1 array, 8,000 bytes
        >>> loss.backward()
        >>> lab.saved_values(loss).n_bytes
        0
    """
    if type(tensor) is not Tensor or tensor.node is None:
        raise GradientError(
            "saved_values looks at the graph of a tensor, and this has none", given=repr(tensor)[:60],
            hint="compute it from a tensor with requires_grad=True, outside of no_grad and of transforms",
        )  # fmt: skip
    nodes = _nodes(tensor.node)
    held = {id(a) for node in nodes for a in _of_leaves(node)}
    n_of_leaves, total, rows = len(held), 0, []
    for node in nodes:
        named = [(name, _whole(array)) for name, array in _arrays(node)]
        fresh = {id(a): a.nbytes for _, a in named if id(a) not in held}
        held |= fresh.keys()
        total += sum(fresh.values())
        rows.append(Saved(node.op.name, tuple(dict.fromkeys(n for n, _ in named)), sum(fresh.values()), _state(node)))
    return SavedValues(tuple(rows), len(held) - n_of_leaves, total)


def _nodes(root: AnyNode) -> list[Node]:
    """The operations above a node, oldest first."""
    found: dict[int, Node] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node.id not in found:
            found[node.id] = node
            stack += [p for p in node.parents if p is not None]
    return [found[i] for i in sorted(found)]


def _state(node: Node) -> str:
    return "freed" if node.saved is None else "kept" if type(node.saved) is tuple else "replayed"


def _arrays(node: Node) -> Iterator[tuple[str, Any]]:
    """What a node holds on to, each with its name; nothing that would have to be computed first."""
    if isinstance(node.saved, Dropped):
        yield from (("what went in", array) for array in node.saved.region.held)
    if type(node.saved) is not tuple:
        return
    names = [node.op.arguments[0]] * (len(node.saved) - 1) if node.op.variadic else node.op.arguments
    for name, value in zip(("out", *names), node.saved, strict=True):
        inside = tree.flatten(value.of)[0] if isinstance(value, Kept) else [value]
        yield from ((name, array) for array in map(_array, inside) if array is not None)
    for name, value in node.params.items():  # as an index that is an array
        yield from ((name, a) for a in tree.flatten(value)[0] if isinstance(a, np.ndarray))


def _of_leaves(node: Node) -> Iterator[Any]:
    """The arrays among what a node saved that are the values of leaves."""
    if type(node.saved) is tuple:
        for parent, value in zip(node.parents, node.saved[1:], strict=False):
            array = _array(value) if type(parent) is Leaf else None
            if array is not None:
                yield _whole(array)


def _array(value: Any) -> Any:
    """The array of a saved value; None for a number, or where only a shape was saved."""
    return None if isinstance(value, float | int | np.generic) else array_of(value)


def _whole(array: Any) -> Any:
    """The array whose memory this one looks into."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
