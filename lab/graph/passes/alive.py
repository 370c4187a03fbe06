"""What is alive while each equation runs: the bytes of every value that is made and that somebody still reads.

Inputs are the caller's and not counted; outputs are, from where they are made to the end. A view takes nothing, and
keeps what it looks at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.graph.ir import Equation, Graph, Var
from lab.graph.passes.memory import may_look
from lab.graph.views import look_of


class Uses:
    """Who makes and who reads what, by numbers of equations and of variables.

    Attributes:
        n_bytes: of each value that takes memory.
        made: for each equation the values that it makes, views left out.
        reads: for each equation the values that it reads, itself or through views.
        behind: for each variable the values that must stay while it is needed.
        kept: values that are given out.

    Example:
        >>> import lab
        >>> uses = Uses(lab.make_graph(lambda x: lab.exp(x @ x).T)(np.ones((2, 2))))
        >>> uses.made, uses.reads, uses.kept
        ([(1,), (2,), ()], [frozenset(), frozenset({1}), frozenset({2})], frozenset({2}))
    """

    def __init__(self, graph: Graph) -> None:
        self.n_bytes: dict[int, int] = {}
        self.made: list[tuple[int, ...]] = []
        self.reads: list[frozenset[int]] = []
        self.behind: dict[int, frozenset[int]] = {}
        self._inplace = [isinstance(e.op.forward, np.ufunc) for e in graph.equations]
        for e in graph.equations:
            self._enter(e)
        outputs = [a.number for a in graph.outputs if isinstance(a, Var)]
        self.kept = frozenset().union(*(self.behind.get(n, frozenset()) for n in outputs))

    def _enter(self, e: Equation) -> None:
        operands = (self.behind.get(a.number, frozenset()) for a in e.inputs if isinstance(a, Var))
        reads = frozenset[int]().union(*operands)
        own = () if look_of(e) is not None else tuple(v.number for v in e.outs)
        self.reads.append(reads)
        self.made.append(own)
        self.n_bytes.update({v.number: v.spec.size * v.spec.dtype.itemsize for v in e.outs if v.number in own})
        through = reads if may_look(e) else frozenset()
        self.behind.update({v.number: through | ({v.number} if own else set()) for v in e.outs})

    def last(self, order: Sequence[int]) -> dict[int, int]:
        """For each value the place in the order where it is needed for the last time."""
        last: dict[int, int] = {}
        for place, k in enumerate(order):
            last.update(dict.fromkeys(self.made[k], place))
            last.update(dict.fromkeys(self.reads[k], place))
        last.update(dict.fromkeys(self.kept, len(order)))
        return last

    def over(self, order: Sequence[int]) -> list[int]:
        """Bytes alive while each equation runs, for equations in this order."""
        last, now, alive = self.last(order), 0, []
        for place, k in enumerate(order):
            made = sum(self.n_bytes[n] for n in self.made[k])
            freed = sum(self.n_bytes[n] for n in self.reads[k] if last[n] == place)
            over = self._inplace[k] and not self.kept.issuperset(self.made[k])
            alive.append(max(now, now + made - freed) if over else now + made)
            now += made - freed - sum(self.n_bytes[n] for n in self.made[k] if last[n] == place)
        return alive


def alive(graph: Graph) -> list[int]:
    """Bytes alive while each equation runs.

    A function of NumPy that may write over an operand which it reads last has one of the two alive.

    Example:
        >>> import lab
        >>> alive(lab.make_graph(lambda x: ((x @ x) @ x) @ x)(np.ones((2, 2))))
        [32, 64, 64]
    """
    return Uses(graph).over(range(len(graph.equations)))


def peak(graph: Graph) -> int:
    """The most that is alive at once."""
    return max(alive(graph), default=0)
