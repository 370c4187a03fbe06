"""A function that brings a rule of its own, applied under each interpreter: what an op is to the table, for users.

As with ops the arguments decide: the highest level among them peels its layer and applies the same function below.
A Call deals in flat lists of leaves; containers, and what users' rules may return, are the business of `custom.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.autograd.batch import Batch
from lab.autograd.forward import Forward
from lab.autograd.interpreter import Interpreter, Tracer, newest
from lab.autograd.observe import observe_op, remember_line
from lab.autograd.reverse import Reverse
from lab.autograd.tape import NO_PARAMS, Node, next_id
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE
from lab.errors import TransformError
from lab.events.bus import bus
from lab.graph.ir import Literal
from lab.graph.keys import Draw
from lab.graph.make import Trace, trace
from lab.ops import broadcast_to
from lab.ops.primitive import Op, Rule
from lab.ops.reduce import sum_
from lab.shapes import Spec
from lab.transforms.again import Moment
from lab.transforms.packing import pack, packed_spec, unpack


@dataclass(frozen=True)
class Call:
    """A function of leaves with a rule.

    Attributes:
        name: of the function, for errors and pictures.
        arguments: a name for each leaf.
        primal: `primal(*leaves) -> outs`.
        forward: `forward(*leaves) -> (outs, kept)`: the same, and what `backward` wants to keep.
        backward: `backward(kept, cotangents of outs) -> cotangents of leaves`, None where nothing comes back.
        push: `push(leaves, tangents) -> (outs, tangents of outs)`; None: no forward mode.
        text: what a picture shows at its edges.
    """

    name: str
    arguments: tuple[str, ...]
    primal: Callable[..., list[Any]]
    forward: Callable[..., tuple[list[Any], Any]]
    backward: Callable[[Any, list[Any]], list[Any]]
    push: Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]] | None
    text: str


def apply(call: Call, values: Sequence[Any]) -> list[Any]:
    """The results of a call for tensors, tracers and Python numbers."""
    top = newest(values)
    if top is None:
        tracked = STATE.get().frozen < 0 and any(type(v) is Tensor and v.node is not None for v in values)
        return _recorded(call, values, None) if tracked else call.primal(*values)
    if isinstance(top, Batch):
        return _mapped(call, values, top)
    if isinstance(top, Forward):
        return _pushed(call, values, top)
    if isinstance(top, Trace):
        return _traced(call, values, top)
    assert isinstance(top, Reverse)
    if STATE.get().frozen >= top.level:
        return apply(call, [v.value if _is_of(v, top) else v for v in values])
    return _recorded(call, values, top)


def _is_of(x: Any, top: Interpreter) -> bool:
    return isinstance(x, Tracer) and x.interp is top


# --- forward mode -------------------------------------------------------------------------------------------------


def _pushed(call: Call, values: Sequence[Any], top: Forward) -> list[Any]:
    if call.push is None:
        raise TransformError(
            f"{call.name} has a rule for reverse mode only",
            given="custom_vjp under jvp, jacfwd, hessian or linearize",
            hint='grad, vjp or jacrev, in checks modes=("rev",); or a rule by custom_jvp, which serves both',
        )
    primals = [v.value if _is_of(v, top) else v for v in values]
    tangents = [v.extra if _is_of(v, top) else zeros_like(v) for v in values]
    outs, slopes = call.push(primals, tangents)
    _refuse_closures(call, outs, top.level)
    return [Tracer(top, o, t) if o.dtype.kind == "f" else o for o, t in zip(outs, slopes, strict=True)]


def zeros_like(x: Any) -> Any:
    """A tangent or cotangent of nothing, of x's shape; a float, whatever x is."""
    if isinstance(x, int | float):
        return 0.0
    return wrap(np.zeros(tuple(x.shape), x.dtype if x.dtype.kind == "f" else np.float64))


# --- reverse mode -------------------------------------------------------------------------------------------------


