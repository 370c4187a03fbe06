"""jacfwd, jacrev, hessian, hvp and linearize: closed forms, containers, each other, and what they refuse."""

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab.errors import ArgumentError, ShapeError, TracerLeakError, TransformError
from tests.numerics import array, close, slope

JACOBIANS = [lab.jacfwd, lab.jacrev]
A = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])


def wave(x):
    return lab.sin(A @ x) * x[0]


def wave_jacobian(x):
    return np.cos(A @ x)[:, None] * A * x[0] + np.outer(np.sin(A @ x), [1.0, 0.0, 0.0])


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_a_jacobian_has_the_closed_form_and_the_shape_of_output_by_input(jacobian):
    x = np.array([0.3, -1.0, 2.0])
    close(jacobian(wave)(x), wave_jacobian(x))
    close(jacobian(lambda x: x)(2.0), 1.0)  # a number by a number is a number
    close(jacobian(lambda x: lab.sum(x))(x), np.ones(3))
    close(jacobian(lambda s: s * x)(2.0), x)
    close(jacobian(lambda m: m.T)(np.ones((2, 1))), np.eye(2).reshape(1, 2, 2, 1))
    close(jacobian(lambda x: lab.tensor(1.0))(x), np.zeros(3))
    assert jacobian(wave)(x.astype("float32")).shape == (2, 3)


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_containers_nest_the_arguments_inside_the_results(jacobian):
    f = lambda p, s: {"y": (p["a"] * s, p["b"].sum())}  # noqa: E731
    p = {"a": np.array([1.0, 2.0]), "b": np.ones((2, 1))}
    by_p, by_s = jacobian(f, argnums=(0, 1))(p, 3.0)["y"][0]
    close(by_p["a"], 3.0 * np.eye(2))
    close(by_p["b"], np.zeros((2, 2, 1)))
    close(by_s, p["a"])
    close(jacobian(f, argnums=1)(p, 3.0)["y"][0], p["a"])
    close(jacobian(f)(p, 3.0)["y"][1]["b"], np.ones((2, 1)))
    close(jacobian(lambda x, *, by: by * x)(2.0, by=5.0), 5.0)


@pytest.mark.parametrize("jacobian", [*JACOBIANS, lab.hessian])
def test_auxiliary_output_comes_along_as_it_is(jacobian):
    slopes, aux = jacobian(lambda x: (x**2, {"twice": 2.0 * x, "text": "kept"}), has_aux=True)(3.0)
    close(slopes, 2.0 if jacobian is lab.hessian else 6.0)
    assert aux["text"] == "kept"
    close(aux["twice"] * 1.0, 6.0)  # no leaked tracer


def test_the_function_runs_once_for_a_whole_jacobian():
    calls = []
    for jacobian in JACOBIANS:
        calls.clear()
        jacobian(lambda x, y: calls.append(1) or x * y, argnums=(0, 1))(np.ones(4), np.ones(4))
        assert calls == [1]


def test_autograd_of_hips_agrees():
    x, w, v = np.array([0.3, -1.0, 2.0]), np.linspace(-1.0, 1.0, 6).reshape(2, 3), np.array([1.0, 0.5, -2.0])

    def network(np_like):
        return lambda x: np_like.sum(np_like.tanh(np_like.dot(w, x)) ** 2) * np_like.exp(x[0]) + np_like.sum(x**3)

    ours, theirs = network(np), network(anp)  # NumPy's names work on our tensors
    close(lab.jacrev(ours)(x), autograd.grad(theirs)(x))
    close(lab.hessian(ours)(x), autograd.hessian(theirs)(x))
    close(lab.hvp(ours, (x,), (v,)), autograd.hessian_vector_product(theirs)(x, v))
    close(lab.jacfwd(lab.grad(ours))(x), autograd.jacobian(autograd.grad(theirs))(x))


@given(st.lists(st.integers(0, 3), max_size=2), st.lists(st.integers(0, 3), max_size=2))
@settings(max_examples=15, deadline=None)
def test_forward_and_reverse_jacobians_agree_for_any_shapes(shape_in, shape_out):
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(int(np.prod(shape_out)), int(np.prod(shape_in))))
    f = lambda x: lab.tanh(mixing @ x.reshape(-1)).reshape(shape_out)  # noqa: E731
    x = rng.normal(size=shape_in)
    forward = lab.jacfwd(f)(x)
    close(forward, array(lab.jacrev(f)(x)))
    slopes = (1.0 - np.tanh(mixing @ x.reshape(-1)) ** 2)[:, None] * mixing
    close(forward, slopes.reshape((*shape_out, *shape_in)))


