"""Transposes into matrix products: a product that reads its operand the other way round needs no transposed copy."""

from __future__ import annotations

from lab.graph.ir import Atom, Equation, Graph, Var
from lab.graph.passes.pipeline import graph_pass
from lab.graph.rewriting import Rewriter
from lab.ops import PRIMITIVES

_LETTERS = "abcdefghijklmnopqrstuvw"


@graph_pass("transposes into products")
def products(graph: Graph) -> Graph:
    """A matmul of transposed operands becomes a `contract` of the operands as they are.

    BLAS is told the order of the axes and reads them so. Products of stacks take part where both have the same leading
    axes. The sums are those of the product before, in whatever order BLAS takes for the other layout.

    Example:
        >>> import lab, numpy as np
        >>> print(products(lab.make_graph(lambda x, y: x.T @ y)(np.ones((3, 2)), np.ones((3, 4)))))
        graph(a:f64[3,2] b:f64[3,4]) { let
            c:f64[2,3] = transpose(a, axes=None)
            e:f64[2,4] = contract(a, b, subscripts='ba,bc->ac')
          in (e) }
    """
    new = Rewriter(graph)
    for e in graph.equations:
        now = new.seen(e)
        made = _untransposed(new, now) if e.op.name == "matmul" else None
        if made is None:
            new.keep(e)
            continue
        operands, subscripts = made
        (out,) = new.emit(PRIMITIVES["contract"], operands, {"subscripts": subscripts}, like=[e])
        new.stand(e.out, out)
    return new.done()


def _untransposed(new: Rewriter, e: Equation) -> tuple[tuple[Atom, Atom], str] | None:
    """The operands before their transposes, and the letters of their axes; None where nothing is gained."""
    a, b = e.inputs
    n = len(a.spec.shape)
    if n < 2 or len(b.spec.shape) != n or a.spec.shape[:-2] != b.spec.shape[:-2] or a.spec.dtype != b.spec.dtype:
        return None
    lead, (i, j, k) = _LETTERS[3 : n + 1], "abc"
    terms, operands, gained = [], [], False
    for x, term in ((a, f"{lead}{i}{j}"), (b, f"{lead}{j}{k}")):
        maker = new.maker(x)
        if maker is not None and maker.op.name == "transpose" and isinstance(maker.inputs[0], Var):
            axes = maker.params["axes"]
            order = tuple(range(n))[::-1] if axes is None else tuple(int(axis) % n for axis in axes)
            term, x, gained = "".join(term[order.index(axis)] for axis in range(n)), maker.inputs[0], True
        terms.append(term)
        operands.append(x)
    return ((operands[0], operands[1]), f"{terms[0]},{terms[1]}->{lead}{i}{k}") if gained else None
