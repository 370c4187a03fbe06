"""What is written to files stays small and is written soon, however long the recording; what was left out is said."""

from __future__ import annotations

import gzip
import json
import re
import xml.dom.minidom
from base64 import b64decode

import pytest

import lab
from lab.errors import ViewError
from lab.events import Event
from tests.widgets.golden import (
    falling,
    leaf,
    op,
    product_plus_x,
    recorded,
    rule,
    stored,
    training,
    two_steps_of_descent,
)
from widgets import GradientView, GraphView, LossView, Player
from widgets.export.film import MAX_PARTS
from widgets.export.moving import LIVELY, MOST_STOPS, WIDEST, moving_svg
from widgets.pictures.twin import caption_below, drawing


def chain(n: int):
    """x -> sin -> sin -> ...: n operations, then the walk back."""
    events: list[Event] = leaf(0, "x", 0.5)
    for k in range(1, n + 1):
        events += op(k, "sin", (k - 1,), 0.5 - k / 1000)
    for k in range(n, 0, -1):
        events += rule(k, "sin", 1.0 + k / 1000, {0: (k - 1, 1.0)}, 1)
    return recorded([*events, *stored(0, 1.0)])


def frames_in(page: str):
    packed = re.search(r'id="lab-frames">([^<]*)<', page)
    assert packed is not None
    return json.loads(gzip.decompress(b64decode(packed.group(1))))


def test_a_long_chain_becomes_a_small_moving_picture_that_says_what_it_left_out(tmp_path):
    text = GraphView(chain(300), most=500).export(tmp_path / "a.svg").read_text()
    assert len(text) < 3e6
    assert f"{MOST_STOPS} of 601 stops" in text
    xml.dom.minidom.parseString(text)


def test_a_long_chain_becomes_a_small_page_that_says_what_it_left_out(tmp_path):
    page = GraphView(chain(300), most=500).export(tmp_path / "a.html").read_text()
    frames = frames_in(page)
    assert len(page) < 2e6
    assert len(frames) * 601 <= MAX_PARTS
    assert f"{len(frames)} of 601 stops" in page
    assert frames[0]["label"] == "1 of 601"
    assert frames[-1]["label"] == "601 of 601"


def test_a_page_with_every_stop_says_nothing_of_the_kind(tmp_path):
    page = GraphView(product_plus_x()).export(tmp_path / "a.html").read_text()
    assert len(frames_in(page)) == 7
    assert "of 7 stops" not in page


def test_the_words_of_a_frame_are_few():
    frames = Player(GraphView(chain(100), most=500)).frames()
    assert max(frame.text.count("\n") for frame in frames) <= 12
    assert "more lines" in frames[-1].text
    assert "more lines" not in Player(GraphView(product_plus_x())).frames()[-1].text


def test_the_stops_of_a_film_are_the_first_the_last_and_evenly_between():
    frames = Player(GraphView(chain(50))).frames(10)
    assert [f.label for f in frames][::9] == ["1 of 101", "101 of 101"]
    assert len(frames) == 10


def test_charts_of_a_long_run_become_small_files(tmp_path):
    rec = training(falling(20_000))
    for view in (LossView(rec), GradientView(rec)):
        assert len(view.export(tmp_path / "a.svg").read_text()) < 3e6
        assert sum(len(json.dumps(f)) for f in frames_in(view.export(tmp_path / "a.html").read_text())) < 8e6


def shown_at(svg, second):
    """The elements of the moving picture that are seen then."""
    root = xml.dom.minidom.parseString(svg).documentElement
    total = float(re.search(r"/\* (\S+) s in all \*/", svg).group(1))
    shares = re.findall(r"@keyframes (\w+) \{ 0% \{ visibility: visible; \} ([\d.]+)%", svg)
    lasts = {name: total * float(share) / 100 for name, share in shares}
    seen = []
    for layer in (g for g in root.childNodes if g.nodeName == "g" and g.hasChildNodes()):
        for part in layer.childNodes:
            if not part.getAttribute("class").startswith("stop"):
                seen.append(part.toxml())
                continue
            style = dict(item.split(": ") for item in part.getAttribute("style").split("; "))
            begin = float(style["animation-delay"].rstrip("s"))
            if begin <= second < begin + lasts[style["animation-name"]]:
                seen += [child.toxml() for child in part.childNodes]
    return sorted(seen)


