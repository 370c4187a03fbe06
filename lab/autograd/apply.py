"""What applying an op means: one closure template per arity, made from the op's record.

`type(x) is Tensor` is the whole fast-path test. Whatever is above the plain level is a Tracer and goes to `bind`; so
the common case, a few small arrays on the ordinary tape, pays for nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from lab import ops
from lab.autograd.interpreter import Tracer, bind
from lab.autograd.observe import observe_binary, observe_unary
from lab.autograd.plain import apply_plain, explain, operand
from lab.autograd.pull import binary_pull, general_pull, unary_pull
from lab.autograd.tape import NO_PARAMS, Node, NodeOfTwo, fit_of, next_id
from lab.autograd.tensor import Tensor
from lab.autograd.watching import watched
from lab.config import STATE
from lab.errors import ArgumentError
from lab.events.bus import bus
from lab.ops.primitive import MAKE_APPLY, Op
from lab.shapes import Spec

Apply = Callable[..., Any]
_new = object.__new__
_ndarray = np.ndarray
_asarray = np.asarray
_state = STATE.get


def make_apply(op: Op) -> Apply:
    """The function that `Op.apply` becomes."""
    if op.collective:
        apply = _always_bind(op)
    elif op.variadic or len(op.arguments) > 2 or (len(op.arguments) == 2 and (op.defaults or op.fixed)):
        apply = _general(op)
    elif len(op.arguments) == 2:
        apply = _binary(op)
    else:
        apply = _unary(op)
    op.complete = None not in op.rules
    apply.__name__ = apply.__qualname__ = op.name
    apply.__doc__ = op.doc
    names = [a if not op.variadic else a[1:] for a in op.arguments]
    kind = inspect.Parameter.VAR_POSITIONAL if op.variadic else inspect.Parameter.POSITIONAL_ONLY
    word = inspect.Parameter.KEYWORD_ONLY if op.variadic else inspect.Parameter.POSITIONAL_OR_KEYWORD
    apply.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, kind) for n in names]
        + [inspect.Parameter(n, word, default=d) for n, d in op.defaults.items()]
    )
    return apply


# --- the templates -----------------------------------------------------------------------------------------------


def _unary(op: Op) -> Apply:
    """One operand, any parameters."""
    forward, rule = op.forward, op.rules[0]
    defaults, fixed, parameters = op.defaults or NO_PARAMS, op.fixed, op.parameters
    save_out = rule is not None and rule.reads_out
    word = rule.reads[0] if rule is not None else ""
    tracked, converts = rule is not None, "dtype" in op.defaults
    op.pull = unary_pull(op)

    def apply(x: Any, /, *rest: Any, **given: Any) -> Any:
        params = parameters(rest, given) if rest or given or fixed else defaults
        kind = type(x)
        if kind is not Tensor:
            if kind is not _ndarray:
                return bind(op, (x,), params)
            try:
                return forward(x, **params)
            except Exception as why:  # noqa: BLE001 - as below
                raise explain(op, (x,), params, why) from None
        a, parent = x.value, x.node
        try:
            out = forward(a, **params)
        except Exception as why:  # noqa: BLE001 - whatever NumPy says is said again in the lab's words
            raise explain(op, (a,), params, why) from None
        if type(out) is not _ndarray:
            out = _asarray(out)
        made = _new(Tensor)
        made.value = out
        if parent is None or not tracked or (converts and out.dtype.kind != "f"):
            made.node = None
            return made
        state = _state()
        if state.frozen >= 0:
            made.node = None
            return made
        node = _new(Node)
        node.id = next_id()
        node.op, node.parents, node.params = op, (parent,), params
        node.saved = (
            out if save_out else None,
            a if word == "value" else None if word == "" else _like(a),
        )
        node.fit = None if out.dtype is a.dtype else (_like(a),)
        node.hooks, node.where = None, ""
        made.node = node
        if state.watched and (staged := watched(op, (x,), params, node)) is not None:
            return staged
        if bus.operations:
            observe_unary(node, parent, x, out)
        return made

    return apply


def _binary(op: Op) -> Apply:  # noqa: C901 - the fast path is one function on purpose: a call costs 60 ns
    """Two operands, no parameters: the operators."""
    forward, elementwise = op.forward, op.elementwise
    rules = op.rules
    both = [r for r in rules if r is not None]
    save = {  # which of (out, x, y) are saved, by which operands are tracked
        (tx, ty): _wanted([r for r, t in zip(rules, (tx, ty), strict=True) if t and r is not None])
        for tx in (False, True)
        for ty in (False, True)
    }
    save_both, save_x, save_y = save[True, True], save[True, False], save[False, True]
    tracked = bool(both)
    number = weak if elementwise else _as_it_is
    op.pull = binary_pull(op)

    def apply(x: Any, y: Any, /) -> Any:  # noqa: C901 - likewise
        kind_x, kind_y = type(x), type(y)
        if kind_x is Tensor:
            a, parent_a = x.value, x.node
            if kind_y is Tensor:
                b, parent_b = y.value, y.node
            elif kind_y is float or kind_y is int:
                b, parent_b = number(y, a), None
            elif kind_y is _ndarray:
                b, parent_b = y if y.dtype.kind in "fiub" else operand(op, y), None
            else:
                return bind(op, (x, y), NO_PARAMS)
        elif kind_y is Tensor:
            b, parent_b = y.value, y.node
            if kind_x is float or kind_x is int:
                a, parent_a = number(x, b), None
            elif kind_x is _ndarray:
                a, parent_a = x if x.dtype.kind in "fiub" else operand(op, x), None
            else:
                return bind(op, (x, y), NO_PARAMS)
        elif kind_x is _ndarray and (kind_y is _ndarray or kind_y is float):
            try:
                return forward(x, y)
            except Exception as why:  # noqa: BLE001 - as below
                raise explain(op, (x, y), NO_PARAMS, why) from None
        else:
            return bind(op, (x, y), NO_PARAMS)
        try:
            out = forward(a, b)
        except Exception as why:  # noqa: BLE001 - whatever NumPy says is said again in the lab's words
            raise explain(op, (a, b), NO_PARAMS, why) from None
        if type(out) is not _ndarray:
            out = _asarray(out)
        made = _new(Tensor)
        made.value = out
        if (parent_a is None and parent_b is None) or not tracked:
            made.node = None
            return made
        state = _state()
        if state.frozen >= 0:
            made.node = None
            return made
        node = _new(NodeOfTwo)
        node.id = next_id()
        node.op, node.a, node.b, node.params = op, parent_a, parent_b, NO_PARAMS
        wanted = save_x if parent_b is None else save_y if parent_a is None else save_both
        node.saved = (
            out if wanted[0] else None,
            a if wanted[1] is True else wanted[1] and _like(a),
            b if wanted[2] is True else wanted[2] and _like(b),
        )
        if a.dtype is b.dtype and (not elementwise or a.shape == b.shape):
            node.fit = None
        else:
            node.fit = fit_of((parent_a, parent_b), (a, b), out, elementwise)
        node.hooks, node.where = None, ""
        made.node = node
        if state.watched and (staged := watched(op, (x, y), NO_PARAMS, node)) is not None:
            return staged
        if bus.operations:
            observe_binary(node, x, y, out)
        return made

    return apply


def _general(op: Op) -> Apply:
    """Any number of operands, any parameters: the same steps without the shortcuts."""
    op.pull = general_pull(op)

    def apply(*args: Any, **given: Any) -> Any:
        n = len(args) if op.variadic else len(op.arguments)
        if len(args) < n:
            raise ArgumentError(
                f"{op.name} needs {', '.join(op.arguments)}",
                given=f"{len(args)} operands",
                hint=f"{op.name}({', '.join(op.arguments)})",
            )
        params = op.parameters(args[n:], given) if len(args) > n or given or op.fixed else op.defaults
        args = args[:n]
        for a in args:
            if isinstance(a, Tracer):
                return bind(op, args, params)
        return apply_plain(op, args, params)

    return apply


def _always_bind(op: Op) -> Apply:
    """A collective: who meets along its axis is found out at each call."""
    op.pull = general_pull(op)

    def apply(*args: Any, **given: Any) -> Any:
        n = len(op.arguments)
        return bind(op, args[:n], op.parameters(args[n:], given))

    return apply


# --- small parts -------------------------------------------------------------------------------------------------


def weak(number: float, other: Any) -> Any:
    """A Python number as NumPy takes it beside an array: in the array's dtype, if that can hold its kind."""
    dtype = other.dtype
    if dtype.kind == "f" or (type(number) is int and dtype.kind in "iu"):
        try:
            return _asarray(number, dtype)
        except OverflowError:  # a comparison takes it as it is; anything else will say why not
            return number
    return _asarray(number)


def _as_it_is(number: float, _other: Any) -> Any:
    """A Python number beside an array that it shares no dtype with: a label beside logits."""
    return _asarray(number)


def _wanted(rules: list[Any]) -> tuple[bool, Any, Any]:
    """(out, x, y): True to save, "like" for shape and dtype, None for nothing."""
    words: list[Any] = [None, None]
    for rule in rules:
        for i, word in enumerate(rule.reads):
            if word == "value":
                words[i] = True
            elif word == "like" and words[i] is None:
                words[i] = "like"
    return any(r.reads_out for r in rules), words[0], words[1]


def _like(array: Any) -> Any:
    return Spec(array.shape, array.dtype)


MAKE_APPLY.append(make_apply)


def install() -> None:
    """Give every op of the table its meaning now, and not at its first call: operators are these closures."""
    for op in ops.PRIMITIVES.values():
        op.apply = make_apply(op)
