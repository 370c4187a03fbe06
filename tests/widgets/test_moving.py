import xml.dom.minidom
from pathlib import Path

import lab
from widgets import GraphView, Player
from widgets.moving import moving_svg

README_PICTURE = Path(__file__).parents[2] / "notebooks" / "pictures" / "first_graph.svg"


def frames():
    with lab.record() as recording:
        x = lab.tensor(2.0, requires_grad=True, name="x")
        y = lab.tensor(3.0, requires_grad=True, name="y")
        z = x * y + x
        z.backward()
    return Player(GraphView(recording)).frames()


def test_every_stop_is_in_the_moving_picture_and_the_last_stays_longest():
    stops = frames()
    root = xml.dom.minidom.parseString(moving_svg(stops, seconds=2.0)).documentElement
    groups = [g for g in root.getElementsByTagName("g") if g.getAttribute("class").startswith("stop")]
    assert [g.getAttribute("style") for g in groups] == [f"animation-delay: {2 * i}s" for i in range(len(stops) + 2)]
    assert [g.getAttribute("class") for g in groups].count("stop last") == 1
    assert "grad +4.0" in groups[-1].toxml()


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