def _recorded(call: Call, values: Sequence[Any], top: Reverse | None) -> list[Any]:
    """One node for the whole call, on the tape of a transform or on the plain one."""
    if top is None:
        level, parents = 0, tuple(v.node if type(v) is Tensor else None for v in values)
        lower = [wrap(v.value) if type(v) is Tensor else v for v in values]
    else:
        level, parents = top.level, tuple(v.extra if _is_of(v, top) else None for v in values)
        lower = [v.value if _is_of(v, top) else v for v in values]
    outs, kept = call.forward(*lower)
    _refuse_closures(call, outs, level)
    places = [k for k, o in enumerate(outs) if o.dtype.kind == "f"]
    if not places:
        return outs
    layout = [Spec(tuple(outs[k].shape), np.dtype(outs[k].dtype)) for k in places]
    packed = pack([outs[k] for k in places])
    node: Node = object.__new__(Node)
    node.id, node.op, node.parents, node.params = next_id(), _op_of(call), parents, NO_PARAMS
    node.op.joint = _rule_of(call, outs, places, layout, level)
    node.op.pull = _pull
    # The operands are for second derivatives of the plain tape: what was kept of arrays knows nothing of its origin.
    node.saved = (Kept(kept), *(v.value if top is None and isinstance(v, Tensor) else None for v in lower))
    node.fit, node.hooks, node.where = None, None, ""
    operands = tuple(lower) if top is not None else tuple(values)
    if top is not None:
        top.noted(node, operands, packed)
    if STATE.get().anomaly:
        remember_line(node)
    if bus.operations:
        observe_op(node.op, node, operands, packed, level)
    tracked = wrap(packed.value, node) if top is None else Tracer(top, packed, node)
    for k, o in zip(places, unpack(tracked, layout), strict=True):
        outs[k] = o
    return outs


class Kept:
    """What a forward keeps for its backward, in the place where nodes have their output."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of


def _rule_of(
    call: Call, outs: list[Any], places: list[int], layout: list[Spec], level: int
) -> Callable[[Node, Any, tuple[Any, ...]], list[Any]]:
    """The joint rule of a call's node."""
    moment = Moment()
    shapes = [Spec(tuple(o.shape), np.dtype(o.dtype)) for o in outs]

    def joint(node: Node, ct: Any, saved: tuple[Any, ...]) -> list[Any]:
        kept, *operands = saved
        eager = level == 0 and not isinstance(ct, Tensor)
        with moment.again(recording=False):
            of = kept.of
            if level == 0 and not eager:  # create_graph: the operands are tensors on their nodes, so run on those
                _, of = call.forward(*operands)
            cotangents = [zeros_like(s) for s in shapes]
            for k, c in zip(places, unpack(ct if isinstance(ct, Tensor) else wrap(ct), layout), strict=True):
                cotangents[k] = c
            back = call.backward(of, cotangents)
        back = [c if p is not None else None for c, p in zip(back, node.parents, strict=True)]
        return [None if c is None else np.asarray(c.value) for c in back] if eager else back

    return joint


def _pull(node: Node, ct: Any, grads: dict[int, Any]) -> None:
    """The eager walk's way to the joint rule."""
    assert node.op.joint is not None
    for parent, c in zip(node.parents, node.op.joint(node, ct, tuple(node.saved or ())), strict=True):
        if parent is not None and c is not None:
            grads[parent.id] = grads[parent.id] + c if parent.id in grads else c


def _refuse_closures(call: Call, outs: Sequence[Any], level: int) -> None:
    """A value of this level or above among the results came in around the arguments, and would lose its gradient."""
    for o in outs:
        inside = o.interp.level if isinstance(o, Tracer) else 0 if o.node is not None else -1
        if inside >= level:
            raise _around(call, o)


