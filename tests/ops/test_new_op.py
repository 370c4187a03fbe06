"""A new op enters by being defined: two ways, and every interpreter, event and error knows it at once."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, FormulaError
from lab.events import OpRecorded
from lab.ops import PRIMITIVES, elementwise, primitive
from tests.numerics import close


@pytest.fixture
def table():
    before = dict(PRIMITIVES)
    yield PRIMITIVES
    for name in set(PRIMITIVES) - set(before):
        del PRIMITIVES[name]


def exercise(op, x, value, slope, curvature):
    close(op(x), value)
    leaf = lab.tensor(x, requires_grad=True)
    with lab.record(kinds=[OpRecorded]) as rec:
        op(leaf).sum().backward()
    assert rec[0].op == op.name
    close(leaf.grad, slope)
    total = lambda x: lab.sum(op(x))  # noqa: E731
    close(lab.grad(total)(x), slope)
    close(lab.grad(lambda x: lab.grad(total)(x).sum())(x), curvature)
    close(lab.jvp(op, (x,), (np.ones_like(x),))[1], slope)
    close(lab.vmap(op)(np.stack([x, x]))[1], value)
    close(lab.vmap(lab.grad(op))(x), slope)
    close(lab.jit(lab.grad(total))(x), slope)


def test_an_elementwise_op_from_its_formula(table):
    op = elementwise("softly", "x", "log1p(exp(x))", ["sigmoid(x)"], reference=lambda x: np.log(1 + np.exp(x)),
                     doc="log(1 + exp(x)).")  # fmt: skip
    x = np.array([0.5, -1.0])
    s = 1 / (1 + np.exp(-x))
    exercise(op, x, np.log1p(np.exp(x)), s, s * (1 - s))


def test_an_op_from_a_function_with_a_rule(table):
    @primitive(samples=[])
    def cubed(x, *, times=1.0):
        """times * x ** 3."""
        return times * x**3

    @cubed.vjp(text="ct * 3 * times * x ** 2")
    def cubed_vjp(ct, _out, x, *, times):
        return ct * (3 * times) * x**2

    @cubed.jvp
    def cubed_jvp(tangents, _out, x, *, times):
        return tangents[0] * (3 * times) * x**2

    x = np.array([0.5, -1.0])
    assert cubed.batch is None  # so vmap loops
    exercise(cubed, x, x**3, 3 * x**2, 6 * x)
    close(cubed(x, times=2.0), 2 * x**3)
    assert cubed.rule_text(0) == "ct * 3 * times * x ** 2"


def test_an_op_without_forward_mode_says_so(table):
    @primitive(samples=[])
    def halved(x):
        """x / 2."""
        return x / 2

    @halved.vjp(text="ct / 2")
    def halved_vjp(ct, _out, _x):
        return ct / 2

    close(lab.grad(halved)(1.0), 0.5)
    with pytest.raises(lab.LabError, match="halved has no forward-mode rule") as caught:
        lab.jvp(halved, (1.0,), (1.0,))
    assert "@op.jvp" in caught.value.hint


@pytest.mark.parametrize(
    ("make", "kind", "problem"),
    [
        (lambda: elementwise("tanh", "x", "x", ["1"], reference=None, doc=""), ArgumentError, "an op of that name"),
        (lambda: elementwise("bad", "x", "x + z", ["1"], reference=None, doc=""), FormulaError, "mentions a name"),
        (lambda: elementwise("bad", "x", "evil(x)", ["1"], reference=None, doc=""), FormulaError, "unknown function"),
        (lambda: elementwise("bad", "x", "x", ["1 + z"], reference=None, doc=""), FormulaError, "mentions a name"),
        (lambda: elementwise("bad", "x", "x.real", ["1"], reference=None, doc=""), FormulaError, "may only use"),
        (lambda: elementwise("bad", "x", "x", ["1"], reference=None, doc="", precision="huge"), ArgumentError,
         "unknown precision class"),
    ],
)  # fmt: skip
def test_a_bad_record_is_refused_and_not_entered(table, make, kind, problem):
    before = set(PRIMITIVES)
    with pytest.raises(kind, match=problem):
        make()
    assert set(PRIMITIVES) == before
