"""The compiled executor: a graph goes through the passes, becomes a function of straight lines, and runs in buffers.

Results equal those of the ops up to the order of sums and the last digits of exp and its kin; nan and inf stay. What
goes wrong is said by the ops: the graph is then run again as it was given, equation by equation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from lab.autograd.tensor import Tensor, wrap
from lab.events.bus import bus
from lab.graph.codegen import Code, Function, generate
from lab.graph.execute import Replay, is_plain, run
from lab.graph.ir import Graph
from lab.graph.passes import Stage, stages


class Compiled:
    """A graph that has been compiled, or will be at its first run.

    Attributes:
        graph: as it was given.

    Example:
        >>> import lab, numpy as np
        >>> compiled = Compiled(lab.make_graph(lambda x, y: x @ y + 1.0)(np.ones((2, 3)), np.ones((3, 1))))
        >>> compiled.arrays([np.ones((2, 3)), np.ones((3, 1))])[0].tolist()
        [[4.0], [4.0]]
        >>> compiled.stages[-1].name, len(compiled.optimized.equations)
        ('memory planning', 2)
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._idle: list[Function] = []

    @cached_property
    def stages(self) -> list[Stage]:
        """What each pass made of the graph."""
        return stages(self.graph)

    @property
    def optimized(self) -> Graph:
        """What is compiled."""
        return self.stages[-1].graph

    @cached_property
    def code(self) -> Code:
        """The generated code."""
        return generate(self.optimized)

    @property
    def source(self) -> str:
        """The generated code as text: the function, then the loops that it calls."""
        loops = [f"# {word}\n{loop.source}" for word, loop in self.code.loops.items()]
        return "\n\n\n".join([self.code.source, *loops])

    def compile(self, told: Callable[[int, int], None] = lambda done, of: None) -> None:
        """Compile every loop, or load it from the cache.

        Args:
            told: called after each loop with how many are ready, of how many.
        """
        loops = list(self.code.loops.values())
        for i, loop in enumerate(loops):
            loop.compile()
            told(i + 1, len(loops))

    def arrays(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs for arrays; none of them shares memory with an input or with another run.

        Every thread that runs at the same time has buffers of its own; they are kept for the next run.
        """
        try:
            step = self._idle.pop()
        except IndexError:
            self.compile()
            step = self.code.function()
        try:
            return step(*arrays)
        finally:
            self._idle.append(step)


def compiling(graph: Graph) -> Replay:
    """A function that runs a graph compiled on arrays, and by its ops on everything else."""
    compiled = graph.once("compiled", Compiled)
    plain = not any(e.op.collective for inner in graph.walk() for e in inner.equations)

    def replay(args: Sequence[Any]) -> list[Any]:
        if not plain or not all(map(is_plain, args)) or bus.operations:
            return run(graph, args)
        try:
            outs = compiled.arrays([a.value if isinstance(a, Tensor) else a for a in args])
        except Exception:  # noqa: BLE001 - the ops say which of them it was, in the lab's words
            return run(graph, args)
        return [wrap(out) for out in outs]

    return replay


def run_compiled(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of a graph for arrays, compiled.

    Example:
        >>> import lab, numpy as np
        >>> run_compiled(lab.make_graph(lambda x: x * 2.0)(1.0), [np.asarray(3.0)])
        [array(6.)]
    """
    return graph.once("compiled", Compiled).arrays(arrays)
