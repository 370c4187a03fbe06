"""What a workload asks of an engine, answered by the lab and by its peers: the code of a workload is then one for all.

A peer that is not installed is None; nothing here is needed to use the lab.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
from compilers import compiling_torch, jax_engine

import lab
from lab import ops

Tensors = Sequence[Any]


class Lab:
    """This engine."""

    name = "lab"
    compiles = False
    constant = staticmethod(lab.tensor)
    tanh, exp, sigmoid, sqrt, relu = ops.tanh, ops.exp, ops.sigmoid, ops.sqrt, ops.relu

    few_collections = staticmethod(lab.gc_threshold)

    @staticmethod
    def labels(a: np.ndarray) -> Any:
        return a

    @staticmethod
    def leaf(a: Any) -> Any:
        return lab.tensor(a, requires_grad=True)

    @staticmethod
    def gradient(x: Any) -> Any:
        return x.grad.numpy()

    @staticmethod
    def forget(leaves: Tensors) -> None:
        for x in leaves:
            x.zero_grad()

    @staticmethod
    def sgd(parameters: Tensors, rate: float) -> Any:
        return lab.optim.SGD(parameters, learning_rate=rate)

    @staticmethod
    def adam(parameters: Tensors) -> Any:
        return lab.optim.Adam(parameters, learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8)

    @staticmethod
    def cross_entropy(logits: Any, labels: Any) -> Any:
        return ops.cross_entropy(logits, labels)

    @staticmethod
    def gelu(x: Any) -> Any:
        return lab.gelu(x, approximate="tanh")

    @staticmethod
    def permute(x: Any, axes: tuple[int, ...]) -> Any:
        return x.transpose(axes)

    @staticmethod
    def variance(x: Any, axis: int) -> Any:
        return x.var(axis=axis)

    @staticmethod
    def largest(x: Any, axis: int) -> Any:
        return x.max(axis=axis)

    @staticmethod
    def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
        return lab.layer_norm(x, scale, shift)

    @staticmethod
    def attention(query: Any, key: Any, value: Any) -> Any:
        return lab.scaled_dot_product_attention(query, key, value)

    @staticmethod
    def conv2d(x: Any, weight: Any, bias: Any) -> Any:
        return lab.conv2d(x, weight, bias, padding=1)

    @staticmethod
    def max_pool2d(x: Any) -> Any:
        return lab.max_pool2d(x, 2)


class Compiled(Lab):
    """This engine, each step one compiled function: forward, backward and the optimiser's rule together."""

    compiles = True
    constant = leaf = labels = staticmethod(np.asarray)

    @staticmethod
    def sgd(parameters: Tensors, rate: float) -> Any:
        return (), lambda ps, gs, _state: ([p - rate * g for p, g in zip(ps, gs, strict=True)], ())

    @staticmethod
    def adam(parameters: Tensors) -> Any:
        def update(ps: Any, gs: Any, state: Any) -> Any:
            ms, vs, t = state
            t = t + 1.0
            ms = [0.9 * m + (1 - 0.9) * g for m, g in zip(ms, gs, strict=True)]
            vs = [0.999 * v + (1 - 0.999) * (g * g) for v, g in zip(vs, gs, strict=True)]
            rate, root = 1e-3 / (1.0 - 0.9**t), lab.sqrt(1.0 - 0.999**t)
            new = [p - rate * m / (lab.sqrt(v) / root + 1e-8) for p, m, v in zip(ps, ms, vs, strict=True)]
            return new, (ms, vs, t)

        zeros = [np.zeros_like(p) for p in parameters]
        return (zeros, zeros, np.zeros((), np.float32)), update

    @staticmethod
    def trained(loss_of: Callable[..., Any], parameters: Tensors, turn: Any, optimizer: Any) -> Any:
        state, update = optimizer

        @functools.partial(lab.jit, executor="compiled")
        def compiled(ps: Any, state: Any, batch: Any) -> Any:
            loss, gradients = lab.value_and_grad(lambda ps: loss_of(ps, *batch))(ps)
            return loss, *update(ps, gradients, state)

        now = [list(parameters), state]

        def step() -> Any:
            loss, *now[:] = compiled(*now, next(turn))
            return loss

        def check() -> list[float]:
            losses = [step() for _ in range(6)]
            return [losses[0].item(), losses[5].item()]

        return step, check

    @staticmethod
    def differentiated(f: Callable[..., Any], leaves: Tensors) -> Any:
        both = lab.jit(lab.value_and_grad(f, tuple(range(len(leaves)))), executor="compiled")

        def check() -> list[float]:
            value, gradients = both(*leaves)
            return [value.item(), *(float(np.abs(g.numpy()).sum(dtype=np.float64)) for g in gradients)]

        return lambda: both(*leaves), check


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def torch_engine() -> Any:
    """torch in eager mode on one thread, or None."""
    torch, functional = _module("torch"), _module("torch.nn.functional")
    if torch is None:
        return None
    torch.set_num_threads(1)

    def forget(leaves: Tensors) -> None:
        for x in leaves:
            x.grad = None

    return SimpleNamespace(
        name="torch",
        compiles=False,
        constant=torch.from_numpy,
        labels=torch.from_numpy,
        leaf=lambda a: torch.as_tensor(np.array(a)).requires_grad_(),
        gradient=lambda x: x.grad.numpy(),
        forget=forget,
        sgd=lambda parameters, rate: torch.optim.SGD(parameters, lr=rate),
        adam=lambda parameters: torch.optim.Adam(parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8),
        tanh=torch.tanh,
        exp=torch.exp,
        sigmoid=torch.sigmoid,
        sqrt=torch.sqrt,
        relu=torch.relu,
        cross_entropy=functional.cross_entropy,
        gelu=lambda x: functional.gelu(x, approximate="tanh"),
        permute=lambda x, axes: x.permute(axes),
        variance=lambda x, axis: x.var(axis, unbiased=False),
        largest=lambda x, axis: x.amax(axis),
        layer_norm=lambda x, scale, shift: functional.layer_norm(x, scale.shape, scale, shift),
        attention=functional.scaled_dot_product_attention,
        conv2d=lambda x, weight, bias: functional.conv2d(x, weight, bias, padding=1),
        max_pool2d=lambda x: functional.max_pool2d(x, 2),
    )


def micrograd_engine() -> Any:
    """micrograd, which has scalars only, or None."""
    engine = _module("micrograd.engine")
    if engine is None:
        return None

    def forget(leaves: Tensors) -> None:
        for x in leaves:
            x.grad = 0

    class Sgd:
        def __init__(self, parameters: Tensors, rate: float) -> None:
            self.parameters, self.rate = parameters, rate

        def zero_grad(self) -> None:
            forget(self.parameters)

        def step(self) -> None:
            for x in self.parameters:
                x.data -= self.rate * x.grad

    return SimpleNamespace(
        name="micrograd",
        compiles=False,
        leaf=engine.Value,
        gradient=lambda x: x.grad,
        forget=forget,
        sgd=Sgd,
        few_collections=nullcontext,
        relu=lambda x: x.relu(),
    )


def compiled_torch_engine() -> Any:
    """torch with its losses compiled, or None."""
    torch = _module("torch")
    return None if torch is None else compiling_torch(torch, torch_engine())


PEERS: dict[str, Callable[[], Any]] = {
    "torch": torch_engine, "micrograd": micrograd_engine, "torch.compile": compiled_torch_engine, "jax.jit": jax_engine,
}  # fmt: skip
