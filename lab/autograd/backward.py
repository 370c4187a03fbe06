"""The backward walk: collect, sort by id, check everything, only then run.

It is iterative, so a chain of any length works; it is atomic, since a leaf's `.grad` is touched only after every rule
has run; it frees what it has read, unless told to retain it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np

from lab.autograd import mutation
from lab.autograd.observe import array_of, emit_value, hold_node, observe_rule
from lab.autograd.tape import AnyNode, Leaf, Node, NodeOfTwo, fold_eager
from lab.autograd.tensor import Tensor, _concrete, gradient_for, wrap
from lab.config import STATE, using
from lab.errors import GradientError
from lab.events.bus import Detail, bus
from lab.events.catalogue import BackwardFinished, BackwardStarted, GradientStored
from lab.ops import cast, where
from lab.ops.shape import fold

MASKS, SINGULAR = 1, 2
LONGEST = 200
"""Letters of an error that are told."""


class Walk:
    """The nodes of a walk, collected and checked.

    Attributes:
        nodes: every Node above the root's history, newest first.
        leaves: the leaves that were reached.
        guarded: ids of the nodes at which an exact zero must stop nan: a branch not taken may end there.
        hooked: some node has hooks.
    """

    __slots__ = ("guarded", "hooked", "leaves", "nodes", "root")

    def __init__(self, root: AnyNode) -> None:
        found: dict[int, Node] = {}
        leaves: dict[int, Leaf] = {}
        stack: list[AnyNode | None] = [root]
        flags, hooked = 0, False
        pop, push, extend = stack.pop, stack.append, stack.extend
        while stack:
            node = pop()
            if node is None or (number := node.id) in found:
                continue
            if node.hooks is not None:
                hooked = True
            if type(node) is Leaf:
                leaves[number] = node
                continue
            found[number] = node  # type: ignore[assignment]
            op = node.op  # type: ignore[union-attr]
            if op.masks:
                flags |= MASKS
            if op.singular:
                flags |= SINGULAR
            if type(node) is NodeOfTwo:  # most are, and a tuple of its parents would be made for this only
                push(node.a)
                push(node.b)
            else:
                extend(node.parents)  # type: ignore[union-attr]
        self.root, self.leaves = root, leaves
        self.nodes = [found[i] for i in sorted(found, reverse=True)]
        self.guarded = guarded_in(self.nodes) if flags == MASKS | SINGULAR else frozenset()
        self.hooked = hooked
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
            if node.id < last and type(node.saved) is tuple:  # what is recomputed is compared when it is
                for name, saved in zip(("the output", *node.op.arguments), node.saved, strict=False):
                    if mutation.changed_after(array_of(saved), node.id):
                        raise GradientError(
                            "an array that backward needs was changed in place after the forward",
                            given=f"{name} of {node.op.name}{' at ' + node.where if node.where else ''}",
                            hint="make a copy before changing it, or change it after backward; "
                            "where a run trains this model, run.pause() first",
                        )


def guarded_in(nodes: list[Node]) -> frozenset[int]:
    """Ids of elementwise nodes, newest first, that lie below a masking op and may meet what a singular op made.

    Along a branch that was not taken the cotangent is exactly zero, and 0 * inf would be nan. A matrix product mixes
    entries, so it cannot be guarded.
    """
    tainted: set[int] = set()
    for node in reversed(nodes):
        if node.op.singular or any(p is not None and p.id in tainted for p in node.parents):
            tainted.add(node.id)
    masked: set[int] = set()
    for node in nodes:
        if node.op.masks or node.id in masked:
            masked.update(p.id for p in node.parents if p is not None)
    return frozenset(n.id for n in nodes if n.op.elementwise and n.id in masked and n.id in tainted)


def backward(tensor: Tensor, gradient: Any, *, retain_graph: bool, create_graph: bool) -> None:
    """See `Tensor.backward`."""
    root = tensor.node
    if root is None or type(tensor) is not Tensor:
        raise GradientError(
            "backward has nothing to walk",
            given=repr(tensor),
            hint="compute it from tensors made with requires_grad=True",
        )
    ct = seed_of(tensor, gradient if create_graph or not isinstance(gradient, Tensor) else _concrete(gradient))
    walk = Walk(root)
    try:
        if create_graph:
            grads = run_general(walk, {root.id: ct if isinstance(ct, Tensor) else wrap(ct)}, owner=wrap, keep=True)
        else:
            grads = run_eager(walk, {root.id: ct}, keep=retain_graph)
        _store(walk, grads, taken={id(gradient.value)} if isinstance(gradient, Tensor) else set())
    except BaseException as why:
        end_walk(walk, 0, why)
        raise
    end_walk(walk, 0)


def end_walk(walk: Walk, level: int, why: BaseException | None = None) -> None:
    """Tell that a walk ended, and what raised if something did: what runs afterwards is not a part of it."""
    if bus.operations:
        error = "" if why is None else f"{type(why).__name__}: {why}".partition("\n")[0][:LONGEST]
        bus.emit_row(BackwardFinished, walk.root.id, len(walk.nodes), level, error)


def seed_of(tensor: Any, gradient: Any) -> Any:
    """The cotangent that a walk starts with."""
    if gradient is None:
        if tensor.size != 1:
            raise GradientError(
                "backward needs a gradient for a tensor of several entries",
                given=f"shape {tensor.shape}",
                hint="reduce it to one number, or pass backward(gradient=...)",
            )
        one = np.array(1, tensor.dtype)  # np.ones takes three times as long
        return one.reshape(tensor.shape) if tensor.shape else one
    return gradient_for(tensor, gradient)


# --- on arrays ---------------------------------------------------------------------------------------------------


def run_eager(walk: Walk, grads: dict[int, Any], *, keep: bool) -> dict[int, Any]:
    """Cotangents of the leaves. The loop is chosen once: the short one unless somebody looks on."""
    state = STATE.get()
    if walk.hooked or walk.guarded or state.anomaly or (bus.operations and not bus.plain):
        return _run_observed(walk, grads, keep=keep)
    if state.arrived is not None:
        with using(arrived=None):  # what a rule walks for itself is another walk
            return _run_arriving(walk, grads, state.arrived, keep=keep)
    if bus.operations:
        return _run_told(walk, grads, keep=keep)
    pop = grads.pop
    for node in walk.nodes:
        ct = pop(node.id, None)
        if ct is not None:
            node.op.pull(node, ct, grads)  # type: ignore[misc]
        if not keep:
            node.saved = None
    return grads


def _run_arriving(
    walk: Walk, grads: dict[int, Any], arrived: Callable[[Leaf, Any], object], *, keep: bool
) -> dict[int, Any]:
    """The short loop, which tells each leaf's gradient behind the last node that adds to it."""
    last = {p.id: node.id for node in walk.nodes for p in node.parents if type(p) is Leaf}
    complete: dict[int, list[Leaf]] = {}
    for leaf, node_id in last.items():
        complete.setdefault(node_id, []).append(walk.leaves[leaf])
    if bus.operations:
        bus.emit_row(BackwardStarted, walk.root.id, len(walk.nodes), 0)
    for node in walk.nodes:
        ct = grads.pop(node.id, None)
        if ct is not None:
            node.op.pull(node, ct, grads)  # type: ignore[misc]
            if bus.operations:
                observe_rule(node, 0)
        if not keep:
            node.saved = None
        for found in complete.get(node.id, ()):
            if found.id in grads:
                arrived(found, grads[found.id])
    return grads


