"""Numeric derivatives: their error is what theory says, and what they cannot do is refused."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, GradientError, TransformError
from tests.numerics import array, close

TOLERANCE = {"forward": 1e-6, "central": 1e-9, "richardson": 1e-11, "complex": 1e-14}


def f(p):
    return lab.sum(lab.exp(p["a"]) * p["a"]) / p["b"][0]


P = {"a": np.array([[0.3, -0.8]]), "b": [2.0]}


@pytest.mark.parametrize("method", TOLERANCE)
def test_each_method_is_as_exact_as_its_order_in_containers(method):
    found, expected = lab.numeric_gradient(f, P, method), lab.grad(f)(P)
    close(found["a"], array(expected["a"]), rtol=TOLERANCE[method])
    close(found["b"][0], array(expected["b"][0]), rtol=TOLERANCE[method])
    x = np.array([0.1, 2.0, 3.0])
    jacobian = lab.numeric_jacobian(lambda x: np.sin(x)[:, None] * np.array([1.0, 2.0]), x, method)
    close(jacobian, np.einsum("ik,j->ijk", np.diag(np.cos(x)), [1.0, 2.0]), TOLERANCE[method], 1e-7)


def test_the_error_falls_with_the_order_of_the_method_until_rounding_rises():
    def error(method, h):
        return abs(float(lab.numeric_gradient(np.exp, 1.0, method, h)) - np.e)

    assert error("forward", 1e-2) / error("forward", 1e-3) == pytest.approx(10.0, rel=0.1)
    assert error("central", 1e-2) / error("central", 1e-3) == pytest.approx(100.0, rel=0.1)
    assert error("richardson", 1e-1) / error("richardson", 1e-2) == pytest.approx(10_000.0, rel=0.1)
    assert error("central", 1e-12) > 1e3 * error("central", 1e-5)  # the other arm of the V
    assert error("complex", 1e-200) < 1e-15  # which this one does not have


def test_float32_has_a_longer_step_and_numbers_keep_their_shape():
    x = np.array([0.5, 1.5], "float32")
    close(lab.numeric_gradient(lambda x: (x**2).sum(), x), 2.0 * x, rtol=1e-3)
    assert lab.numeric_gradient(np.sin, 0.0).shape == ()
    assert lab.numeric_jacobian(lambda x: x[:0], np.ones(2)).shape == (0, 2)


@pytest.mark.parametrize("g", [lambda x: x * np.exp(x) if x > 0.0 else x, lambda x: lab.where(x > 0.0, lab.tanh(x), x),
                               lambda x: np.sin(x) ** 2, lambda x: lab.log1p(lab.exp(x)) ** 2.5])  # fmt: skip
def test_the_complex_step_runs_numpy_functions_and_graphs_of_ops(g):
    close(lab.numeric_gradient(g, 0.7, "complex"), lab.numeric_gradient(g, 0.7, "richardson"), rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "kind", "problem"),
    [
        (lambda: lab.numeric_gradient(3, 1.0), ArgumentError, "numeric_gradient needs a function"),
        (lambda: lab.numeric_jacobian(3, 1.0), ArgumentError, "numeric_jacobian needs a function"),
        (lambda: lab.numeric_gradient(np.sin, 1.0, "middle"), ArgumentError, "does not know this method"),
        (lambda: lab.numeric_gradient(np.sin, 1.0, h=0.0), ArgumentError, "a step is a positive number"),
        (lambda: lab.numeric_gradient(np.sin, np.ones(2)), GradientError, "a function that returns one number"),
        (lambda: lab.numeric_gradient(np.sin, 1), TransformError, "numeric_gradient needs float inputs"),
        (lambda: lab.numeric_gradient(np.abs, -1.0, "complex"), GradientError, "cannot run the function on complex"),
        (lambda: lab.numeric_gradient(lambda x: x * abs(x), -1.0, "complex"), GradientError, "cannot run the function"),
        (lambda: lab.numeric_gradient(lambda x: float(x), 1.0, "complex"), GradientError, "cannot run the function"),
        (lambda: lab.numeric_gradient(lab.sigmoid, 1.0, "complex"), GradientError, "cannot run the function"),
        (lambda: lab.numeric_gradient(lab.softplus, 1.0, "complex"), GradientError, "cannot run the function"),
    ],
)
def test_misuse_is_explained(call, kind, problem):
    with pytest.raises(kind, match=problem) as caught:
        call()
    assert caught.value.given
    assert caught.value.hint
