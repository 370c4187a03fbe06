"""One node for something that has several results: each of them gets a node of its own that sends its cotangent there.

So results stay what they are, where `packing.py` would put them into one array; the cotangents meet in a Bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lab.autograd.interpreter import Tracer
from lab.autograd.observe import observe_op, remember_line
from lab.autograd.reverse import Reverse
from lab.autograd.tape import NO_PARAMS, AnyNode, Node, next_id
from lab.autograd.tensor import Tensor
from lab.config import STATE
from lab.events.bus import bus
from lab.ops.primitive import Op
from lab.transforms.again import Moment

Back = Callable[[Any, dict[int, Any]], dict[int, Any]]
"""`back(kept, {result: its cotangent}) -> {operand: its cotangent}`."""


class Bundle:
    """Cotangents of some results, by number; a walk adds what comes from each.

    Example:
        >>> (Bundle({0: 1.0}) + Bundle({0: 2.0, 1: 5.0})).parts
        {0: 3.0, 1: 5.0}
    """

    __slots__ = ("parts",)

    def __init__(self, parts: dict[int, Any]) -> None:
        self.parts = parts

    def __add__(self, other: Bundle) -> Bundle:
        parts = dict(self.parts)
        for k, ct in other.parts.items():
            parts[k] = parts[k] + ct if k in parts else ct
        return Bundle(parts)


class _Kept:
    """What backward needs, in the place where nodes have their output."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of


def recorded(
    op: Op, top: Reverse, args: Sequence[Any], lower: Sequence[Any], outs: Sequence[Any], kept: Any, back: Back
) -> list[Any]:
    """The results, those that are floats as values of `top`.

    Args:
        op: what ran, for pictures.
        lower: the operands one level below.
        outs: the results one level below.
    """
    places = [k for k, o in enumerate(outs) if o.dtype.kind == "f"]
    if not places:
        return list(outs)
    parents = tuple(a.extra if isinstance(a, Tracer) and a.interp is top else None for a in args)
    node = _node(_op(op.name, op.doc, _joint(back)), parents, (_Kept(kept),))
    _told(top, node, lower, outs[places[0]])
    results = list(outs)
    for k in places:
        result = _node(_RESULT, (node,), (), {"number": k})
        _told(top, result, (outs[k],), outs[k])
        results[k] = Tracer(top, outs[k], result)
    return results


def _op(name: str, doc: str, joint: Callable[..., list[Any]]) -> Op:
    """An op that stands in no table: it has run already, and its rule is for all operands at once."""
    op = Op(name, ("*xs",), _done, doc=doc, listed=False)
    op.joint, op.complete = joint, True
    return op


def _done(*_: Any) -> Any:
    raise AssertionError("a node of several results is recorded, never applied")


_RESULT = _op(
    "result", "One result of a branch or a loop.", lambda node, ct, _: [Bundle({node.params["number"]: ct})]
)


def _node(op: Op, parents: tuple[AnyNode | None, ...], saved: Any, params: dict[str, Any] = NO_PARAMS) -> Node:
    node: Node = object.__new__(Node)
    node.id, node.op, node.parents, node.params = next_id(), op, parents, params
    node.saved, node.fit, node.hooks, node.where = saved, None, None, ""
    return node


def _told(top: Reverse, node: Node, operands: Sequence[Any], out: Any) -> None:
    top.noted(node, operands, out)
    if STATE.get().anomaly:
        remember_line(node)
    if bus.operations and not top.quiet:
        observe_op(node.op, node, tuple(operands), out, top.level)


def _joint(back: Back) -> Callable[[Node, Any, tuple[Any, ...]], list[Any]]:
    moment = Moment()

    def joint(node: Node, ct: Any, saved: tuple[Any, ...]) -> list[Any]:
        (kept,) = saved
        # Arrays, not tensors around them: those would be inputs of a graph that is being made, and no constants.
        given = {k: c.value if type(c) is Tensor and c.node is None else c for k, c in ct.parts.items()}
        with moment.again(recording=False):
            found = back(kept.of, given)
        return [found.get(i) if p is not None else None for i, p in enumerate(node.parents)]

    return joint
