"""Random small programs with branches and loops inside each other, against the same programs in Python's own."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from tests.numerics import array


class Plain:
    """Python's if, while and for."""

    @staticmethod
    def cond(a, b, then, otherwise):
        return then() if number(a) > number(b) else otherwise()

    @staticmethod
    def loop(n, init, body):
        k, c = 0, init
        while k < n and number(c) < 0.9:
            k, c = k + 1, body(c)
        return c

    @staticmethod
    def scan(rows, init, body):
        c, total = init, 0.0
        for row in rows:
            c, y = body(c, row)
            total = total + y
        return c + total


class Lab:
    """The lab's."""

    @staticmethod
    def cond(a, b, then, otherwise):
        return lab.cond(lab.subtract(a, b) > 0.0, then, otherwise)

    @staticmethod
    def loop(n, init, body):
        return lab.while_loop(
            lambda s: lab.logical_and(s[0] < n, s[1] < 0.9), lambda s: (s[0] + 1, body(s[1])), (0, init)
        )[1]

    @staticmethod
    def scan(rows, init, body):
        c, ys = lab.scan(body, init, np.array(rows))
        return c + ys.sum()


class Bounded(Lab):
    """The lab's, with loops of a known most."""

    @staticmethod
    def loop(n, init, body):
        return lab.while_loop(lambda c: c < 0.9, body, init, max_steps=n)


def number(x):
    return float(x.detach()) if isinstance(x, lab.Tensor) else float(x)


def evaluated(program, env, way):
    """The value of a program for values of its variables, by one of the classes above."""
    kind, *parts = program
    sub = lambda p, *more: evaluated(p, (*env, *more), way)  # noqa: E731
    if kind == "variable":
        return env[parts[0] % len(env)]
    if kind == "number":
        return parts[0] + 0.0 * env[0]
    if kind == "sin":
        return lab.sin(2.0 * sub(parts[0]))
    if kind == "multiply":
        return sub(parts[0]) * sub(parts[1])
    if kind == "add":
        return 0.5 * sub(parts[0]) + sub(parts[1])
    if kind == "cond":
        a, b, then, otherwise = parts
        return way.cond(sub(a), sub(b), lambda: sub(then), lambda: sub(otherwise))
    if kind == "loop":
        n, init, body = parts
        return way.loop(n, lab.tanh(sub(init)), lambda c: c + 0.2 + 0.1 * lab.tanh(sub(body, c)))
    rows, init, carry, y = parts
    return way.scan(rows, lab.tanh(sub(init)), lambda c, row: (lab.tanh(sub(carry, c, row)), sub(y, c, row)))


NUMBERS = st.sampled_from([-0.7, 0.4, 1.3])
LEAVES = st.one_of(st.tuples(st.just("variable"), st.integers(0, 7)), st.tuples(st.just("number"), NUMBERS))
PROGRAMS = st.recursive(
    LEAVES,
    lambda p: st.one_of(
        st.tuples(st.just("sin"), p),
        st.tuples(st.just("multiply"), p, p),
        st.tuples(st.just("add"), p, p),
        st.tuples(st.just("cond"), p, p, p, p),
        st.tuples(st.just("loop"), st.integers(0, 3), p, p),
        st.tuples(st.just("scan"), st.lists(NUMBERS, min_size=1, max_size=3), p, p, p),
    ),
    max_leaves=10,
)
HOLDING = PROGRAMS.filter(lambda p: any(f"'{kind}'" in repr(p) for kind in ("cond", "loop", "scan")))
X = np.array([0.63, -0.41])
V = np.array([1.1, 0.3])


def same(found, expected, what):
    np.testing.assert_allclose(array(found), array(expected), rtol=1e-8, atol=1e-10, err_msg=what)


def of(program, way):
    return lambda x: evaluated(program, (x[0], x[1]), way)


@given(HOLDING)
@settings(max_examples=25)
def test_a_random_program_has_the_value_and_the_derivatives_of_plain_code(program):
    f, g, h = of(program, Plain), of(program, Lab), of(program, Bounded)
    x = lab.tensor(X)
    along = lambda f: lambda x: lab.jvp(f, (x,), (V,))[1]  # noqa: E731
    same(lab.jit(g)(X), f(x), "jit")
    for loops in (g, h):
        same(lab.grad(loops)(X), lab.grad(f)(x), "grad")
        same(lab.jit(lab.grad(loops))(X), lab.grad(f)(x), "jit of grad")
        same(lab.grad(lab.jit(loops))(X), lab.grad(f)(x), "grad of jit")
        same(lab.jit(along(loops))(X), along(f)(x), "jit of jvp")


@given(HOLDING)
@settings(max_examples=6)
def test_a_random_program_has_the_second_derivatives_of_plain_code_for_each_member(program):
    f, g, h = of(program, Plain), of(program, Lab), of(program, Bounded)
    xs = np.array([X, [0.2, 0.9], [-0.8, 0.1]])
    slopes = np.stack([array(lab.grad(f)(lab.tensor(x))) for x in xs])
    curves = np.stack([array(lab.hessian(f)(lab.tensor(x))) for x in xs])
    for loops in (g, h):
        same(lab.jit(lab.vmap(lab.grad(loops)))(xs), slopes, "jit of vmap of grad")
        same(lab.vmap(lab.grad(lab.jit(loops)))(xs), slopes, "vmap of grad of jit")
        total = lambda xs, loops=loops: lab.vmap(loops)(xs).sum()  # noqa: E731
        same(lab.jit(lab.grad(total))(xs), slopes, "jit of grad of vmap")
        same(lab.jit(lab.hessian(loops))(X), curves[0], "jit of hessian")
        same(lab.jit(lab.jacrev(lab.grad(loops)))(X), curves[0], "jit of reverse over reverse")
        same(lab.jit(lab.vmap(lab.hessian(loops)))(xs), curves, "jit of vmap of hessian")
