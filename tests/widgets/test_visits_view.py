"""VisitsView: visits of each node as they are counted by hand, at the end and on the way."""

from __future__ import annotations

import lab
from widgets import VisitsView
from widgets.pictures import theme


def walked(orders=("topological", "path"), n=3):
    y = lab.tensor(1.1, requires_grad=True, name="x")
    with lab.record() as rec:
        for _ in range(n):
            y = y * y
        for order in orders:
            lab.count_visits(y, order)
    return rec


def boxes(view, k):
    scene = view.picture_at(int(view.stop_positions(view.recording)[k]))
    return [(n.label, n.sublabel, n.gradient) for n in scene.nodes]


def test_at_the_end_each_box_has_both_counts():
    assert boxes(VisitsView(walked()), -1) == [
        ("x", "in order 1×", "path by path 8×"), ("v₁ = x * x", "in order 1×", "path by path 4×"),
        ("v₂ = v₁ * v₁", "in order 1×", "path by path 2×"), ("v₃ = v₂ * v₂", "in order 1×", "path by path 1×"),
    ]  # fmt: skip


def test_each_visit_is_a_stop_at_the_box_with_the_arrow_along_which_it_came():
    view = VisitsView(walked())
    stops = [int(p) for p in view.stop_positions(view.recording)]
    assert len(stops) == 4 + 15
    scene = view.picture_at(stops[6])  # the third of the second walk: v₃, v₂, v₁
    assert [n.label for n in scene.nodes if n.state == "active"] == ["v₁ = x * x"]
    (arrow,) = [e for e in scene.edges if e.state == "backward"]
    assert {n.id: n.label for n in scene.nodes}[arrow.target] == "v₂ = v₁ * v₁"
    assert boxes(view, 6)[1] == ("v₁ = x * x", "in order 1×", "path by path 1×")


def test_the_totals_and_the_latest_visit_are_told():
    rec = walked()
    words = VisitsView(rec).sentence_at(len(rec))
    assert words == "Visit 15, path by path: x. In order: 4 visits of 4 nodes. Path by path: 15 visits of 4 nodes."


def test_a_walk_that_is_made_again_is_counted_anew():
    view = VisitsView(walked(("path", "path"), n=2))
    assert boxes(view, -1)[0] == ("x", "in order 0×", "path by path 4×")
    assert boxes(view, 7)[0] == ("x", "in order 0×", "path by path 0×")


def test_the_words_for_the_colour_hold_in_every_theme():
    rec = walked()
    assert "a colour, the yellower, the more visits." in VisitsView(rec).picture_at(len(rec)).caption
    for colours in theme.SEQUENTIAL.values():
        rgb = [[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in colours]
        yellow = [(red + green) / 2 - blue for red, green, blue in rgb]
        assert max(yellow) == yellow[-1]
        assert [theme.luminance(c) for c in colours] == sorted(map(theme.luminance, colours))


def test_a_colour_means_the_same_at_every_stop_and_nothing_jumps():
    view = VisitsView(walked())
    first, last = (view.picture_at(int(view.stop_positions(view.recording)[k])) for k in (3, -1))
    assert [n.tone for n in view.picture_at(int(view.stop_positions(view.recording)[0])).nodes] == [None] * 3 + [1 / 8]
    assert [n.tone for n in first.nodes] == [1 / 8] * 4
    assert [n.tone for n in last.nodes] == [1, 4 / 8, 2 / 8, 1 / 8]
    assert [(n.x, n.y) for n in first.nodes] == [(n.x, n.y) for n in last.nodes]
