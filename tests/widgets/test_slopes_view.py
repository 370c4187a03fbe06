"""SlopesView: the function, lines with the slopes that were measured, and a mark for everyone who takes one."""

from __future__ import annotations

from itertools import pairwise

import pytest

import lab
from widgets import SlopesView


def picture(f, x):
    view = SlopesView(lab.measure_slopes(f, x))
    return view.picture_at(len(view.recording))


def slope(trace):
    (x0, x1), (y0, y1) = trace.x, trace.y
    return (y1 - y0) / (x1 - x0)


def test_the_fan_reaches_from_the_left_slope_to_the_right_one():
    traces = picture(abs, 0.0).figure.data
    fan = {t.name: slope(t) for t in traces[1:] if t.xaxis is None and t.name != "between"}
    assert fan == {"left": -1.0, "right": 1.0, "lab takes": 0.0}
    assert [slope(t) for t in traces if t.name == "between"] == [-0.5, 0.0, 0.5]
    assert all(sum(t.y) == 0.0 for t in traces[1:] if t.xaxis is None)  # through (0, 0)


def test_everyone_who_takes_a_slope_has_a_mark_and_facts_did_not_run():
    drawn = picture(lambda x: lab.maximum(x, 0.0), 0.0)
    taken = drawn.figure.data[-1]
    assert dict(zip(taken.x, taken.y, strict=True)) == {
        "lab": 0.5, "PyTorch": 0.5, "JAX": 0.5, "autograd": 0.5, "TensorFlow": 1.0,
    }  # fmt: skip
    assert taken.hovertext[0] == "ran"
    assert "derivatives.yaml" in taken.hovertext[1]
    assert "not run: PyTorch, JAX, autograd: 0.5; TensorFlow: 1.0." in drawn.caption


def test_conventions_that_differ_have_a_mark_each():
    drawn = picture(lab.leaky_relu, 0.0)
    assert list(drawn.figure.data[-1].x) == ["lab zero", "lab half", "lab one"]
    assert drawn.figure.data[-1].y == pytest.approx((0.01, 0.505, 1.0))
    assert "lab.settings(kinks=...)" in drawn.caption


def test_an_infinite_slope_is_an_upright_and_the_panel_of_slopes_is_left_out():
    drawn = picture(lab.sqrt, 0.0)
    right = next(t for t in drawn.figure.data if t.name == "right")
    assert list(right.x) == [0.0, 0.0]
    assert {t.xaxis for t in drawn.figure.data} == {None}
    assert "from the left none, from the right ∞; the lab takes ∞." in drawn.caption


def test_several_entries_have_a_panel_each_that_stands_still_while_others_come():
    view = SlopesView(lab.measure_slopes(lab.max, lab.tensor([1.0, 1.0, 0.0])))
    stops = [int(p) for p in view.stop_positions(view.recording)]
    first, last = (view.picture_at(p).figure for p in (stops[0], stops[-1]))
    axes = ("xaxis", "xaxis2", "xaxis3")
    assert [first.layout[a].domain for a in axes] == [last.layout[a].domain for a in axes]
    titles = ["x[0]: kink, 0.0 to 1.0", "x[1]: kink, 0.0 to 1.0", "x[2]: slope 0.0"]
    assert [last.layout[a].title.text for a in axes] == titles
    taken = {t.xaxis or "x": slope(t) for t in last.data if t.name == "lab takes"}
    assert taken == {"x": 0.5, "x2": 0.5, "x3": 0.0}
    assert [t.name for t in last.data if t.showlegend] == ["function", "left", "right", "lab takes"]
    assert [line.split(" at")[0] for line in view.text_at(stops[-1]).splitlines()] == ["By x[2]", "By x[1]", "By x[0]"]


def test_each_convention_is_named_at_the_end_of_its_line():
    lines = [t for t in picture(lab.relu, 0.0).figure.data if t.name == "lab takes"]
    assert [(t.text[-1], slope(t)) for t in lines] == [("zero", 0.0), ("half", 0.5), ("one", 1.0)]
    assert [t.mode for t in picture(abs, 0.0).figure.data if t.name == "lab takes"] == ["lines"]


def test_a_derivative_that_is_no_number_is_told_in_words_and_has_one_mark():
    drawn = picture(lambda x: x * lab.sin(1.0 / x), 0.0)
    assert "from the left none, from the right none; the lab takes no number (nan)." in drawn.caption


def test_a_jump_is_upright():
    function = picture(lambda x: lab.where(x > 0, 1.0, 0.0), 0.0).figure.data[0]
    points = zip(function.x, function.y, strict=True)
    (rise,) = [(a, b - a) for (a, low), (b, high) in pairwise(points) if low != high]
    assert rise == (0.0, pytest.approx(0.0, abs=1e-4))


def test_a_still_picture_names_the_conventions_too():
    svg = SlopesView(lab.measure_slopes(lab.relu, 0.0)).svg()
    assert [svg.count(f">{name}<") for name in ("zero", "half", "one")] == [1, 1, 1]