@pytest.mark.parametrize("rec", [product_plus_x(2), recorded(two_steps_of_descent())])
def test_at_each_moment_the_moving_picture_shows_exactly_that_stop(rec):
    frames = Player(GraphView(rec)).frames()
    svg = moving_svg(frames, seconds=1.0)
    seconds = [*range(len(frames)), len(frames), len(frames) + 1]  # the last stays three times as long
    for frame, second in zip([*frames, *frames[-1:] * 2], seconds, strict=True):
        scene = frame.pictures[0]
        drawn = drawing(scene)
        words, _ = caption_below(scene, drawn.width, drawn.height)
        elements = "".join([*(e for layer in drawn.layers for e in layer), words])
        there = xml.dom.minidom.parseString(f"<g>{elements}</g>").documentElement
        assert shown_at(svg, second + 0.5) == sorted(child.toxml() for child in there.childNodes)


def test_a_wide_drawing_is_seen_through_a_window_that_follows_what_happens():
    frames = Player(GraphView(chain(60), most=500)).frames(20)
    svg = moving_svg(frames, seconds=1.0)
    assert xml.dom.minidom.parseString(svg).documentElement.getAttribute("width") == "1000"
    lefts = [float(x) for x in re.findall(r"% \{ transform: translateX\((\S+)px\)", svg)]
    assert len(lefts) == len(frames)
    for frame, left in zip(frames, lefts, strict=True):
        lively = [node for node in frame.pictures[0].nodes if node.state in LIVELY]
        assert lively
        assert all(0 < node.x + left < WIDEST for node in lively)
    assert "pan" not in moving_svg(Player(GraphView(product_plus_x())).frames())


def test_a_wide_film_ends_on_all_of_it_and_who_asked_for_less_motion_sees_all_of_it():
    frames = Player(GraphView(chain(60), most=500)).frames(20)
    svg = moving_svg(frames, seconds=1.0)
    end = re.findall(r"transform: translateY\(\S+px\) scale\((\S+)\);", svg)
    assert len(end) == 3, "after the last stop, at the end of time, and without an animation"
    furthest = max(node.x + node.width / 2 for frame in frames for node in frame.pictures[0].nodes)
    assert all(furthest * float(scale) < WIDEST for scale in end)
    assert ".pan { animation: none; }" in svg


def test_a_film_of_six_operations_is_seen_whole_at_every_stop():
    x = lab.tensor(2.0, requires_grad=True)
    with lab.record() as recording:
        y = x
        for _ in range(6):
            y = y.tanh()
    frames = Player(GraphView(recording)).frames()
    svg = moving_svg(frames)
    across = float(xml.dom.minidom.parseString(svg).documentElement.getAttribute("width"))
    assert across > WIDEST
    assert "pan" not in svg


def test_a_wide_still_picture_is_not_shrunk_until_nobody_can_read_it():
    assert "max-width:none" in GraphView(chain(60), most=500).svg()
    assert "max-width:100%" in GraphView(product_plus_x()).svg()


@pytest.mark.parametrize("name", ["a.jpg", "a", "a.pdf"])
def test_only_html_svg_and_png_can_be_written(tmp_path, name):
    with pytest.raises(ViewError, match=r"written as \.html, \.svg or \.png"):
        GraphView(product_plus_x()).export(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ViewError, match="folder") as caught:
        GraphView(product_plus_x()).export(tmp_path / "nowhere" / "a.html")
    assert "nowhere" in str(caught.value)
    assert ".part" not in str(caught.value)


@pytest.mark.parametrize("ending", ["html", "svg"])
def test_a_place_that_takes_no_file_is_told_in_three_lines(ending, tmp_path):
    path = tmp_path / f"x.{ending}"
    path.mkdir()
    with pytest.raises(ViewError, match="the file cannot be written") as caught:
        LossView(training(falling(3))).export(path)
    assert len(str(caught.value).splitlines()) == 3
