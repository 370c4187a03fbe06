"""Slopes at a kink: both sides as mathematics has them, what the lab takes, and facts about others that hold."""

from __future__ import annotations

import math

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad as hips_grad

import lab
from lab.errors import ArgumentError
from lab.events import ChoiceKnown, SlopesMeasured
from lab.experiments.choices import CHOICES

INF, NAN = math.inf, math.nan
SIDES = {
    "relu": (lab.relu, 0.0, 0.0, 1.0), "abs": (abs, 0.0, -1.0, 1.0), "sqrt": (lab.sqrt, 0.0, NAN, INF),
    "cbrt": (lab.cbrt, 0.0, INF, INF), "x log x": (lambda x: lab.xlogy(x, x), 0.0, NAN, -INF),
    "tie": (lambda x: lab.maximum(x * x, x), 1.0, 1.0, 2.0), "smooth": (lab.sin, 0.5, math.cos(0.5), math.cos(0.5)),
    "step": (lab.floor, 1.0, INF, 0.0), "leaky": (lab.leaky_relu, 0.0, 0.01, 1.0),
    "outside": (lab.sqrt, -1.0, NAN, NAN),
}  # fmt: skip


@pytest.mark.parametrize(("f", "x", "left", "right"), SIDES.values(), ids=SIDES)
def test_the_slopes_of_both_sides_are_those_of_mathematics(f, x, left, right):
    (found,) = lab.measure_slopes(f, x).entries
    assert (found.left, found.right) == pytest.approx((left, right), abs=1e-7, nan_ok=True)
    assert found.is_kink == (not (left == right or (math.isnan(left) and math.isnan(right))))


def test_where_numbers_are_large_the_steps_are():
    (kink,) = lab.measure_slopes(lambda x: lab.absolute(x - 1e10), 1e10).entries
    assert (kink.left, kink.right) == (-1.0, 1.0)


def test_what_the_lab_takes_is_its_derivative_under_each_convention():
    (found,) = lab.measure_slopes(lab.leaky_relu, 0.0).entries
    for convention, slope in found.taken.items():
        with lab.settings(kinks=convention):
            assert slope == pytest.approx(float(lab.grad(lab.leaky_relu)(0.0)))
    assert list(found.taken) == ["zero", "half", "one"]


def test_a_tie_of_entries_is_looked_at_entry_by_entry():
    found = lab.measure_slopes(lambda v: lab.max(v), np.array([2.0, 3.0, 3.0])).entries
    assert [(s.entry, s.left, s.right, s.taken["zero"]) for s in found] == [
        ("x[0]", 0.0, 0.0, 0.0), ("x[1]", 0.0, 1.0, 0.5), ("x[2]", 0.0, 1.0, 0.5),
    ]  # fmt: skip


def test_facts_are_told_only_at_the_kink_of_one_operation():
    def n_choices(f, x):
        return len(lab.measure_slopes(f, x).entries[0].choices)

    assert n_choices(lab.relu, 0.0) == 3
    assert n_choices(lab.relu, 2.0) == n_choices(lab.sqrt, -1.0) == 0
    assert n_choices(lambda x: lab.relu(x) + x, 0.0) == 0
    assert n_choices(lambda x: lab.maximum(x, x), 0.0) == 0


@pytest.mark.parametrize("first", [True, False])
def test_of_two_equals_tensorflow_gives_all_to_the_first(first):
    f = (lambda x: lab.maximum(x, 1.0)) if first else (lambda x: lab.maximum(1.0, x))
    (found,) = lab.measure_slopes(f, 1.0).entries
    assert {c.library: c.slope for c in found.choices}["TensorFlow"] == float(first)
    assert found.taken["zero"] == 0.5


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_facts_about_hips_autograd_hold_where_it_runs():
    runs = {
        ("absolute", 0): (anp.abs, 0.0), ("sqrt", 0): (anp.sqrt, 0.0),
        **{(n, 0): (lambda x, f=f: f(x, 1.0), 1.0) for n, f in (("maximum", anp.maximum), ("minimum", anp.minimum))},
        **{(n, 1): (lambda x, f=f: f(1.0, x), 1.0) for n, f in (("maximum", anp.maximum), ("minimum", anp.minimum))},
    }  # fmt: skip
    known = {key: c.slope for key, choices in CHOICES.items() for c in choices if c.library == "autograd"}
    with np.errstate(divide="ignore"):
        ran = {key: hips_grad(lambda x, f=f: anp.sum(f(x)))(np.array([x]))[0] for key, (f, x) in runs.items()}
    assert ran == known


def test_each_entry_and_each_fact_is_told_with_its_source():
    found = lab.measure_slopes(lab.relu, 0.0, reach=0.5)
    told = [e for e in found.recording if isinstance(e, SlopesMeasured)]
    assert (told[0].xs[0], told[0].xs[-1], told[0].ys[0], told[0].ys[-1]) == (-0.5, 0.5, 0.0, 0.5)
    facts = [e for e in found.recording if isinstance(e, ChoiceKnown)]
    assert [(e.library, e.slope, e.source) for e in facts] == [tuple(c) for c in CHOICES["relu", 0]]
    assert all(e.source for e in facts)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: lab.measure_slopes(1.0, 1.0), "needs a function"),
    (lambda: lab.measure_slopes(lab.relu, np.zeros(2)), "returns one number"),
    (lambda: lab.measure_slopes(lambda x: x.sum(), np.zeros(17)), "few numbers"),
    (lambda: lab.measure_slopes(lab.relu, np.nan), "a finite number"),
    (lambda: lab.measure_slopes(lab.relu, 0.0, reach=0.0), "how far"),
    (lambda: lab.measure_slopes(lab.relu, 0.0, reach=np.inf), "how far"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused_in_three_lines(call, words):
    with pytest.raises(ArgumentError, match=words) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
