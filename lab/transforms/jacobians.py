"""Whole derivatives by pushing or pulling unit vectors, all at once with vmap: jacfwd, jacrev, hessian, hvp.

Forward mode makes a Jacobian column by column, one for each input entry; reverse mode row by row, one for each output.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor
from lab.errors import ArgumentError, TransformError
from lab.ops import getitem, reshape
from lab.transforms.arguments import chosen, floating, function, positions
from lab.transforms.batching import vmap
from lab.transforms.gradients import grad, jvp, pullback


def jacfwd(f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """The Jacobian of a function by forward mode: cheap where there are few inputs and many outputs.

    Args:
        f: takes and returns tensors or containers of them; (value, anything) with `has_aux`.
        argnums: which positional arguments to differentiate by; a tuple gives a tuple of Jacobians.

    Returns:
        A function of the same arguments. Its result has the structure of the value of f, with the structure of the
        argument at each leaf: an array of shape (*output, *input).

    Raises:
        TransformError: an argument or a result that is no float.

    Example:
        >>> import lab
        >>> lab.jacfwd(lambda x: x * x)(lab.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    function(f, "jacfwd")
    numbers = positions(argnums)

    @functools.wraps(f)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        g, primals = chosen(f, numbers, args, kwargs)
        ins, structure = tree.flatten([tree.map_leaves(lambda x: floating(x, "jacfwd"), p) for p in primals])
        seen: list[Any] = []

        def push(*directions: Any) -> list[Any]:
            out, tangent, *aux = jvp(g, primals, tree.unflatten(structure, directions), has_aux=has_aux)
            seen[:] = tree.flatten(out)[1], aux
            return [_slope(t, "jacfwd") for t in tree.flatten(tangent)[0]]

        columns = vmap(push, out_axes=-1)(*_units(ins))
        parts = [_split(column, ins, axis=-1) for column in columns]
        result = [_arranged(structure, part, argnums) for part in parts]
        return _with_aux(tree.unflatten(seen[0], result), seen[1])

    return jacobian


def jacrev(f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """The Jacobian of a function by reverse mode: cheap where there are many inputs and few outputs. As `jacfwd`.

    Example:
        >>> import lab
        >>> lab.jacrev(lambda x: {"sum": x.sum(), "twice": 2.0 * x})(lab.tensor([1.0, 2.0]))["sum"]
        tensor([1., 1.])
    """
    function(f, "jacrev")
    numbers = positions(argnums)

    @functools.wraps(f)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        g, primals = chosen(f, numbers, args, kwargs)
        out, back, aux = pullback(g, primals, has_aux=has_aux, what="jacrev")
        outs, out_structure = tree.flatten(out)
        for o in outs:
            _slope(o, "jacrev")
        structure = tree.flatten(list(primals))[1]

        def pull(*cotangents: Any) -> list[Any]:
            return tree.flatten(list(back(tree.unflatten(out_structure, cotangents))))[0]

        rows = vmap(pull)(*_units(outs)) if outs else []
        split = [_split(row, outs, axis=0) for row in rows]  # by input, then by output
        result = [_arranged(structure, [row[k] for row in split], argnums) for k in range(len(outs))]
        return _with_aux(tree.unflatten(out_structure, result), [aux] if has_aux else [])

    return jacobian


def hessian(f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """The second derivatives of a function: `jacfwd(jacrev(f))`, whose result at each leaf has shape (*output, *i, *j).

    Example:
        >>> import lab
        >>> lab.hessian(lambda x: x[0] ** 2 * x[1])(lab.tensor([1.0, 2.0]))
        tensor([[4., 2.],
                [2., 0.]])
    """
    return jacfwd(jacrev(function(f, "hessian"), argnums, has_aux=has_aux), argnums, has_aux=has_aux)


def hvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], argnums: int | Sequence[int] = 0
) -> Any:
    """The Hessian of a function that returns one number, times a direction; the Hessian itself is never made.

    Forward over reverse: the tangent of the gradient. It costs a few gradients, whatever the number of inputs
    (Pearlmutter 1994, "Fast exact multiplication by the Hessian").

    Args:
        primals: a tuple with the arguments of f.
        tangents: a tuple with a direction for each of the arguments that `argnums` chooses.

    Returns:
        The product, of the structure of `lab.grad(f, argnums)`.

    Example:
        >>> import lab
        >>> x, v = lab.tensor([1.0, 2.0]), lab.tensor([1.0, 0.0])
        >>> lab.hvp(lambda x: x[0] ** 2 * x[1], (x,), (v,))
        tensor([4., 2.])
    """
    function(f, "hvp")
    numbers = positions(argnums)
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list) or len(tangents) != len(numbers):
        raise ArgumentError(
            "hvp needs a tuple of primals, and a tuple with one tangent for each chosen argument",
            given=f"argnums={argnums}, {tree.paths(tangents)} as tangents"[:120],
            hint="lab.hvp(f, (x, y), (dx, dy), argnums=(0, 1))",
        )
    g, values = chosen(f, numbers, primals, {})
    products = jvp(grad(g, tuple(range(len(numbers)))), values, tangents)[1]
    return products[0] if isinstance(argnums, int) else products


# --- small parts -------------------------------------------------------------------------------------------------


def _slope(x: Any, what: str) -> Any:
    """An output, if it has a slope."""
    if x.dtype.kind != "f":
        raise TransformError(
            f"{what} needs a function that returns floats",
            given=f"{x.dtype} of shape {tuple(x.shape)}",
            hint="comparisons and casts have no slope; has_aux=True carries them along",
        )
    return x


def _units(values: Sequence[Tensor]) -> Iterator[Any]:
    """For each value the directions along all entries of all values: (total, *shape), mostly zeros."""
    total, start = sum(v.size for v in values), 0
    for v in values:
        unit = np.zeros((total, v.size), v.dtype)
        unit[range(start, start + v.size), range(v.size)] = 1
        yield unit.reshape(total, *v.shape)
        start += v.size


def _split(whole: Any, values: Sequence[Tensor], axis: int) -> list[Any]:
    """A derivative along all entries of all values, as one array for each value in which its axes stand in place."""
    parts, start = [], 0
    for v in values:
        index = slice(start, start + v.size)
        part = getitem(whole, index=(..., index) if axis else index)
        rest = tuple(whole.shape[:-1] if axis else whole.shape[1:])
        parts.append(reshape(part, shape=(*rest, *v.shape) if axis else (*v.shape, *rest)))
        start += v.size
    return parts


def _arranged(structure: tree.Structure, leaves: Sequence[Any], argnums: int | Sequence[int]) -> Any:
    """Jacobians by leaf of the arguments in the containers of those."""
    by_argument = tree.unflatten(structure, leaves)
    return by_argument[0] if isinstance(argnums, int) else tuple(by_argument)


def _with_aux(jacobian: Any, aux: Sequence[Any]) -> Any:
    return (jacobian, aux[0]) if aux else jacobian
