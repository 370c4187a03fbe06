"""A Graph as text that a person reads and that `parsing.py` reads back: `c:f32[2,4] = matmul(a, b)`."""

from __future__ import annotations

from collections.abc import Iterator

from lab.graph.ir import Atom, Equation, Graph, Var
from lab.graph.values import Constants, type_text, value_text

INDENT = 4


def text_of(graph: Graph, *, origins: bool = False, constants: Constants | None = None) -> str:
    """The text of a graph.

    Args:
        origins: with the file and the line that each equation comes from, as a comment.
        constants: takes the arrays that are too long to be written out.

    Example:
        >>> import lab
        >>> print(text_of(lab.make_graph(lambda x: lab.sum(x * 2.0, axis=0))(1.0 * lab.tensor([1.0, 2.0]))))
        graph(a:f64[2]) { let
            b:f64[2] = multiply(a, 2.0)
            c:f64[] = sum(b, axis=0, keepdims=False)
          in (c) }
    """
    return "\n".join(_lines(graph, 0, origins, constants or Constants()))


def var_text(v: Var) -> str:
    """A variable where it is defined."""
    kind = "float" if v.spec.dtype.kind == "f" else "int"
    return f"{v}:{kind if v.weak else type_text(v.spec)}"


def atom_text(a: Atom, constants: Constants | None = None) -> str:
    """A variable or a constant where it is used."""
    return str(a) if isinstance(a, Var) else value_text(a.value, constants or Constants())


def equation_text(e: Equation) -> str:
    """One equation."""
    return "\n".join(_equation(e, 0, False, Constants()))


def _lines(graph: Graph, pad: int, origins: bool, constants: Constants) -> Iterator[str]:
    blank = " " * pad
    yield f"graph({' '.join(map(var_text, graph.inputs))}) {{ let"
    for e in graph.equations:
        yield from _equation(e, pad + INDENT, origins, constants)
    yield f"{blank}  in ({', '.join(atom_text(a, constants) for a in graph.outputs)}) }}"


def _equation(e: Equation, pad: int, origins: bool, constants: Constants) -> Iterator[str]:
    blank = " " * pad
    places = e.buffer or (-1,) * len(e.outs)
    outs = " ".join(
        var_text(v) + ("" if place < 0 else f"@{place}") for v, place in zip(e.outs, places, strict=True)
    )
    words = [atom_text(a, constants) for a in e.inputs]
    words += [f"{k}={value_text(v, constants)}" for k, v in e.params.items() if not isinstance(v, Graph)]
    tail = f"  # {e.origin}" if origins and e.origin else ""
    head = f"{blank}{outs} = {e.op.name}({', '.join(words)})"
    graphs = e.graphs
    if not graphs:
        yield head + tail
        return
    yield f"{head} {{{tail}"
    for name, inner in graphs.items():
        first, *rest = _lines(inner, pad + INDENT, origins, constants)
        yield f"{blank}{' ' * INDENT}{name} = {first}"
        yield from rest
    yield f"{blank}}}"


