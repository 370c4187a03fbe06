"""Cells of recurrent networks: one step of a sequence, from an input and the state before to the state after.

Formulas and the order of gates are torch's, so that weights can be taken over: ours, (n_in, gates * n), are the
transposed ones.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lab import ops
from lab.checks import generator, whole
from lab.nn.linear import Linear
from lab.nn.module import Module

Seed = int | np.random.Generator | None


class _Cell(Module):
    """What cells have in common: a Linear of the input and one of the hidden state, each for all gates side by side."""

    n_gates: ClassVar[int] = 1

    def __init__(self, n_in: int, n: int, *, rng: Seed = None) -> None:
        hint = f"{type(self).__name__}(8, 32) takes 8 numbers at each step and keeps 32"
        self.n, rng = whole("n", n, least=1, hint=hint), generator(rng)

        def init(n_in: int, n_out: int, rng: np.random.Generator) -> npt.NDArray[Any]:
            return rng.uniform(-1, 1, (n_in, n_out)) / math.sqrt(self.n)

        self.input = Linear(whole("n_in", n_in, least=1, hint=hint), self.n_gates * self.n, init=init, rng=rng)
        self.hidden = Linear(self.n, self.n_gates * self.n, init=init, rng=rng)

    def _zeros(self, x: Any) -> Any:
        """The state before the first step, for inputs like this one."""
        return np.zeros((*x.shape[:-1], self.n), x.dtype)


class RNNCell(_Cell):
    """`h' = tanh(x @ W_x + b_x + h @ W_h + b_h)` (Elman 1990).

    Shapes:
        x: (..., n_in), h: (..., n), zeros if not given -> (..., n).

    Example:
        >>> cell, h = RNNCell(2, 3, rng=0), None
        >>> for x in np.ones((4, 5, 2), np.float32):  # 4 steps of 5 sequences
        ...     h = cell(x, h)
        >>> h.shape
        (5, 3)
    """

    def forward(self, x: Any, h: Any = None) -> Any:
        """(..., n_in) and (..., n) -> (..., n)."""
        given = self.input(x)
        return ops.tanh(given + self.hidden(self._zeros(x) if h is None else h))


class LSTMCell(_Cell):
    """A cell state that gates add to and take from (Hochreiter and Schmidhuber 1997; forget gate of Gers et al. 2000).

    With i, f, g, o, in this order, the four parts of `x @ W_x + b_x + h @ W_h + b_h`:
    `c' = sigmoid(f) * c + sigmoid(i) * tanh(g)`, `h' = sigmoid(o) * tanh(c')`.

    Shapes:
        x: (..., n_in), the state (h, c): (..., n) each, zeros if not given -> (h', c').

    Example:
        >>> h, c = LSTMCell(2, 3, rng=0)(np.ones((5, 2), np.float32))
        >>> h.shape, c.shape
        ((5, 3), (5, 3))
    """

    n_gates = 4

    def forward(self, x: Any, state: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
        """(..., n_in) and two of (..., n) -> two of (..., n)."""
        given = self.input(x)
        h, c = (self._zeros(x), self._zeros(x)) if state is None else state
        i, f, g, o = ops.split(given + self.hidden(h), 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


class GRUCell(_Cell):
    """One state that a gate lets go on or replaces (Cho et al., arXiv:1406.1078, with torch's place of the reset gate).

    With r, z, n, in this order, the three parts of `x @ W_x + b_x` and of `h @ W_h + b_h`, called x_r, h_r and so on:
    `r = sigmoid(x_r + h_r)`, `z = sigmoid(x_z + h_z)`, `n = tanh(x_n + r * h_n)`, `h' = (1 - z) * n + z * h`.

    Shapes:
        x: (..., n_in), h: (..., n), zeros if not given -> (..., n).

    Example:
        >>> GRUCell(2, 3, rng=0)(np.ones((5, 2), np.float32)).shape
        (5, 3)
    """

    n_gates = 3

    def forward(self, x: Any, h: Any = None) -> Any:
        """(..., n_in) and (..., n) -> (..., n)."""
        given = self.input(x)
        h = self._zeros(x) if h is None else h
        (x_r, x_z, x_n), (h_r, h_z, h_n) = (ops.split(part, 3, axis=-1) for part in (given, self.hidden(h)))
        z, n = ops.sigmoid(x_z + h_z), ops.tanh(x_n + ops.sigmoid(x_r + h_r) * h_n)
        return n + z * (h - n)