def _run_told(walk: Walk, grads: dict[int, Any], *, keep: bool) -> dict[int, Any]:
    """The short loop with one event for each node."""
    bus.emit_row(BackwardStarted, walk.root.id, len(walk.nodes), 0)
    pop = grads.pop
    for node in walk.nodes:
        ct = pop(node.id, None)
        if ct is not None:
            node.op.pull(node, ct, grads)  # type: ignore[misc]
            observe_rule(node, 0)
        if not keep:
            node.saved = None
    return grads


def _run_observed(walk: Walk, grads: dict[int, Any], *, keep: bool) -> dict[int, Any]:
    """The same walk with hooks, events, the singular guard and anomaly checks."""
    anomaly, operations = STATE.get().anomaly, bus.operations
    guarded = walk.guarded
    detailed = operations and bus.detail >= Detail.STATISTICS
    by_edge = anomaly or detailed
    if operations:
        bus.emit_row(BackwardStarted, walk.root.id, len(walk.nodes), 0)
    for node in walk.nodes:
        ct = grads.pop(node.id, None)
        if ct is not None:
            if node.hooks is not None:
                ct = run_hooks(node, ct)
            if by_edge or node.id in guarded:
                if detailed:
                    emit_value(node.id, "gradient", ct)
                _pull_edges(node, ct, grads, guard=node.id in guarded, anomaly=anomaly)
            else:
                node.op.pull(node, ct, grads)  # type: ignore[misc]
                if operations:
                    observe_rule(node, 0)
            if bus.gates:
                hold_node(node, ct)
        if not keep:
            node.saved = None
    for leaf in walk.leaves.values():
        if leaf.hooks is not None and leaf.id in grads:
            grads[leaf.id] = run_hooks(leaf, grads[leaf.id])
    return grads


