"""Sample inputs of an op: rows from which the tests of its record are generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lab.shapes import Shape


@dataclass(frozen=True)
class Sample:
    """Shapes, parameters and domain of one test case.

    Attributes:
        shapes: one per operand.
        params: parameters of the op.
        domain: floats are drawn uniformly from here; one pair for all operands, or one for each.
        kinds: "f" float, "b" bool, "i5" integers below 5, "k" a random key, "p" positive definite
            matrices; one letter for all or one for each operand.
        differentiable: numbers of the operands whose gradient is tested; None: all float ones.
    """

    shapes: tuple[Shape, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    domain: tuple[Any, ...] = (-2.0, 2.0)
    kinds: tuple[str, ...] = ("f",)
    differentiable: tuple[int, ...] | None = None

    def draw(self, seed: int = 0, dtype: str = "float64") -> tuple[np.ndarray[Any, Any], ...]:
        """Arrays for the operands, the same for the same seed.

        Example:
            >>> [a.shape for a in Sample(((2, 3), (3,))).draw()]
            [(2, 3), (3,)]
        """
        rng = np.random.default_rng(seed)
        kinds = self.kinds * len(self.shapes) if len(self.kinds) == 1 else self.kinds
        domains = self.domain if isinstance(self.domain[0], tuple) else (self.domain,) * len(self.shapes)
        return tuple(
            _draw(rng, shape, kind, domain, dtype)
            for shape, kind, domain in zip(self.shapes, kinds, domains, strict=True)
        )


def _draw(rng: np.random.Generator, shape: Shape, kind: str, domain: tuple[float, float], dtype: str) -> Any:
    if kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind[0] == "i":
        return np.asarray(rng.integers(0, int(kind[1:]), shape))
    if kind == "k":
        return rng.integers(0, 2**63, (*shape, 2)).astype(np.uint64)
    x = rng.uniform(*domain, shape)
    if kind == "p":
        x = x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])
    return np.asarray(x).astype(dtype)
