"""ErrorView: its lines are the errors that were measured, its marks the best steps and those of theory."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.events import BestStepFound, ErrorMeasured, ErrorsBegun
from tests.widgets.golden import recorded
from widgets import ErrorView


@pytest.fixture(scope="module")
def found():
    return lab.measure_errors(lab.sin, 2.0)


def traces(view):
    figure = view.picture_at(len(view.recording)).figure
    return {trace.name: trace for trace in figure.data}


def test_each_line_is_what_was_measured_and_zero_lies_at_the_foot(found):
    drawn = traces(ErrorView(found))
    for method, name in (("forward", "forward"), ("richardson", "Richardson"), ("complex", "complex step")):
        assert tuple(drawn[name].x) == found.steps
        np.testing.assert_array_equal(drawn[name].y, np.maximum(found.errors[method], 1e-18))
    assert set(drawn["automatic"].y) == {max(found.automatic, 1e-18)}
    assert drawn["automatic"].x == (min(found.steps), max(found.steps))


def test_the_best_step_and_that_of_theory_are_marked_in_the_colour_of_the_line(found):
    drawn, eps = traces(ErrorView(found)), float(np.finfo(float).eps)
    (x,), (y,) = drawn["best central"].x, drawn["best central"].y
    assert (x, y) == (found.best["central"], found.errors["central"][found.steps.index(x)])
    assert drawn["|x| eps^(1/3), theory for central"].x[0] == pytest.approx(2 * eps ** (1 / 3))
    assert drawn["best central"].meta == drawn["central"].meta
    assert not any("best complex" in name for name in drawn)


def test_a_method_that_was_refused_is_named_and_not_drawn():
    view = ErrorView(lab.measure_errors(lambda x: lab.absolute(x), 2.0, steps=[1e-6, 1e-5]))
    picture = view.picture_at(len(view.recording))
    assert "complex step" not in traces(view)
    assert "No complex step: " in picture.caption
    assert "held against 1.0 (sympy, 50 digits)" in picture.caption


def test_lines_grow_method_by_method_and_a_second_experiment_begins_anew():
    with lab.record(kinds=ErrorView.listens) as rec:
        lab.measure_errors(lab.sin, 1.0, steps=[1e-6])
        lab.measure_errors(lab.cos, 1.0, steps=[1e-6])
    view = ErrorView(rec)
    names = [{t.name for t in view.picture_at(int(p)).figure.data} for p in view.stop_positions(rec)]
    assert ["central" in n for n in names] == [False, True, True, True, True] * 2
    assert ["automatic" in n for n in names] == [False, False, False, False, True] * 2
    assert "derivative of cos at 1.0" in view.text_at(len(rec))


@pytest.mark.parametrize(("errors", "said"), [
    ([0.0, 0.0, 0.0], "central: no error at any step"),
    ([1e-9, 0.0, 0.0], "central: no error at 2 of 3 steps, the longest h = 0.01, the safest 0.001"),
    ([float("nan"), 0.0, 1e-3], "central: no error at 1 of 3 steps, the longest h = 0.001"),
    ([1e-9, 1e-12, 1e-3], "central: best at h = 0.001, error 1e−12"),
])  # fmt: skip
def test_where_there_is_no_error_at_many_steps_the_words_count_them(errors, said):
    steps = (1e-4, 1e-3, 1e-2)
    rec = recorded([
        ErrorsBegun("f", 1.0, "float64", 2e-16, 6.0, "given"),
        *(ErrorMeasured("central", h, 6.0, error) for h, error in zip(steps, errors, strict=True)),
        BestStepFound("central", steps[1], errors[1], 6e-6, "eps^(1/3)"),
    ])  # fmt: skip
    view = ErrorView(rec)
    words = f"{said[1:]}; theory says about eps^(1/3) = 6e−6."
    assert words in view.text_at(len(rec))
    assert words in view.picture_at(len(rec)).caption
