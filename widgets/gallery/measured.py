"""What the gallery shows of experiments: each measures something of differentiation when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from lab.autograd.tensor import tensor
from lab.events import Recording
from lab.experiments.cost import measure_cost
from lab.experiments.errors import measure_errors
from lab.experiments.memory import measure_memory
from lab.experiments.passes import measure_passes
from lab.experiments.rule import measure_rule
from lab.experiments.slopes import measure_slopes
from lab.experiments.swell import measure_swell
from lab.ops import cross_entropy, exp, layer_norm, maximum, sin, softmax
from lab.transforms import checkpoint, custom_vjp, value_and_grad


class Measured:
    """Recordings of experiments by name.

    Args:
        say: told in a line what is done now.

    Example:
        >>> len(Measured(lambda line: None).slopes)
        6
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say

    @cached_property
    def errors(self) -> Recording:
        """Every method with many steps on a function of a number."""
        self._say("Differences with many steps, against the truth ...")
        return measure_errors(lambda x: exp(x) * sin(x) / x, 1.5).recording

    @cached_property
    def cost(self) -> Recording:
        """Jacobians of a small network in three ways."""
        self._say("Jacobians in three ways, with more and more inputs and outputs ...")
        return measure_cost().recording

    @cached_property
    def swell(self) -> Recording:
        """4 x (1 - x), put into itself."""
        self._say("A function put into itself, differentiated by sympy ...")
        return measure_swell(lambda x: 4.0 * x * (1.0 - x), 6).recording

    @cached_property
    def slopes(self) -> Recording:
        """The larger of x and 0 at a tie."""
        self._say("Slopes from both sides of a kink ...")
        return measure_slopes(lambda x: maximum(x, 0.0), 0.0).recording

    @cached_property
    def rule(self) -> Recording:
        """A rule for softmax with the diagonal of its Jacobian only."""
        self._say("A wrong rule against differences ...")

        def diagonal(x: Any) -> Any:
            return softmax(x)

        rule = custom_vjp(diagonal).defvjp(lambda x: (softmax(x), softmax(x)), lambda s, ct: (ct * s * (1.0 - s),))
        x = tensor([0.5, -1.0, 0.25, 2.0])
        return measure_rule(lambda x: rule(2.0 * x), (x,), modes=("rev",)).recording

    @cached_property
    def memory(self) -> Recording:
        """A chain of sines in four pieces, with checkpoints and without."""
        self._say("Memory over forward and backward, with checkpoints and without ...")
        x = tensor(np.linspace(0.0, 1.0, 100_000), requires_grad=True)

        def piece(x: Any) -> Any:
            return sin(sin(sin(sin(x))))

        again = checkpoint(piece)
        return measure_memory(
            plain=lambda: piece(piece(piece(piece(x)))).sum(), checkpoints=lambda: again(again(again(again(x)))).sum()
        ).recording

    @cached_property
    def passes(self) -> Recording:
        """Layer norm, a layer, softmax and loss, with their gradients."""
        self._say("A graph on its way through the compiler ...")
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(64, 32)).astype(np.float32), rng.integers(0, 10, 64)
        w = (rng.normal(size=(32, 10)) / 6.0).astype(np.float32)
        scale, shift, bias = np.ones(32, np.float32), np.zeros(32, np.float32), np.zeros(10, np.float32)

        def network(x: Any, scale: Any, shift: Any, w: Any, bias: Any) -> Any:
            return cross_entropy(layer_norm(x, scale, shift) @ w + bias, y)

        step = value_and_grad(network, (1, 2, 3, 4))
        step.__name__ = "a layer norm, a layer and a loss with their gradients"
        return measure_passes(step, x, scale, shift, w, bias).recording
