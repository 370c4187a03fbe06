"""check_grads: right ones pass in every dtype, wrong ones are found with their place and the rule at fault."""

import re

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, GradientError, TransformError
from lab.ops.primitive import PRIMITIVES, primitive

X = np.array([0.5, -1.5, 2.0])


def wrong_sine(bwd):
    def sine(x):
        return lab.sin(x)

    return lab.custom_vjp(sine).defvjp(lambda x: (lab.sin(x), x), bwd)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: lab.sin(x) * x, (X,)),
        (lambda p, n: {"y": p["w"] @ lab.exp(p["x"]) ** n, "i": n}, ({"w": np.ones((2, 3)), "x": X}, 2)),
        (lambda x, y: (x * y).sum(), (X.astype("float32"), np.float32(2.0))),
        (lambda x: lab.tanh(x) * 3.0, (X.astype("float16"),)),
        (lambda x: lab.softmax(x), (X,)),
        (lambda x: lab.sort(x)[::-1] * x, (X,)),
        (lambda x: lab.sum(x) * 1e-8, (X,)),
        (lambda x: 1e8 * x + lab.stack([x[0] ** 2, x[1], x[2]]), (X,)),
        (lambda x: lab.checkpoint(lambda x: lab.jit(lab.exp)(x))(x), (X,)),
        (lambda x: lab.stop_gradient(lab.tensor([1.0])), (X,)),
    ],
)
def test_right_derivatives_pass_at_both_orders_in_both_modes(f, args):
    report = lab.check_grads(f, args)
    assert report.ok, report
    assert [c.mode for c in report.checks] == [
        "fwd", "rev", "fwd of fwd", "rev of fwd", "fwd of rev", "rev of rev"]  # fmt: skip
    assert report.fault is None
    assert str(report).startswith("derivatives of <lambda>: right")


def test_a_wrong_rule_is_found_with_its_entry_its_line_and_both_numbers():
    wrong = wrong_sine(lambda x, ct: (ct * lab.where(x == 2.0 * X[1], 0.0, lab.cos(x)),))

    def f(p):
        return lab.exp(wrong(2.0 * p["w"]))

    with pytest.raises(GradientError, match="wrong derivative of f, in reverse mode") as caught:
        lab.check_grads(f, ({"w": X},), modes=("rev",))
    error = caught.value
    expected = np.exp(np.sin(-3.0)) * np.cos(-3.0) * 2.0
    assert error.given == f"result[1] by p['w'][1]: 0, differences say {expected:.6g}"
    line = f.__code__.co_firstlineno + 1
    assert f"the rule of custom sine is at fault, for x[1], at {__file__}, line {line}: 0 for -0.989992" in error.hint
    report = error.report
    assert not report.ok
    assert np.argmax(report.wrong.errors) == 4  # the heat map's hot entry
    assert re.search(r"WRONG +reverse mode: result\[1\] by p\['w'\]\[1\] is 0", str(report))
    assert "the rule of custom sine" in report._repr_mimebundle_()["text/html"]


def test_a_rule_that_is_right_once_and_wrong_twice_is_found_at_the_second_order():
    f = wrong_sine(lambda x, ct: (ct * lab.stop_gradient(lab.cos(x)),))
    assert lab.check_grads(f, (X,), order=1, modes=("rev",)).ok
    report = lab.check_grads(lambda x: f(x) * 3.0, (X,), modes=("rev",), raises=False)
    assert report.wrong.mode == "rev of rev"
    assert report.fault.op == "custom sine"


