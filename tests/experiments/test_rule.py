"""A rule held against differences: every entry is told, right ones first, the operation at fault alone and last."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError
from lab.events import FaultFound, JacobianCompared

X = lab.tensor([0.5, -1.0, 0.25])


def softmax_without_its_neighbours():
    def softmax(x):
        return lab.softmax(x)

    def forward(x):
        s = softmax(x)
        return s, s

    return lab.custom_vjp(softmax).defvjp(forward, lambda s, ct: (ct * s * (1.0 - s),))


def compared(found):
    return [e for e in found.recording if isinstance(e, JacobianCompared)]


def test_the_jacobians_are_that_of_the_rule_and_that_of_mathematics():
    found = lab.measure_rule(softmax_without_its_neighbours(), (X,), modes=("rev",))
    s = np.exp(X.numpy()) / np.exp(X.numpy()).sum()
    last = compared(found)[-1]
    np.testing.assert_allclose(np.array(last.expected).reshape(3, 3), np.diag(s) - np.outer(s, s), atol=1e-4)
    np.testing.assert_allclose(np.array(last.actual).reshape(3, 3), np.diag(s * (1 - s)), rtol=1e-5)
    np.testing.assert_array_equal(np.array(last.errors).reshape(3, 3) > 1, ~np.eye(3, dtype=bool))


def test_the_operation_at_fault_is_told_last_and_checked_alone():
    rule = softmax_without_its_neighbours()
    found = lab.measure_rule(lambda x: lab.tanh(rule(2.0 * x)), (X,), modes=("rev",))
    assert [e.what for e in compared(found)] == ["<lambda>", "custom softmax"]
    fault = found.recording[-1]
    assert isinstance(fault, FaultFound)
    assert (fault.op, fault.argument[0]) == ("custom softmax", "x")
    assert "test_rule.py" in fault.where


def test_what_is_right_comes_first_and_nothing_is_raised():
    found = lab.measure_rule(lambda x: lab.sin(x) * x, (X,), order=2)
    assert found.report.ok
    assert all(e.ok for e in compared(found))
    assert len(compared(found)) == len(found.report.checks) == 6
    assert repr(found) == str(found.report)

    def cut(x, ct):
        return (ct * lab.stop_gradient(lab.cos(x)),)

    once = lab.custom_vjp(lambda x: lab.sin(x)).defvjp(lambda x: (lab.sin(x), x), cut)
    told = compared(lab.measure_rule(lambda x: once(x), (X,), order=2, modes=("rev",)))
    assert [(e.mode, e.ok) for e in told[:2]] == [("reverse mode", True), ("reverse mode of reverse mode", False)]


def test_of_a_large_jacobian_the_part_around_the_worst_entry_is_told():
    x = lab.tensor(np.linspace(0.1, 0.9, 50))
    slope = np.where(np.arange(50) == 45, 3.0, 2.0)
    wrong = lab.custom_vjp(lambda x: 2.0 * x).defvjp(lambda x: (2.0 * x, None), lambda _, ct: (ct * slope,))
    last = compared(lab.measure_rule(wrong, (x,), modes=("rev",)))[-1]
    assert (len(last.arguments), len(last.results), len(last.errors)) == (32, 32, 1024)
    bad = int(np.argmax(last.errors))
    assert (last.arguments[bad % 32], last.results[bad // 32]) == ("x[45]", "result[45]")


def test_what_cannot_be_checked_is_refused_as_by_check_grads():
    with pytest.raises(ArgumentError, match="nothing to differentiate"):
        lab.measure_rule(lab.sin, (1,))
