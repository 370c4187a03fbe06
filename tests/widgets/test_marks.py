"""Marks: lines, bars and words of a scene; and where the parts of a pipeline's board stand."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from lab.errors import ViewError
from widgets.layout.gantt import Board
from widgets.pictures.geometry import hatch
from widgets.pictures.scene import MARKS_ABOVE, MARKS_BELOW, Mark, Node, Scene
from widgets.pictures.theme import COLOURS, contrast
from widgets.pictures.tree import tree_of
from widgets.pictures.twin import svg_of

BOX = (Node("a", 40, 20, 80, 40, "box"),)


@pytest.mark.parametrize("kind", MARKS_BELOW + MARKS_ABOVE)
def test_every_kind_draws_below_or_above_the_nodes(kind):
    scene = Scene(BOX, marks=(Mark("m", kind, 5, 5, 30, 8, "words & more"),), extent=(100, 60))
    assert tree_of(scene)["marks"]["#m"]["kind"] == kind
    svg = svg_of(scene)
    ET.fromstring(svg)
    without = svg_of(Scene(BOX, extent=(100, 60)))
    extra = next(part for part in svg.split("<") if part not in without.split("<"))
    assert (svg.index(f"<{extra}") < svg.index(">box<")) == (kind in MARKS_BELOW)


def test_words_are_cut_to_their_room():
    marks = (Mark("m", "text", 0, 0, 60, 0, "a rather long text"), Mark("n", "text", 0, 9, 0, 0, "a rather long text"))
    svg = svg_of(Scene(BOX, marks=marks))
    assert svg.count("a rather long text") == 1
    assert "…" in svg


def test_two_marks_of_one_id_are_refused():
    with pytest.raises(ViewError, match="two marks of a scene have the same id"):
        tree_of(Scene(BOX, marks=(Mark("m", "grid", 0, 0), Mark("m", "grid", 0, 9))))


def test_a_bar_of_a_gantt_keeps_its_whole_label_and_no_badge():
    bar = Node("b", 20, 20, 9, 26, "15", kind="forward_span", state="active")
    svg = svg_of(Scene((bar,)))
    assert ">15<" in svg
    assert "<circle" not in svg


def test_forward_and_backward_bars_differ_without_colour():
    svgs = [svg_of(Scene((Node("b", 20, 20, 40, 26, "1", kind=kind),))) for kind in ("forward_span", "backward_span")]
    assert [svg.count("<path") for svg in svgs] == [0, 1]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_reads_on_bars_and_devices(mode):
    colours = COLOURS[mode]
    for fill in ("forward_span", "backward_span", "device", "op", "constant"):
        assert contrast(colours["text"], colours[fill]) >= 4.5
    for fill in ("device", "op", "constant"):
        assert contrast(colours["muted"], colours[fill]) >= 4.5
    assert contrast(colours["trouble"], colours["constant"]) >= 4.5


@pytest.mark.parametrize(("width", "height", "step"), [(20, 10, 6), (3, 28, 6), (40, 5, 5)])
def test_hatching_stays_inside_its_box(width, height, step):
    lines = hatch(width, height, step).split("M")[1:]
    numbers = [float(v) for line in lines for point in line.split("L") for v in point.split()]
    assert all(0 <= x <= width + 0.05 for x in numbers[::2])
    assert all(0 <= y <= height + 0.05 for y in numbers[1::2])


@pytest.mark.parametrize("n_ranks", [1, 2, 4, 8, 16])
def test_the_strands_of_a_board_do_not_overlap(n_ranks):
    board = Board(n_ranks, n_ranks, 100.0)
    strands = [strand for rank in range(n_ranks) for strand in board.row(rank)]
    for a, b in pairwise(strands):
        assert a.top + a.height <= b.top + 1e-9
    assert strands[-1].top + strands[-1].height <= board.extent[1]
    boxes = [board.stage(k) for k in range(n_ranks)]
    assert all(a.x + a.width / 2 < b.x - b.width / 2 for a, b in pairwise(boxes))


def test_ticks_are_round_and_inside():
    for end in (0.3, 1.0, 7.0, 152.0, 4000.0):
        ticks = Board(2, 2, end).ticks()
        assert 3 <= len(ticks) <= 8
        assert ticks[0][1].strip("0.") == ""
        assert ticks[-1][0] <= Board(2, 2, end).x(end) + 1e-6
