"""Batch normalisation: in training by what the batch is like, in use by what batches were like, which a layer keeps.

It is the one layer whose answer to an example depends on the others of its batch, and that learns while it is called.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from lab import ops
from lab.autograd import Tensor, no_grad
from lab.checks import number, whole
from lab.errors import ArgumentError, ConcretizationError, ShapeError, UnsupportedError
from lab.nn.inputs import unfit
from lab.nn.module import Module, buffer, parameter


class BatchNorm1d(Module):
    """Each channel with mean 0 and variance 1 over the batch, scaled and shifted (Ioffe and Szegedy, arXiv:1502.03167).

    In training (`model.train()`, as at first) mean and variance are those of the batch, and move the running ones:
    `running = (1 - momentum) * running + momentum * batch`, of the variance with n - 1 in the denominator, as in torch.
    In use (`model.eval()`) they are the running ones, so each example is answered by itself. `lab.jit` notices new ones
    in a model that is an argument, not in one that a compiled function closes over.

    Shapes:
        x: (batch, n) or (batch, n, length) -> the same; scale, shift, running_mean, running_var: (n,), at first 1, 0,
            0, 1. The last two are buffers: not trained, but part of the state.

    Args:
        momentum: the share of a new batch in the running statistics, 0 to 1.

    Raises:
        ArgumentError: a setting out of range, or called with what is no array.
        ShapeError: called with other channels or axes, or in training with one number for each channel.
        UnsupportedError: called in training by jit or vmap, which hide the numbers.

    Example:
        >>> from lab.autograd import tensor
        >>> layer = BatchNorm1d(1)
        >>> layer(tensor([[1.0], [3.0]])).numpy().round(3).tolist()
        [[-1.0], [1.0]]
        >>> layer.running_mean, layer.running_var
        (tensor([0.2], dtype=float32), tensor([1.1], dtype=float32))
        >>> layer.eval()(tensor([[1.0]])).numpy().round(3).tolist()
        [[0.763]]
    """

    buffers = ("running_mean", "running_var")
    takes: ClassVar[dict[int, str]] = {2: "", 3: ", length"}
    """What stands behind the channels, by number of axes."""

    def __init__(self, n: int, *, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        self.n = whole("n", n, least=1, hint=f"{type(self).__name__}(64) takes 64 channels")
        self.momentum = number("momentum", momentum, hint="0 to 1, usually 0.1")
        if not 0 <= self.momentum <= 1:
            problem = "the momentum of a batch normalisation is the share of a new batch"
            raise ArgumentError(problem, given=f"momentum={momentum!r}", hint="0 to 1, usually 0.1")
        self.epsilon = epsilon
        self.scale, self.shift = parameter(np.ones(self.n)), parameter(np.zeros(self.n))
        self.running_mean, self.running_var = buffer(np.zeros(self.n)), buffer(np.ones(self.n))

    def forward(self, x: Any) -> Any:
        """(batch, n, ...) -> the same."""
        shape: tuple[int, ...] = getattr(x, "shape", ())
        if len(shape) not in self.takes or shape[1] != self.n:
            raise unfit(self, x, " or ".join(f"(batch, {self.n} channels{axes})" for axes in self.takes.values()))
        if self.training:
            self._remember(x)
            return ops.batch_norm(x, self.scale, self.shift, epsilon=self.epsilon)
        known = {"mean": self.running_mean, "variance": self.running_var}
        return ops.batch_norm(x, self.scale, self.shift, **known, epsilon=self.epsilon)

    def _remember(self, x: Any) -> None:
        """Move the running statistics. Arrays are replaced, not written: a graph may still need the old ones."""
        try:
            with no_grad():  # what is remembered is no part of what is differentiated
                seen = np.asarray(x.numpy() if isinstance(x, Tensor) else x)
        except ConcretizationError as why:
            problem = f"{type(self).__name__} cannot remember a batch whose numbers are hidden"
            hint = "model.eval() uses the running statistics and changes none"
            raise UnsupportedError(problem, given="called in training inside jit or vmap", hint=hint) from why
        if seen.size < 2 * self.n:
            raise ShapeError("a variance needs at least two numbers of each channel", given=f"shape {seen.shape}",
                             hint="a larger batch, or model.eval()")  # fmt: skip
        axes, m = (0, *range(2, seen.ndim)), self.momentum
        with np.errstate(invalid="ignore", over="ignore"):
            found = seen.mean(axes, dtype=np.float64), seen.var(axes, dtype=np.float64, ddof=1)
        for running, now in zip((self.running_mean, self.running_var), found, strict=True):
            running.value = ((1 - m) * running.value + m * now).astype(running.dtype)

    def describe(self) -> str:
        return str(self.n)


class BatchNorm2d(BatchNorm1d):
    """The same for images: (batch, n, height, width), each channel over the batch and all places.

    Example:
        >>> from lab.autograd import tensor
        >>> BatchNorm2d(3)(tensor(np.ones((2, 3, 4, 4)))).shape
        (2, 3, 4, 4)
    """

    takes: ClassVar[dict[int, str]] = {4: ", height, width"}
