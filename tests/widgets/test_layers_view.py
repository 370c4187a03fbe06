"""LayersView: each statistic by layer at the first step and the newest, and what it says of slopes and dead layers."""

from __future__ import annotations

import math

import numpy as np

import lab
from lab.events import LayerMeasured, RunStarted
from lab.nn import Linear, Sequential, Sigmoid
from tests.widgets.golden import recorded, training
from widgets import LayersView


def told(step, *layers):
    """Events of a step; a layer is (kind, deviation, dead of 4 units, gradient)."""
    return [
        LayerMeasured(step, str(k), kind, 40, 0.5, deviation, 0, 4, dead, gradient)
        for k, (kind, deviation, dead, gradient) in enumerate(layers)
    ]


def lines(chart):
    """y of each line by (name, y axis)."""
    return {(t.name, t.yaxis): [float(v) for v in t.y] for t in chart.figure.data}


def last(*events):
    view = LayersView(recorded(events))
    return view.picture_at(len(events)), view.text_at(len(events))


TWO = ("Linear", 1.0, 0, 0.5), ("ReLU", 0.5, 1, 0.25)


def test_the_newest_step_stands_beside_the_first_in_each_panel():
    later = ("Linear", 2.0, 0, 0.75), ("ReLU", 0.25, 3, 0.125)
    chart, _ = last(*told(1, *TWO), *told(11, *TWO), *told(21, *later))
    assert lines(chart) == {
        ("step 1", "y"): [1.0, 0.5], ("step 1", "y2"): [0.5, 0.25], ("step 1", "y3"): [0.5, 0.5],
        ("step 21", "y"): [2.0, 0.25], ("step 21", "y2"): [0.75, 0.125], ("step 21", "y3"): [0.5, 0.5],
        ("dead units", "y4"): [0.0, 75.0],
    }  # fmt: skip
    assert list(chart.figure.data[0].text) == ["0 Linear", "1 ReLU"]


def test_a_stop_is_the_end_of_a_measured_step():
    events = [*told(1, *TWO), *told(11, *TWO)]
    view = LayersView(recorded(events))
    assert view.stop_positions(view.recording).tolist() == [2, 4]
    assert {t.name for t in view.picture_at(2).figure.data} == {"step 1", "dead units"}


def test_a_gradient_that_vanishes_or_explodes_is_told_with_its_factor():
    _, words = last(*told(1, ("Linear", 1.0, 0, 1e-6), ("Linear", 1.0, 0, 0.5)))
    assert words.splitlines()[0] == (
        "Step 1: 2 layers. The gradient vanishes: 500,000 times shorter at 0 Linear than at 1 Linear."
    )
    chart, _ = last(*told(1, ("Linear", 1.0, 0, 2e4), ("Linear", 1.0, 0, 0.5)))
    assert "The gradient explodes: 40,000 times longer at 0 Linear than at 1 Linear." in chart.caption
    _, words = last(*told(1, *TWO))
    assert words.splitlines()[0] == "Step 1: 2 layers."


def test_a_dead_layer_and_a_gradient_that_is_none_are_told_and_zero_leaves_a_gap():
    chart, words = last(*told(1, ("ReLU", 0.0, 4, math.nan), ("Linear", 1.0, 0, 0.0)))
    assert "0 ReLU is dead as a whole: nothing gets through it." in chart.caption
    assert "0 ReLU: 0.5 ± 0.0, 100 % of its units dead, no gradient came back" in words
    assert np.isnan(lines(chart)["step 1", "y"][0])
    assert np.isnan(lines(chart)["step 1", "y2"]).all()


def test_another_run_begins_anew():
    start = RunStarted("second", 1, 1, 1, "", "")
    chart, _ = last(*told(1, *TWO), start, *told(5, *TWO))
    assert {t.name for t in chart.figure.data} == {"step 5", "dead units"}


def test_ten_layers_of_sigmoid_lose_the_gradient_and_it_says_so():
    train, _ = lab.data.digits()
    rng = np.random.default_rng(0)
    deep = [m for _ in range(9) for m in (Linear(64, 64, init="xavier", rng=rng), Sigmoid())]
    few = train.inputs[:64], train.targets[:64]
    run = lab.fit(Sequential(*deep, Linear(64, 10, init="xavier", rng=rng)), few, epochs=1)
    run.wait()
    assert "The gradient vanishes" in LayersView(run).sentence_at(len(run.recording))


def test_a_training_without_measurements_says_how_to_get_them():
    assert "measure_every=10" in LayersView(training([3.0, 2.0])).picture_at(4).caption


def test_layers_are_counted_in_whole_numbers_however_many():
    few, _ = last(*told(1, *TWO))
    many, _ = last(*told(1, *[TWO[0]] * 50))
    assert [few.figure.layout[axis].dtick for axis in ("xaxis", "xaxis2", "xaxis3", "xaxis4")] == [1, 1, 1, 1]
    assert many.figure.layout.xaxis.dtick == 7


def test_no_number_beside_an_axis_lies_on_another_and_its_name_fits_into_half_a_narrow_picture():
    chart, _ = last(*told(1, ("Linear", 0.07, 0, 1e-6), ("ReLU", 0.9, 1, 0.25)))
    layout = chart.figure.layout
    assert (layout.yaxis.dtick, layout.yaxis2.dtick) == ("D2", 1)
    assert (layout.yaxis.tickformat, layout.yaxis2.exponentformat) == ("~g", "power"), "0.000001 is as wide as a panel"
    assert {layout[axis].title.text for axis in ("xaxis3", "xaxis4")} == {"layer"}
