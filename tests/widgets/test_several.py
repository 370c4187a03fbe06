"""One page of several views: all are in it with their words, and the start lesson fits into 6 MB."""

from __future__ import annotations

import re

import pytest

from lab.errors import ViewError
from tests.widgets.golden import falling, product_plus_x, training
from tests.widgets.golden_pipeline import pipeline
from widgets import GraphView, Lines, LossView, PipelineView, Player, export_page
from widgets.pictures.scene import Node, Scene


def parts_of(page):
    """Headings with what stands below them."""
    return re.findall(r"<h2[^>]*>([^<]*)</h2>\n(?:<p>([^<]*)</p>)?", page)


def test_views_stand_below_one_another_with_their_words(tmp_path):
    rec = product_plus_x()
    page = export_page(
        tmp_path / "a.html", "A graph", "Values go along the arrows.", "Gradients come back.", GraphView(rec),
        "The same, played", Player(GraphView(rec), LossView(rec)), PipelineView(pipeline()),
        "Lists", Lines("step", "loss", a=[3.0, 1.0]), Scene((Node("n", 0, 0, 80, 40, "alone"),), title="One box"),
        title="Two numbers", about="What happened.",
    ).read_text()  # fmt: skip
    assert parts_of(page) == [
        ("A graph", "Values go along the arrows. Gradients come back."), ("The same, played", ""),
        (PipelineView.title, ""), ("Lists", ""), ("One box", ""),
    ]  # fmt: skip
    assert "<title>Two numbers</title>" in page
    assert "<p>What happened.</p>" in page
    assert page.count('class="lab-player"') == 5


def test_words_are_text_and_not_html(tmp_path):
    page = export_page(tmp_path / "a.html", "<b>x</b>", "</script><script>", GraphView(product_plus_x())).read_text()
    assert "<b>x" not in page
    assert "</script><script>" not in page


WRONG = {
    "nothing": ((), "a page needs pictures"),
    "only words": (("Heading",), "a page needs pictures"),
    "words at the end": ((GraphView(product_plus_x()), "and so on"), "a page needs pictures"),
    "a number": ((3,), "no picture that a page can show"),
    "a recording": ((product_plus_x(),), "no picture that a page can show"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_page_is_told_in_three_lines_and_leaves_no_file(what, tmp_path):
    parts, said = WRONG[what]
    with pytest.raises(ViewError, match=said) as caught:
        export_page(tmp_path / "a.html", *parts)
    assert len(str(caught.value).splitlines()) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.svg", "a.png", "a.txt", "nowhere/a.html"])
def test_only_a_page_can_hold_several(name, tmp_path):
    with pytest.raises(ViewError):
        export_page(tmp_path / name, GraphView(product_plus_x()))
    assert list(tmp_path.iterdir()) == []


def test_ten_long_views_stay_small(tmp_path):
    views = [LossView(training(falling(3000))) for _ in range(10)]
    assert export_page(tmp_path / "a.html", *views).stat().st_size < 20e6
