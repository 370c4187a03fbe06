"""Rules of algebra for ops that compute nothing: casts, shapes, orders of axes, indices that take everything."""

from __future__ import annotations

from lab.graph.ir import Atom, Equation
from lab.graph.passes.algebra import like, made_by, rule
from lab.graph.rewriting import Rewriter
from lab.ops.index import is_basic


@rule("cast", says="cast to its own dtype -> x")
@rule("broadcast_to", "reshape", says="to its own shape -> x")
def _as_it_is(_: Rewriter, e: Equation) -> Atom | None:
    return e.inputs[0]


@rule("reshape", says="reshape of reshape -> one reshape, or x")
def _reshaped_twice(new: Rewriter, e: Equation) -> Atom | Equation | None:
    inner = made_by(new, e.inputs[0], "reshape")
    if inner is None:
        return None
    x = inner.inputs[0]
    return x if x.spec.shape == e.out.spec.shape else like(e, "reshape", x, shape=e.out.spec.shape)


def _order(e: Equation) -> tuple[int, ...]:
    n = len(e.out.spec.shape)
    axes = e.params["axes"]
    return tuple(range(n))[::-1] if axes is None else tuple(a % n for a in axes)


@rule("transpose", says="the same order -> x; transpose of transpose -> one transpose")
def _transposed(new: Rewriter, e: Equation) -> Atom | Equation | None:
    if _order(e) == tuple(range(len(_order(e)))):
        return e.inputs[0]
    inner = made_by(new, e.inputs[0], "transpose")
    if inner is None:
        return None
    order = tuple(_order(inner)[a] for a in _order(e))
    if order == tuple(range(len(order))):
        return inner.inputs[0]
    return like(e, "transpose", inner.inputs[0], axes=order)


@rule("getitem", "scatter_add", says="every entry once, in order -> reshape", allowed="integers and slices that go up")
def _everything(_: Rewriter, e: Equation) -> Atom | Equation | None:
    x, index = e.inputs[0], e.params["index"]
    if x.weak or not is_basic(index) or x.spec.size != e.out.spec.size or not x.spec.shape or not e.out.spec.shape:
        return None
    parts = index if isinstance(index, tuple) else (index,)
    in_order = all(not isinstance(p, slice) or p.step is None or p.step > 0 for p in parts)
    if not in_order:
        return None
    return x if x.spec == e.out.spec else like(e, "reshape", x, shape=e.out.spec.shape)
