"""Backward, one node: `pull(node, ct, grads)` sends the node's cotangent to its parents, adding into `grads` by id.

The fast twin of `backward.edges`, one closure for each arity; a test holds the two equal. What is there already is
popped before it is added to: nobody else holds it then, and NumPy adds to a large array in place. Where the cotangent
is a single number, so is all that an elementwise rule reads: NumPy multiplies two numbers in a twentieth of the time of
two arrays without axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lab.autograd.tape import Node, NodeOfTwo, fold_eager
from lab.ops.primitive import Op

Pull = Callable[[Any, Any, dict[int, Any]], None]


def unary_pull(op: Op) -> Pull:
    """For an op of one operand."""
    rule = op.rules[0]
    if rule is None:
        return _nothing
    vjp, passes, numbers = rule.eager, rule.passes, op.elementwise

    def pull(node: Node, ct: Any, grads: dict[int, Any]) -> None:
        out, a = node.saved  # type: ignore[misc]
        if numbers and not ct.shape:
            ct, out, a = ct[()], None if out is None else out[()], None if a is None else a[()]
        c = ct if passes else vjp(ct, out, a, **node.params)
        if node.fit is not None:
            c = fold_eager(c, node.fit[0])  # type: ignore[arg-type]
        i = node.parents[0].id  # type: ignore[union-attr]
        grads[i] = grads.pop(i) + c if i in grads else c

    return pull


def binary_pull(op: Op) -> Pull:
    """For an op of two operands without parameters."""
    rule_x, rule_y = op.rules
    vjp_x, pass_x = (rule_x.eager, rule_x.passes) if rule_x else (None, False)
    vjp_y, pass_y = (rule_y.eager, rule_y.passes) if rule_y else (None, False)
    numbers = op.elementwise and not (pass_x and pass_y)

    def pull(node: NodeOfTwo, ct: Any, grads: dict[int, Any]) -> None:
        out, a, b = node.saved  # type: ignore[misc]
        parent_a, parent_b, fit = node.a, node.b, node.fit
        if numbers and not ct.shape:
            ct, out = ct[()], None if out is None else out[()]
            a, b = None if a is None else a[()], None if b is None else b[()]
        if parent_a is not None and vjp_x is not None:
            c = ct if pass_x else vjp_x(ct, out, a, b)
            if fit is not None and fit[0] is not None:
                c = fold_eager(c, fit[0])
            i = parent_a.id
            grads[i] = grads.pop(i) + c if i in grads else c
        if parent_b is not None and vjp_y is not None:
            c = ct if pass_y else vjp_y(ct, out, a, b)
            if fit is not None and fit[1] is not None:
                c = fold_eager(c, fit[1])
            i = parent_b.id
            grads[i] = grads.pop(i) + c if i in grads else c

    return pull


def general_pull(op: Op) -> Pull:
    """For any op."""
    variadic, rule_of, shared = op.variadic, op.rule, op.shared

    def pull(node: Node, ct: Any, grads: dict[int, Any]) -> None:
        saved, parents, params, fit = tuple(node.saved), node.parents, node.params, node.fit  # type: ignore[arg-type]
        sent = None if shared is None or None in parents else shared(ct, *saved, **params)
        for k, parent in enumerate(parents):
            if parent is None:
                continue
            if sent is not None:
                c = sent[k]
            else:
                rule = rule_of(k)
                if rule is None:
                    continue
                c = rule.eager(ct, *saved, argument=k, **params) if variadic else rule.eager(ct, *saved, **params)
            if fit is not None and fit[k] is not None:
                c = fold_eager(c, fit[k])  # type: ignore[arg-type]
            i = parent.id
            grads[i] = grads.pop(i) + c if i in grads else c

    return pull


def _nothing(node: Node, ct: Any, grads: dict[int, Any]) -> None:
    """The pull of an op without a rule."""
