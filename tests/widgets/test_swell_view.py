"""SwellView: a line for each count, on a logarithmic axis where the expression runs away."""

from __future__ import annotations

from lab.events import SwellBegun, SwellMeasured
from tests.widgets.golden import recorded
from widgets import SwellView


def experiment(*rows, most=5_000):
    return recorded([SwellBegun("sin", most), *(SwellMeasured(*row) for row in rows)])


SMALL = [(1, 1, 1, 1, 3, "cos(x)"), (2, 4, 4, 2, 6, "cos(x)*cos(sin(x))"), (3, 8, 7, 3, 9, "")]


def test_each_count_is_a_line_against_depth():
    rec = experiment(*SMALL)
    traces = SwellView(rec).picture_at(len(rec)).figure.data
    assert [list(t.x) for t in traces] == [[1, 2, 3]] * 4
    assert {t.name: list(t.y) for t in traces} == {
        "expression": [1, 4, 8], "shared parts": [1, 4, 7],
        "forward, backward": [3, 6, 9], "tape": [1, 2, 3],
    }  # fmt: skip


def test_the_axis_is_logarithmic_only_where_counts_run_away():
    kinds = []
    for rows in (SMALL, [*SMALL, (4, 90, 9, 4, 12, "")]):
        rec = experiment(*rows)
        kinds.append(SwellView(rec).picture_at(len(rec)).figure.layout.yaxis.type)
    assert kinds == [None, "log"]


def test_the_caption_writes_the_longest_derivative_that_is_short_and_says_when_it_ends_early():
    rec = experiment(*SMALL, most=7)
    captions = [SwellView(rec).picture_at(p).caption for p in (3, 4)]
    assert "At depth 2 it is cos(x)*cos(sin(x))." in captions[1]
    assert ["ends here" in c for c in captions] == [False, True]
    assert "Depth 3: 8 operations in the derivative, 7 with shared parts; 3 on the tape" in captions[1]
