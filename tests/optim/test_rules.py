"""Each rule against its paper's formulas, written in plain NumPy, over a hundred steps in float64."""

import numpy as np
import pytest

from lab.autograd import tensor
from lab.optim import SGD, Adagrad, Adam, AdamW, RMSprop

N_STEPS = 100
SHAPES = ((3, 4), (), (5,))


def sgd_paper(theta, gradients, *, lr, momentum=0.0, nesterov=False, decay=0.0):
    velocity = np.zeros_like(theta)
    for gradient in gradients:
        g = gradient(theta) + decay * theta
        velocity = momentum * velocity + g
        theta = theta - lr * (g + momentum * velocity if nesterov else velocity)
    return theta


def adam_paper(theta, gradients, *, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0, decoupled=False):
    m, v = np.zeros_like(theta), np.zeros_like(theta)
    for t, gradient in enumerate(gradients, start=1):
        g = gradient(theta) + (0 if decoupled else decay * theta)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
        shrunk = theta - lr * decay * theta if decoupled else theta
        theta = shrunk - lr * m_hat / (np.sqrt(v_hat) + eps)
    return theta


def rmsprop_paper(theta, gradients, *, lr, beta=0.99, eps=1e-8, momentum=0.0, decay=0.0):
    v, velocity = np.zeros_like(theta), np.zeros_like(theta)
    for gradient in gradients:
        g = gradient(theta) + decay * theta
        v = beta * v + (1 - beta) * g**2
        velocity = momentum * velocity + g / (np.sqrt(v) + eps)
        theta = theta - lr * velocity
    return theta


def adagrad_paper(theta, gradients, *, lr, eps=1e-10, decay=0.0):
    seen = []
    for gradient in gradients:
        seen.append(gradient(theta) + decay * theta)
        theta = theta - lr * seen[-1] / (np.sqrt(np.sum(np.square(seen), axis=0)) + eps)
    return theta


CASES = [
    (SGD, sgd_paper, {"lr": 0.05}),
    (SGD, sgd_paper, {"lr": 0.05, "momentum": 0.9}),
    (SGD, sgd_paper, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    (SGD, sgd_paper, {"lr": 0.05, "momentum": 0.5, "nesterov": True, "decay": 0.1}),
    (SGD, sgd_paper, {"lr": 0.05, "decay": 0.1}),
    (Adam, adam_paper, {"lr": 0.02}),
    (Adam, adam_paper, {"lr": 0.02, "beta1": 0.5, "beta2": 0.9, "eps": 1e-3}),
    (Adam, adam_paper, {"lr": 0.02, "decay": 0.1}),
    (AdamW, adam_paper, {"lr": 0.02, "decay": 0.1, "decoupled": True}),
    (AdamW, adam_paper, {"lr": 0.02, "decay": 0.0, "decoupled": True}),
    (RMSprop, rmsprop_paper, {"lr": 0.01}),
    (RMSprop, rmsprop_paper, {"lr": 0.01, "beta": 0.9, "momentum": 0.5, "decay": 0.1, "eps": 1e-3}),
    (Adagrad, adagrad_paper, {"lr": 0.1}),
    (Adagrad, adagrad_paper, {"lr": 0.1, "eps": 1e-2, "decay": 0.1}),
]
OURS = {"lr": "learning_rate", "decay": "weight_decay", "eps": "epsilon"}


@pytest.mark.parametrize(("rule", "paper", "options"), CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-4)])
def test_a_hundred_steps_follow_the_paper(rule, paper, options, dtype, tolerance):
    rng = np.random.default_rng(0)
    starts, curves = ([rng.standard_normal(s) for s in SHAPES] for _ in range(2))
    noise = [[rng.standard_normal(s) for s in SHAPES] for _ in range(N_STEPS)]

    parameters = [tensor(np.asarray(s, dtype), requires_grad=True) for s in starts]
    optimizer = rule(parameters, **{OURS.get(k, k): v for k, v in options.items() if k != "decoupled"})
    for step in noise:
        optimizer.zero_grad()
        for p, c, e in zip(parameters, curves, step, strict=True):
            (p * p * np.asarray(c**2 / 2, dtype) + p * np.asarray(e, dtype)).sum().backward()
        optimizer.step()

    for i, p in enumerate(parameters):
        gradients = [lambda x, i=i, step=step: curves[i] ** 2 * x + step[i] for step in noise]
        expected = paper(starts[i], gradients, **options)
        assert p.dtype == dtype
        assert np.abs(p.numpy() - expected).max() < tolerance


def test_nesterov_and_momentum_differ():
    ends = [sgd_paper(1.0, [lambda x: x] * 5, lr=0.1, momentum=0.9, nesterov=nesterov) for nesterov in (False, True)]
    assert abs(ends[0] - ends[1]) > 0.01
