"""The update rules: gradient descent with momentum, and those that divide by the size of past gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

from lab.autograd import Tensor
from lab.kernels import adagrad, adam, rmsprop, sgd
from lab.optim.optimizer import Optimizer, Slots, Vector
from lab.optim.schedules import Rate

INF = math.inf


class SGD(Optimizer):
    """Gradient descent: `velocity = momentum * velocity + gradient`, `parameter -= learning_rate * velocity`.

    Args:
        momentum: 0 to below 1; how much of the last step's velocity goes on (Sutskever et al., ICML 2013).
        nesterov: take the gradient's part once more, as if one looked ahead.
        weight_decay: this times the parameter is added to its gradient.

    Example:
        >>> from lab.autograd import tensor
        >>> w = tensor([1.0], requires_grad=True)
        >>> sgd = SGD([w], learning_rate=0.25)
        >>> (w * w).sum().backward()
        >>> sgd.step()
        >>> w.numpy().tolist()
        [0.5]
    """

    slot_names = ("velocity",)
    ranges: ClassVar = {"learning_rate": (0.0, INF), "momentum": (0.0, 1.0), "weight_decay": (0.0, INF)}

    def __init__(
        self,
        parameters: Iterable[Tensor],
        learning_rate: Rate = 1e-2,
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
    ) -> None:
        named = {"momentum": momentum, "weight_decay": weight_decay}
        super().__init__(parameters, learning_rate, clip_norm=clip_norm, **named)
        self.nesterov = nesterov

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, nesterov=True)" if self.nesterov else super().__repr__()

    def update(self, values: Vector, gradients: Vector, slots: Slots) -> None:
        at = self._values
        rate, momentum, decay = at["learning_rate"], at["momentum"], at["weight_decay"]
        sgd(values, gradients, slots["velocity"], rate, momentum, decay, self.nesterov)


class Adam(Optimizer):
    """Steps of about the learning rate, whatever the gradient's size (Kingma and Ba, arXiv:1412.6980, algorithm 1).

    `m` and `v` are running means of the gradient and of its square, divided by what they lack for having started at 0;
    `parameter -= learning_rate * m / (sqrt(v) + epsilon)`.

    Args:
        weight_decay: this times the parameter is added to its gradient; `AdamW` shrinks the parameter instead.

    Example:
        >>> from lab.autograd import tensor
        >>> w = tensor([1.0, -1.0], requires_grad=True)
        >>> adam = Adam([w], learning_rate=0.5)
        >>> (w * w * w).sum().backward()
        >>> adam.step()
        >>> w.numpy().round(6).tolist()
        [0.5, -1.5]
    """

    slot_names = ("m", "v")
    ranges: ClassVar = {
        "learning_rate": (0.0, INF),
        "beta1": (0.0, 1.0),
        "beta2": (0.0, 1.0),
        "epsilon": (0.0, INF),
        "weight_decay": (0.0, INF),
    }
    decoupled = False

    def __init__(
        self,
        parameters: Iterable[Tensor],
        learning_rate: Rate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
    ) -> None:
        named = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": weight_decay}
        super().__init__(parameters, learning_rate, clip_norm=clip_norm, **named)

    def update(self, values: Vector, gradients: Vector, slots: Slots) -> None:
        rate, beta1, beta2, epsilon, decay = (self._values[name] for name in Adam.ranges)
        missing1, missing2 = 1 - beta1**self.n_steps, 1 - beta2**self.n_steps
        m, v = slots["m"], slots["v"]
        adam(values, gradients, m, v, rate, beta1, beta2, epsilon, decay, self.decoupled, missing1, missing2)


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly (Loshchilov and Hutter, arXiv:1711.05101).

    Example:
        >>> from lab.autograd import tensor
        >>> w = tensor([1.0], requires_grad=True)
        >>> adamw = AdamW([w], learning_rate=0.5, weight_decay=0.2)
        >>> (w * 0.0).sum().backward()
        >>> adamw.step()
        >>> w.numpy().round(6).tolist()
        [0.9]
    """

    decoupled = True

    def __init__(
        self,
        parameters: Iterable[Tensor],
        learning_rate: Rate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 1e-2,
        clip_norm: float | None = None,
    ) -> None:
        named = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": weight_decay}
        super().__init__(parameters, learning_rate, clip_norm=clip_norm, **named)


class RMSprop(Optimizer):
    """Steps divided by the root of the running mean of the squared gradient (Tieleman and Hinton, 2012, lecture 6.5).

    `v = beta * v + (1 - beta) * gradient**2`, `parameter -= learning_rate * gradient / (sqrt(v) + epsilon)`, as in
    torch, where `beta` is `alpha`: `v` starts at 0 and is not corrected, so the first steps are long.

    Args:
        momentum: `velocity = momentum * velocity + gradient / (sqrt(v) + epsilon)` takes the quotient's place.
        weight_decay: this times the parameter is added to its gradient.

    Example:
        >>> from lab.autograd import tensor
        >>> w = tensor([1.0, -4.0], requires_grad=True)
        >>> rmsprop = RMSprop([w], learning_rate=0.25, beta=0.75)
        >>> (w * w).sum().backward()
        >>> rmsprop.step()
        >>> w.numpy().round(6).tolist()
        [0.5, -3.5]
    """

    slot_names = ("v", "velocity")
    ranges: ClassVar = {
        "learning_rate": (0.0, INF),
        "beta": (0.0, 1.0),
        "epsilon": (0.0, INF),
        "momentum": (0.0, 1.0),
        "weight_decay": (0.0, INF),
    }

    def __init__(
        self,
        parameters: Iterable[Tensor],
        learning_rate: Rate = 1e-2,
        *,
        beta: float = 0.99,
        epsilon: float = 1e-8,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
    ) -> None:
        named = {"beta": beta, "epsilon": epsilon, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(parameters, learning_rate, clip_norm=clip_norm, **named)

    def update(self, values: Vector, gradients: Vector, slots: Slots) -> None:
        rate, beta, epsilon, momentum, decay = (self._values[name] for name in RMSprop.ranges)
        rmsprop(values, gradients, slots["v"], slots["velocity"], rate, beta, epsilon, momentum, decay)


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of squared gradients: they grow shorter (Duchi et al., JMLR 12, 2011).

    `v += gradient**2`, `parameter -= learning_rate * gradient / (sqrt(v) + epsilon)`.

    Args:
        weight_decay: this times the parameter is added to its gradient.

    Example:
        >>> from lab.autograd import tensor
        >>> w = tensor([1.0, -4.0], requires_grad=True)
        >>> adagrad = Adagrad([w], learning_rate=0.5)
        >>> (w * w).sum().backward()
        >>> adagrad.step()
        >>> w.numpy().round(6).tolist()
        [0.5, -3.5]
    """

    slot_names = ("v",)
    ranges: ClassVar = {"learning_rate": (0.0, INF), "epsilon": (0.0, INF), "weight_decay": (0.0, INF)}

    def __init__(
        self,
        parameters: Iterable[Tensor],
        learning_rate: Rate = 1e-2,
        *,
        epsilon: float = 1e-10,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
    ) -> None:
        named = {"epsilon": epsilon, "weight_decay": weight_decay}
        super().__init__(parameters, learning_rate, clip_norm=clip_norm, **named)

    def update(self, values: Vector, gradients: Vector, slots: Slots) -> None:
        rate, epsilon, decay = (self._values[name] for name in Adagrad.ranges)
        adagrad(values, gradients, slots["v"], rate, epsilon, decay)
