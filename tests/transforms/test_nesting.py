"""Every transform inside every other, on a function with known derivatives: the nth of x e^x is (x + n) e^x."""

import itertools

import numpy as np
import pytest

import lab
from lab.errors import TracerLeakError
from tests.numerics import array, close


def f(x):
    return x * lab.exp(x)


def by_custom_jvp(f):
    made = lab.custom_jvp(f)
    made.defjvp(lambda primals, tangents: lab.jvp(f, primals, tangents))
    return made


def by_custom_vjp(f):
    made = lab.custom_vjp(f)
    return made.defvjp(lambda x: lab.vjp(f, x), lambda back, ct: back(ct))


# For each transform of functions of one number: how many times it differentiates, and itself.
TRANSFORMS = {
    "grad": (1, lambda f: lab.grad(f)),
    "value_and_grad": (1, lambda f: lambda x: lab.value_and_grad(f)(x)[1]),
    "vjp": (1, lambda f: lambda x: lab.vjp(f, x)[1](1.0)[0]),
    "jvp": (1, lambda f: lambda x: lab.jvp(f, (x,), (1.0,))[1]),
    "linearize": (1, lambda f: lambda x: lab.linearize(f, x)[1](1.0)),
    "jacfwd": (1, lambda f: lab.jacfwd(f)),
    "jacrev": (1, lambda f: lab.jacrev(f)),
    "hessian": (2, lambda f: lab.hessian(f)),
    "hvp": (2, lambda f: lambda x: lab.hvp(f, (x,), (1.0,))),
    "vmap": (0, lambda f: lambda x: lab.vmap(f)(lab.stack([x, x + 1.0]))[0]),
    "vmap of nothing": (0, lambda f: lambda x: lab.vmap(lambda _: f(x))(np.zeros(2))[1]),
    "jit": (0, lambda f: lab.jit(f)),
    "checkpoint": (0, lambda f: lab.checkpoint(f)),
    "custom_jvp": (0, by_custom_jvp),
}
REVERSE_ONLY = {"custom_vjp": (0, by_custom_vjp)}
REVERSE = ("grad", "vjp", "jacrev", "vmap", "jit", "checkpoint", "custom_vjp")


def check(names, x=0.7):
    order, g = 0, f
    for name in reversed(names):
        n, transform = (TRANSFORMS | REVERSE_ONLY)[name]
        order, g = order + n, transform(g)
    found = array(g(x))
    assert np.allclose(found, (x + order) * np.exp(x), rtol=1e-9), " of ".join(names)


@pytest.mark.parametrize("outer", TRANSFORMS)
def test_every_pair_of_transforms_is_right(outer):
    for inner in TRANSFORMS:
        check((outer, inner))


@pytest.mark.parametrize("outer", ["grad", "jvp", "vmap", "jit", "checkpoint", "custom_jvp"])
def test_triples_of_transforms_are_right(outer):
    for middle, inner in itertools.product(("grad", "jvp", "vmap", "jit", "checkpoint", "custom_jvp"), repeat=2):
        check((outer, middle, inner))


@pytest.mark.parametrize("outer", REVERSE)
def test_a_custom_vjp_nests_in_everything_that_is_reverse(outer):
    for middle in REVERSE:
        check((outer, middle, "custom_vjp"))
        check((outer, "custom_vjp", middle))


def test_perturbations_are_not_confused_by_the_newer_transforms():
    d = lambda f: lambda x: lab.jacfwd(f)(x)  # noqa: E731
    for inner in (lab.jacfwd, lab.jacrev, lab.grad, lambda f: lambda y: lab.linearize(f, y)[1](1.0)):
        close(d(lambda x, inner=inner: x * inner(lambda y: x + y)(1.0))(1.0), 1.0)
        close(lab.jacrev(lambda x, inner=inner: x * inner(lambda y: x * y)(2.0))(3.0), 6.0)
        close(lab.grad(lambda x, inner=inner: x * inner(lambda y: lab.checkpoint(lambda z: x * z)(y))(2.0))(3.0), 6.0)
    product = lab.custom_jvp(lambda a, b: a * b)
    product.defjvp(lambda p, t: (p[0] * p[1], t[0] * p[1] + p[0] * t[1]))
    close(lab.grad(lambda x: x * lab.grad(lambda y: product(x, y))(2.0))(3.0), 6.0)
    close(lab.jvp(lambda x: x * lab.jvp(lambda y: product(x, y), (2.0,), (1.0,))[1], (3.0,), (1.0,))[1], 6.0)
    close(lab.vmap(lambda x: lab.jacfwd(lambda y: product(x, y))(1.0))(np.arange(3.0)), [0.0, 1.0, 2.0])


def test_values_that_outlive_the_newer_transforms_are_refused():
    held = []

    def g(x):
        held.append(x)
        return lab.exp(x)

    for transform in (lab.jacfwd, lab.jacrev, lab.hessian, lambda f: lambda x: lab.hvp(f, (x,), (1.0,)),
                      lambda f: lambda x: lab.linearize(f, x), lambda f: lab.grad(lab.checkpoint(f)),
                      lambda f: lab.grad(by_custom_jvp(f))):  # fmt: skip
        held.clear()
        transform(g)(1.0)
        with pytest.raises(TracerLeakError):
            held[0] * 2.0
