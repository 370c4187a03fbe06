"""What the layers of a model give in one step, and the gradients that come back to them: statistics, never the arrays.

A layer is a module with no module inside. While a `Watch` is open in a thread, the modules called there tell it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextvars import Token
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from lab.autograd import Tensor
from lab.autograd.tape import Node
from lab.events import LayerMeasured
from lab.nn.module import WATCH, Module, Seer


class Watch:
    """Looks at one forward and backward.

    Example:
        >>> from lab.autograd import tensor
        >>> from lab.nn import ReLU
        >>> with Watch() as watch:
        ...     out = ReLU()(tensor([[1.0, -1.0], [2.0, -2.0]], requires_grad=True))
        >>> out.sum().backward()
        >>> [(e.kind, e.mean, e.n_units, e.n_dead, e.gradient_norm) for e in watch.events(1)]
        [('ReLU', 0.75, 2, 1, 2.0)]
    """

    def __init__(self) -> None:
        self._given: dict[Module, Given] = {}  # in order of the calls; of several the last
        self._came: dict[Module, float] = {}
        self._token: Token[Seer | None] | None = None

    def __enter__(self) -> Self:
        self._token = WATCH.set(self._see)
        return self

    def __exit__(self, *why: object) -> None:
        assert self._token is not None
        WATCH.reset(self._token)

    def _see(self, module: Module, out: Any) -> None:
        if type(out) is not Tensor or any(inner is not module for _, inner in module.named_modules()):
            return
        self._given.pop(module, None)
        self._given[module] = given(out.value)
        if isinstance(out.node, Node):  # a leaf would keep the hook
            out.register_hook(lambda gradient: self._back(module, gradient))

    def _back(self, module: Module, gradient: Any) -> None:
        finite = np.asarray(gradient, np.float64)
        with np.errstate(over="ignore"):
            self._came[module] = float(np.linalg.norm(finite[np.isfinite(finite)]))

    def events(self, step: int) -> Iterator[LayerMeasured]:
        """What was seen, in the order in which the layers ran."""
        for module, numbers in self._given.items():
            kind = type(module).__name__
            yield LayerMeasured(step, module.path, kind, *numbers, self._came.get(module, math.nan))


class Given(NamedTuple):
    """Statistics of what a layer gave, as LayerMeasured has them."""

    n_entries: int
    mean: float
    deviation: float
    n_nonfinite: int
    n_units: int
    n_dead: int


def given(array: npt.NDArray[Any]) -> Given:
    """The statistics of an array with an example in each row.

    Example:
        >>> given(np.array([[0.0, 1.0], [0.0, 3.0]]))
        Given(n_entries=4, mean=1.0, deviation=1.224744871391589, n_nonfinite=0, n_units=2, n_dead=1)
    """
    units = array.reshape(len(array), -1) if array.ndim and array.size else array.reshape(1, -1)
    known = np.isfinite(array)
    finite = array.ravel() if known.all() else array[known]
    mean = deviation = math.nan
    if finite.size:
        wide = finite.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # an exploded float64 may have an infinite square
            mean = float(wide.mean())
            wide -= mean
            deviation = math.sqrt(float(wide.dot(wide)) / wide.size)
    n_dead = int((units == 0).all(axis=0).sum())
    return Given(array.size, mean, deviation, array.size - finite.size, units.shape[1], n_dead)
