"""The interpreter switch: ops of seven kinds through all five interpreters, in each other, against differences.

The kinds: elementwise, reduction, matrix product, indexing, branch, random number, collective.
"""

import itertools

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import lab
from lab.autograd import Tensor
from tests.numerics import array, close, numeric_grad, slope

KEY = lab.random_key(0)
X = np.random.default_rng(0).normal(size=(3, 3)) * 0.5


def all_seven(x):
    """x (3, 3) -> (): everything at once, inside an axis called "i"."""
    y = lab.add(lab.multiply(x, x), x)
    y = lab.matmul(y, lab.transpose(x))
    y = y[1:, ::-1] + y[np.array([0, 2])]
    noise = lab.random_uniform(KEY, shape=(2, 3))
    y = lab.where(noise > 0.3, y * noise, lab.sin(y))
    return lab.all_reduce(lab.sum(y, axis=0), axis_name="i").mean() * lab.sum(lab.tanh(x))


OPS = {
    "add and multiply": lambda x: lab.sum(lab.add(lab.multiply(x, x), x) * x),
    "sum": lambda x: lab.sum(lab.sum(x, axis=0) ** 3),
    "matmul": lambda x: lab.sum(lab.matmul(lab.matmul(x, x), x)),
    "getitem": lambda x: lab.sum(x[0] * x[:, 1] * x[np.array([0, 0, 2]), 2]),
    "where": lambda x: lab.sum(lab.where(x > 0, lab.exp(x), x**3)),
    "random_uniform": lambda x: lab.sum(lab.random_uniform(KEY, shape=(3, 3)) * x**3),
    "all_reduce": lambda x: lab.all_reduce(lab.sum(x * x * x), axis_name="i"),
}


def with_axis(f):
    """f under an axis of one member, so that a collective has somebody to meet."""
    return lambda x: lab.vmap(f, axis_name="i")(lab.expand_dims(x, axis=0))[0]


FUNCTIONS = {name: with_axis(f) if name == "all_reduce" else f for name, f in OPS.items()}
each = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)


@each
def test_run(f):
    assert type(f(lab.tensor(X))) is Tensor
    close(f(X), f(lab.tensor(X)))


@each
def test_tape(f):
    x = lab.tensor(X, requires_grad=True)
    f(x).backward()
    close(x.grad, numeric_grad(f, X), rtol=1e-7, atol=1e-9)
    close(lab.grad(f)(X), x.grad, rtol=1e-12)


@each
def test_tangent(f):
    v = np.random.default_rng(1).normal(size=X.shape)
    close(lab.jvp(f, (X,), (v,))[1], slope(f, (X,), (v,)), rtol=1e-7)


@each
def test_batch(f):
    xs = np.stack([X, 2 * X, -X])
    close(lab.vmap(f)(xs), [array(f(x)) for x in xs], rtol=1e-12)


@each
def test_trace(f):
    close(lab.jit(f)(X), f(X), rtol=1e-12)
    close(lab.jit(f)(2 * X), f(2 * X), rtol=1e-12)


@each
def test_grad_of_grad(f):
    v = np.random.default_rng(1).normal(size=X.shape)
    first = lambda x: lab.sum(lab.grad(f)(x) * v)  # noqa: E731
    close(lab.grad(first)(X), numeric_grad(first, X), rtol=1e-6, atol=1e-8)
    close(lab.jvp(lab.grad(f), (X,), (v,))[1], lab.grad(first)(X), rtol=1e-9)
    close(lab.grad(lambda x: lab.jvp(f, (x,), (v,))[1])(X), lab.grad(first)(X), rtol=1e-9)


@each
def test_vmap_of_grad_and_grad_of_vmap(f):
    xs = np.stack([X, 2 * X, -X])
    expected = np.stack([array(lab.grad(f)(x)) for x in xs])
    close(lab.vmap(lab.grad(f))(xs), expected, rtol=1e-10)
    close(lab.grad(lambda xs: lab.vmap(f)(xs).sum())(xs), expected, rtol=1e-10)


@each
def test_jit_of_grad_and_grad_of_jit(f):
    expected = lab.grad(f)(X)
    close(lab.jit(lab.grad(f))(X), expected, rtol=1e-12)
    close(lab.grad(lab.jit(f))(X), expected, rtol=1e-12)
    x = lab.tensor(X, requires_grad=True)
    lab.jit(f)(x).backward()
    close(x.grad, expected, rtol=1e-12)


@each
def test_vmap_of_jit_and_jit_of_vmap(f):
    xs = np.stack([X, 2 * X, -X])
    expected = [array(f(x)) for x in xs]
    close(lab.vmap(lab.jit(f))(xs), expected, rtol=1e-12)
    close(lab.jit(lab.vmap(f))(xs), expected, rtol=1e-12)


LAYERS = {
    "grad": lambda f: lab.grad(f),
    "jvp": lambda f: lambda x: lab.jvp(f, (x,), (np.cos(X),))[1],
    "vmap": lambda f: lambda x: lab.vmap(f)(lab.stack([x, x * 1.0]))[1],
    "jit": lambda f: lab.jit(f),
}


@pytest.mark.parametrize("names", list(itertools.product(LAYERS, repeat=3)), ids="-".join)
def test_all_seven_ops_under_every_nesting_of_three_transforms(names):
    """The outermost first. What is not a number is summed, so that grad may follow."""
    f = with_axis(all_seven)
    plain, nested = [f], f
    for name in reversed(names):
        nested = total(LAYERS[name](nested))
        plain.append(reference(name, plain[-1]))
    close(nested(X), plain[-1](X), rtol=1e-5, atol=1e-7)


def total(f):
    return lambda x: lab.sum(f(x))


def reference(name, f):
    """What a layer does to a function that returns one number, by differences."""
    if name in {"jit", "vmap"}:
        return lambda x: array(f(x)).sum()
    directions = np.ones_like(X) if name == "grad" else np.cos(X)
    return lambda x: slope(f, (x,), (directions,))


def test_a_second_opinion_on_the_composition():
    noise = array(lab.random_uniform(KEY, shape=(2, 3)))

    def theirs(x):
        y = (x * x + x) @ x.T
        y = y[1:, ::-1] + y[anp.array([0, 2])]
        y = anp.where(noise > 0.3, y * noise, anp.sin(y))
        return anp.mean(anp.sum(y, axis=0)) * anp.sum(anp.tanh(x))

    f = with_axis(all_seven)
    close(f(X), theirs(X))
    close(lab.grad(f)(X), autograd.grad(theirs)(X), rtol=1e-10)
    v = np.cos(X)
    close(lab.jvp(lab.grad(f), (X,), (v,))[1], autograd.hessian_vector_product(theirs)(X, v), rtol=1e-9)
