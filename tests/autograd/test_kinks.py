"""Branches that were not taken, ties and kinks: exact zeros, one written convention, in every order and mode."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError
from tests.numerics import array, close

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

BRANCHES = {
    "sqrt": lambda x: lab.where(x > 0, lab.sqrt(x), 0.0),
    "log": lambda x: lab.where(x > 0, lab.log(x) * x, x),
    "divide": lambda x: lab.where(x != 0, lab.sin(x) / x, 1.0),
    "power": lambda x: lab.where(x > 0, x**0.5, 0.0),
    "log1p": lambda x: lab.where(x > 0, lab.log1p(x - 1.0), 0.0),
    "deeper": lambda x: lab.where(x > 0, lab.exp(lab.sqrt(x) * 2.0) * lab.log(x), 0.0),
    "softplus": lambda x: lab.where(x < 1, x * 0.0, lab.log1p(lab.exp((1.0 - x) * 1e4)) + x),
    "overflow": lambda x: lab.where(x < 1, x * 0.0, lab.exp((1.0 - x) * 1e4) * x * x),
    "relu": lambda x: lab.relu(lab.log(x + 0.0) - 5.0),
    "maximum": lambda x: lab.maximum(lab.log(x), 0.5),
}


@pytest.mark.parametrize("f", BRANCHES.values(), ids=BRANCHES)
@pytest.mark.parametrize("mode", ["backward", "create_graph", "grad", "jvp", "jit of grad", "vmap of grad", "observed"])
def test_an_untaken_branch_contributes_exactly_nothing(f, mode):
    def run(x):
        leaf = lab.tensor(x, requires_grad=True)
        if mode == "observed":
            with lab.record(detail="statistics"):
                f(leaf).sum().backward()
        else:
            f(leaf).sum().backward(create_graph=mode == "create_graph")
        return leaf.grad

    gradient = {
        "grad": lab.grad(lambda x: f(x).sum()),
        "jvp": lambda x: lab.jvp(f, (x,), (np.ones_like(x),))[1],
        "jit of grad": lab.jit(lab.grad(lambda x: f(x).sum())),
        "vmap of grad": lab.vmap(lab.grad(f)),
    }.get(mode, run)
    x = np.array([0.0, 2.0])
    found = array(gradient(x))
    alone = array(lab.grad(f)(2.0))
    close(found[1], alone)
    assert np.isfinite(found[0])
    if mode != "jvp":
        assert found[0] == {"log": 1.0}.get(next(k for k, v in BRANCHES.items() if v is f), 0.0)


@pytest.mark.parametrize("f", BRANCHES.values(), ids=BRANCHES)
def test_second_order_and_hessians_through_untaken_branches_are_finite(f):
    def total(x):
        return (f(x) * x).sum()

    x = np.array([0.0, 2.0])
    second = lab.grad(lambda x: lab.grad(total)(x).sum())(x)
    assert np.isfinite(array(second)).all()
    hessian = lab.vmap(lambda v: lab.grad(lambda x: (lab.grad(total)(x) * v).sum())(x))(np.eye(2))
    assert np.isfinite(array(hessian)).all()
    close(array(hessian)[1, 1], array(second)[1])
    leaf = lab.tensor(x, requires_grad=True)
    total(leaf).backward(create_graph=True)
    g = leaf.grad
    leaf.zero_grad()
    g.sum().backward()
    close(leaf.grad, second)


def test_the_guard_hides_no_nan_that_a_taken_branch_makes():
    x = lab.tensor([-1.0, 2.0], requires_grad=True)
    lab.where(x > -5.0, lab.sqrt(x), 0.0).sum().backward()
    assert np.isnan(array(x.grad)[0])
    assert np.isfinite(array(x.grad)[1])


def test_nan_in_a_value_reaches_the_gradient():
    x = lab.tensor([np.nan, 1.0], requires_grad=True)
    (x * x).sum().backward()
    assert np.isnan(array(x.grad)[0])


@pytest.mark.parametrize(("kinks", "slope"), [("zero", 0.0), ("half", 0.5), ("one", 1.0)])
def test_the_slope_of_relu_at_zero_is_the_convention_that_held_when_it_was_recorded(kinks, slope):
    x = lab.tensor([0.0, 1.0, -1.0], requires_grad=True)
    f = lab.jit(lab.grad(lambda x: lab.relu(x).sum()))
    close(f(np.zeros(1)), [0.0])
    with lab.settings(kinks=kinks):
        y = lab.relu(x).sum()
        close(f(np.zeros(1)), [slope])  # part of the key
        close(lab.jvp(lab.relu, (0.0,), (1.0,))[1], slope)
        close(lab.vmap(lab.grad(lab.relu))(np.zeros(2)), [slope, slope])
    y.backward()  # outside the block
    close(x.grad, [slope, 1.0, 0.0])


def test_an_unknown_convention_is_refused():
    with pytest.raises(ArgumentError, match="kinks is not a known convention") as caught, lab.settings(kinks="two"):
        pass
    assert "zero, half, one" in caught.value.hint


def test_ties_share_the_gradient_equally():
    a, b = lab.tensor([1.0, 2.0], requires_grad=True), lab.tensor([1.0, 5.0], requires_grad=True)
    (lab.maximum(a, b) + lab.minimum(a, b) * 10.0).sum().backward()
    close(a.grad, [5.5, 10.0])
    close(b.grad, [5.5, 1.0])
    close(lab.grad(lambda x: lab.max(x))(np.array([3.0, 1.0, 3.0])), [0.5, 0.0, 0.5])
    close(lab.jvp(lab.max, (np.array([3.0, 1.0, 3.0]),), (np.array([1.0, 9.0, 3.0]),))[1], 2.0)


def test_powers_at_zero():
    close(lab.grad(lambda x: x**0)(0.0), 0.0)
    close(lab.grad(lambda x: x**1)(0.0), 1.0)
    close(lab.grad(lambda x: x**2)(0.0), 0.0)
    close(lab.grad(lab.grad(lambda x: x**2))(0.0), 2.0)
    close(lab.grad(lab.grad(lambda x: x**1))(0.0), 0.0)
    close(lab.grad(lambda y: 0.0**y)(2.0), 0.0)
    close(lab.grad(lambda x: x**3)(-2.0), 12.0)
    close(lab.grad(lambda x: lab.absolute(x))(0.0), 0.0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "sigmoid", "cross_entropy", "tanh"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_arguments_neither_overflow_nor_warn(name, dtype):
    f = {"cross_entropy": lambda x: lab.cross_entropy(x, np.array(1))}.get(name, getattr(lab, name))
    x = np.array([1e4, -1e4, 0.0], dtype)
    with np.errstate(all="raise", under="ignore"):
        value = f(lab.tensor(x))
        gradient = lab.grad(lambda x: lab.sum(f(x)))(x)
    assert np.isfinite(array(value)).all()
    assert np.isfinite(array(gradient)).all()
