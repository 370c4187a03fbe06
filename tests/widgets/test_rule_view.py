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


def test_the_maps_are_both_jacobians_and_what_is_between():
    rec = experiment()
    *maps, wrong = RuleView(rec).picture_at(len(rec)).figure.data
    assert [np.array(m.z).tolist() for m in maps] == [EXPECTED, ACTUAL, [[0.0, 0.0], [0.0, 9.0]]]
    assert [(m.zmin, m.zmax) for m in maps] == [(-5.0, 5.0), (-5.0, 5.0), (-9.0, 9.0)]  # the first two in one scale
    assert [list(m.x) for m in maps] == [["x[0]", "x[1]"]] * 3
    assert (list(wrong.x), list(wrong.y)) == (["x[1]"], ["[1]"])


def test_a_right_rule_has_no_marks():
    rec = experiment()
    picture = RuleView(rec).picture_at(2)
    assert len(picture.figure.data[-1].x or ()) == 0
    assert "all 4 entries right" in picture.caption


def test_rounding_of_a_right_rule_has_no_colour():
    fields = {"actual": (1.0, 2.0 + 1e-14, 3.0, -4.0), "errors": (0.0, 1e-3, 0.0, 0.0)}
    rounded = replace(comparison(EXPECTED, EXPECTED), **fields)
    *_, between, _ = RuleView(recorded([RuleCheckBegun("f", 1e-6), rounded])).picture_at(2).figure.data
    assert (between.zmin, between.zmax) == (-4.0, 4.0)


def test_the_words_name_the_worst_entry_and_the_fault_without_folders():
    rec = experiment()
    text = RuleView(rec).text_at(len(rec))
    assert text.splitlines() == [
        "The rule of custom g for x[1] is at fault, at mine.py, line 3.",
        "f in reverse mode: 1 of 4 entries is WRONG; worst: result[1] by x[1] is 5.0, differences say −4.0.",
        "f in reverse mode: all 4 entries right.",
    ]


def test_entries_that_are_no_numbers_leave_a_gap():
    rec = recorded([RuleCheckBegun("f", 1e-6), comparison([[float("nan"), 1.0], [2.0, 3.0]], [[1.0, 1.0], [2.0, 3.0]])])
    picture = RuleView(rec).picture_at(2)
    assert picture.figure.data[0].zmax == 3.0
    assert list(picture.figure.data[-1].x) == ["x[0]"]
