"""Batch normalisation: in training by what the batch is like, in use by what batches were like, which a layer keeps.

It is the one layer whose answer to an example depends on the others of its batch, and that learns while it is called.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from lab import ops
from lab.autograd import Tensor, no_grad
from lab.checks import number, whole
from lab.errors import ArgumentError, ConcretizationError, ShapeError, UnsupportedError
from lab.nn.inputs import unfit
from lab.nn.module import Module, buffer, parameter
from lab.ops.members import MEMBERS


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
        axis_name: of the ranks that hold parts of the batch. Where it is bound (`comm.axis`, `DataParallel(batch_norm=
            "synchronized")`) the statistics are those of the whole batch, forward and backward; elsewhere what a call
            gets is the whole.

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

    def __init__(self, n: int, *, momentum: float = 0.1, epsilon: float = 1e-5, axis_name: str = "") -> None:
        self.n = whole("n", n, least=1, hint=f"{type(self).__name__}(64) takes 64 channels")
        self.momentum = number("momentum", momentum, hint="0 to 1, usually 0.1")
        if not 0 <= self.momentum <= 1:
            problem = "the momentum of a batch normalisation is the share of a new batch"
            raise ArgumentError(problem, given=f"momentum={momentum!r}", hint="0 to 1, usually 0.1")
        self.epsilon, self.axis_name = epsilon, axis_name
        self.scale, self.shift = parameter(np.ones(self.n)), parameter(np.zeros(self.n))
        self.running_mean, self.running_var = buffer(np.zeros(self.n)), buffer(np.ones(self.n))

    def forward(self, x: Any) -> Any:
        """(batch, n, ...) -> the same."""
        shape: tuple[int, ...] = getattr(x, "shape", ())
        if len(shape) not in self.takes or shape[1] != self.n:
            raise unfit(self, x, " or ".join(f"(batch, {self.n} channels{axes})" for axes in self.takes.values()))
        if self.training:
            if self.axis_name and self.axis_name in MEMBERS.get():
                return self._together(x)
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
        self._require_two(seen.size // self.n, f"shape {seen.shape}")
        axes = (0, *range(2, seen.ndim))
        with np.errstate(invalid="ignore", over="ignore"):
            self._move(seen.mean(axes, dtype=np.float64), seen.var(axes, dtype=np.float64, ddof=1))

    def _together(self, x: Any) -> Any:
        """With the statistics of all members of the axis: a mean, then a variance around it, each an all-reduce.

        Raises:
            ShapeError: all members together have one number for each channel.
        """
        axes, along = (0, *range(2, len(x.shape))), (1, self.n, *(1,) * (len(x.shape) - 2))
        mine = np.array(math.prod(x.shape) // self.n)
        n = int(np.asarray(ops.all_reduce(mine, axis_name=self.axis_name)))
        self._require_two(n, f"{n} on all ranks")
        mean = ops.all_reduce(ops.sum(x, axis=axes), axis_name=self.axis_name) / n
        centred = x - ops.reshape(mean, along)
        variance = ops.all_reduce(ops.sum(ops.square(centred), axis=axes), axis_name=self.axis_name) / n
        with no_grad():
            self._move(*(np.asarray(v.numpy(), np.float64) * part for v, part in ((mean, 1), (variance, n / (n - 1)))))
        slope = self.scale * ops.rsqrt(variance + self.epsilon)
        return centred * ops.reshape(slope, along) + ops.reshape(self.shift, along)

    def _require_two(self, n: int, given: str) -> None:
        if n < 2:
            raise ShapeError("a variance needs at least two numbers of each channel", given=given,
                             hint="a larger batch, or model.eval()")  # fmt: skip

    def _move(self, mean: Any, variance: Any) -> None:
        """Move the running statistics towards those of a batch."""
        m = self.momentum
        for running, now in zip((self.running_mean, self.running_var), (mean, variance), strict=True):
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
