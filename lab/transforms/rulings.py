"""What a user's rule returned, made to fit, or refused in the words of the user's function and its arguments.

A rule that is wrong in shape or structure fails here, where it returned; what is wrong in numbers `check_grads` finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor
from lab.errors import ArgumentError, DTypeError, LabError, ShapeError
from lab.ops import cast
from lab.shapes import Spec
from lab.transforms.arguments import returned
from lab.transforms.calls import zeros_like


def pair(result: Any, who: str, what: str) -> tuple[Any, Any]:
    """Both parts of what a rule returned.

    Raises:
        ArgumentError: it is no pair.
    """
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise ArgumentError(f"{who} must return a pair", given=_kind(result), hint=f"return {what}")
    return result[0], result[1]


def spec_of(x: Any) -> Spec | None:
    """Shape and dtype of a leaf that can have a gradient; None for integers and Python numbers."""
    return Spec(tuple(x.shape), np.dtype(x.dtype)) if isinstance(x, Tensor) and x.dtype.kind == "f" else None


def fitted(
    given: Any, structure: tree.Structure, specs: Sequence[Spec | None], names: Sequence[str], who: str
) -> list[Any]:
    """What a bwd returned, as one cotangent for each leaf of the arguments.

    Raises:
        ArgumentError, ShapeError, DTypeError: it does not fit them.
    """
    structures = structure.children
    if not isinstance(given, tuple | list) or len(given) != len(structures):
        raise ArgumentError(
            f"{who} must return a tuple with one gradient for each argument",
            given=f"{_kind(given)} for {len(structures)} argument{'s' * (len(structures) != 1)}",
            hint="return (ct_x,), with its comma, even for one; None where there is nothing",
        )
    leaves: list[Any] = []
    for c, expected in zip(given, structures, strict=True):
        flat, found = tree.flatten(c)
        if c is None:
            flat = [None] * expected.n_leaves
        elif found != expected:
            raise ArgumentError(
                f"{who} must return gradients in the containers of its arguments",
                given=f"{tree.paths(c)} for argument {len(leaves)}, {names[len(leaves)] if names else ''}"[:120],
                hint="the same keys and lengths",
            )
        leaves += flat
    return [
        None if c is None or spec is None else _fit(c, spec, f"{who} returned a gradient for {name}")
        for c, spec, name in zip(leaves, specs, names, strict=True)
    ]


def _fit(c: Any, spec: Spec, what: str) -> Tensor:
    value = c if isinstance(c, Tensor) else _numbers(c, what)
    if tuple(value.shape) != spec.shape:
        raise ShapeError(
            f"{what} of another shape than its own",
            given=f"{tuple(value.shape)} for {spec.shape}",
            hint="sum over the axes that broadcasting added; a gradient has the shape of its value",
        )
    return value if value.dtype == spec.dtype else cast(value, dtype=spec.dtype)


def _numbers(c: Any, what: str) -> Tensor:
    try:
        return returned(c, what)
    except LabError:
        raise DTypeError(f"{what} that is no number", given=_kind(c), hint="arrays, tensors or numbers") from None


def tangents(tangent: Any, outs: Sequence[Tensor], structure: tree.Structure, who: str) -> list[Any]:
    """What a jvp rule returned, as one tangent for each result.

    Raises:
        ArgumentError, ShapeError, DTypeError: it does not fit them.
    """
    flat, found = tree.flatten(tangent)
    if found != structure:
        raise ArgumentError(
            f"{who} must return a tangent in the containers of the result",
            given=f"{tree.paths(tangent)} for {len(outs)} result{'s' * (len(outs) != 1)}",
            hint="one tangent for each result",
        )
    return [
        _fit(t, Spec(tuple(o.shape), np.dtype(o.dtype)), f"{who} returned a tangent")
        if o.dtype.kind == "f"
        else zeros_like(o)
        for t, o in zip(flat, outs, strict=True)
    ]


def _kind(x: Any) -> str:
    return f"{type(x).__name__} of {len(x)}" if isinstance(x, tuple | list) else type(x).__name__
