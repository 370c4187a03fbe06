"""custom_vjp and custom_jvp: their rule is used on every tape and under every transform, and checked."""

import gc
import weakref

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, DTypeError, ShapeError, TracerLeakError, TransformError, UnsupportedError
from tests.numerics import array, close


def by_vjp(f, fwd, bwd):
    return lab.custom_vjp(f).defvjp(fwd, bwd)


def by_jvp(f, rule):
    made = lab.custom_jvp(f)
    made.defjvp(rule)
    return made


def sine_by_vjp():
    """The sine, from a forward whose ops nobody should differentiate."""
    def fwd(x):
        return lab.stop_gradient(lab.sin(x)), x

    return by_vjp(lambda x: lab.stop_gradient(lab.sin(x)), fwd, lambda x, ct: (ct * lab.cos(x),))


def sine_by_jvp():
    return by_jvp(
        lambda x: lab.stop_gradient(lab.sin(x)),
        lambda p, t: (lab.stop_gradient(lab.sin(p[0])), lab.cos(p[0]) * t[0]),
    )


SINES = {"vjp": sine_by_vjp, "jvp": sine_by_jvp}
X = np.array([0.3, -1.2, 2.0])
REVERSE = {
    "grad": lambda f: lab.grad(lambda x: f(x).sum()),
    "grad of grad": lambda f: lab.grad(lambda x: lab.grad(lambda y: f(y).sum())(x).sum()),
    "vmap of grad": lambda f: lab.vmap(lab.grad(f)),
    "grad of vmap": lambda f: lab.grad(lambda x: lab.vmap(f)(x).sum()),
    "jacrev": lambda f: lab.jacrev(f),
    "jit of grad": lambda f: lab.jit(lab.grad(lambda x: f(x).sum())),
    "grad of jit": lambda f: lab.grad(lambda x: lab.jit(f)(x).sum()),
    "vmap of jit of grad": lambda f: lab.vmap(lab.jit(lab.grad(f))),
    "grad of vmap of jit": lambda f: lab.grad(lambda x: lab.vmap(lab.jit(f))(x).sum()),
    "checkpoint": lambda f: lab.grad(lambda x: lab.checkpoint(f)(x).sum()),
    "second through vmap": lambda f: lab.grad(lambda x: lab.vmap(lab.grad(f))(x).sum()),
    "vmap of second": lambda f: lab.vmap(lab.grad(lab.grad(f))),
    "jvp of grad": lambda f: lambda x: lab.jvp(lab.grad(lambda y: f(y).sum()), (x,), (np.ones(3),))[1],
    "vmap of vmap": lambda f: lambda x: lab.grad(lambda y: lab.vmap(lab.vmap(f))(lab.stack([y, y])).sum())(x),
}
FORWARD = {
    "jvp": lambda f: lambda x: lab.jvp(f, (x,), (np.ones(3),))[1],
    "jvp of jvp": lambda f: lambda x: lab.jvp(lambda y: lab.jvp(f, (y,), (np.ones(3),))[1], (x,), (np.ones(3),))[1],
    "grad of jvp": lambda f: lab.grad(lambda x: lab.jvp(f, (x,), (np.ones(3),))[1].sum()),
    "jacfwd": lambda f: lab.jacfwd(f),
    "hessian": lambda f: lab.hessian(lambda x: f(x).sum()),
    "linearize": lambda f: lambda x: lab.linearize(f, x)[1](np.ones(3)),
    "jvp of vmap": lambda f: lambda x: lab.jvp(lab.vmap(f), (x,), (np.ones(3),))[1],
    "vmap of jvp": lambda f: lab.vmap(lambda x: lab.jvp(f, (x,), (1.0,))[1]),
    "jvp of jit": lambda f: lambda x: lab.jvp(lab.jit(f), (x,), (np.ones(3),))[1],
    "jit of jvp": lambda f: lab.jit(lambda x: lab.jvp(f, (x,), (np.ones(3),))[1]),
}