def _around(call: Call, x: Tensor | Draw) -> TransformError:
    return TransformError(
        f"{call.name} has a rule of its own, and uses a value that is not among its arguments",
        given=repr(x)[:60] if isinstance(x, Tracer | Draw) else "a tensor that requires a gradient",
        hint="make it an argument, so that the rule can say its gradient; or detach it",
    )


# --- batches ------------------------------------------------------------------------------------------------------


def _mapped(call: Call, values: Sequence[Any], top: Batch) -> list[Any]:
    """The call below, of functions that put the batch axis back on while they run."""
    mapped = [_is_of(v, top) for v in values]
    moment = Moment()

    def on(values: Sequence[Any]) -> list[Any]:
        return [Tracer(top, v) if m else v for v, m in zip(values, mapped, strict=True)]

    def off(x: Any) -> Any:
        return x.value if _is_of(x, top) else broadcast_to(x, shape=(top.size, *x.shape))

    def folded(ct: Any, m: bool) -> Any:
        """The cotangent of an operand: all members' sum, where they share it."""
        if ct is None or m:
            return ct if ct is None else off(ct)
        return sum_(ct.value, axis=0) if _is_of(ct, top) else ct * float(top.size)

    def primal(*lower: Any) -> list[Any]:
        with moment.again(recording=False):
            return [off(o) for o in call.primal(*on(lower))]

    def forward(*lower: Any) -> tuple[list[Any], Any]:
        with moment.again(recording=False):
            outs, kept = call.forward(*on(lower))
            return [off(o) for o in outs], kept

    def backward(kept: Any, cotangents: list[Any]) -> list[Any]:
        with moment.again(recording=False):
            cts = call.backward(kept, [Tracer(top, c) for c in cotangents])
            return [folded(c, m) for c, m in zip(cts, mapped, strict=True)]

    def push(primals: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
        assert call.push is not None
        with moment.again(recording=False):
            outs, slopes = call.push(on(primals), on(tangents))
            return [off(o) for o in outs], [off(t) for t in slopes]

    lifted = Call(call.name, call.arguments, primal, forward, backward, call.push and push, call.text)
    lower = [v.value if m else v for v, m in zip(values, mapped, strict=True)]
    return [Tracer(top, o) for o in apply(lifted, lower)]


# --- graphs -------------------------------------------------------------------------------------------------------


def _traced(call: Call, values: Sequence[Any], top: Trace) -> list[Any]:
    """One equation, whose op is the call: so the rule is still there when the graph is differentiated."""
    ones = [np.broadcast_to(np.ones((), v.dtype), v.shape) if isinstance(v, Tensor) else v for v in values]
    weak = [isinstance(v, Tracer) and v.weak for v in values]
    inner, _ = trace(call.primal, [o.item() if w else o for o, w in zip(ones, weak, strict=True)], {}, weak=True)
    for c in inner.captured:
        if isinstance(c, Tracer | Draw):
            raise _around(call, c)
    values_out = [np.asarray(a.value) if isinstance(a, Literal) else a.spec for a in inner.outputs]
    layout = [Spec(tuple(v.shape), v.dtype) for v in values_out]
    op = _op_of(call)
    op.shaped(lambda *_: packed_spec(layout))
    return unpack(top.apply(op, values, {}), layout)


def _op_of(call: Call) -> Op:
    """An op that stands in no table: what a node or an equation of the call holds."""

    def forward(*arrays: Any) -> Any:
        leaves = [wrap(a) if isinstance(a, np.ndarray) else a for a in arrays]
        return np.asarray(pack(call.primal(*leaves)).value)

    op = Op(f"custom {call.name}", call.arguments, forward, doc=f"{call.name}, by a rule of its own.", listed=False)
    op.rules = [Rule(i, call.text, _of_all, lambda: _of_all, False, ()) for i in range(len(call.arguments))]
    op.complete = True
    op.apply = lambda *leaves: pack(apply(call, leaves))
    return op


def _of_all(*_: Any) -> Any:
    raise AssertionError("a call has one rule for all its arguments")
