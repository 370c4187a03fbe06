"""RuleView: three maps with the numbers that were compared, and a mark on each entry that is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lab.events import FaultFound, JacobianCompared, RuleCheckBegun
from tests.widgets.golden import recorded
from widgets import RuleView

EXPECTED, ACTUAL = [[1.0, 2.0], [3.0, -4.0]], [[1.0, 2.0], [3.0, 5.0]]


def comparison(expected, actual, what="f"):
    wrong = (np.array(expected) != np.array(actual)).astype(float) * 1e5
    flat = (tuple(map(float, np.ravel(a))) for a in (expected, actual, wrong))
    ok = expected == actual
    return JacobianCompared(what, "reverse mode", ok, ("x[0]", "x[1]"), ("result[0]", "result[1]"), *flat)


def experiment():
    return recorded([
        RuleCheckBegun("f", 1e-6), comparison(EXPECTED, EXPECTED), comparison(EXPECTED, ACTUAL),
        FaultFound("custom g", "x[1]", "/home/somebody/mine.py, line 3"),
    ])  # fmt: skip


def drawn(rec, position):
    """The maps of a picture, and the marks on them."""
    data = RuleView(rec).picture_at(position).figure.data
    return [t for t in data if t.type == "heatmap"], [t for t in data if t.type == "scatter" and len(t.x)]


def test_the_maps_are_both_jacobians_and_what_is_between():
    rec = experiment()
    maps, marks = drawn(rec, len(rec))
    wrong = marks[-1]
    assert [np.array(m.z).tolist() for m in maps] == [EXPECTED, ACTUAL, [[0.0, 0.0], [0.0, 9.0]]]
    assert [(m.zmin, m.zmax) for m in maps] == [(-5.0, 5.0), (-5.0, 5.0), (-9.0, 9.0)]  # the first two in one scale
    assert [list(m.x) for m in maps] == [["x[0]", "x[1]"]] * 3
    assert (list(wrong.x), list(wrong.y)) == (["x[1]"], ["[1]"])


def test_a_right_rule_has_no_marks():
    rec = experiment()
    picture = RuleView(rec).picture_at(2)
    assert drawn(rec, 2)[1] == []
    assert "all 4 entries right" in picture.caption


def test_rounding_of_a_right_rule_has_no_colour():
    fields = {"actual": (1.0, 2.0 + 1e-14, 3.0, -4.0), "errors": (0.0, 1e-3, 0.0, 0.0)}
    rounded = replace(comparison(EXPECTED, EXPECTED), **fields)
    (*_, between), _ = drawn(recorded([RuleCheckBegun("f", 1e-6), rounded]), 2)
    assert (between.zmin, between.zmax) == (-4.0, 4.0)


def test_the_words_name_the_worst_entry_and_the_fault_without_folders():
    rec = experiment()
    text = RuleView(rec).text_at(len(rec))
    assert text.splitlines() == [
        "The rule of custom g for x[1] is at fault, at mine.py, line 3.",
        "f in reverse mode: 1 of 4 entries is WRONG; worst: result[1] by x[1] is 5.0, differences say −4.0.",
        "f in reverse mode: all 4 entries right.",
    ]


NAN = float("nan")


def test_what_is_no_number_is_written_where_it_stands():
    rec = recorded([RuleCheckBegun("f", 1e-6), comparison([[1.0, -2.0], [3.0, 4.0]], [[NAN, -2.0], [3.0, NAN]])])
    (expected, *_), (told, wrong) = drawn(rec, 2)
    assert np.array(expected.text).tolist() == [["1.0", "−2.0"], ["3.0", "4.0"]]
    assert (told.text, told.xaxis) == (("nan", "nan"), "x2")
    assert (list(told.x), list(told.y)) == (["x[0]", "x[1]"], ["[0]", "[1]"])
    assert list(wrong.x) == ["x[0]", "x[1]"]
    layout = RuleView(rec).picture_at(2).figure.layout
    assert [layout[axis].range for axis in ("xaxis", "xaxis2", "xaxis3")] == [(-0.5, 1.5)] * 3
    assert RuleView(rec).svg().count(">nan<") == 2


def test_entries_for_which_differences_have_no_number_are_told_not_called_right():
    known = comparison([[NAN, 1.0], [2.0, NAN]], [[5.0, 1.0], [2.0, NAN]])
    rec = recorded([RuleCheckBegun("f", 1e-4), replace(known, errors=(0.0,) * 4)])
    words = "f in reverse mode: 2 of 4 entries right; 2 cannot be compared, no number there."
    assert RuleView(rec).text_at(2) == words
    _, marks = drawn(rec, 2)
    assert marks[-1].text == ("?", "?")
    assert "off by more than 1e−4 of itself" in RuleView(rec).picture_at(2).caption
    assert "from −5.0 (blue) to 5.0 (orange)" in RuleView(rec).picture_at(2).caption


def test_a_gap_does_not_make_a_wrong_entry_less_wrong():
    rec = recorded([RuleCheckBegun("f", 1e-6), comparison([[NAN, 1.0], [2.0, 3.0]], [[1.0, 1.0], [2.0, 3.0]])])
    (expected, *_), marks = drawn(rec, 2)
    assert expected.zmax == 3.0
    assert (list(marks[-1].x), marks[-1].name) == (["x[0]"], "wrong")
    assert "1 of 4 entries is WRONG; worst: result[0] by x[0] is 1.0, differences say nan." in RuleView(rec).text_at(2)