@pytest.mark.parametrize("sine", SINES.values(), ids=SINES)
@pytest.mark.parametrize("nesting", REVERSE.values(), ids=REVERSE)
def test_reverse_mode_uses_the_rule(nesting, sine):
    close(nesting(sine())(X), array(nesting(lab.sin)(X)))


@pytest.mark.parametrize("nesting", FORWARD.values(), ids=FORWARD)
def test_forward_mode_uses_the_rule_of_custom_jvp(nesting):
    close(nesting(sine_by_jvp())(X), array(nesting(lab.sin)(X)))


@pytest.mark.parametrize("sine", SINES.values(), ids=SINES)
def test_the_plain_tape_uses_the_rule_at_first_and_second_order(sine):
    x = lab.tensor(X, requires_grad=True)
    y = sine()(x * 2.0)
    assert y.requires_grad
    y.sum().backward(retain_graph=True)
    close(x.grad, 2.0 * np.cos(2.0 * X))
    x.zero_grad()
    y.sum().backward(create_graph=True)
    first = x.grad
    x.zero_grad()
    first.sum().backward()
    close(x.grad, -4.0 * np.sin(2.0 * X))
    with lab.no_grad():
        assert not sine()(x).requires_grad
    seen = []
    x.zero_grad()
    y = x * 2.0
    y.register_hook(seen.append)
    sine()(y).sum().backward()
    close(seen[0], np.cos(2.0 * X))


def test_a_rule_may_be_wrong_on_purpose():
    reversed_ = by_vjp(lambda x, by: x, lambda x, by: (x, by), lambda by, ct: (-by * ct, None))
    close(lab.grad(lambda x: reversed_(x, 3.0) ** 2)(2.0), -12.0)
    close(lab.grad(reversed_, argnums=(0, 1))(2.0, 3.0)[1], 0.0)


def two(p, n):
    return {"sum": p["a"] + p["b"], "n": p["a"].astype("float32") * 2.0, "i": n + 1}


def two_by_vjp():
    def bwd(_kept, ct):
        assert ct["i"].shape == ()
        return {"a": 10.0 * ct["sum"] + ct["n"].astype(float), "b": ct["sum"].sum()}, None

    return by_vjp(two, lambda p, n: (two(p, n), None), bwd)


def two_by_jvp():
    def rule(primals, tangents):
        t = tangents[0]
        return two(*primals), {"sum": 10.0 * t["a"] + t["b"], "n": t["a"].astype("float32"), "i": tangents[1]}

    return by_jvp(two, rule)


@pytest.mark.parametrize("f", [two_by_vjp, two_by_jvp])
def test_containers_integers_broadcasting_and_several_results_of_several_dtypes(f):
    p = {"a": np.array([1.0, 2.0]), "b": np.array(3.0)}
    loss = lambda f: lambda p: f["sum"][0] * 2.0 + f["n"].sum().astype(float)  # noqa: E731

    made = f()

    def total(p):
        out = made(p, 7)
        assert out["i"].item() == 8
        assert out["n"].dtype == np.float32
        return loss(out)(p)

    g = lab.grad(total)(p)
    close(g["a"], [21.0, 1.0])
    close(g["b"], 2.0)
    leaves = {k: lab.tensor(v, requires_grad=True) for k, v in p.items()}
    total(leaves).backward()
    close(leaves["a"].grad, [21.0, 1.0])
    close(leaves["b"].grad, 2.0)
    mapped = lab.vmap(lambda a, b: lab.grad(lambda a: loss(made({"a": a, "b": b}, 1))(p))(a), in_axes=(0, None))
    close(mapped(np.ones((3, 2)), 1.0), np.broadcast_to([21.0, 1.0], (3, 2)))
    shared = lab.grad(lambda b: lab.vmap(lambda a: loss(made({"a": a, "b": b}, 1))(p))(np.ones((3, 2))).sum())
    close(shared(2.0), 6.0)  # an operand that members share gets the sum of what each sends
    jitted = lab.jit(lambda p: loss(made(p, 7))(p))
    close(jitted(p), 15.0 - 1.0)
    close(lab.grad(jitted)(p)["a"], [21.0, 1.0])