def _pull_edges(node: Node, ct: Any, grads: dict[int, Any], *, guard: bool, anomaly: bool) -> None:
    with np.errstate(all="ignore"):  # what is singular is masked, or raised with its line, below
        contributions = edges(node, ct, general=False)
    if bus.operations:
        observe_rule(node, 0)
    for i, parent, c in fitted(node, ct, contributions, guard=guard):
        if anomaly:
            _check_finite(node, i, c, ct)
        if bus.operations and bus.detail:
            emit_value(parent.id, "contribution", c, node.id, i)
        grads[parent.id] = grads[parent.id] + c if parent.id in grads else c


def fitted(node: Node, ct: Any, sent: list[Any], *, guard: bool) -> Iterator[tuple[int, AnyNode, Any]]:
    """What the rules of a node sent, brought to the shape and dtype of each parent: (operand, parent, array)."""
    for i, (parent, c) in enumerate(zip(node.parents, sent, strict=True)):
        if parent is None or c is None:
            continue
        if guard:
            c = np.where(_at(ct, c) == 0, np.zeros((), c.dtype), c)
        if node.fit is not None and node.fit[i] is not None:
            c = fold_eager(c, node.fit[i])  # type: ignore[arg-type]
        yield i, parent, c


def _check_finite(node: Node, i: int, c: Any, ct: Any) -> None:
    """Anomaly mode: a rule that makes nan or inf of a finite cotangent is named."""
    op = node.op
    if c is not None and not np.all(np.isfinite(c)) and np.all(np.isfinite(ct)):
        raise GradientError(
            f"the rule of {op.name} for {op.arguments[0 if op.variadic else i]} made a gradient that is not finite",
            given=f"recorded at {node.where or 'an unknown line'}; the gradient that came in was finite",
            hint=f"its rule is {op.rule_text(i)}: look at the values that it divides by or takes the log of",
        )


def _at(ct: Any, c: Any) -> Any:
    """The cotangent in the shape of a contribution (singular ops are elementwise, so it is the broadcast shape)."""
    return ct if np.shape(ct) == np.shape(c) else np.broadcast_to(ct, np.shape(c))


def edges(node: Node, ct: Any, *, general: bool, saved: Iterable[Any] | None = None) -> list[Any]:
    """What the rules of a node send to each parent, not yet brought to its shape; None where nothing is wanted."""
    op, values = node.op, tuple(node.saved if saved is None else saved)  # type: ignore[arg-type]
    if op.joint is not None:
        return op.joint(node, ct, values)
    out: list[Any] = []
    for i, parent in enumerate(node.parents):
        rule = op.rule(i)
        if parent is None or rule is None:
            out.append(None)
            continue
        extra = {"argument": i} if op.variadic else {}
        function = rule.general if general else rule.eager
        out.append(function(ct, *values, **extra, **node.params))
    return out


# --- on values that are themselves tracked -------------------------------------------------------------------------


def run_general(
    walk: Walk,
    grads: dict[int, Any],
    *,
    keep: bool,
    level: int = 0,
    owner: Callable[[Any, AnyNode | None], Any] | None = None,
    quiet: bool = False,
) -> dict[int, Any]:
    """Cotangents of the leaves as values that are tracked themselves.

    Args:
        owner: under `create_graph` the saved arrays become Tensors on the recorded parents again; above level 0 what is
            saved are values of the level below already, and there is nothing to do.
        quiet: tell nobody.
    """
    told = bus.operations and not quiet
    if told:
        bus.emit_row(BackwardStarted, walk.root.id, len(walk.nodes), level)
    for node in walk.nodes:
        ct = grads.pop(node.id, None)
        if ct is not None:
            if node.hooks is not None:
                ct = run_hooks(node, ct)
            _pull_general(node, ct, grads, owner, guard=node.id in walk.guarded, level=level, told=told)
            if bus.gates and not quiet:
                hold_node(node, ct)
        if not keep:
            node.saved = None
    for leaf in walk.leaves.values():
        if leaf.hooks is not None and leaf.id in grads:
            grads[leaf.id] = run_hooks(leaf, grads[leaf.id])
    return grads


