"""The compiled executor: a graph goes through the passes, becomes a function of straight lines, and runs in buffers.

Results equal those of the ops up to the order of sums and the last digits of exp and its kin; nan and inf stay. What
goes wrong is said by the ops: the graph is then run again as it was given, equation by equation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

from lab.autograd.display import mimebundle, source_bundle
from lab.graph.clocked import clocked
from lab.graph.codegen import Code, Function, generate
from lab.graph.dependencies import Needs, needs_of
from lab.graph.execute import Progress, Replaying
from lab.graph.ir import Graph
from lab.graph.passes import Stage, stages
from lab.graph.passes.rematerialization import stages_within
from lab.graph.telling import Span, now, tell
from lab.words import counted


class Compiled:
    """A graph that has been compiled, or will be at its first run.

    Attributes:
        graph: as it was given.
        budget: bytes that its memory plan may take, without a limit if None; what does not fit is made again.

    Raises:
        GraphError: when its stages are asked for, no plan within the budget was found.

    Example:
        >>> import lab, numpy as np
        >>> compiled = Compiled(lab.make_graph(lambda x, y: x @ y + 1.0)(np.ones((2, 3)), np.ones((3, 1))))
        >>> compiled.arrays([np.ones((2, 3)), np.ones((3, 1))])[0].tolist()
        [[4.0], [4.0]]
        >>> compiled.stages[-1].name, len(compiled.optimized.equations)
        ('memory planning', 2)
    """

    def __init__(self, graph: Graph, budget: int | None = None) -> None:
        self.graph, self.budget = graph, budget
        self._idle: list[Function] = []
        self._clocked: list[Function] = []

    @cached_property
    def stages(self) -> list[Stage]:
        """What each pass made of the graph."""
        return stages(self.graph) if self.budget is None else stages_within(self.graph, self.budget)

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
        """The generated code as text: the function, those of branches and loops, then the kernels that they call."""
        kernels = [f"# {word}\n{loop.source}" for word, loop in self.code.loops.items()]
        return "\n\n\n".join([*_functions(self.code), *kernels])

    def compile(self, told: Progress = lambda done, of: None) -> None:
        """Compile every loop, or load it from the cache.

        Args:
            told: called after each loop with how many are ready, of how many.
        """
        loops = list(self.code.loops.values())
        for i, loop in enumerate(loops):
            loop.compile()
            told(i + 1, len(loops))

    def __repr__(self) -> str:
        """The source, once it was made; to look at something does not compile it."""
        if "code" in vars(self):
            return self.source
        return f"<a compiled graph of {counted(len(self.graph.equations), 'equation')}, not yet run>"

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        if "code" not in vars(self):
            return mimebundle(repr(self), "", include, exclude)
        loops = {word: loop.source for word, loop in self.code.loops.items()}
        return source_bundle(self.code.source, loops, include, exclude)

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

    def told(self, arrays: Sequence[Any]) -> list[Any]:
        """The same, telling of each equation: by a second function, with a clock between its lines."""
        self.compile()
        try:
            step = self._clocked.pop()
        except IndexError:
            step = clocked(self.code)
        spans: list[Span] = []
        begun = now()
        try:
            outs = step(spans.append, *arrays)
        finally:
            self._clocked.append(step)
        tell("compiled", self.optimized, self._needs, spans, begun)
        return outs

    @cached_property
    def _needs(self) -> Needs:
        return needs_of(self.optimized, in_buffers=True)


def _functions(code: Code, word: str = "") -> Iterator[str]:
    yield f"# {word}\n{code.source}" if word else code.source
    for key, inner in code.inside.items():
        yield from _functions(inner, f"{word}_{key}" if word else key)


def compiling(graph: Graph, budget: int | None = None) -> Replaying:
    """What runs a graph compiled on arrays, and by its ops on everything else.

    Raises:
        GraphError: no memory plan within the budget was found.
    """
    word = "compiled" if budget is None else f"compiled within {budget}"
    compiled = graph.once(word, lambda graph: Compiled(graph, budget))
    if budget is not None:
        _ = compiled.stages  # what does not fit is said now: in a run it would go to the ops, and fill the memory
    return Replaying(graph, compiled.arrays, compiled.told, compiled.compile)


def run_compiled(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of a graph for arrays, compiled.

    Example:
        >>> import lab, numpy as np
        >>> run_compiled(lab.make_graph(lambda x: x * 2.0)(1.0), [np.asarray(3.0)])
        [array(6.)]
    """
    return graph.once("compiled", Compiled).arrays(arrays)
