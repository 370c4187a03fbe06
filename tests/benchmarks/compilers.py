"""The peers that compile, too: torch.compile and jax.jit, each used as its manual says.

torch compiles the loss, and takes its gradients by a compiled function of its own; the optimiser stays eager. In jax
loss, gradients and the optimiser's rule are one function, which may write over the parameters that it was given.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

Tensors = Sequence[Any]
Made = tuple[Callable[[], Any], Callable[[], list[float]]]


def compiling_torch(torch: Any, eager: SimpleNamespace) -> SimpleNamespace:
    """The engine of torch with `torch.compile` around each loss; it asks for a C++ compiler."""

    def differentiated(f: Callable[..., Any], leaves: Tensors) -> Made:
        compiled = torch.compile(f)

        def step() -> Any:
            eager.forget(leaves)
            value = compiled(*leaves)
            value.backward()
            return value

        return step, lambda: [step().item(), *map(_size_of, map(eager.gradient, leaves))]

    def trained(loss_of: Callable[..., Any], parameters: Tensors, turn: Any, optimizer: Any) -> Made:
        compiled = torch.compile(lambda parameters, batch: loss_of(parameters, *batch))

        def step() -> Any:
            optimizer.zero_grad()
            loss = compiled(parameters, next(turn))
            loss.backward()
            optimizer.step()
            return loss

        return step, _first_and_sixth(step)

    own = {"name": "torch.compile", "compiles": True, "differentiated": differentiated, "trained": trained}
    return SimpleNamespace(**{**vars(eager), **own})


def jax_engine() -> Any:
    """jax on one thread, everything under jax.jit, or None."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        return None
    return _jax(jax, jax.numpy)


def _jax(jax: Any, jnp: Any) -> SimpleNamespace:
    return SimpleNamespace(
        name="jax.jit",
        compiles=True,
        constant=jnp.asarray,
        labels=jnp.asarray,
        leaf=jnp.asarray,
        tanh=jnp.tanh,
        exp=jnp.exp,
        sigmoid=jax.nn.sigmoid,
        sqrt=jnp.sqrt,
        relu=jax.nn.relu,
        gelu=lambda x: jax.nn.gelu(x, approximate=True),
        permute=jnp.transpose,
        variance=lambda x, axis: x.var(axis),
        largest=lambda x, axis: x.max(axis),
        sgd=lambda _parameters, rate: ((), _by_sgd(rate)),
        adam=lambda parameters: _adam(jnp, parameters),
        differentiated=lambda f, leaves: _differentiated(jax, f, leaves),
        trained=lambda *given: _trained(jax, *given),
        **_layers(jax, jnp),
    )


def _layers(jax: Any, jnp: Any) -> dict[str, Callable[..., Any]]:
    """What jax leaves to its user: layers of a network."""

    def cross_entropy(logits: Any, labels: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift

    def attention(query: Any, key: Any, value: Any) -> Any:
        scores = query @ key.swapaxes(-1, -2) / np.float32(np.sqrt(query.shape[-1]))
        return jax.nn.softmax(scores) @ value

    def conv2d(x: Any, weight: Any, bias: Any) -> Any:
        order = ("NCHW", "OIHW", "NCHW")
        return jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=order) + bias[:, None, None]

    def max_pool2d(x: Any) -> Any:
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    return {f.__name__: f for f in (cross_entropy, layer_norm, attention, conv2d, max_pool2d)}


def _by_sgd(rate: float) -> Callable[..., Any]:
    return lambda ps, gs, _state: ([p - rate * g for p, g in zip(ps, gs, strict=True)], ())


def _adam(jnp: Any, parameters: Tensors) -> Any:
    def update(ps: Any, gs: Any, state: Any) -> Any:
        ms, vs, t = state
        t = t + 1.0
        ms = [0.9 * m + (1 - 0.9) * g for m, g in zip(ms, gs, strict=True)]
        vs = [0.999 * v + (1 - 0.999) * (g * g) for v, g in zip(vs, gs, strict=True)]
        rate, root = 1e-3 / (1.0 - 0.9**t), jnp.sqrt(1.0 - 0.999**t)
        new = [p - rate * m / (jnp.sqrt(v) / root + 1e-8) for p, m, v in zip(ps, ms, vs, strict=True)]
        return new, (ms, vs, t)

    first, second = ([jnp.zeros_like(p) for p in parameters] for _ in range(2))  # each is given away: no array twice
    return (first, second, jnp.float32(0)), update


def _differentiated(jax: Any, f: Callable[..., Any], leaves: Tensors) -> Made:
    both = jax.jit(jax.value_and_grad(f, tuple(range(len(leaves)))))

    def check() -> list[float]:
        value, gradients = both(*leaves)
        return [value.item(), *map(_size_of, gradients)]

    return lambda: jax.block_until_ready(both(*leaves)), check


def _trained(jax: Any, loss_of: Callable[..., Any], parameters: Tensors, turn: Any, optimizer: Any) -> Made:
    state, update = optimizer

    def whole(ps: Any, state: Any, batch: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda ps: loss_of(ps, *batch))(ps)
        return loss, *update(ps, gradients, state)

    compiled = jax.jit(whole, donate_argnums=(0, 1))
    now = [list(parameters), state]

    def step() -> Any:
        loss, *now[:] = jax.block_until_ready(compiled(*now, next(turn)))
        return loss

    return step, _first_and_sixth(step)


def _first_and_sixth(step: Callable[[], Any]) -> Callable[[], list[float]]:
    def check() -> list[float]:
        losses = [step().item() for _ in range(6)]
        return [losses[0], losses[5]]

    return check


def _size_of(gradient: Any) -> float:
    return float(np.abs(np.asarray(gradient)).sum(dtype=np.float64))
