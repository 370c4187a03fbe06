"""Random small programs that draw keys, transformed in each other, against the same programs as plain code."""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from tests.numerics import array

X, WIDE = np.array([0.63, -0.41, 1.2]), np.array([0.2, 0.9, -1.1, 0.5, -0.3])


@pytest.fixture(autouse=True, scope="module")
def what_is_here_already_is_no_garbage():
    """A trace that draws collects garbage; what other tests have left would be looked through for each program."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Source:
    """What a program draws from: two generators, a layer of its own, a seed."""

    def __init__(self, seed):
        self.layer = lab.nn.Dropout(0.3, rng=seed)
        self.rngs = np.random.default_rng(seed + 1), np.random.Generator(np.random.Philox(seed + 2)), 5

    def key(self, i):
        return lab.random_key(self.rngs[i % 3])

    def states(self):
        return [repr(rng.bit_generator.state) for rng in (*self.rngs[:2], self.layer.rng)]


def built(program, source, *, transforms):
    """A program as a function of an array; without `transforms` jit and checkpoint in it are left out."""
    kind, *parts = program
    i = parts[0] if parts and isinstance(parts[0], int) else 0
    f, *more = [built(p, source, transforms=transforms) for p in parts if isinstance(p, tuple)] or [lambda x: x]
    g = more[0] if more else f
    key = lambda: source.key(i)  # noqa: E731
    wrapped = {"jit": lab.jit, "compiled": lambda f: lab.jit(f, executor="compiled"), "checkpoint": lab.checkpoint}
    if kind in wrapped:
        return wrapped[kind](f) if transforms else f
    return {
        "x": lambda x: x,
        "sin": lambda x: lab.sin(2.0 * f(x)),
        "multiply": lambda x: f(x) * g(x),
        "after": lambda x: g(f(x)),
        "drop": lambda x: lab.dropout(f(x), key(), rate=0.4),
        "before": lambda x: _masked(key(), f(x)),
        "noise": lambda x: f(x) + lab.random_uniform(key(), shape=x.shape),
        "layer": lambda x: source.layer(f(x)),
        "unread": lambda x: (key(), f(x))[1],
        "grad": lambda x: lab.grad(lambda x: f(x).sum())(x),
        "vmap": lambda x: lab.vmap(f)(lab.stack([x, 0.5 * x])).sum(axis=0),
        "jvp": lambda x: lab.jvp(f, (x,), (lab.cos(x),))[1],
        "linear": lambda x: lab.linearize(f, x)[1](lab.cos(x)),
        "cond": lambda x: _chosen(key(), f(x), g(x)),
        "scan": lambda x: _turned(lab.stack([key(), key()]), f(x)),
    }[kind]


def _masked(key, x):
    return lab.dropout(x, key) + lab.random_uniform(key, shape=x.shape)


def _chosen(key, a, b):
    return lab.cond(a.sum() > 0.0, lambda a, b: lab.dropout(a, key) * b, lambda a, b: b, a, b)


def _turned(keys, x):
    return lab.scan(lambda c, k: (lab.dropout(lab.tanh(c) + 1.0, k), None), x, keys)[0]


def _one(kinds):
    return lambda p: st.tuples(st.sampled_from(kinds), p)


def _drawing(kinds):
    return lambda p: st.tuples(st.sampled_from(kinds), st.integers(0, 2), p)


PROGRAMS = st.recursive(
    st.just(("x",)),
    lambda p: st.one_of(
        _drawing(["drop", "before", "noise", "unread", "scan"])(p),
        _one(["sin", "layer", "grad", "vmap", "jvp", "linear", "jit", "compiled", "checkpoint"])(p),
        st.tuples(st.sampled_from(["multiply", "after"]), p, p),
        st.tuples(st.just("cond"), st.integers(0, 2), p, p),
    ),
    max_leaves=6,
)
DRAWING = PROGRAMS.filter(lambda p: any(f"'{kind}'" in repr(p) for kind in ("drop", "before", "noise", "layer")))

OUTER = {
    "itself": lambda f: f,
    "gradient": lambda f: lab.grad(lambda x: f(x).sum()),
    "second": lambda f: lab.grad(lambda x: lab.grad(lambda x: f(x).sum())(x).sum()),
    "members": lambda f: lambda x: lab.vmap(f)(lab.stack([x, 2.0 * x])),
    "gradients": lambda f: lambda x: lab.vmap(lab.grad(lambda x: f(x).sum()))(lab.stack([x, 2.0 * x])),
    "checkpoint": lab.checkpoint,
}


def same(found, expected, what):
    np.testing.assert_allclose(array(found), array(expected), rtol=1e-8, atol=1e-10, err_msg=what)


def held(program, outer, jit, *, seed=3, xs=(X, X, WIDE, X, WIDE)):
    """Hold the transformed program against the plain one, call after call, and what they have drawn by then."""
    one, two = Source(seed), Source(seed)
    plain = outer(built(program, one, transforms=False))
    other = jit(outer(built(program, two, transforms=True)))
    for n, x in enumerate(xs):
        expected, found = plain(lab.tensor(x)), other(lab.tensor(x))
        same(found, expected, f"call {n}")
        assert one.states() == two.states(), f"call {n}"


@pytest.mark.parametrize("outer", OUTER.values(), ids=OUTER)
@given(DRAWING)
@settings(max_examples=12)
def test_a_random_program_draws_under_jit_what_it_draws_as_plain_code(outer, program):
    held(program, outer, lambda f: f)
    held(program, outer, lab.jit)
    held(program, outer, lambda f: lab.jit(f, executor="parallel"))


@pytest.mark.parametrize("outer", OUTER.values(), ids=OUTER)
@given(DRAWING)
@settings(max_examples=4)
def test_a_random_program_draws_compiled_what_it_draws_as_plain_code(outer, program):
    held(program, outer, lambda f: lab.jit(f, executor="compiled"))


@given(DRAWING)
@settings(max_examples=25)
def test_a_random_program_that_is_recorded_goes_back_through_the_masks_it_drew(program):
    for around in (lab.jit, lab.checkpoint, lambda f: lab.checkpoint(lab.jit(f))):
        one, two = Source(3), Source(3)
        plain, other = built(program, one, transforms=False), around(built(program, two, transforms=True))
        for _ in range(3):
            a, b = (lab.tensor(X, requires_grad=True) for _ in range(2))
            y, z = plain(a), other(b)
            same(z, y, "value")
            if y.node is not None:
                y.sum().backward()
                z.sum().backward()
                same(b.grad, a.grad, "gradient")
            assert one.states() == two.states()


@given(DRAWING)
@settings(max_examples=25)
def test_the_graph_of_a_random_program_draws_nothing_and_its_runs_what_the_program_draws(program):
    one, two = Source(3), Source(3)
    before = two.states()
    graph = lab.make_graph(built(program, two, transforms=True))(X)
    lab.graph.verify(graph)
    assert two.states() == before
    plain = built(program, one, transforms=False)
    for _ in range(2):
        (found,) = lab.graph.execute.run(graph, [lab.tensor(X), *graph.captured])
        same(found, plain(lab.tensor(X)), "a run")
        assert one.states() == two.states()
