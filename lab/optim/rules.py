"""The update rules: gradient descent with momentum, Adam, and AdamW."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar

from lab.autograd import Tensor
from lab.kernels import adam, sgd
from lab.optim.optimizer import Optimizer, Slots, Vector

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
        learning_rate: float = 1e-2,
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, learning_rate=learning_rate, momentum=momentum, weight_decay=weight_decay)
        self.nesterov = nesterov

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
        learning_rate: float = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        named = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": weight_decay}
        super().__init__(parameters, learning_rate=learning_rate, **named)

    def update(self, values: Vector, gradients: Vector, slots: Slots) -> None:
        rate, beta1, beta2, epsilon, decay = self._values.values()
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
        learning_rate: float = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        named = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "weight_decay": weight_decay}
        super().__init__(parameters, learning_rate, **named)
