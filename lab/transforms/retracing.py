"""New graphs from closed ones: what runs inside a region is traced once more, under the transform that met the region.

The parts: run a graph with tangents, run it backwards, run it for all members of a batch. They work on any values, and
`retraced` makes a graph of what is put together from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lab.autograd.batch import Batch
from lab.autograd.forward import Forward
from lab.autograd.interpreter import FRAMES, Interpreter, Tracer
from lab.autograd.reverse import Reverse
from lab.autograd.tape import NO_PARAMS, Node, next_id
from lab.autograd.tensor import Tensor
from lab.errors import TransformError
from lab.graph.execute import run
from lab.graph.ir import Graph, Literal, Var
from lab.graph.keys import Draw
from lab.graph.make import Trace, trace
from lab.ops import broadcast_to
from lab.ops.primitive import Op
from lab.shapes import Spec
from lab.transforms.closing import standin, tidied
from lab.transforms.gradients import run as under
from lab.transforms.unknown import layers


def retraced(f: Callable[..., Sequence[Any]], inputs: Sequence[Var | Spec]) -> Graph:
    """The closed graph of a function of flat values, without what nobody reads."""
    made, _ = trace(f, [standin(v) for v in inputs], {}, weak=True)
    constants = {}
    for v, c in zip(made.inputs[len(inputs) :], made.captured, strict=True):
        if isinstance(c, Tracer | Draw) or c.node is not None:
            raise TransformError(
                "a rule inside a branch or a loop uses a value that is not among its operands",
                given=repr(c)[:60],
                hint="make it an argument of the function that has the rule",
            )
        constants[v] = Literal(np.array(c.value))  # an array that a rule of the user's made
    return tidied(made, constants)


def floats(atoms: Sequence[Any]) -> list[int]:
    """The places of those that have tangents and cotangents."""
    return [k for k, a in enumerate(atoms) if spec_of(a).dtype.kind == "f"]


def spec_of(a: Any) -> Spec:
    """Shape and dtype of a variable, a constant or a value."""
    if hasattr(a, "spec"):
        found: Spec = a.spec
        return found
    value = a if hasattr(a, "shape") else np.asarray(a)
    return Spec(tuple(value.shape), np.dtype(value.dtype))


def zeros(like: Spec, among: Sequence[Any]) -> Any:
    """A tangent or cotangent of nothing; beside traced values one that the graph makes, so that it holds no array."""
    below = [v.interp for x in among for v in layers(x) if isinstance(v, Tracer) and isinstance(v.interp, Trace)]
    if not like.shape or not below:
        return np.zeros(like.shape, like.dtype)
    newest = max(below, key=lambda interp: interp.level)
    return newest.apply(broadcast_to, (np.zeros((), like.dtype),), {"shape": like.shape})


def is_of(x: Any, top: Interpreter) -> bool:
    """Whether x is a value of this level."""
    return isinstance(x, Tracer) and x.interp is top


def lowered(values: Sequence[Any], top: Interpreter) -> list[Any]:
    """The values one level below."""
    return [v.value if is_of(v, top) else v for v in values]


# --- with tangents ------------------------------------------------------------------------------------------------


def push(graph: Graph, values: Sequence[Any], tangents: Mapping[int, Any]) -> tuple[list[Any], list[Any]]:
    """(results, tangents of the floats among them) of a graph, for tangents of some of its inputs."""
    interp = Forward()
    interp.quiet = True
    given = [Tracer(interp, v, tangents[i]) if i in tangents else v for i, v in enumerate(values)]
    outs = under(interp, lambda *xs: run(graph, xs), given)
    slopes = [outs[k].extra if is_of(outs[k], interp) else zeros(spec_of(outs[k]), values) for k in floats(outs)]
    return lowered(outs, interp), slopes


# --- backwards ----------------------------------------------------------------------------------------------------


def _forward(*arrays: Any) -> Any:
    raise AssertionError("the results of a graph are no operation")


_RESULTS = Op("results", ("*xs",), _forward, doc="All results of a graph, each with its cotangent.", listed=False)
_RESULTS.joint = lambda node, ct, saved: list(saved)
_RESULTS.complete = True


def pull(graph: Graph, values: Sequence[Any], wanted: Sequence[int], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of some inputs of a graph, for cotangents of the floats among its results: in one walk for all."""
    interp = Reverse()
    interp.quiet = True
    given = list(values)
    for i in wanted:
        given[i] = interp.leaf(values[i])
    outs = under(interp, lambda *xs: run(graph, xs), given)
    pairs = [(outs[k], c) for k, c in zip(floats(outs), cotangents, strict=True) if is_of(outs[k], interp)]
    found: list[Any] = [None] * len(wanted)
    if pairs:
        root = _root([o.extra for o, _ in pairs], [c for _, c in pairs])
        nothing = np.zeros(())
        found = interp.gradients(Tracer(interp, nothing, root), nothing, [given[i] for i in wanted])
    return [zeros(spec_of(values[i]), values) if c is None else c for i, c in zip(wanted, found, strict=True)]


def _root(parents: Sequence[Any], cotangents: Sequence[Any]) -> Node:
    """A node that sends to each of its parents a cotangent of its own."""
    node: Node = object.__new__(Node)
    node.id, node.op, node.parents, node.params = next_id(), _RESULTS, tuple(parents), NO_PARAMS
    node.saved, node.fit, node.hooks, node.where = tuple(cotangents), None, None, ""
    return node


# --- for a batch --------------------------------------------------------------------------------------------------


class Members:
    """A graph run for all members of a batch, as the vmap that met a region would run it."""

    def __init__(self, top: Batch) -> None:
        self.interp, self._top = Batch(top.size, top.axis_name), top
        self.interp.quiet = True

    def on(self, values: Sequence[Any], mapped: Sequence[bool]) -> list[Any]:
        """Values as a member sees them."""
        return [Tracer(self.interp, v) if m else v for v, m in zip(values, mapped, strict=True)]

    def run(self, graph: Graph, values: Sequence[Any]) -> list[Any]:
        """The results of a graph, as a member sees them."""
        frames = tuple((name, self.interp if f is self._top else f) for name, f in FRAMES.get())
        token = FRAMES.set(frames)
        try:
            return run(graph, values)
        finally:
            FRAMES.reset(token)

    def is_mapped(self, x: Any) -> bool:
        """Whether members have values of their own."""
        return is_of(x, self.interp)

    def off(self, x: Any, mapped: bool = True) -> Any:
        """A result with the axis of the members in front, if that is wanted."""
        if self.is_mapped(x):
            return x.value
        value = x if isinstance(x, Tensor) else np.asarray(x)
        return broadcast_to(value, shape=(self.interp.size, *value.shape)) if mapped else x
