"""Gradients kept within bounds: scaled together when their norm is too large, or cut entry by entry.

Between backward and step; an optimiser made with `clip_norm=` does the first by itself, on several ranks too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.autograd import Leaf, Tensor
from lab.autograd.between import set_gradient
from lab.checks import number
from lab.errors import ArgumentError, GradientError
from lab.optim.flat import leaf_at

_WHERE = "forward and backward under `with lab.anomaly_mode():` tell where nan or inf begins"


def global_norm(arrays: Iterable[npt.NDArray[Any]]) -> float:
    """Euclidean norm of all entries of all arrays, summed in float64.

    Example:
        >>> global_norm([np.array([3.0]), np.array([[0.0, 4.0]])])
        5.0
    """
    parts = (array.astype(np.float64).reshape(-1) for array in arrays)
    return math.sqrt(math.fsum(float(part.dot(part)) for part in parts))


def shrunk_to(limit: float, norm: float) -> float:
    """What to multiply gradients of this norm by: 1, or limit / norm if that is less.

    Raises:
        GradientError: the norm is nan or inf, and so is an entry, or nearly.
    """
    if not math.isfinite(norm):
        raise GradientError("the gradient cannot be clipped", given=f"its norm is {norm}",
                            hint=_WHERE)  # fmt: skip
    return limit / norm if norm > limit else 1.0


def clip_by_global_norm(parameters: Iterable[Tensor], limit: float) -> float:
    """Scale all gradients together so that their norm is at most `limit`; their direction stays (arXiv:1211.5063).

    Args:
        parameters: those without a gradient are left out.
        limit: at least 0.

    Returns:
        The norm before, to be watched.

    Raises:
        ArgumentError: a limit that is none, or what is no parameter.
        GradientError: no parameter has a gradient, or one holds nan or inf; nothing is changed.

    Example:
        >>> from lab.autograd import tensor
        >>> w = tensor([3.0, 4.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> clip_by_global_norm([w], 1.0)
        10.0
        >>> w.grad.numpy().round(6).tolist()
        [0.6, 0.8]
    """
    limit, found = _limit(limit), _gradients(parameters)
    norm = global_norm(found.values())
    scale = shrunk_to(limit, norm)
    if scale < 1:
        for leaf, gradient in found.items():
            set_gradient(leaf, np.asarray(gradient * gradient.dtype.type(scale)))
    return norm


def clip_by_value(parameters: Iterable[Tensor], limit: float) -> None:
    """Cut every entry of every gradient to between -limit and limit; their direction changes.

    Args:
        parameters: those without a gradient are left out.
        limit: at least 0.

    Raises:
        ArgumentError: a limit that is none, or what is no parameter.
        GradientError: no parameter has a gradient, or one holds nan or inf; nothing is changed.

    Example:
        >>> from lab.autograd import tensor
        >>> w = tensor([3.0, 0.25], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> clip_by_value([w], 1.0)
        >>> w.grad.numpy().tolist()
        [1.0, 0.5]
    """
    limit, found = _limit(limit), _gradients(parameters)
    for leaf, gradient in found.items():
        set_gradient(leaf, np.asarray(np.clip(gradient, -limit, limit)))


def _limit(value: float) -> float:
    hint = "at least 0, for example 1.0"
    if not number("limit", value, hint=hint) >= 0:
        raise ArgumentError("a limit of gradients is out of range", given=f"limit={value!r}", hint=hint)
    return float(value)


def _gradients(parameters: Iterable[Tensor]) -> dict[Leaf, npt.NDArray[Any]]:
    """The gradients that there are, all of them finite."""
    leaves = [leaf_at(i, p) for i, p in enumerate(parameters)]
    found = {leaf: np.asarray(getattr(leaf.grad, "value", leaf.grad)) for leaf in leaves if leaf.grad is not None}
    if not found:
        raise GradientError("no parameter has a gradient", given=f"none of {len(leaves)} has one",
                            hint="call loss.backward() before clipping")  # fmt: skip
    for i, (leaf, gradient) in enumerate(found.items()):
        if n_bad := int(gradient.size - np.isfinite(gradient).sum()):
            given = f"{n_bad} of {gradient.size} entries of that of {leaf.name or f'number {i}'} are nan or inf"
            raise GradientError("a gradient cannot be clipped", given=given,
                                hint=_WHERE)  # fmt: skip
    return found
