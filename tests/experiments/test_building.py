"""A graph each step, or once: all ways compute the same gradients, and what is told of them is what was timed."""

import math

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError
from lab.events import BuildBegun, BuildMeasured
from lab.experiments import building
from tests.widgets.golden import recorded
from widgets import BuildView


def loss(p, k):
    return lab.sum((p["w"] * 2.0 + p["b"]) ** 2) * k.shape[0]


GIVEN = {"w": np.ones(3), "b": 0.5}, np.array([1, 2])


@pytest.fixture(scope="module")
def found():
    return lab.measure_build(loss, *GIVEN, repeats=2)


def test_every_way_has_a_row_and_only_those_that_keep_a_graph_pay_before(found):
    assert [*found.ways] == [*building.WAYS]
    assert [row.once_ms > 0 for row in found.ways.values()] == [False, False, True, True]
    assert all(row.step_ms > 0 for row in found.ways.values())
    assert "define by run" in repr(found)


def test_the_graph_is_a_part_of_the_step_that_traces_it(found):
    assert 0 < found.ways["traced each step"].graph_ms < found.ways["traced each step"].step_ms
    assert math.isnan(found.ways["define by run"].graph_ms)


def test_the_recording_has_the_rows(found):
    assert found.recording[0] == BuildBegun("loss", building.WAYS, 2, False)
    assert list(found.recording)[1:] == [BuildMeasured(*row) for row in found.ways.values()]


def test_whole_numbers_are_arguments_without_a_gradient():
    with pytest.raises(ArgumentError, match="made of floats"):
        lab.measure_build(lambda k: k.sum(), np.array([1, 2]))


def test_the_view_draws_totals_and_says_from_which_step_on_a_kept_graph_takes_less():
    rows = [BuildMeasured("define by run", 0.0, 2.0, math.nan, math.nan),
            BuildMeasured("traced each step", 0.0, 9.0, 7.0, math.inf),
            BuildMeasured("kept, compiled", 30.0, 0.5, 0.0, 20)]  # fmt: skip
    rec = recorded([BuildBegun("f", tuple(r.way for r in rows), 3, False), *rows])
    view = BuildView(rec)
    lines = view.picture_at(len(rec)).figure.data
    assert [list(line.y)[:3] for line in lines] == [[2.0, 6.0, 20.0], [9.0, 27.0, 90.0], [30.5, 31.5, 35.0]]
    text = view.text_at(len(rec))
    assert text.splitlines()[0] == "Kept, compiled: 0.5 ms a step, 30.0 ms once before."
    assert "Kept, compiled takes less in all from step 20 on than define by run." in text
    assert "Traced each step never takes less than define by run." in text
    assert "Traced each step: 9.0 ms a step, of which the graph 7.0 ms." in text


def test_several_ways_that_never_pay_are_told_in_one_sentence():
    rows = [BuildMeasured("a", 0.0, 1.0, math.nan, math.nan)]
    rows += [BuildMeasured(way, 0.0, 2.0, math.nan, math.inf) for way in "bcd"]
    rec = recorded([BuildBegun("f", tuple(r.way for r in rows), 3, False), *rows])
    text = BuildView(rec).text_at(len(rec))
    assert "B, c and d never take less than a." in text
    assert text.count("never") == 1


@pytest.mark.parametrize(("once", "gain", "steps"), [(10.0, 4.0, 3), (0.0, 1.0, 1), (5.0, 0.0, math.inf)])
def test_what_is_paid_once_is_divided_by_what_a_step_gains(once, gain, steps):
    assert building.paid_from(once, gain) == steps
