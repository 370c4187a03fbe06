"""The backward walk: collect, sort by id, check everything, only then run.

It is iterative, so a chain of any length works; it is atomic, since a leaf's `.grad` is touched only after every rule
has run; it frees what it has read, unless told to retain it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.autograd import mutation
from lab.autograd.observe import emit_value, observe_rule
from lab.autograd.tape import AnyNode, Leaf, Node, fold_eager
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE
from lab.errors import GradientError
from lab.events.bus import Detail, bus
from lab.events.catalogue import BackwardFinished, BackwardStarted, GradientStored
from lab.ops import cast, where
from lab.ops.shape import fold

MASKS, SINGULAR = 1, 2


class Walk:
    """The nodes of a walk, collected and checked.

    Attributes:
        nodes: every Node above the root's history, newest first.
        leaves: the leaves that were reached.
        guarded: some branch may be masked and some rule singular: exact zeros must stop nan.
        hooked: some node has hooks.
    """

    __slots__ = ("guarded", "hooked", "leaves", "nodes", "root")

    def __init__(self, root: AnyNode) -> None:
        found: dict[int, Node] = {}
        leaves: dict[int, Leaf] = {}
        stack: list[AnyNode] = [root]
        flags, hooked = 0, False
        while stack:
            node = stack.pop()
            if type(node) is Leaf:
                leaves[node.id] = node
                hooked = hooked or node.hooks is not None
                continue
            if node.id in found:
                continue
            found[node.id] = node  # type: ignore[assignment]
            op = node.op  # type: ignore[union-attr]
            if op.masks:
                flags |= MASKS
            if op.singular:
                flags |= SINGULAR
            hooked = hooked or node.hooks is not None
            stack += [p for p in node.parents if p is not None]  # type: ignore[union-attr]
        self.root, self.leaves = root, leaves
        self.nodes = [found[i] for i in sorted(found, reverse=True)]
        self.guarded, self.hooked = flags == MASKS | SINGULAR, hooked
        self._check()

    def _check(self) -> None:
        last = mutation.last
        for node in self.nodes:
            if node.saved is None:
                raise GradientError(
                    "this graph was freed by an earlier backward",
                    given=f"{node.op.name} has no saved values any more",
                    hint="backward(retain_graph=True) the first time, or run the forward again",
                )
            if node.id < last:
                for name, array in zip(("its output", *node.op.arguments), node.saved, strict=False):
                    if mutation.changed_after(array, node.id):
                        raise GradientError(
                            "an array that backward needs was changed in place after the forward",
                            given=f"{name} of {node.op.name}{' at ' + node.where if node.where else ''}",
                            hint="make a copy before changing it, or change it after backward",
                        )


def backward(tensor: Tensor, gradient: Any, *, retain_graph: bool, create_graph: bool) -> None:
    """See `Tensor.backward`."""
    root = tensor.node
    if root is None or type(tensor) is not Tensor:
        raise GradientError(
            "backward has nothing to walk",
            given=repr(tensor),
            hint="compute it from tensors made with requires_grad=True",
        )
    ct = seed_of(tensor, gradient)
    walk = Walk(root)
    if create_graph:
        grads = run_general(walk, {root.id: ct if isinstance(ct, Tensor) else wrap(ct)}, owner=wrap, keep=True)
    else:
        grads = run_eager(walk, {root.id: ct.value if isinstance(ct, Tensor) else ct}, keep=retain_graph)
    _store(walk, grads)
    if bus.operations:
        bus.emit_row(BackwardFinished, root.id, len(walk.nodes), 0)


def seed_of(tensor: Any, gradient: Any) -> Any:
    """The cotangent that a walk starts with."""
    if gradient is None:
        if tensor.size != 1:
            raise GradientError(
                "backward needs a gradient for a tensor of several entries",
                given=f"shape {tensor.shape}",
                hint="reduce it to one number, or pass backward(gradient=...)",
            )
        return np.ones(tensor.shape, tensor.dtype)
    shape = np.shape(gradient)
    if shape != tensor.shape:
        raise GradientError("a gradient has the shape of its tensor", given=f"{shape} for {tensor.shape}")
    return (
        gradient if isinstance(gradient, Tensor) else np.array(gradient, tensor.dtype)
    )  # a copy: it may end up in .grad


# --- on arrays ---------------------------------------------------------------------------------------------------


def run_eager(walk: Walk, grads: dict[int, Any], *, keep: bool) -> dict[int, Any]:
    """Cotangents of the leaves. The loop is chosen once: the short one unless somebody looks on."""
    if walk.hooked or walk.guarded or bus.operations or STATE.get().anomaly:
        return _run_observed(walk, grads, keep=keep)
    pop = grads.pop
    for node in walk.nodes:
        ct = pop(node.id, None)
        if ct is not None:
            node.op.pull(node, ct, grads)  # type: ignore[misc]
        if not keep:
            node.saved = None
    return grads


def _run_observed(walk: Walk, grads: dict[int, Any], *, keep: bool) -> dict[int, Any]:
    """The same walk with hooks, events, the singular guard and anomaly checks."""
    anomaly, operations = STATE.get().anomaly, bus.operations
    masked: set[int] | None = set() if walk.guarded else None
    detailed = operations and bus.detail >= Detail.STATISTICS
    by_edge = anomaly or walk.guarded or detailed
    if operations:
        bus.emit_row(BackwardStarted, walk.root.id, len(walk.nodes), 0)
    for node in walk.nodes:
        ct = grads.pop(node.id, None)
        if ct is not None:
            if node.hooks is not None:
                ct = run_hooks(node, ct)
            if by_edge:
                if detailed:
                    emit_value(node.id, "gradient", ct)
                _pull_edges(node, ct, grads, masked, anomaly)
            else:
                node.op.pull(node, ct, grads)  # type: ignore[misc]
            if operations:
                observe_rule(node, 0)
        if not keep:
            node.saved = None
    for leaf in walk.leaves.values():
        if leaf.hooks is not None and leaf.id in grads:
            grads[leaf.id] = run_hooks(leaf, grads[leaf.id])
    return grads


def _pull_edges(node: Node, ct: Any, grads: dict[int, Any], masked: set[int] | None, anomaly: bool) -> None:
    op = node.op
    contributions = edges(node, ct, general=False)
    guard = masked is not None and op.singular and node.id in masked
    for i, (parent, sent) in enumerate(zip(node.parents, contributions, strict=True)):
        if parent is None or sent is None:
            continue
        c = sent
        if guard:
            c = np.where(_at(ct, c) == 0, np.zeros((), c.dtype), c)
        if node.fit is not None and node.fit[i] is not None:
            c = fold_eager(c, node.fit[i])  # type: ignore[arg-type]
        if masked is not None and (op.masks or node.id in masked):
            masked.add(parent.id)
        if anomaly and not np.all(np.isfinite(c)) and np.all(np.isfinite(ct)):
            raise GradientError(
                f"the rule of {op.name} for {op.arguments[0 if op.variadic else i]} made a gradient that is not finite",
                given=f"recorded at {node.where or 'an unknown line'}; the gradient that came in was finite",
                hint=f"its rule is {op.rule_text(i)}: look at the values that it divides by or takes the log of",
            )
        if bus.operations and bus.detail:
            emit_value(parent.id, "contribution", c, node.id, i)
        grads[parent.id] = grads[parent.id] + c if parent.id in grads else c


def _at(ct: Any, c: Any) -> Any:
    """The cotangent in the shape of a contribution (singular ops are elementwise, so it is the broadcast shape)."""
    return ct if np.shape(ct) == np.shape(c) else np.broadcast_to(ct, np.shape(c))


def edges(node: Node, ct: Any, *, general: bool, saved: tuple[Any, ...] | None = None) -> list[Any]:
    """What the rules of a node send to each parent, not yet brought to its shape; None where nothing is wanted."""
    op, values = node.op, node.saved if saved is None else saved
    out: list[Any] = []
    for i, parent in enumerate(node.parents):
        rule = op.rule(i)
        if parent is None or rule is None:
            out.append(None)
            continue
        extra = {"argument": i} if op.variadic else {}
        function = rule.general if general else rule.eager
        out.append(function(ct, *values, **extra, **node.params))  # type: ignore[misc]
    return out


# --- on values that are themselves tracked -------------------------------------------------------------------------


def run_general(
    walk: Walk,
    grads: dict[int, Any],
    *,
    keep: bool,
    level: int = 0,
    owner: Callable[[Any, AnyNode | None], Any] | None = None,
) -> dict[int, Any]:
    """Cotangents of the leaves as values that are tracked themselves.

    Args:
        owner: under `create_graph` the saved arrays become Tensors on the recorded parents again; above level 0 what is
            saved are values of the level below already, and there is nothing to do.
    """
    masked: set[int] = set()
    if bus.operations:
        bus.emit_row(BackwardStarted, walk.root.id, len(walk.nodes), level)
    for node in walk.nodes:
        ct = grads.pop(node.id, None)
        if ct is not None:
            if node.hooks is not None:
                ct = run_hooks(node, ct)
            _pull_general(node, ct, grads, masked, owner)
            if bus.operations:
                observe_rule(node, level)
        if not keep:
            node.saved = None
    for leaf in walk.leaves.values():
        if leaf.hooks is not None and leaf.id in grads:
            grads[leaf.id] = run_hooks(leaf, grads[leaf.id])
    return grads


def _pull_general(node: Node, ct: Any, grads: dict[int, Any], masked: set[int], owner: Any) -> None:
    op, saved = node.op, node.saved
    if bus.operations and bus.detail:
        emit_value(node.id, "gradient", ct)
    if owner is not None:
        nodes = (node, *node.parents)
        saved = tuple(
            owner(v, n) if isinstance(v, np.ndarray) else v
            for v, n in zip(saved, nodes, strict=True)  # type: ignore[arg-type]
        )
    contributions = edges(node, ct, general=True, saved=saved)
    guard = op.singular and node.id in masked
    for i, (parent, sent) in enumerate(zip(node.parents, contributions, strict=True)):
        if parent is None or sent is None:
            continue
        c = sent
        if guard:
            c = where(ct == 0, 0.0, c)
        spec = node.fit[i] if node.fit is not None else None
        if spec is not None:
            c = fold(c, spec.shape)
            c = c if c.dtype == spec.dtype else cast(c, dtype=spec.dtype)
        if op.masks or node.id in masked:
            masked.add(parent.id)
        if bus.operations and bus.detail:
            emit_value(parent.id, "contribution", c, node.id, i)
        grads[parent.id] = grads[parent.id] + c if parent.id in grads else c


# --- shared ------------------------------------------------------------------------------------------------------


def run_hooks(node: AnyNode, ct: Any) -> Any:
    """The cotangent after the hooks of a node."""
    for hook in node.hooks or ():
        seen = ct
        if isinstance(ct, np.ndarray):
            seen = ct.view()
            seen.flags.writeable = False
        returned = hook(seen)
        if returned is not None:
            shape = np.shape(ct)
            ct = (
                returned
                if isinstance(ct, Tensor)
                else np.asarray(returned.value if isinstance(returned, Tensor) else returned)
            )
            if np.shape(ct) != shape:
                raise GradientError(
                    "a hook must return a gradient of the same shape", given=f"{np.shape(ct)} for {shape}"
                )
    return ct


def _store(walk: Walk, grads: dict[int, Any]) -> None:
    """Add the cotangents to `.grad` of the leaves; no two gradients in the user's hands share memory."""
    seen: set[int] = set()
    for leaf in sorted(walk.leaves.values(), key=lambda x: -x.id):
        g = grads.get(leaf.id)
        if g is None:
            continue
        if not isinstance(g, Tensor):
            g = np.asarray(g)
            if g.base is not None or id(g) in seen or not g.flags.writeable or leaf is walk.root:
                g = g.copy()
            seen.add(id(g))
        if bus.operations and bus.detail:
            emit_value(leaf.id, "gradient", g)
        before = leaf.grad
        if before is None:
            leaf.grad = g
        else:
            leaf.grad = before + g if isinstance(g, Tensor) or isinstance(before, Tensor) else np.asarray(before + g)
        if bus.operations:
            bus.emit_row(GradientStored, leaf.id, before is not None)