def test_a_graph_holds_the_call_as_one_equation_which_prints_and_replays():
    graph = lab.make_graph(sine_by_vjp())(1.0)
    assert [e.op.name for e in graph.equations] == ["custom <lambda>"]
    assert "custom <lambda>(a)" in str(graph)
    with lab.record() as rec:
        x = lab.tensor(1.0, requires_grad=True)
        sine_by_jvp()(x).backward()
    assert "custom <lambda>" in {e.op for e in rec if hasattr(e, "op")}


def test_the_forward_runs_once_and_only_where_somebody_differentiates():
    calls = []
    f = by_vjp(lambda x: calls.append("f") or x * x,
               lambda x: calls.append("fwd") or (x * x, x),
               lambda x, ct: (calls.append("bwd") or 2.0 * x * ct,))  # fmt: skip
    f(2.0)
    assert calls == ["f"]
    calls.clear()
    lab.grad(f)(2.0)
    assert calls == ["fwd", "bwd"]
    calls.clear()
    lab.vmap(lab.grad(f))(X)
    assert calls == ["fwd", "bwd"]


def test_what_was_kept_is_freed_by_the_walk():
    big = np.ones(1000)
    alive = weakref.ref(big)
    f = by_vjp(lambda x: x, lambda x, kept=[big]: (x, kept.pop()), lambda kept, ct: (ct,))
    x = lab.tensor(1.0, requires_grad=True)
    y = f(x) * 1.0
    del big
    assert alive() is not None
    y.backward()
    gc.collect()
    assert alive() is None
    assert y.requires_grad


def test_collectives_inside_meet_the_members_of_their_axis():
    share = by_vjp(
        lambda x: x / lab.all_reduce(x, axis_name="i"),
        lambda x: (x / lab.all_reduce(x, axis_name="i"), lab.all_reduce(x, axis_name="i")),
        lambda total, ct: (lab.all_reduce(ct, axis_name="i") / total,),
    )
    x = np.array([1.0, 3.0])
    close(lab.vmap(share, axis_name="i")(x), x / 4.0)
    close(lab.vmap(lab.grad(share), axis_name="i")(x), [0.5, 0.5])
    close(lab.grad(lambda x: lab.vmap(share, axis_name="i")(x)[0])(x), [0.25, 0.25])


def test_a_rule_can_be_called_with_keywords_and_defaults_and_keeps_its_name():
    @lab.custom_vjp
    def scaled(x, by=2.0):
        """Documented."""
        return x * by

    scaled.defvjp(lambda x, by: (x * by, (x, by)), lambda kept, ct: (ct * kept[1], None))
    close(lab.grad(lambda x: scaled(x))(3.0), 2.0)
    close(lab.grad(lambda x: scaled(by=5.0, x=x))(3.0), 5.0)
    assert scaled.__doc__ == "Documented."
    assert "scaled(x, by=2.0)" in repr(scaled)
    assert scaled(np.float32(3.0)).dtype == np.float32  # a Python number stays weak


W = lab.tensor(2.0, requires_grad=True)
SHAPE2 = np.ones(2)


def bwd_returns(value):
    return by_vjp(lambda x, y: x * y, lambda x, y: (x * y, None), lambda kept, ct: value)


def fwd_returns(value):
    return by_vjp(lambda x: x, lambda x: value, lambda kept, ct: (ct,))


def rule_returns(value):
    return by_jvp(lambda x: x, lambda p, t: value)


