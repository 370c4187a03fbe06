"""Update rules over one flat vector of parameters: each a single pass that reads and writes every number once.

The hyperparameters are plain numbers (float64), the arithmetic is done in the dtype of the parameters. Signs and
names follow the papers: SGD with (Nesterov) momentum in Sutskever et al. 2013, Adam in arXiv:1412.6980, AdamW in
arXiv:1711.05101, RMSprop in Tieleman and Hinton 2012, Adagrad in Duchi et al. 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.arguments import OutVector, Vector
from lab.kernels.kernel import kernel
from lab.kernels.scalars import sqrt


def sgd_twin(
    p: NDArray[Any],
    g: NDArray[Any],
    velocity: NDArray[Any],
    lr: float,
    momentum: float,
    weight_decay: float,
    nesterov: bool,
) -> None:
    """`sgd` in NumPy."""
    step = g + weight_decay * p
    if momentum != 0.0:
        velocity[:] = momentum * velocity + step
        step = step + momentum * velocity if nesterov else velocity
    p -= lr * step


def adam_twin(
    p: NDArray[Any],
    g: NDArray[Any],
    m: NDArray[Any],
    v: NDArray[Any],
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    correction1: float,
    correction2: float,
) -> None:
    """`adam` in NumPy."""
    if decoupled:
        p *= 1.0 - lr * weight_decay
    else:
        g = g + weight_decay * p
    m += (1.0 - beta1) * (g - m)
    v += (1.0 - beta2) * (g * g - v)
    p -= (lr / correction1) * m / (np.sqrt(v * (1.0 / correction2)) + eps)


def rmsprop_twin(
    p: NDArray[Any],
    g: NDArray[Any],
    v: NDArray[Any],
    velocity: NDArray[Any],
    lr: float,
    beta: float,
    eps: float,
    momentum: float,
    weight_decay: float,
) -> None:
    """`rmsprop` in NumPy."""
    slope = g + weight_decay * p
    v += (1.0 - beta) * (slope * slope - v)
    step = slope / (np.sqrt(v) + eps)
    if momentum != 0.0:
        velocity[:] = momentum * velocity + step
        step = velocity
    p -= lr * step


def adagrad_twin(p: NDArray[Any], g: NDArray[Any], v: NDArray[Any], lr: float, eps: float, weight_decay: float) -> None:
    """`adagrad` in NumPy."""
    slope = g + weight_decay * p
    v += slope * slope
    p -= lr * slope / (np.sqrt(v) + eps)


def _sgd_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    p, g, velocity = (rng.standard_normal(size).astype(dtype) for _ in range(3))
    return p, g, velocity, 0.1, 0.9 * (size % 2), 0.01, size % 3 == 0


def _adam_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    p, g, m, v = (rng.standard_normal(size).astype(dtype) for _ in range(4))
    return p, g, m, v * v, 1e-2, 0.9, 0.999, 1e-8, 0.01, size % 2 == 0, 0.1, 0.001


def _rmsprop_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    p, g, v, velocity = (rng.standard_normal(size).astype(dtype) for _ in range(4))
    return p, g, v * v, velocity, 1e-2, 0.99, 1e-8, 0.9 * (size % 2), 0.01


def _adagrad_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    p, g, v = (rng.standard_normal(size).astype(dtype) for _ in range(3))
    return p, g, v * v, 1e-2, 1e-10, 0.01


@kernel(twin=sgd_twin, sample=_sgd_sample)
def sgd(
    p: OutVector, g: Vector, velocity: OutVector, lr: float, momentum: float, weight_decay: float, nesterov: bool
) -> None:
    """One step of gradient descent, in place: p -= lr * step.

    step = g + weight_decay * p, and with momentum velocity = momentum * velocity + step, which becomes the step
    (Nesterov: step + momentum * velocity). `velocity` begins as zeros.

    Shapes:
        p, g, velocity: (n,) of one dtype. Without momentum `velocity` is neither read nor written and may be empty.

    Example:
        >>> p = np.array([1.0, 2.0])
        >>> sgd(p, np.array([1.0, 1.0]), np.zeros(2), 0.5, 0.0, 0.0, False)
        >>> p
        array([0.5, 1.5])
    """
    if g.size != p.size or (momentum != 0.0 and velocity.size != p.size):
        raise ShapeError("sgd needs a gradient and a velocity for each parameter")
    T = p.dtype.type
    rate, inertia, decay = T(lr), T(momentum), T(weight_decay)
    if momentum == 0.0:
        for i in range(p.size):
            p[i] -= rate * (g[i] + decay * p[i])
    elif nesterov:
        for i in range(p.size):
            step = g[i] + decay * p[i]
            velocity[i] = inertia * velocity[i] + step
            p[i] -= rate * (step + inertia * velocity[i])
    else:
        for i in range(p.size):
            velocity[i] = inertia * velocity[i] + (g[i] + decay * p[i])
            p[i] -= rate * velocity[i]


@kernel(twin=adam_twin, sample=_adam_sample)
def adam(
    p: OutVector,
    g: Vector,
    m: OutVector,
    v: OutVector,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    correction1: float,
    correction2: float,
) -> None:
    """One step of Adam, in place: p -= lr * (m / correction1) / (sqrt(v / correction2) + eps).

    m and v are the running means of g and g**2 and begin as zeros; the corrections are 1 - beta1**t and 1 - beta2**t
    for step t = 1, 2, ... Weight decay is added to the gradient, or with `decoupled` (AdamW) shrinks p by 1 - lr *
    weight_decay first.

    Shapes:
        p, g, m, v: (n,) of one dtype.

    Example:
        >>> p = np.array([1.0])
        >>> adam(p, np.array([3.0]), np.zeros(1), np.zeros(1), 0.1, 0.9, 0.999, 0.0, 0.0, False, 0.1, 0.001)
        >>> p.round(12)
        array([0.9])
    """
    if g.size != p.size or m.size != p.size or v.size != p.size:
        raise ShapeError("adam needs g, m and v for each parameter")
    T = p.dtype.type
    shrink = T(1.0 - lr * weight_decay) if decoupled else T(1.0)
    decay = T(0.0) if decoupled else T(weight_decay)
    rate, take1, take2 = T(lr / correction1), T(1.0 - beta1), T(1.0 - beta2)
    scale, epsilon = T(1.0 / correction2), T(eps)
    for i in range(p.size):
        weight = shrink * p[i]
        slope = g[i] + decay * p[i]
        m[i] += take1 * (slope - m[i])
        v[i] += take2 * (slope * slope - v[i])
        p[i] = weight - rate * m[i] / (sqrt(v[i] * scale) + epsilon)


@kernel(twin=rmsprop_twin, sample=_rmsprop_sample)
def rmsprop(
    p: OutVector,
    g: Vector,
    v: OutVector,
    velocity: OutVector,
    lr: float,
    beta: float,
    eps: float,
    momentum: float,
    weight_decay: float,
) -> None:
    """One step of RMSprop, in place: p -= lr * step, step = slope / (sqrt(v) + eps), slope = g + weight_decay * p.

    v is the running mean of slope**2 and begins as zeros, uncorrected; with momentum velocity = momentum * velocity +
    step becomes the step.

    Shapes:
        p, g, v, velocity: (n,) of one dtype. Without momentum `velocity` is neither read nor written and may be empty.

    Example:
        >>> p = np.array([1.0])
        >>> rmsprop(p, np.array([3.0]), np.zeros(1), np.zeros(1), 0.1, 0.75, 0.0, 0.0, 0.0)
        >>> p.round(12)
        array([0.8])
    """
    if g.size != p.size or v.size != p.size or (momentum != 0.0 and velocity.size != p.size):
        raise ShapeError("rmsprop needs g, v and a velocity for each parameter")
    T = p.dtype.type
    rate, take, epsilon, inertia, decay = T(lr), T(1.0 - beta), T(eps), T(momentum), T(weight_decay)
    for i in range(p.size):
        slope = g[i] + decay * p[i]
        v[i] += take * (slope * slope - v[i])
        step = slope / (sqrt(v[i]) + epsilon)
        if momentum != 0.0:
            velocity[i] = inertia * velocity[i] + step
            step = velocity[i]
        p[i] -= rate * step


@kernel(twin=adagrad_twin, sample=_adagrad_sample)
def adagrad(p: OutVector, g: Vector, v: OutVector, lr: float, eps: float, weight_decay: float) -> None:
    """One step of Adagrad, in place: v += slope**2, p -= lr * slope / (sqrt(v) + eps), slope = g + weight_decay * p.

    Shapes:
        p, g, v: (n,) of one dtype; v begins as zeros.

    Example:
        >>> p = np.array([1.0])
        >>> adagrad(p, np.array([3.0]), np.array([16.0]), 0.5, 0.0, 0.0)
        >>> p.round(12)
        array([0.7])
    """
    if g.size != p.size or v.size != p.size:
        raise ShapeError("adagrad needs g and v for each parameter")
    T = p.dtype.type
    rate, epsilon, decay = T(lr), T(eps), T(weight_decay)
    for i in range(p.size):
        slope = g[i] + decay * p[i]
        v[i] += slope * slope
        p[i] -= rate * slope / (sqrt(v[i]) + epsilon)
