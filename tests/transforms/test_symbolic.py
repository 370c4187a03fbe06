"""symbolic: expressions from the formulas that run, their derivatives three ways, and how they swell."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, ConcretizationError, UnsupportedError
from lab.kernels.formula import FUNCTIONS
from lab.transforms.symbols import functions
from tests.numerics import array

SMOOTH = ["sin", "tanh", "sigmoid", "softplus", "silu", "exp", "expm1", "log1p", "log2", "log10", "rsqrt", "cbrt",
          "square", "arctan", "arcsin", "arccosh", "exp2", "relu", "elu", "leaky_relu", "absolute",
          "log_sigmoid", "gelu", "arcsinh", "sinc"]  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_expressions_of_ops_have_the_value_and_the_slope_of_the_ops(name):
    f, x = getattr(lab, name), 1.25 if name == "arccosh" else 0.7
    e = lab.symbolic(lambda x: f(x))
    expected = lab.value_and_grad(f)(x)
    assert e(x) == pytest.approx(expected[0].item(), rel=1e-13)
    assert e.diff()(x) == pytest.approx(expected[1].item(), rel=1e-13)
    if name != "sinc":  # its rule calls a function that only the lab has
        assert e.chain()(x) == pytest.approx(expected[1].item(), rel=1e-13)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x, y: x**3 * y - lab.logaddexp(x, y) / lab.hypot(x, y) + lab.maximum(x, y), (0.5, 1.5)),
        (lambda x, y: lab.where(x > y, x * y, lab.arctan2(x, y)) - lab.xlogy(x, y) ** 2.0, (0.5, 1.5)),
        (lambda x, y: lab.sum(lab.sin(x) * y + x[::-1].reshape((1, 2)) @ y), (np.array([0.5, 2.0]), np.ones(2))),
        (lambda x: (lab.tensor([[1.0, 2.0], [3.0, 4.0]]) @ lab.exp(x)).sum() + x[0] * 0.1, (np.array([0.1, 0.2]),)),
    ],
)
def test_all_derivatives_agree_with_automatic_ones(f, args):
    e = lab.symbolic(f, *args)
    gradients = lab.grad(f, argnums=tuple(range(len(args))))(*args)
    expected = np.concatenate([np.ravel(array(g)) for g in gradients])
    assert e(*args) == pytest.approx(array(f(*map(lab.tensor, args))).item(), rel=1e-13)
    for derivative in (e.diff, e.chain):
        found = [derivative(i)(*args) for i in range(len(expected))]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_expressions_swell_and_sharing_undoes_it():
    def nested(n):
        def f(x):
            for _ in range(n):
                x = lab.sin(x) * x
            return x

        return lab.symbolic(f)

    trees = [nested(n).chain().n_ops for n in (1, 2, 3, 4)]
    shared = [nested(n).chain().n_ops_shared for n in (1, 2, 3, 4)]
    assert trees[3] / trees[2] > 2.0  # doubles with every step
    assert shared[3] - shared[2] < 12  # grows by a constant
    assert len(nested(4).graph.equations) == 8


def test_it_looks_like_mathematics():
    e = lab.symbolic(lambda x, y: 0.5 * x**2 + lab.sqrt(y))
    assert repr(e) == "x**2/2 + sqrt(y)"
    assert e.latex == r"\frac{x^{2}}{2} + \sqrt{y}"
    assert e._repr_mimebundle_()["text/latex"].startswith(r"$\displaystyle \frac")
    assert [str(s) for s in lab.symbolic(lambda m: m.sum(), np.ones((1, 2))).symbols] == ["m_0_0", "m_0_1"]
    assert repr(e.diff("y", "y")) == "-1/(4*y**(3/2))"
    assert repr(lab.symbolic(lambda x, k=2.0: x * k)) == "2*x"


def test_every_function_of_formulas_is_known_or_has_no_expression():
    assert set(FUNCTIONS) - set(functions()) == {"where", "rint", "trunc", "sinc_slope"}


@pytest.mark.parametrize(
    ("call", "kind", "problem"),
    [
        (lambda: lab.symbolic(3), ArgumentError, "symbolic needs a function"),
        (lambda: lab.symbolic(lambda x: x if x > 0 else -x), ConcretizationError, "the value of a traced variable"),
        (lambda: lab.symbolic(lambda x: x * 2.0, np.ones(2)), ArgumentError, "a function that returns one"),
        (lambda: lab.symbolic(lambda x: lab.rint(x)), UnsupportedError, "cannot be written as an expression"),
        (lambda: lab.symbolic(lambda x: lab.softmax(x)[0], np.ones(2)), UnsupportedError, "cannot be written"),
        (lambda: lab.symbolic(lambda x: x).diff("y"), ArgumentError, "the expression has no such symbol"),
        (lambda: lab.symbolic(lambda x: x)(1.0, 2.0), ArgumentError, "needs a number for each symbol"),
        (lambda: lab.symbolic(lambda x: x).diff().chain(), UnsupportedError, "a derivative has no graph"),
        (lambda: lab.symbolic(lambda x: lab.sinc(x)).chain(), UnsupportedError, "cannot be written as an expression"),
    ],
)
def test_misuse_is_explained(call, kind, problem):
    with pytest.raises(kind, match=problem) as caught:
        call()
    assert caught.value.given
    assert caught.value.hint