def test_a_wrong_forward_rule_and_a_wrong_op_of_the_table_are_found():
    f = lab.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (p[0] * p[0], p[0] * t[0]))
    report = lab.check_grads(f, (X,), raises=False)
    assert (report.wrong.mode, report.fault.op) == ("fwd", "custom <lambda>")

    @primitive()
    def halved(x, y):
        """X / 2 + y, whose rule for y says nothing of its sign."""
        return x / 2.0 - y

    halved.vjp(0, text="ct / 2")(lambda ct, _out, _x, _y: ct / 2.0)
    halved.vjp(1, text="ct")(lambda ct, _out, _x, _y: ct)
    try:
        report = lab.check_grads(lambda x, y: lab.sin(halved(x * y, y)), (X, X), modes=("rev",), raises=False)
    finally:
        del PRIMITIVES["halved"]
    assert report.fault.op == "halved"
    assert report.fault.argument.startswith("y[")


def test_what_is_lost_between_the_operations_is_nobodys_fault():
    with pytest.raises(GradientError, match="wrong derivative") as caught:
        lab.check_grads(lambda x: x * lab.stop_gradient(x), (X,), order=1)
    assert caught.value.report.fault is None
    assert "stop_gradient" in caught.value.hint


def test_a_jump_is_told_and_not_judged():
    report = lab.check_grads(lambda x: lab.floor(x) + x, (np.array([2.0, 2.5]),))
    assert report.ok
    assert [(e.argument, e.note) for e in report.notes if e.result == "result[0]"] == [("x[0]", "at a jump")]


@pytest.mark.parametrize("f", [lab.relu, lab.absolute, lambda x: lab.maximum(x, 0.0), lambda x: lab.clip(x, 0.0, 1.0)])
def test_kinks_are_told_and_any_slope_between_the_two_will_do(f):
    report = lab.check_grads(f, (np.array([0.0, 0.7]),))
    assert report.ok
    assert {(e.argument, e.note) for e in report.notes if e.result == "result[0]"} == {("x[0]", "at a kink")}
    assert "at a kink" in str(report)
    for near in (1e-4, -1e-4, 1e-5):
        assert lab.check_grads(f, (np.array([near]),)).ok  # both steps of the first differences cross the kink


def test_a_slope_outside_of_a_kinks_two_is_wrong():
    f = lab.custom_vjp(lab.relu).defvjp(lambda x: (lab.relu(x), x), lambda x, ct: (ct * (x >= 0.0) * 2.0 - 1.0,))
    report = lab.check_grads(f, (0.0,), order=1, modes=("rev",))  # 1: between 0 and 1
    assert report.notes[0].note == "at a kink"
    f = lab.custom_vjp(lab.relu).defvjp(lambda x: (lab.relu(x), x), lambda x, ct: (ct * 3.0,))
    with pytest.raises(GradientError):
        lab.check_grads(f, (0.0,), order=1, modes=("rev",))


def test_the_edge_of_a_domain_is_told_and_not_judged():
    report = lab.check_grads(lab.sqrt, (np.array([0.0, 1.0]),), order=1)
    assert report.ok
    assert report.notes[0].note == "at an edge of its domain"


@pytest.mark.parametrize(
    ("call", "kind", "problem"),
    [
        (lambda: lab.check_grads(3, (1.0,)), ArgumentError, "check_grads needs a function"),
        (lambda: lab.check_grads(lab.sin, 1.0), ArgumentError, "check_grads needs a tuple"),
        (lambda: lab.check_grads(lab.sin, (1,)), ArgumentError, "nothing to differentiate"),
        (lambda: lab.check_grads(lab.sin, (1.0,), order=0), ArgumentError, "order is a whole number"),
        (lambda: lab.check_grads(lab.sin, (np.zeros(0),)), ArgumentError, "nothing to compare"),
        (lambda: lab.check_grads(lambda x: None, (1.0,)), ArgumentError, "nothing to compare"),
        (lambda: lab.check_grads(lab.sin, (1.0,), modes="rev"), ArgumentError, "check_grads knows two modes"),
        (lambda: lab.check_grads(wrong_sine(lambda x, ct: (ct,)), (1.0,)), TransformError, "reverse mode only"),
    ],
)
def test_misuse_is_explained(call, kind, problem):
    with pytest.raises(kind, match=problem) as caught:
        call()
    assert caught.value.given
    assert caught.value.hint
