"""Functions of functions, by reverse and forward mode: grad, value_and_grad, vjp, jvp.

Each opens an interpreter of its own, wraps the inputs, calls the function and reads the result; so they nest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.backward import seed_of
from lab.autograd.forward import Forward
from lab.autograd.interpreter import Tracer
from lab.autograd.reverse import Reverse
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE, using
from lab.errors import ArgumentError, GradientError, ShapeError, TransformError


def lower(x: Any, *, what: str) -> Any:
    """A leaf of an argument as a value that a transform can wrap: a Tensor, a Tracer, or a float array made a Tensor.

    Raises:
        TransformError: not a float.
    """
    if isinstance(x, Tensor):
        value = x
    else:
        try:
            value = wrap(np.asarray(x))
        except (TypeError, ValueError):
            raise TransformError(f"{what} needs numbers", given=type(x).__name__) from None
    if value.dtype.kind != "f":
        raise TransformError(
            f"{what} needs float inputs",
            given=f"{value.dtype} of shape {value.shape}",
            hint="write 2.0 instead of 2, or choose argnums",
        )
    return value


def raised(value: Any) -> Any:
    """A result as the user sees it: arrays become Tensors."""
    return value if isinstance(value, Tensor) else wrap(np.asarray(value))


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function that returns one number.

    Args:
        f: takes tensors or containers of them; returns a tensor of one entry, or (that, anything) with `has_aux`.
        argnums: which positional arguments to differentiate by; a tuple gives a tuple of gradients.

    Returns:
        A function of the same arguments that returns the gradient, of the argument's structure, shapes and dtypes.

    Raises:
        GradientError: f does not return a single number.
        TransformError: an argument that is no float.

    Example:
        >>> import lab
        >>> lab.grad(lambda x: x * x)(3.0)
        tensor(6.)
        >>> lab.grad(lab.grad(lambda x: x ** 3))(2.0)
        tensor(12.)
    """
    with_value = value_and_grad(f, argnums, has_aux=has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = with_value(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """Value and gradient of a function in one run; arguments as for `grad`.

    Example:
        >>> import lab
        >>> lab.value_and_grad(lambda x: x * x)(3.0)
        (tensor(9.), tensor(6.))
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def both(*args: Any, **kwargs: Any) -> Any:
        if any(not -len(args) <= n < len(args) for n in numbers):
            raise ArgumentError(
                "argnums names an argument that was not given", given=f"{argnums} of {len(args)} arguments"
            )

        def of_chosen(*chosen: Any) -> Any:
            full = list(args)
            for n, value in zip(numbers, chosen, strict=True):
                full[n] = value
            return f(*full, **kwargs)

        out, back, aux = _vjp(of_chosen, [args[n] for n in numbers], has_aux=has_aux, what="grad")
        if not isinstance(out, Tensor) or out.size != 1:
            raise GradientError(
                "grad needs a function that returns one number",
                given=f"shape {out.shape}" if isinstance(out, Tensor) else type(out).__name__,
                hint="return a sum or a mean, or use vjp",
            )
        gradients = back(seed_of(out, None))
        return (out, aux) if has_aux else out, gradients[0] if isinstance(argnums, int) else gradients

    return both


def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
    """The value of f at the primals, and the function that takes a cotangent of it to cotangents of the primals.

    Example:
        >>> import lab
        >>> out, back = lab.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> back(1.0)
        (tensor(3.), tensor(2.))
    """
    out, back, _ = _vjp(f, primals, has_aux=False, what="vjp")

    def pull(ct: Any) -> tuple[Any, ...]:
        cotangents = tree.map_leaves(lambda o, c: _fitting(c, o, "cotangent"), out, ct)
        return tuple(back(cotangents))

    return out, pull


def _vjp(
    f: Callable[..., Any], primals: Sequence[Any], *, has_aux: bool, what: str
) -> tuple[Any, Callable[[Any], tuple[Any, ...]], Any]:
    """(output one level below, function from cotangents to gradients, auxiliary output)."""
    flat, structure = tree.flatten(list(primals))
    values = [lower(x, what=what) for x in flat]
    interp = Reverse()
    leaves = [interp.leaf(v) for v in values]
    with using(transforms=STATE.get().transforms + 1):
        result = f(*tree.unflatten(structure, leaves))
    out, aux = result if has_aux else (result, None)
    outs, out_structure = tree.flatten(out)

    def peel(x: Any) -> Any:
        return (
            raised(x.value)
            if isinstance(x, Tracer) and x.interp is interp
            else raised(x)
            if not isinstance(x, Tensor)
            else x
        )

    def back(ct: Any) -> tuple[Any, ...]:
        interp.alive = True
        cts = tree.flatten(ct)[0]
        totals: list[Any] = [None] * len(leaves)
        for o, c in zip(outs, cts, strict=True):
            parts = interp.gradients(o, c if isinstance(c, Tensor) else np.asarray(c), leaves, keep=True)
            totals = [p if t is None else t if p is None else t + p for t, p in zip(totals, parts, strict=True)]
        interp.alive = False
        grads = [
            wrap(np.zeros(v.shape, v.dtype)) if t is None else raised(t) for t, v in zip(totals, values, strict=True)
        ]
        return tuple(tree.unflatten(structure, grads))

    interp.alive = False
    return tree.unflatten(out_structure, [peel(o) for o in outs]), back, tree.map_leaves(peel, aux)


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of f at the primals, and its derivative along the tangents.

    Example:
        >>> import lab
        >>> lab.jvp(lambda x: x * x, (3.0,), (1.0,))
        (tensor(9.), tensor(6.))
    """
    flat, structure = tree.flatten(list(primals))
    values = [lower(x, what="jvp") for x in flat]
    directions, tangent_structure = tree.flatten(list(tangents))
    if tangent_structure != structure:
        raise ArgumentError(
            "tangents must have the structure of the primals",
            given=f"{tree.paths(list(tangents))} for {tree.paths(list(primals))}",
        )
    interp = Forward()
    tracers = [Tracer(interp, v, _fitting(t, v, "tangent")) for v, t in zip(values, directions, strict=True)]
    with using(transforms=STATE.get().transforms + 1):
        out = f(*tree.unflatten(structure, tracers))
    interp.alive = False

    def value(x: Any) -> Any:
        return (
            raised(x.value)
            if isinstance(x, Tracer) and x.interp is interp
            else raised(x)
            if not isinstance(x, Tensor)
            else x
        )

    def tangent(x: Any) -> Any:
        if isinstance(x, Tracer) and x.interp is interp:
            return raised(x.extra)
        return wrap(np.zeros(x.shape, x.dtype)) if isinstance(x, Tensor) else wrap(np.zeros(np.shape(x)))

    return tree.map_leaves(value, out), tree.map_leaves(tangent, out)


def _fitting(given: Any, primal: Any, what: str) -> Any:
    value = given if isinstance(given, Tensor) else wrap(np.array(given, dtype=primal.dtype))
    if value.shape != primal.shape:
        raise ShapeError(f"a {what} has the shape of its value", given=f"{value.shape} for {primal.shape}")
    return value
