import xml.dom.minidom
from pathlib import Path

import lab
from widgets import GraphView, Player
from widgets.export.moving import moving_svg

README_PICTURE = Path(__file__).parents[2] / "notebooks" / "pictures" / "first_graph.svg"


def frames():
    with lab.record() as recording:
        x = lab.tensor(2.0, requires_grad=True, name="x")
        y = lab.tensor(3.0, requires_grad=True, name="y")
        z = x * y + x
        z.backward()
    recording.meta["created"] = "2026-11-29T21:17:00+00:00"  # when the picture in the README was made
    return Player(GraphView(recording)).frames()


def test_what_does_not_change_is_drawn_once_and_the_last_stop_is_marked():
    svg = moving_svg(frames(), seconds=2.0)
    root = xml.dom.minidom.parseString(svg).documentElement
    groups = [g for g in root.getElementsByTagName("g") if g.getAttribute("class").startswith("stop")]
    last = [g.toxml() for g in groups if g.getAttribute("class") == "stop last"]
    assert sum("grad +4.0" in g for g in last) == 1
    assert "18 s in all" in svg
    assert svg.count(">y</text>") < len(frames())


def test_who_asked_for_less_motion_sees_the_last_stop_only():
    assert "prefers-reduced-motion: reduce" in moving_svg(frames())


def test_a_view_is_exported_as_a_moving_picture_or_as_a_page(tmp_path):
    with lab.record() as recording:
        lab.tensor(2.0, requires_grad=True) * 3.0
    view = GraphView(recording)
    assert view.export(tmp_path / "a.svg").read_text().startswith("<svg")
    assert view.export(tmp_path / "a.html").read_text().startswith("<!doctype html>")


def test_the_picture_in_the_readme_is_what_the_run_gives():
    assert README_PICTURE.read_text(encoding="utf-8") == moving_svg(frames())
