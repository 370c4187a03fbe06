"""DifferenceView: two columns around the first difference, from real recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lab
from lab.errors import ViewError
from lab.events import Recording
from tests.widgets.golden import falling, recorded, training
from tests.widgets.test_player_places import steps_recorded
from widgets import DifferenceView, Player
from widgets.pictures.tree import tree_of
from widgets.pictures.twin import svg_of


def run(weight=3.0, function=lab.tanh):
    x = lab.tensor(np.arange(3.0), requires_grad=True, name="x")
    with lab.record() as rec:
        lab.sum(function(x * weight)).backward()
    return rec


def states(scene):
    return [(n.id, n.state) for n in scene.nodes]


def test_the_rows_are_what_both_recorded_around_the_difference():
    a, b = run(), run(function=lab.exp)
    view = DifferenceView(a, b)
    scene = view.picture_at(len(a))
    odd = [n for n in scene.nodes if n.state == "trouble"]
    assert [n.label for n in odd] == ["tanh, shape (3,), float64", "exp, shape (3,), float64"]
    assert [n.id for n in odd] == ["a4", "b4"]
    found = view.comparison.difference
    assert found is not None
    assert (a[found.a.position].op, b[found.b.position].op) == ("tanh", "exp")
    assert [m.text for m in scene.marks if m.id.startswith("sign")] == ["=", "=", "=", "=", "≠"]
    assert sum(n.state == "done" for n in scene.nodes) == 8
    assert len(scene.nodes) == 16
    assert all(n.width / 2 <= n.x <= scene.extent[0] - n.width / 2 for n in scene.nodes)
    assert all(n.y + n.height / 2 <= scene.extent[1] for n in scene.nodes)


def test_a_player_steps_through_the_rows_until_they_part():
    player = Player(DifferenceView(run(), run(function=lab.exp)))
    assert len(player.transport.stops) == 5
    assert player.marks == {4: "first difference"}
    assert player.transport.index == 4  # it opens where the two are compared to the end
    player._go(0)
    assert sum(n.state == "waiting" for n in player.views[0].picture_at(player.transport.position).nodes) == 6
    player.next_mark()
    assert player.transport.index == 4
    assert not [n for n in player.views[0].picture_at(player.transport.position).nodes if n.state == "waiting"]


def test_what_went_before_is_counted_in_words():
    a, b = steps_recorded(3), steps_recorded(3)
    assert DifferenceView(a, b).comparison.difference is None
    first, second = training(falling(40)), training([*falling(39), 9.0])
    scene = DifferenceView(first, second).picture_at(len(first))
    assert scene.marks[2].text == "51 events of rank 0 before these agree"
    assert "9.0" in scene.caption


def test_one_that_ended_is_drawn_as_ended():
    short, long = training(falling(5)), training(falling(9))
    scene = DifferenceView(short, long).picture_at(len(short))
    ended = [n for n in scene.nodes if n.state == "trouble"]
    assert [n.label.split(" ")[0] for n in ended] == ["run", "step"]
    cut = Recording(run="*", limit=3)
    cut._store = recorded(list(short)[:3])._store
    scene = DifferenceView(cut, short).picture_at(3)
    assert next(n.label for n in scene.nodes if n.state == "trouble") == "a has ended"
    scene = DifferenceView(short, cut).picture_at(len(short))
    assert [n.label for n in scene.nodes if n.state == "trouble"][1] == "b has ended"


def test_no_difference_is_said_and_not_an_empty_picture():
    scene = DifferenceView(run(), run()).picture_at(0)
    assert [n.label for n in scene.nodes] == ["No difference"]
    assert "agree" in scene.nodes[0].sublabel
    assert len(DifferenceView(recorded([]), recorded([])).picture_at(0).nodes) == 1


def test_every_picture_can_be_drawn_written_and_read(tmp_path: Path):
    for a, b in ((run(), run(4.0)), (run(), run()), (training(falling(3)), training(falling(9)))):
        view = DifferenceView(a, b, names=("before <b>", "after & later"))
        for stop in view.stop_positions(a).tolist():
            scene = view.picture_at(stop)
            assert tree_of(scene)["nodes"]
            assert svg_of(scene).startswith("<svg")
            assert view.text_at(stop).startswith(view.comparison.text)
        assert view.export(tmp_path / "page.html").stat().st_size > 1000
    assert 'data-opens="0"' not in view.export(tmp_path / "page.html").read_text("utf-8")


def test_it_lives_in_a_notebook_and_leaves_nothing():
    view = DifferenceView(run(), run(4.0))
    assert view.widget is view.host
    view.dispose()


def test_titles_name_the_columns():
    a, b = run(), run()
    a.meta["title"] = "seed 0"
    assert DifferenceView(a, b).names == ("a: seed 0", "b")


def test_what_is_no_recording_is_refused():
    with pytest.raises(ViewError, match="DifferenceView shows a recording"):
        DifferenceView(run(), 3)
