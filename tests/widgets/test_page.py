import gzip
import json
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import plotly.graph_objects as go
import pytest

from lab.errors import ViewError
from widgets.export.page import Frame, page, write_page
from widgets.pictures.chart import Chart
from widgets.pictures.patch import apply
from widgets.pictures.scene import Edge, Node, Scene
from widgets.pictures.tree import tree_of

NASTY = [
    "</script><script>alert(1)</script>",
    "<!-- ",
    "🧠",
    "\u202eabc",
    "a\0b",
    "x" * 10_000,
    "</title>",
    "\"'&",
    "\ud800",
]


def frame(i: int, words: str = "x") -> Frame:
    nodes = (Node("a", 40.0 * i, 0, 64, 36, words), Node("b", 0, 100, 64, 36, "b"))
    return Frame(f"step {i}", (Scene(nodes, (Edge("e", "a", "b"),), caption=words),), f"moved {i} times; {words}")


def stored(text: str) -> list[dict]:
    data = re.search(r'id="lab-frames">([^<]*)<', text)
    assert data
    return json.loads(gzip.decompress(b64decode(data.group(1))))


class Elements(HTMLParser):
    """The elements of a page, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)


def test_the_stored_frames_are_the_pictures_that_were_given():
    frames = [frame(i) for i in range(5)]
    rows = stored(page(frames, "five"))
    tree = None
    for row, original in zip(rows, frames, strict=True):
        tree = row["tree"] if tree is None else apply(tree, row["patch"])
        assert [{**p, "text": ""} for p in tree["pictures"]] == [{**tree_of(p), "text": ""} for p in original.pictures]
        assert (row["label"], row["text"]) == (original.label, original.text)


@pytest.mark.parametrize("words", NASTY)
def test_no_text_of_a_learner_becomes_markup(words):
    text = page([frame(0, words), frame(1, words)], words, words)
    plain = page([frame(0), frame(1)], "t", "d")
    assert Elements(text).found.count("script") == Elements(plain).found.count("script") == 2
    assert "alert(1)</script>" not in text
    text.encode("utf-8")


def test_the_page_has_language_title_landmark_heading_and_a_policy_that_forbids_everything_else():
    text = page([frame(0)], "A title", "what it shows")
    assert '<html lang="en">' in text
    assert "<title>A title</title>" in text
    assert "<main" in text
    assert "<h1>A title</h1>" in text
    assert "default-src 'none'" in text
    assert "unsafe-inline'; script" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_without_javascript_the_first_frame_is_there_as_svg_and_text():
    static = page([frame(0), frame(1)], "t").split('id="lab-static"')[1].split("</main>")[0]
    assert "<svg" in static
    assert "moved 0 times" in static


def test_plotly_is_inside_only_if_there_is_a_chart():
    without = page([frame(0)], "t")
    chart = Frame("one", (Chart(go.Figure(go.Scatter(y=[1, 2]))),))
    assert 'id="lab-plotly"' not in without
    assert len(without) < 175_000
    assert len(page([chart], "t")) > 1_500_000


def test_many_frames_cost_little():
    many, few = (len(page([frame(i) for i in range(n)], "t")) for n in (400, 2))
    assert many - few < 12_000


def test_no_frames_is_refused_with_a_hint():
    with pytest.raises(ViewError, match="a page needs at least one frame"):
        page([], "t")


def test_frames_of_different_kinds_are_refused():
    with pytest.raises(ViewError, match="every frame of a page holds the same kinds of pictures"):
        page([frame(0), Frame("two", (Chart(go.Figure()),))], "t")


def test_a_page_is_written_whole_and_nothing_else_is_left(tmp_path):
    path = write_page(tmp_path / "page.html", [frame(0)], "t")
    assert path == tmp_path / "page.html"
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_a_failed_write_leaves_the_old_page_and_no_part_of_the_new(tmp_path, monkeypatch):
    path = write_page(tmp_path / "page.html", [frame(0)], "old")

    def full(_self, _target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ViewError, match="No space left"):
        write_page(path, [frame(1)], "new")
    assert "<title>old</title>" in path.read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
