"""Memory planning: each value gets a buffer, and a buffer goes to the next value when nobody needs what is in it.

Written down in the equations themselves (`Equation.buffer`), so the plan can be read, checked and drawn.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from lab.graph.ir import Equation, Graph, Var
from lab.graph.passes.pipeline import graph_pass
from lab.graph.placed import placed
from lab.graph.views import look_of

NONE = -1
"""In the place of a buffer: the value is given out, or made anew in each run by its op."""
ALIGNED = 64
"""Buffers are multiples of a cache line."""
FRESH = frozenset(
    {"all", "any", "argmax", "argmin", "conv", "conv_transpose", "conv_weight", "cross_entropy", "embedding",
     "layer_norm", "log_softmax", "logsumexp", "max", "max_pool", "max_pool_back", "mean", "min", "nll", "one_hot",
     "prod", "random_uniform", "scatter_add", "segment_sum", "softmax", "standardize", "std", "sum", "take", "var",
     "where"}
)  # fmt: skip
"""Ops that choose the place of their result themselves, and never in an operand; a test looks at each."""


class Held(NamedTuple):
    """What a buffer holds for a while.

    Attributes:
        var: the value.
        buffer: its number.
        start, stop: numbers of the equation that writes it and of the last that reads it.
        n_bytes: of the value.
    """

    var: Var
    buffer: int
    start: int
    stop: int
    n_bytes: int


@graph_pass("memory planning")
def memory(graph: Graph) -> Graph:
    """Every value that is written into a place gets the smallest buffer that is free and large enough.

    Outputs get none: they must outlive the run. A view lies in the buffer of what it looks at, and keeps it taken. An
    elementwise op of NumPy may write over an operand that it reads for the last time.

    Example:
        >>> import lab
        >>> chain = lab.make_graph(lambda x: ((x @ x) @ x) @ x)(np.ones((2, 2)))
        >>> print(memory(chain))
        graph(a:f64[2,2]) { let
            b:f64[2,2]@0 = matmul(a, a)
            c:f64[2,2]@1 = matmul(b, a)
            d:f64[2,2] = matmul(c, a)
          in (d) }
    """
    return with_buffers(graph)


def with_buffers(graph: Graph) -> Graph:
    """The same, unchecked: for who asks what a plan would take."""
    planned: list[Equation] = []
    last = last_reads(graph)
    given = {a for a in graph.outputs if isinstance(a, Var)}
    place: dict[Var, int] = {}
    sizes: list[int] = []
    free: list[int] = []
    until: dict[int, int] = {}
    for k, e in enumerate(graph.equations):
        x = e.inputs[0] if e.inputs else None
        if look_of(e) is not None:
            number = place.get(x, NONE) if isinstance(x, Var) else NONE
            place[e.out] = number
            planned.append(_placed(e, [number]))
            continue
        own = _own_place(e)
        inplace = isinstance(e.op.forward, np.ufunc)
        if not inplace:
            numbers = [_take(v, sizes, free) if own and v not in given else NONE for v in e.outs]
        free += [b for b, stop in until.items() if stop <= k]
        until = {b: stop for b, stop in until.items() if stop > k}
        if inplace:
            numbers = [_take(v, sizes, free) if own and v not in given else NONE for v in e.outs]
        for v, number in zip(e.outs, numbers, strict=True):
            place[v] = number
            if number != NONE:
                until[number] = last.get(v, k)
        free += [b for b, stop in until.items() if stop <= k]
        until = {b: stop for b, stop in until.items() if stop > k}
        planned.append(_placed(e, numbers))
    return dataclasses.replace(graph, equations=tuple(planned))


def _placed(e: Equation, numbers: list[int]) -> Equation:
    return dataclasses.replace(e, buffer=tuple(numbers) if set(numbers) != {NONE} else ())


def _own_place(e: Equation) -> bool:
    """Whether what compiles it can write its results into places given."""
    return (
        e.op.name in ("fused", "matmul", "contract") or isinstance(e.op.forward, np.ufunc) or placed(e) is not None
    )


def _take(v: Var, sizes: list[int], free: list[int]) -> int:
    """A buffer for a value: the smallest free one that is large enough, the largest made larger, or a new one."""
    n_bytes = -(-v.spec.size * v.spec.dtype.itemsize // ALIGNED) * ALIGNED
    fits = [b for b in free if sizes[b] >= n_bytes]
    if fits or free:
        chosen = min(fits, key=lambda b: sizes[b]) if fits else max(free, key=lambda b: sizes[b])
        free.remove(chosen)
        sizes[chosen] = max(sizes[chosen], n_bytes)
        return chosen
    sizes.append(n_bytes)
    return len(sizes) - 1


def may_look(e: Equation) -> bool:
    """Whether a result may lie in the memory of an operand: a view, or what an op unknown here gives."""
    return not (_own_place(e) or e.op.name in FRESH)


def last_reads(graph: Graph) -> dict[Var, int]:
    """For each value the number of the last equation that reads it, itself or through a view."""
    last: dict[Var, int] = {}
    for k, e in enumerate(graph.equations):
        last.update({a: k for a in e.inputs if isinstance(a, Var)})
    last.update({a: len(graph.equations) for a in graph.outputs if isinstance(a, Var)})
    for e in reversed(graph.equations):
        if may_look(e):
            until = max(last.get(v, 0) for v in e.outs)
            last.update({a: max(last.get(a, 0), until) for a in e.inputs if isinstance(a, Var)})
    return last


def lifetimes(graph: Graph) -> list[Held]:
    """What each buffer holds from when to when, in the order of writing; views are not counted again.

    Example:
        >>> import lab
        >>> chain = memory(lab.make_graph(lambda x: ((x @ x) @ x) @ x)(np.ones((2, 2))))
        >>> [(str(h.var), h.buffer, h.start, h.stop, h.n_bytes) for h in lifetimes(chain)]
        [('b', 0, 0, 1, 32), ('c', 1, 1, 2, 32)]
    """
    last = last_reads(graph)
    return [
        Held(v, number, k, last.get(v, k), v.spec.size * v.spec.dtype.itemsize)
        for k, e in enumerate(graph.equations)
        if look_of(e) is None
        for v, number in zip(e.outs, e.buffer, strict=False)
        if number != NONE
    ]


def buffer_sizes(graph: Graph) -> dict[int, int]:
    """Bytes of each buffer of a planned graph.

    Example:
        >>> import lab
        >>> buffer_sizes(memory(lab.make_graph(lambda x: (x @ x) @ x)(np.ones((2, 2)))))
        {0: 32}
    """
    sizes: dict[int, int] = {}
    for held in lifetimes(graph):
        sizes[held.buffer] = max(sizes.get(held.buffer, 0), held.n_bytes)
    return sizes


def footprint(graph: Graph) -> int:
    """Bytes that a run of the compiled graph takes beyond its inputs, if it is planned as it stands.

    Buffers are kept from run to run; outputs, and results of ops that cannot write into a place, are made anew.

    Example:
        >>> import lab
        >>> footprint(lab.make_graph(lambda x: ((x @ x) @ x) @ x)(np.ones((2, 2))))
        96
    """
    plan = with_buffers(graph)
    given = {a for a in graph.outputs if isinstance(a, Var)}
    outside = {v for e in plan.equations if look_of(e) is None and not e.buffer for v in e.outs} | given
    return sum(buffer_sizes(plan).values()) + sum(v.spec.size * v.spec.dtype.itemsize for v in outside)