def _pull_general(
    node: Node, ct: Any, grads: dict[int, Any], owner: Any, *, guard: bool, level: int, told: bool
) -> None:
    saved = node.saved
    if told and bus.detail:
        emit_value(node.id, "gradient", ct)
    if owner is not None:
        nodes = (node, *node.parents)
        saved = tuple(
            owner(v, n) if isinstance(v, np.ndarray) else v
            for v, n in zip(saved, nodes, strict=True)  # type: ignore[arg-type]
        )
    contributions, anomaly = edges(node, ct, general=True, saved=saved), STATE.get().anomaly
    if told:
        observe_rule(node, level)
    for i, (parent, sent) in enumerate(zip(node.parents, contributions, strict=True)):
        if parent is None or sent is None:
            continue
        c = sent
        if guard:
            c = where(ct == 0, 0.0, c)
        if anomaly:
            _check_finite(node, i, array_of(c), array_of(ct))
        spec = node.fit[i] if node.fit is not None else None
        if spec is not None:
            c = fold(c, spec.shape)
            c = c if c.dtype == spec.dtype else cast(c, dtype=spec.dtype)
        if told and bus.detail:
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
            ct = _returned(returned, ct)
    return ct


def _returned(given: Any, ct: Any) -> Any:
    """What a hook returned, as the kind of value that the walk works on."""
    tracked = isinstance(ct, Tensor) and isinstance(given, Tensor)
    value = given if tracked else np.asarray(given.value if type(given) is Tensor else given)
    if tuple(value.shape) != tuple(ct.shape) or value.dtype.kind not in "fiub":
        raise GradientError(
            "a hook must return a gradient of the same shape",
            given=f"{value.dtype} {tuple(value.shape)} for {tuple(ct.shape)}",
            hint="return None to leave it as it is",
        )
    if tracked:
        return value if value.dtype == ct.dtype else cast(value, dtype=ct.dtype)
    return wrap(value.astype(ct.dtype)) if isinstance(ct, Tensor) else value.astype(ct.dtype, copy=False)


_STORING = threading.Lock()
"""Held while gradients are compared and set, never while anything is computed or told: so it cannot be waited for."""


def _store(walk: Walk, grads: dict[int, Any], taken: set[int]) -> None:
    """Add the cotangents to `.grad` of the leaves; no two arrays in the user's hands (`taken`: ids) share memory."""
    leaves = [walk.leaves[i] for i in sorted(grads, reverse=True) if i in walk.leaves]
    own = []
    for leaf in leaves:
        g = grads[leaf.id]
        tracked = isinstance(g, Tensor)
        array = g.value if tracked else np.asarray(g)
        if array.base is not None or id(array) in taken or not array.flags.writeable or leaf is walk.root:
            array = array.copy()
        taken.add(id(array))
        own.append(wrap(array, g.node) if tracked else array)
    while True:  # once more whenever another thread stored into one of the leaves meanwhile
        before = [leaf.grad for leaf in leaves]
        totals = [g if b is None else _total(b, g) for b, g in zip(before, own, strict=True)]
        with _STORING:
            if all(map(is_, [leaf.grad for leaf in leaves], before)):
                # One call into C, in which no interrupt can come between two leaves.
                deque(map(setattr, leaves, repeat("grad"), totals), maxlen=0)
                break
    if bus.operations:
        for leaf, g, b in zip(leaves, own, before, strict=True):
            if bus.detail:
                emit_value(leaf.id, "gradient", g)
            bus.emit_row(GradientStored, leaf.id, b is not None)


def _total(before: Any, g: Any) -> Any:
    if isinstance(before, Tensor) or isinstance(g, Tensor):
        return (before if isinstance(before, Tensor) else wrap(before)) + g
    return np.asarray(before + g)