@pytest.mark.parametrize(
    ("call", "kind", "problem"),
    [
        (lambda: lab.custom_vjp(3), ArgumentError, "custom_vjp needs a function"),
        (lambda: lab.custom_jvp(3), ArgumentError, "custom_jvp needs a function"),
        (lambda: lab.custom_vjp(lab.sin).defvjp(3, 4), ArgumentError, "defvjp needs a function"),
        (lambda: lab.custom_vjp(lambda x: x)(1.0), TransformError, "has no rule yet"),
        (lambda: lab.custom_jvp(lambda x: x)(1.0), TransformError, "has no rule yet"),
        (lambda: sine_by_vjp()(), ArgumentError, "<lambda> cannot be called like this"),
        (lambda: sine_by_vjp()("a"), UnsupportedError, "custom_vjp takes numbers only"),
        (lambda: lab.jvp(sine_by_vjp(), (1.0,), (1.0,)), TransformError, "has a rule for reverse mode only"),
        (lambda: lab.grad(fwd_returns(1.0))(1.0), ArgumentError, "fwd of <lambda> must return a pair"),
        (lambda: lab.grad(bwd_returns(1.0))(1.0, 2.0), ArgumentError, "bwd of <lambda> must return a tuple"),
        (lambda: lab.grad(bwd_returns((1.0,)))(1.0, 2.0), ArgumentError, "bwd of <lambda> must return a tuple"),
        (lambda: lab.grad(bwd_returns((SHAPE2, None)))(1.0, 2.0), ShapeError, "a gradient for x of another shape"),
        (lambda: lab.grad(bwd_returns(({"a": 1.0}, None)))(1.0, 2.0), ArgumentError, "in the containers of its arg"),
        (lambda: lab.grad(bwd_returns(("text", None)))(1.0, 2.0), DTypeError, "a gradient for x that is no number"),
        (lambda: lab.jvp(rule_returns(1.0), (1.0,), (1.0,)), ArgumentError, "the rule of <lambda> must return a pair"),
        (lambda: lab.jvp(rule_returns((1.0, SHAPE2)), (1.0,), (1.0,)), ShapeError, "a tangent of another shape"),
        (lambda: lab.jvp(rule_returns((1.0, (1.0, 1.0))), (1.0,), (1.0,)), ArgumentError, "tangent in the containers"),
        (lambda: lab.grad(rule_returns((1.0, SHAPE2)))(1.0), ShapeError, "a tangent of another shape"),
        (lambda: by_vjp(lambda *, x: x, lab.sin, lab.sin)(x=1.0), ArgumentError, "its arguments are positional"),
        (lambda: by_vjp(lambda x: x * W, lambda x: (x * W, None), lab.sin)(lab.tensor(1.0, requires_grad=True)),
         TransformError, "uses a value that is not among its arguments"),
        (lambda: lab.grad(lambda w: by_vjp(lab.sin, lambda x: (x * w, None), lab.sin)(w))(1.0),
         TransformError, "uses a value that is not among its arguments"),
        (lambda: lab.jvp(lambda w: by_jvp(lab.sin, lambda p, t: (p[0] * w, t[0]))(w), (1.0,), (1.0,)),
         TransformError, "uses a value that is not among its arguments"),
        (lambda: lab.jit(lambda w: by_vjp(lambda x: x * w, lab.sin, lab.sin)(w))(1.0),
         TransformError, "uses a value that is not among its arguments"),
    ],
)  # fmt: skip
def test_misuse_is_explained(call, kind, problem):
    with pytest.raises(kind, match=problem) as caught:
        call()
    assert caught.value.given
    assert caught.value.hint


def test_tracers_that_a_rule_lets_out_are_refused():
    held = []
    f = by_vjp(lambda x: x, lambda x: (held.append(x) or x, x), lambda x, ct: (held.append(ct) or ct * x,))
    lab.grad(lambda x: lab.vmap(lambda y: f(y) * y)(x).sum())(X)
    assert len(held) == 2
    for leaked in held:
        with pytest.raises(TracerLeakError):
            leaked * 2.0
