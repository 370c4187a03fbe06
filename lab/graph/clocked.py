"""The generated code of a graph with a clock around each equation: made only where somebody wants to be told."""

from __future__ import annotations

from lab.graph.codegen import Code, Function
from lab.graph.telling import now


def clocked_source(code: Code) -> str:
    """The source with a clock before and behind the lines of each equation; those without a line cost nothing.

    Example:
        >>> import lab, numpy as np
        >>> from lab.graph.codegen import generate
        >>> print(clocked_source(generate(lab.make_graph(lambda x: lab.exp(x.T))(np.ones((2, 3))))))
        def step(_ran, a):
            _start = _now()
            b = a.transpose(None)
            _ran((0, 0, _start, _now()))
            _start = _now()
            c = np_empty((3, 2), "float64")
            np_exp(b, out=c)  # c = exp(b)
            _ran((1, 0, _start, _now()))
            return [c]
    """
    head, *lines = code.source.split("\n")
    before = {first: "    _start = _now()" for first, stop in code.parts if stop > first}
    behind = {stop: f"    _ran(({k}, 0, _start, _now()))" for k, (first, stop) in enumerate(code.parts) if stop > first}
    made = [head.replace("(", "(_ran, ", 1)]
    for i, line in enumerate(lines):
        made += [clock for clock in (behind.get(i), before.get(i)) if clock]
        made.append(line)
    return "\n".join(made)


def clocked(code: Code) -> Function:
    """The function of `clocked_source`, with buffers of its own; it gives each span to its first argument."""
    code.scope["_now"] = now
    return code.function(clocked_source(code))