def test_the_hessian_of_a_form_is_symmetric_and_exact():
    q = np.array([[2.0, 1.0], [1.0, -3.0]])
    f = lambda x: 0.5 * x @ (q @ x) + lab.sum(x**3)  # noqa: E731
    x = np.array([0.7, -0.2])
    close(lab.hessian(f)(x), q + np.diag(6.0 * x))
    close(lab.jacrev(lab.jacfwd(f))(x), q + np.diag(6.0 * x))
    close(lab.jit(lab.hessian(f))(x), q + np.diag(6.0 * x))
    close(lab.vmap(lab.hessian(f))(np.stack([x, 2.0 * x])), [q + np.diag(6.0 * x), q + np.diag(12.0 * x)])
    both = lab.hessian(lambda x, y: x * y**2, argnums=(0, 1))(2.0, 3.0)
    close([[array(e) for e in row] for row in both], [[0.0, 6.0], [6.0, 4.0]])


def test_a_hessian_vector_product_is_the_hessian_times_the_vector():
    f = lambda p, s: lab.sum(lab.exp(p["w"]) * p["w"]) * s**2  # noqa: E731
    p, v = {"w": np.array([0.1, 0.5, -1.0])}, {"w": np.array([1.0, 0.0, 2.0])}
    full = array(lab.hessian(f)(p, 2.0)["w"]["w"])
    close(lab.hvp(f, (p, 2.0), (v,))["w"], full @ v["w"])
    by_p, by_s = lab.hvp(f, (p, 2.0), (v, 0.0), argnums=(0, 1))
    close(by_p["w"], full @ v["w"])
    close(by_s, slope(lambda s: lab.grad(f)(p, s)["w"] @ v["w"], (2.0,), (1.0,)), rtol=1e-7)


def test_linearize_runs_once_and_its_graph_is_linear():
    calls = []

    def f(x, y):
        calls.append(1)
        return {"z": lab.sin(x) * y if x[0] > 0.0 else x}  # may look at numbers

    x, y = np.array([0.5, 1.0]), 3.0
    out, push = lab.linearize(f, x, y)
    close(out["z"], np.sin(x) * y)
    for direction in (np.ones(2), np.array([0.0, -2.0])):
        close(push(direction, 1.0)["z"], np.cos(x) * direction * y + np.sin(x))
    assert calls == [1]
    assert not {"sin", "cos"} & {e.op.name for e in push.graph.equations}  # the numbers are in it, not their making
    close(lab.vmap(lambda t: push(t, 0.0)["z"])(np.eye(2)), np.diag(np.cos(x) * y))
    close(lab.grad(lambda t: lab.sum(push(t, t[0])["z"]))(x), np.cos(x) * y + [np.sin(x).sum(), 0.0])
    value, push, aux = lab.linearize(lambda x: (x * x, "kept"), 3.0, has_aux=True)
    close(push(2.0), 12.0)
    close(value, 9.0)
    assert aux == "kept"


def test_linearize_inside_other_transforms():
    f = lambda x: lab.linearize(lambda y: y**3, x)[1](1.0)  # noqa: E731 - 3 x^2
    close(lab.grad(f)(2.0), 12.0)
    close(lab.vmap(f)(np.array([1.0, 2.0])), [3.0, 12.0])
    close(lab.jit(f)(2.0), 12.0)
    held = []
    lab.grad(lambda x: held.append(lab.linearize(lambda y: x * y, 1.0)[1]) or x)(2.0)
    with pytest.raises(TracerLeakError):
        held[0](1.0)


@pytest.mark.parametrize(
    ("call", "kind", "problem"),
    [
        (lambda: lab.jacfwd(3), ArgumentError, "jacfwd needs a function"),
        (lambda: lab.jacrev(3), ArgumentError, "jacrev needs a function"),
        (lambda: lab.hessian(3), ArgumentError, "hessian needs a function"),
        (lambda: lab.hvp(3, (), ()), ArgumentError, "hvp needs a function"),
        (lambda: lab.linearize(3, 1.0), ArgumentError, "linearize needs a function"),
        (lambda: lab.jacfwd(lambda x: x)(1), TransformError, "jacfwd needs float inputs"),
        (lambda: lab.jacrev(lambda x: x)(1), TransformError, "jacrev needs float inputs"),
        (lambda: lab.linearize(lambda x: x, 1), TransformError, "linearize needs float inputs"),
        (lambda: lab.jacfwd(lambda x: x > 0)(1.0), TransformError, "jacfwd needs a function that returns floats"),
        (lambda: lab.jacrev(lambda x: x > 0)(1.0), TransformError, "jacrev needs a function that returns floats"),
        (lambda: lab.jacfwd(lambda x: x, argnums=1)(1.0), ArgumentError, "argnums names an argument"),
        (lambda: lab.hvp(lambda x: x, 1.0, 1.0), ArgumentError, "hvp needs a tuple of primals"),
        (lambda: lab.hvp(lambda x: x, (1.0,), (1.0, 2.0)), ArgumentError, "hvp needs a tuple of primals"),
        (lambda: lab.linearize(lambda x: x, 1.0)[1](np.ones(2)), ShapeError, "a tangent has the shape of its value"),
        (lambda: lab.linearize(lambda x: x, 1.0)[1](), ArgumentError, "containers differ in structure"),
    ],
)
def test_misuse_is_explained(call, kind, problem):
    with pytest.raises(kind, match=problem) as caught:
        call()
    assert caught.value.given
    assert caught.value.hint
