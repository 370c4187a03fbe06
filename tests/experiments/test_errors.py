"""Errors against the step: the truth to 50 digits, what Taylor says right of the best step, and rounding left of it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, GradientError
from lab.events import BestStepFound, ErrorMeasured, ErrorsBegun, MethodRefused
from lab.experiments.truth import truth_of

COS_1 = Fraction("0.54030230586813971740093660744297660373231042061792")
EPS = float(np.finfo(float).eps)


def test_the_truth_has_fifty_digits_where_algebra_can():
    found = truth_of(lab.sin, np.float64(1.0))
    assert abs(found.value - COS_1) < Fraction(1, 10**49)
    assert found.source == "sympy, 50 digits"


def test_the_truth_is_that_of_the_float_not_of_its_decimals():
    slope = truth_of(lambda x: x * x, np.float64(0.1)).value
    assert abs(slope - 2 * Fraction(0.1)) < Fraction(1, 10**49)
    assert slope != Fraction(1, 5)


def test_a_function_that_looks_at_its_number_is_differentiated_in_longdouble():
    found = truth_of(lambda x: np.sin(x) if x > 0 else x, np.float64(1.0))
    assert "longdouble" in found.source
    assert abs(found.value - COS_1) < Fraction(1, 10**15)


def test_where_algebra_runs_in_circles_differences_find_the_truth():
    assert truth_of(lambda x: lab.floor(x) * x, np.float64(2.5)).value == 2


def test_the_errors_are_those_of_exact_arithmetic_on_what_was_computed():
    steps = [1e-13, 1e-9, 1e-3]
    found = lab.measure_errors(lab.sin, 1.0, steps=steps)
    for h, error in zip(steps, found.errors["forward"], strict=True):
        above = 1.0 + h
        estimate = (math.sin(above) - math.sin(1.0)) / (above - 1.0)
        assert error == pytest.approx(float(abs(Fraction(estimate) - COS_1) / COS_1), rel=1e-3, abs=4 * EPS / h)


@pytest.mark.parametrize(("method", "h", "expected"), [
    ("forward", 1e-4, lambda h: h / 2 * math.tan(1.0)), ("central", 1e-3, lambda h: h**2 / 6),
    ("richardson", 0.1, lambda h: h**4 / 480), ("complex", 1e-3, lambda h: h**2 / 6),
])  # fmt: skip
def test_right_of_its_best_step_a_method_has_the_error_of_taylor(method, h, expected):
    found = lab.measure_errors(lab.sin, 1.0, steps=[h])
    assert found.errors[method][0] == pytest.approx(expected(h), rel=0.02)


def test_best_steps_lie_near_those_of_theory_and_automatic_is_at_the_floor():
    found = lab.measure_errors(lab.sin, 1.0)
    best = {e.method: e for e in found.recording if isinstance(e, BestStepFound)}
    for method, power in (("forward", 1 / 2), ("central", 1 / 3), ("richardson", 1 / 5)):
        assert best[method].theory == pytest.approx(EPS**power)
        assert best[method].rule == f"eps^(1/{round(1 / power)})"
        assert EPS**power / 100 < found.best[method] < EPS**power * 100
    assert found.automatic <= EPS
    assert all(e <= EPS for h, e in zip(found.steps, found.errors["complex"], strict=True) if h < 1e-9)


def test_theory_follows_the_dtype_and_the_size_of_x():
    eps = float(np.finfo(np.float32).eps)
    found = lab.measure_errors(lab.sin, np.float32(3.0))
    best = {e.method: e for e in found.recording if isinstance(e, BestStepFound)}
    assert best["forward"].theory == pytest.approx(3 * eps**0.5)
    assert best["forward"].rule == "|x| eps^(1/2)"
    assert eps / 100 < found.automatic < eps


def test_a_step_that_vanishes_in_x_gives_no_number_and_is_never_the_best():
    found = lab.measure_errors(lab.sin, 1.0, steps=[1e-18, 1e-17, 1e-8, 1e-7])
    assert [math.isnan(e) for e in found.errors["central"]] == [True, True, False, False]
    assert found.best["central"] == 1e-7


def test_what_a_method_cannot_do_is_told_and_the_others_go_on():
    found = lab.measure_errors(lambda x: lab.absolute(x) * x, 2.0, steps=[1e-6])
    assert "abs(x), which is not analytic" in found.refused["complex"]
    assert set(found.errors) == {"forward", "central", "richardson"}
    found = lab.measure_errors(lambda x: math.sin(x), 1.0, truth=math.cos(1.0), steps=[1e-6])
    assert set(found.refused) == {"complex", "automatic"}
    assert math.isnan(found.automatic)
    assert found.source == "given"


def test_an_outer_recording_hears_each_row_too():
    with lab.record(kinds=[ErrorsBegun, ErrorMeasured, BestStepFound, MethodRefused]) as rec:
        found = lab.measure_errors(lab.sin, 1.0, steps=[1e-6, 1e-5])
    assert list(rec) == list(found.recording)
    assert [type(e).__name__ for e in rec][:3] == ["ErrorsBegun", "ErrorMeasured", "ErrorMeasured"]
    assert len(rec) == 1 + 4 * 3 + 1


def test_a_mistake_in_the_function_is_its_own():
    with pytest.raises(ZeroDivisionError):
        lab.measure_errors(lambda x: 1 // 0, 1.0)


def test_a_steep_place_and_a_quick_oscillation_are_no_kinks():
    assert lab.measure_errors(lab.sqrt, 1e-9, steps=[1e-14]).truth == pytest.approx(0.5 / math.sqrt(1e-9))
    found = lab.measure_errors(lambda x: lab.sin(1e8 * x), 1.0, steps=[1e-12])
    assert found.truth == pytest.approx(1e8 * math.cos(1e8))


def test_a_whole_number_is_a_place():
    assert lab.measure_errors(lab.sin, 1, steps=[1e-6]).errors == lab.measure_errors(lab.sin, 1.0, steps=[1e-6]).errors


def test_a_rule_of_ones_own_is_measured_and_its_fault_is_seen():
    twice = lab.custom_vjp(lab.tanh).defvjp(lambda x: (lab.tanh(x), x), lambda x, ct: (2.0 * ct,))
    found = lab.measure_errors(lambda x: twice(x) if x.ndim == 0 and x > -9 else x, 0.0)
    assert found.source.startswith("differences")
    assert found.truth == pytest.approx(1.0)
    assert found.automatic == pytest.approx(1.0)  # it says 2


COUNT = itertools.count(1)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: lab.measure_errors(3, 1.0), ArgumentError, "needs a function"),
    (lambda: lab.measure_errors(lab.sin, [1.0, 2.0]), ArgumentError, "at one number"),
    (lambda: lab.measure_errors(lab.sin, "1"), ArgumentError, "a number, like 1.0"),
    (lambda: lab.measure_errors(lab.sin, np.inf), ArgumentError, "a finite number"),
    (lambda: lab.measure_errors(lambda x, y: x, 1.0), ArgumentError, "of one argument"),
    (lambda: lab.measure_errors(lambda x: x * next(COUNT), 1.0), ArgumentError, "the same for the same"),
    (lambda: lab.measure_errors(lab.log, 0.0), GradientError, "at 0.0 it is -inf"),
    (lambda: lab.measure_errors(lambda x: x * x, 1e300), GradientError, "it is inf"),
    (lambda: lab.measure_errors(lambda x: x * math.nan, 1.0), GradientError, "it is nan"),
    (lambda: lab.measure_errors(lab.sqrt, 0.0), GradientError, "cannot find out"),
    (lambda: lab.measure_errors(lambda x: lab.absolute(x) ** 0.5, 0.0), GradientError, "slopes -inf and inf"),
    (lambda: lab.measure_errors(lab.sin, 1.0, steps="abc"), ArgumentError, "ascending"),
    (lambda: lab.measure_errors(lambda x: x * np.ones(2), 1.0), ArgumentError, "returns one number"),
    (lambda: lab.measure_errors(lab.sin, 1.0, steps=[1e-3, 1e-6]), ArgumentError, "ascending"),
    (lambda: lab.measure_errors(lab.sin, 1.0, truth="about one"), ArgumentError, "as a number"),
    (lambda: lab.measure_errors(lambda x: math.sin(x), 1.0), GradientError, "cannot find out"),
    (lambda: lab.measure_errors(lambda x: x if x > 1 else 2 * x, 1.0), GradientError, "digits of a longdouble|kink"),
    (lambda: lab.measure_errors(abs, 0.0), GradientError, "at a kink there is none"),
    (lambda: lab.measure_errors(lab.floor, 1.0), GradientError, "at a kink there is none"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused_in_three_lines(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
