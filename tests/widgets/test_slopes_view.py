"""SlopesView: the function, lines with the slopes that were measured, and a mark for everyone who takes one."""

from __future__ import annotations

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


def test_of_several_entries_the_latest_is_drawn_and_all_are_told():
    view = SlopesView(lab.measure_slopes(lambda v: lab.max(v), lab.tensor([1.0, 1.0])))
    n = len(view.recording)
    assert view.picture_at(n).figure.layout.xaxis.title.text == "x[1]"
    assert [line.split(" at")[0] for line in view.text_at(n).splitlines()] == ["By x[1]", "By x[0]"]
