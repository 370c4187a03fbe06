"""What is known of a value that decides: a number, one for each member of a vmap, or nothing before a graph runs.

And what a branch and a loop mean by plain code for the first two, op by op, so that every tape and tangent goes along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lab.autograd.batch import Batch
from lab.autograd.interpreter import Tracer
from lab.autograd.tensor import Tensor
from lab.graph.ir import Graph
from lab.ops import stop_gradient
from lab.ops.comparisons import logical_and, where
from lab.shapes import Spec

Leaves = list[Any]


def layers(x: Any) -> Iterator[Any]:
    """A value, the value one layer below, and so on down to an array or a Spec."""
    yield x
    while isinstance(x, Tensor):
        x = x.value
        yield x


def hides(x: Any) -> bool:
    """Whether only a graph that runs will know the value.

    Example:
        >>> import lab
        >>> seen = []
        >>> _ = lab.make_graph(lambda x: seen.append(hides(x)) or x)(1.0); seen, hides(2.0)
        ([True], False)
    """
    return any(isinstance(v, Spec) for v in layers(x))


def is_mapped(x: Any) -> bool:
    """Whether the members of some vmap have values of their own."""
    return any(isinstance(v, Tracer) and isinstance(v.interp, Batch) for v in layers(x))


def some(x: Any) -> bool:
    """Whether a truth holds for any member."""
    *_, array = layers(x)
    return bool(np.any(array))


def chosen(condition: Any, yes: Sequence[Any], no: Sequence[Any]) -> Leaves:
    """One of two lists of values, member by member."""
    return [where(condition, a, b) for a, b in zip(yes, no, strict=True)]


def shielded(condition: Any, taken: bool, values: Sequence[Any], graph: Graph) -> Leaves:
    """The operands of a branch that runs for all members, so that nothing comes back from those that do not take it.

    They are the same numbers. Where a rule inside makes nan of the zero that such a member gets, it ends here; the
    guard of a walk cannot see it, because it does not look into regions.
    """
    if not any(e.op.singular for inner in graph.walk() for e in inner.equations):
        return list(values)
    return [
        (where(condition, v, stop_gradient(v)) if taken else where(condition, stop_gradient(v), v))
        if isinstance(v, Tensor) and v.dtype.kind == "f"
        else v
        for v in values
    ]


def turns(
    test: Callable[[Leaves], Any], body: Callable[[Leaves], Leaves], carry: Leaves, most: int | None = None
) -> Leaves:
    """Turns of a body as long as a test holds: for any member, where they differ; who is done keeps its values.

    Example:
        >>> turns(lambda c: c[0] < 10, lambda c: [2 * c[0]], [1])
        [16]
    """
    going: Any = None
    n = 0
    while most is None or n < most:
        go = test(carry)
        if going is not None:
            go = logical_and(going, go)
        if is_mapped(go):
            going = go
        if not some(go):
            break
        after = body(carry)
        carry = after if going is None else chosen(going, after, carry)
        n += 1
    return carry
