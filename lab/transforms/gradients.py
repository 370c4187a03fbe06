"""Functions of functions, by reverse and forward mode: grad, value_and_grad, vjp, jvp.

Each opens an interpreter of its own, wraps the inputs, calls the function and reads the result; so they nest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.backward import seed_of
from lab.autograd.forward import Forward
from lab.autograd.interpreter import Interpreter, Tracer
from lab.autograd.reverse import Reverse
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE, using
from lab.errors import ArgumentError, GradientError, LabError, TracerLeakError
from lab.transforms.arguments import chosen, fitting, floating, function, positions, returned


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function that returns one number.

    Args:
        f: takes tensors or containers of them; returns a tensor of one entry, or (that, anything) with `has_aux`.
        argnums: which positional arguments to differentiate by; a tuple gives a tuple of gradients.

    Returns:
        A function of the same arguments that returns the gradient, of the argument's structure, shapes and dtypes.

    Raises:
        GradientError: f does not return a single float.
        TransformError: an argument that is no float.

    Example:
        >>> import lab
        >>> lab.grad(lambda x: x * x)(3.0)
        tensor(6.)
        >>> lab.grad(lab.grad(lambda x: x ** 3))(2.0)
        tensor(12.)
    """
    with_value = value_and_grad(f, argnums, has_aux=has_aux)

    @functools.wraps(f)
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
    function(f, "grad")
    numbers = positions(argnums)

    @functools.wraps(f)
    def both(*args: Any, **kwargs: Any) -> Any:
        of_chosen, primals = chosen(f, numbers, args, kwargs)
        out, back, aux = pullback(of_chosen, primals, has_aux=has_aux, what="grad", of=_single_float)
        gradients = back(seed_of(out, None))
        return (out, aux) if has_aux else out, gradients[0] if isinstance(argnums, int) else gradients

    return both


def _single_float(out: Any) -> None:
    """Refuse what is not one number with a slope."""
    is_number = isinstance(out, Tensor | np.ndarray | np.generic | float | int)
    if not is_number or np.size(out) != 1:
        raise GradientError(
            "grad needs a function that returns one number",
            given=f"shape {np.shape(out)}" if is_number else type(out).__name__,
            hint="return a sum or a mean, or use vjp; has_aux=True for (number, anything)",
        )
    if isinstance(out, Tensor) and out.dtype.kind != "f":
        raise GradientError(
            "grad needs a function that returns a float",
            given=str(out.dtype),
            hint="comparisons and casts have no slope",
        )


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of f at the primals, and the function that takes a cotangent of it to cotangents of the primals.

    The second may be called again and again; a cotangent has the structure and shapes of the value.

    Args:
        has_aux: f returns (value, anything), and anything is the third result.

    Raises:
        TransformError: a primal that is no float.
        ShapeError: a cotangent of another shape than its value.

    Example:
        >>> import lab
        >>> out, back = lab.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> back(1.0)
        (tensor(3.), tensor(2.))
    """
    # Copies: `back` may be called long after the caller has changed the arrays.
    own = tree.map_leaves(lambda x: x.copy() if isinstance(x, np.ndarray) else x, primals)
    out, back, aux = pullback(function(f, "vjp"), own, has_aux=has_aux, what="vjp")
    structure = tree.flatten(out)[1]

    def pull(ct: Any) -> tuple[Any, ...]:
        if tree.flatten(ct)[1] != structure:
            raise ArgumentError(
                "cotangents must have the structure of the value",
                given=f"{tree.paths(ct)} for {tree.paths(out)}",
                hint="one cotangent for each leaf of what f returned, in the same containers",
            )
        return tuple(back(tree.map_leaves(lambda o, c: fitting(c, o, "cotangent"), out, ct)))

    return (out, pull, aux) if has_aux else (out, pull)


def pullback(
    f: Callable[..., Any],
    primals: Sequence[Any],
    *,
    has_aux: bool,
    what: str,
    of: Callable[[Any], None] = lambda out: None,
) -> tuple[Any, Callable[[Any], tuple[Any, ...]], Any]:
    """(output one level below, function from cotangents to gradients, auxiliary output); `of` checks the output."""
    flat, structure = tree.flatten(list(primals))
    values = [floating(x, what) for x in flat]
    interp = Reverse()
    leaves = [interp.leaf(v) for v in values]
    result = run(interp, f, tree.unflatten(structure, leaves))
    out, aux = pair(result) if has_aux else (result, None)
    of(out)
    outs, out_structure = tree.flatten(out)
    outer = [v.interp for v in values if isinstance(v, Tracer)]

    def back(ct: Any) -> tuple[Any, ...]:
        if any(enclosing.ended for enclosing in outer):
            raise TracerLeakError(
                "a function made inside a transform was called after its end",
                given=f"the second result of {what}",
                hint="call it inside, and return what it gives",
            )
        totals: list[Any] = [None] * len(leaves)
        for o, c in zip(outs, tree.flatten(ct)[0], strict=True):
            parts = interp.gradients(o, c if isinstance(c, Tensor) else np.asarray(c), leaves, keep=True)
            totals = [p if t is None else t if p is None else t + p for t, p in zip(totals, parts, strict=True)]
        grads = [
            wrap(np.zeros(v.shape, v.dtype)) if t is None else returned(t, what)
            for t, v in zip(totals, values, strict=True)
        ]
        return tuple(tree.unflatten(structure, grads))

    value = tree.unflatten(out_structure, [returned(_peeled(o, interp), what) for o in outs])
    return value, back, tree.map_leaves(lambda x: _peeled(x, interp), aux)


def run(interp: Interpreter, f: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Call f on tracers of an interpreter, which ends with the call, however it ends."""
    try:
        with using(transforms=STATE.get().transforms + 1):
            return f(*args)
    except (TypeError, AttributeError) as why:
        if not isinstance(why, LabError) and any(isinstance(a, list | tuple) for a in args):
            why.add_note("hint:  a list of numbers stays a list here; lab.tensor([...]) makes one tensor of it")
        raise
    finally:
        interp.alive = False


