"""GradientView: a line for each parameter, the histogram of one, and what is nan or dead said aloud."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lab.events import ParameterMeasured, RunStarted
from tests.widgets.golden import falling, recorded, training
from widgets.fold import Stretch
from widgets.pictures.theme import COLORWAY
from widgets.pictures.twin import svg_of
from widgets.views.training.gradient import LINES, GradientView


def traces(view: GradientView) -> dict[str, object]:
    return {t.name: t for t in view.picture_at(len(view.recording)).figure.data}


def test_each_parameter_has_a_line_of_norms_and_the_first_its_histogram():
    losses = falling(30)
    view = GradientView(training(losses))
    drawn = traces(view)
    assert list(drawn) == ["0.weight", "0.bias", "entries of 0.weight"]
    assert np.allclose(drawn["0.weight"].y, [losses[9], losses[19], losses[29]])
    assert drawn["entries of 0.weight"].y.tolist() == [30, 2]


def test_the_chosen_parameter_is_the_one_with_the_histogram_and_the_thick_line():
    view = GradientView(training(falling(30)))
    view.selected = "0.bias"
    drawn = traces(view)
    assert "entries of 0.bias" in drawn
    assert drawn["0.bias"].line.width > drawn["0.weight"].line.width


def test_the_parameters_themselves_can_be_shown():
    drawn = traces(GradientView(training(falling(30)), role="value"))
    assert drawn["0.weight"].y.tolist() == [2.0, 2.0, 2.0]


def test_nan_is_counted_and_the_first_is_named():
    view = GradientView(training([1.0] * 10 + [math.nan] * 10))
    end = len(view.recording)
    assert "First nan or infinity at step 20, in 0.weight." in view.picture_at(end).caption
    assert "3 of 100 entries not finite" in view.text_at(end)


def test_a_dead_gradient_is_said_and_left_out_of_the_log_axis():
    view = GradientView(training([1.0] * 10 + [0.0] * 10))
    assert "0.weight: norm 0.0, all entries 0" in view.text_at(len(view.recording))
    assert np.isnan(np.asarray(traces(view)["0.weight"].y)).tolist() == [False, True]


@pytest.mark.parametrize("role", ["gradient", "value"])
@pytest.mark.parametrize("losses", [[], falling(25), [1.0] * 10 + [math.nan] * 15])
def test_folding_many_equals_folding_one_by_one(losses, role):
    rec = training(losses)
    view = GradientView(rec, role=role)
    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event)
        many = view.fold_many(view.start(), Stretch(rec, 0, k))
        assert many.by_name.keys() == one.by_name.keys()
        assert list(many.by_name.values()) == list(one.by_name.values())


def test_a_player_stops_once_a_step():
    view = GradientView(training(falling(30)))
    assert len(view.stop_positions(view.recording)) == 3


def test_more_parameters_than_lines_are_counted_and_the_chosen_one_is_drawn():
    rec = recorded([
        RunStarted("many", 1, 1, 1, "m", "SGD"),
        *(ParameterMeasured(1, f"{k}.weight", "gradient", 1, 1.0, 0.0, 1.0, 0, (0.0, 1.0), (1,)) for k in range(30)),
    ])  # fmt: skip
    view = GradientView(rec)
    view.selected = "29.weight"
    assert "29.weight" in traces(view)
    assert len(traces(view)) == LINES + 1
    assert "20 more parameters are in the list only" in view.picture_at(len(rec)).caption


def test_nothing_yet_is_said():
    view = GradientView(recorded([]))
    assert view.text_at(0).startswith("GradientView shows the gradients of a training by parameter, and none was")
    assert GradientView(training(falling(10))).text_at(0) == "Gradients by parameter: nothing was measured yet."
    unmeasured = GradientView(training(falling(9)))
    assert "this training measured none. To get them: lab.fit(model, train, measure_every=10)" in unmeasured.text_at(9)


def test_the_histogram_has_the_colour_of_the_line_that_it_explains():
    rec = training(falling(30))
    view = GradientView(rec)
    view.selected = "0.bias"
    chart = view.picture_at(len(rec))
    names = [trace.name for trace in chart.figure.data]
    assert names[chart.figure.data[-1].meta["like"]] == "0.bias"
    drawn = svg_of(chart)
    assert f'fill="{COLORWAY["light"][1]}"' in drawn
    assert f'fill="{COLORWAY["light"][2]}"' not in drawn


def test_ticks_of_norms_within_two_powers_of_ten_are_few():
    view = GradientView(training([1.0] * 10 + [0.05] * 10))
    assert view.picture_at(len(view.recording)).figure.layout.yaxis.dtick == "D2"
