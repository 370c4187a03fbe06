"""Layers that slide: convolutions with weights of their own, pooling, and the way from images to rows.

One body serves signals and images; the classes say how many axes slide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from lab import ops
from lab.checks import generator, whole
from lab.errors import ArgumentError, ShapeError
from lab.nn.init import Init, init_of
from lab.nn.inputs import unfit
from lab.nn.module import Module, parameter
from lab.ops.windows import entries, per_axis, windows

Sizes = int | tuple[int, ...]
Padding = int | str | tuple[int, ...] | tuple[tuple[int, int], ...]


class _Slides(Module):
    """What convolutions have in common: channels, a kernel, and a weight that starts by a rule of `lab.nn.init`."""

    ndim: ClassVar[int] = 2
    transposed: ClassVar[bool] = False

    def __init__(
        self,
        n_in: int,
        n_out: int,
        kernel: Sizes,
        *,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        init: str | Init = "kaiming",
        rng: int | np.random.Generator | None = None,
    ) -> None:
        name = type(self).__name__
        hint = f"{name}(1, 8, 3) makes 8 channels of 1"
        self.n_in, self.n_out = whole("n_in", n_in, least=1, hint=hint), whole("n_out", n_out, least=1, hint=hint)
        self.groups = whole("groups", groups, least=1, hint="groups=1 lets every channel see every channel")
        if self.n_in % self.groups or self.n_out % self.groups:
            raise ArgumentError(
                f"the groups of {name} divide its channels", given=f"{self.n_in} to {self.n_out}, groups={self.groups}",
                hint="groups=1, or for each channel its own: groups=n_in",
            )  # fmt: skip
        windows(name, (1 << 30,) * self.ndim, kernel, stride, padding, dilation)  # refuses settings before any input
        self.kernel = per_axis(name, "kernel", kernel, self.ndim)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.weight = parameter(self._weight(init_of(init), generator(rng)))
        self.bias = parameter(np.zeros(self.n_out)) if bias else None

    def _weight(self, init: Init, rng: np.random.Generator) -> Any:
        """A rule makes a matrix (numbers that meet, numbers made): an entry of the result sees a whole kernel."""
        k, n_in, n_out = entries(self.kernel), self.n_in // self.groups, self.n_out // self.groups
        matrices = [init(n_in * k, n_out * k, rng)[:, :n_out] for _ in range(self.groups)]
        weight = np.stack(matrices).reshape(self.groups, n_in, *self.kernel, n_out)
        if self.transposed:
            return np.moveaxis(weight, -1, 2).reshape(self.n_in, n_out, *self.kernel)
        return np.moveaxis(weight, -1, 1).reshape(self.n_out, n_in, *self.kernel)

    def _checked(self, x: Any) -> None:
        shape = getattr(x, "shape", None)
        if shape is None or len(shape) != self.ndim + 2 or shape[1] != self.n_in:
            axes = ("length", "height, width")[self.ndim - 1]
            raise unfit(self, x, f"(batch, {self.n_in} channel{'s' * (self.n_in > 1)}, {axes})")

    def _options(self) -> dict[str, Any]:
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}

    def describe(self) -> str:
        usual = {"stride": 1, "dilation": 1, "groups": 1}
        words = [f"{name}={value!r}" for name, value in self._options().items() if value != usual.get(name, 0)]
        kernel = self.kernel[0] if len(set(self.kernel)) == 1 else self.kernel
        return ", ".join([f"{self.n_in}, {self.n_out}, {kernel}", *words, *["bias=False"] * (self.bias is None)])


class Conv2d(_Slides):
    """Each of `n_out` kernels slides over an image and says how well each place fits.

    Shapes:
        x: (batch, n_in, height, width) -> (batch, n_out, height', width'); weight: (n_out, n_in / groups, *kernel).

    Args:
        kernel, stride, dilation: a whole number, or one for each axis.
        padding: zeros around: likewise, or "same" (the size stays), or "valid" (none).
        groups: channels see those of their own group only.
        init: a rule of `lab.nn.init`: "kaiming" (for relu), "xavier" (for tanh), or a function (n_in, n_out, rng); a
            kernel over all its channels is what an entry of the result sees.

    Raises:
        ArgumentError: a setting out of range, or called with what is no array.
        ShapeError: called with other channels or axes, or with an image smaller than the kernel.

    Example:
        >>> from lab.data import digits
        >>> from lab.nn import Flatten, Linear, MaxPool2d, ReLU, Sequential
        >>> from lab.optim import Adam
        >>> import lab
        >>> rng = np.random.default_rng(0)
        >>> model = Sequential(
        ...     Conv2d(1, 8, 3, padding="same", rng=rng), ReLU(), MaxPool2d(2), Flatten(), Linear(8 * 16, 10, rng=rng),
        ... )
        >>> model[0], model.n_parameters
        (Conv2d(1, 8, 3, padding='same'), 1370)
        >>> train, test = digits(flat=False)
        >>> images = train.inputs[:, None]  # an axis for the one channel
        >>> run = lab.fit(model, (images, train.targets), optimizer=Adam(model.parameters(), 1e-2), epochs=2)
        >>> run.wait().loss < 0.5
        True
    """

    def forward(self, x: Any) -> Any:
        """(batch, n_in, axes...) -> (batch, n_out, axes...)."""
        self._checked(x)
        return (ops.conv1d if self.ndim == 1 else ops.conv2d)(x, self.weight, self.bias, **self._options())


class Conv1d(Conv2d):
    """Kernels that slide over a signal: (batch, n_in, length) -> (batch, n_out, length'). Options are those of Conv2d.

    Example:
        >>> from lab.autograd import tensor
        >>> Conv1d(2, 4, 3, stride=2, rng=0)(tensor(np.ones((1, 2, 9)))).shape
        (1, 4, 4)
    """

    ndim = 1


class ConvTranspose2d(_Slides):
    """Each pixel puts a kernel into a larger image: the transpose of Conv2d, for what makes images.

    Shapes:
        x: (batch, n_in, height, width) -> (batch, n_out, height', width') with
            height' = (height - 1) stride - 2 padding + dilation (kernel - 1) + 1 + output_padding;
            weight: (n_in, n_out / groups, *kernel).

    Args:
        output_padding: below the stride; which of the sizes that Conv2d would make equal is meant.

    Example:
        >>> from lab.autograd import tensor
        >>> ConvTranspose2d(4, 1, 2, stride=2, rng=0)(tensor(np.ones((1, 4, 3, 3)))).shape
        (1, 1, 6, 6)
    """

    transposed = True

    def __init__(self, n_in: int, n_out: int, kernel: Sizes, *, output_padding: Sizes = 0, **options: Any) -> None:
        self.output_padding = output_padding
        super().__init__(n_in, n_out, kernel, **options)

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "output_padding": self.output_padding}

    def forward(self, x: Any) -> Any:
        """(batch, n_in, axes...) -> (batch, n_out, larger axes...)."""
        self._checked(x)
        function = ops.conv_transpose1d if self.ndim == 1 else ops.conv_transpose2d
        return function(x, self.weight, self.bias, **self._options())


class ConvTranspose1d(ConvTranspose2d):
    """Each entry puts a kernel into a longer signal. Options are those of ConvTranspose2d.

    Example:
        >>> from lab.autograd import tensor
        >>> ConvTranspose1d(4, 2, 3, stride=2, rng=0)(tensor(np.ones((1, 4, 3)))).shape
        (1, 2, 7)
    """

    ndim = 1


class _Pool(Module):
    """A pooling of this kernel: no parameters."""

    ndim: ClassVar[int] = 2
    function: ClassVar[Callable[..., Any]]

    def __init__(self, kernel: Sizes = 2, *, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        self.kernel, self.stride, self.padding = kernel, stride, padding
        windows(type(self).__name__, (1 << 30,) * self.ndim, kernel, kernel if stride is None else stride, padding)

    def forward(self, x: Any) -> Any:
        """(batch, channels, axes...) -> (batch, channels, windows...)."""
        return type(self).function(x, self.kernel, self.stride, self.padding)

    def describe(self) -> str:
        stride = f", stride={self.stride}" if self.stride is not None else ""
        return f"{self.kernel}{stride}" + (f", padding={self.padding}" if self.padding else "")


class MaxPool2d(_Pool):
    """The largest entry of each window, windows side by side unless `stride` says otherwise.

    Example:
        >>> from lab.autograd import tensor
        >>> MaxPool2d(2)(tensor(np.arange(16.0).reshape(1, 1, 4, 4))).numpy().tolist()
        [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    function = staticmethod(ops.max_pool2d)


class MaxPool1d(_Pool):
    """The largest entry of each window of a signal.

    Example:
        >>> from lab.autograd import tensor
        >>> MaxPool1d(2)(tensor([[[1.0, 5.0, 2.0, 0.0]]])).numpy().tolist()
        [[[5.0, 2.0]]]
    """

    ndim, function = 1, staticmethod(ops.max_pool1d)


class AvgPool2d(_Pool):
    """The mean of each window; zeros around are counted.

    Example:
        >>> from lab.autograd import tensor
        >>> AvgPool2d(2)(tensor(np.arange(16.0).reshape(1, 1, 4, 4))).numpy().tolist()
        [[[[2.5, 4.5], [10.5, 12.5]]]]
    """

    function = staticmethod(ops.avg_pool2d)


class AvgPool1d(_Pool):
    """The mean of each window of a signal.

    Example:
        >>> from lab.autograd import tensor
        >>> AvgPool1d(2)(tensor([[[1.0, 5.0, 2.0, 0.0]]])).numpy().tolist()
        [[[3.0, 1.0]]]
    """

    ndim, function = 1, staticmethod(ops.avg_pool1d)


class Flatten(Module):
    """All axes behind the batch in one row: what stands between a convolution and a Linear.

    Raises:
        ArgumentError: called with what is no array.
        ShapeError: called with a single number, which has no batch.

    Example:
        >>> from lab.autograd import tensor
        >>> Flatten()(tensor(np.ones((5, 2, 3, 3)))).shape
        (5, 18)
    """

    def forward(self, x: Any) -> Any:
        """(batch, ...) -> (batch, product of the others)."""
        shape = getattr(x, "shape", None)
        if shape is None:
            raise ArgumentError("Flatten takes a tensor or an array", given=repr(x)[:60], hint="lab.tensor([...])")
        if not shape:
            raise ShapeError("Flatten keeps the first axis", given="shape ()", hint="a batch: x[None]")
        return ops.reshape(x, shape=(shape[0], entries(tuple(shape[1:]))))