def pair(result: Any) -> tuple[Any, Any]:
    """What a function with auxiliary output returned: (value, anything)."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise GradientError(
            "has_aux needs a function that returns a pair", given=type(result).__name__, hint="return loss, anything"
        )
    return result


def _peeled(x: Any, interp: Interpreter) -> Any:
    """A value of this level as the one below; anything else as it is."""
    return returned(x.value, "grad") if isinstance(x, Tracer) and x.interp is interp else x


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False) -> Any:
    """The value of f at the primals, and its derivative along the tangents.

    Args:
        f: takes tensors or containers of them; returns a tensor or a container.
        primals: a tuple with the arguments of f.
        tangents: a direction for each, of the same structure and shapes.
        has_aux: f returns (value, anything), and anything is the third result.

    Raises:
        TransformError: a primal that is no float.
        ArgumentError: tangents of another structure.
        ShapeError: a tangent of another shape than its primal.

    Example:
        >>> import lab
        >>> lab.jvp(lambda x: x * x, (3.0,), (1.0,))
        (tensor(9.), tensor(6.))
    """
    function(f, "jvp")
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise ArgumentError(
            "jvp needs tuples of primals and of tangents",
            given=f"{type(primals).__name__} and {type(tangents).__name__}",
            hint="lab.jvp(f, (x,), (direction,))",
        )
    flat, structure = tree.flatten(list(primals))
    values = [floating(x, "jvp") for x in flat]
    directions, tangent_structure = tree.flatten(list(tangents))
    if tangent_structure != structure:
        raise ArgumentError(
            "tangents must have the structure of the primals",
            given=f"{tree.paths(list(tangents))} for {tree.paths(list(primals))}",
            hint="lab.jvp(f, (x, y), (dx, dy)), containers alike",
        )
    interp = Forward()
    tracers = [Tracer(interp, v, fitting(t, v, "tangent")) for v, t in zip(values, directions, strict=True)]
    result = run(interp, f, tree.unflatten(structure, tracers))
    out, aux = pair(result) if has_aux else (result, None)

    def tangent(x: Any) -> Any:
        if isinstance(x, Tracer) and x.interp is interp:
            return returned(x.extra, "jvp")
        constant = returned(x, "jvp")
        return wrap(np.zeros(constant.shape, constant.dtype))

    value = tree.map_leaves(lambda x: returned(_peeled(x, interp), "jvp"), out)
    both = value, tree.map_leaves(tangent, out)
    return (*both, tree.map_leaves(lambda x: _peeled(x, interp), aux)) if has_aux else both
