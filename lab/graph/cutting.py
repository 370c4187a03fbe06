"""Part of what a trace has written: the equations that some results need, and no other."""

from __future__ import annotations

from collections.abc import Sequence

from lab.graph.ir import Atom, Equation, Graph, Var
from lab.graph.keys import Draw
from lab.graph.make import Trace


def cut(trace: Trace, inputs: Sequence[Var], outputs: Sequence[Atom], *, whole: bool = False) -> Graph:
    """The graph of these outputs; of the inputs and of the captured values those that it reads.

    Args:
        whole: it stands for all that was traced, and draws the keys of that, read or not.

    Example:
        >>> import lab
        >>> with lab.Graph() as g:
        ...     x = lab.placeholder((), "float64", name="x")
        ...     unused, wanted = lab.exp(x), x * 2.0
        >>> cut(g.trace, [x.extra], [wanted.extra])
        graph(a:f64[]) { let
            c:f64[] = multiply(a, 2.0)
          in (c) }
    """
    needed = {a.number for a in outputs if isinstance(a, Var)}
    kept: list[Equation] = []
    for e in reversed(trace.equations):
        if any(v.number in needed for v in e.outs):
            kept.append(e)
            needed.update(a.number for a in e.inputs if isinstance(a, Var))
    own = [v for v in inputs if v.number in needed]
    outside = [
        (v, value) for v, value in trace.captured.values() if v.number in needed or (whole and type(value) is Draw)
    ]
    return Graph(
        (*own, *(v for v, _ in outside)),
        tuple(reversed(kept)),
        tuple(outputs),
        tuple(value for _, value in outside),
    )
