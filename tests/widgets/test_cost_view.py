"""CostView: two panels of three lines each, the measured times in them, an upright where they cross."""

from __future__ import annotations

from lab.events import CostBegun, CostMeasured, CrossingFound
from tests.widgets.golden import recorded
from widgets import CostView

TIMES = {"numeric": 1.0, "forward": 4.0, "reverse": 8.0}


def experiment(told=False):
    """Lines whose times are known: forward costs 4 ms an input, reverse 8 ms an output."""
    events = [CostBegun("network", 2, 3, told)]
    for sweep in ("inputs", "outputs"):
        for size in (1, 2, 8):
            n, m = (size, 2) if sweep == "inputs" else (2, size)
            for way, times in (("numeric", n + 1), ("forward", n), ("reverse", m)):
                runs, walks = (1, m) if way == "reverse" else (times, 0)
                events.append(CostMeasured(sweep, way, n, m, TIMES[way] * times, runs, walks))
    events.append(CrossingFound("inputs", "forward", "reverse", 4.0))
    return recorded(events)


def test_each_panel_has_the_three_lines_as_measured():
    rec = experiment()
    traces = [t for t in CostView(rec).picture_at(len(rec)).figure.data if t.name in TIMES]
    assert [(t.name, t.xaxis, list(t.x), list(t.y)) for t in traces] == [
        ("numeric", "x", [1, 2, 8], [2.0, 3.0, 9.0]), ("forward", "x", [1, 2, 8], [4.0, 8.0, 32.0]),
        ("reverse", "x", [1, 2, 8], [16.0, 16.0, 16.0]), ("numeric", "x2", [1, 2, 8], [3.0, 3.0, 3.0]),
        ("forward", "x2", [1, 2, 8], [8.0, 8.0, 8.0]), ("reverse", "x2", [1, 2, 8], [8.0, 16.0, 64.0]),
    ]  # fmt: skip
    assert [t.showlegend for t in traces] == [True] * 3 + [False] * 3


def test_the_crossing_is_an_upright_in_its_panel_and_a_sentence():
    rec = experiment()
    picture = CostView(rec).picture_at(len(rec))
    (mark,) = [t for t in picture.figure.data if t.name not in TIMES]
    assert (mark.xaxis, list(mark.x), list(mark.y)) == ("x", [4.0, 4.0], [2.0, 64.0])
    assert "from 4 inputs on reverse is cheaper than forward" in picture.caption


def test_each_measurement_is_a_stop_and_the_words_count_its_passes():
    rec = experiment()
    view = CostView(rec)
    stops = [int(p) for p in view.stop_positions(rec)]
    assert len(stops) == 18
    assert view.sentence_at(stops[5]) == "2 inputs, 2 outputs, reverse: 16.0 ms, passes: 1 forward and 2 backward."
    assert [len(t.x) for t in view.picture_at(stops[3]).figure.data] == [2, 1, 1, 0, 0, 0]


def test_the_caption_says_when_telling_made_all_slower():
    for told in (False, True):
        rec = experiment(told)
        assert ("makes all slower" in CostView(rec).picture_at(len(rec)).caption) == told
