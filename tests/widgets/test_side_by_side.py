"""Two recordings on one clock: landmarks fall together, and the first difference is marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lab
from lab.errors import ViewError
from lab.events import BackwardStarted, Recording, StepFinished, bus
from tests.widgets.golden import product_plus_x, recorded, training
from tests.widgets.test_player_places import steps_recorded
from widgets import GraphView, LossView, Player, SideBySide
from widgets.landmarks import Landmarks
from widgets.player.alignment import aligned


def run(weight=3.0, more=0):
    """A walk forward and back; `more` operations make it longer."""
    x = lab.tensor(2.0, requires_grad=True, name="x")
    with lab.record() as rec:
        y = x * weight
        for _ in range(more):
            y = lab.tanh(y)
        y.backward()
    return rec


def column(draw, marks, n):
    """Ascending stops and landmarks among them."""
    stops = np.array(sorted(draw(st.sets(st.integers(1, 60), min_size=1, max_size=n))), np.int64)
    at = sorted(draw(st.sets(st.sampled_from(stops.tolist()), max_size=marks)))
    return stops, Landmarks.of([("step", np.array(at, np.int64) - 1, np.arange(1, len(at) + 1))])


@given(st.data())
def test_every_stop_of_both_is_seen_once_in_order_and_common_steps_fall_together(data):
    (a, marks_a), (b, marks_b) = (column(data.draw, 6, 20) for _ in range(2))
    pairs = aligned((a, b), (marks_a, marks_b))
    assert (np.diff(pairs, axis=0) >= 0).all()
    assert (np.diff(pairs, axis=0).sum(axis=1) > 0).all()
    for k, stops in enumerate((a, b)):
        assert set(stops.tolist()) <= set(pairs[:, k].tolist()) <= {0, *stops.tolist()}
    for step in range(min(len(marks_a.positions), len(marks_b.positions))):
        where = [int(np.searchsorted(pairs[:, k], m.positions[step])) for k, m in enumerate((marks_a, marks_b))]
        last = [
            int(np.searchsorted(pairs[:, k], m.positions[step], side="right")) for k, m in enumerate((marks_a, marks_b))
        ]
        assert max(where) < min(last), "one moment shows both"


def test_a_million_stops_are_aligned_by_columns():
    n = 1_000_000
    marks = Landmarks.of([("step", np.arange(0, n, 10), np.arange(n // 10))])
    stops = np.arange(1, n + 1)
    assert np.array_equal(aligned((stops, stops), (marks, marks)), np.stack([stops, stops], axis=1))


def test_a_run_that_does_more_has_the_other_wait_for_its_walk():
    both = SideBySide(run(), run(more=2), view=GraphView)
    assert both.marks == {1: "first difference", 3: "backward walk 1"}
    walk = next(stop for stop, name in both.marks.items() if name == "backward walk 1")
    both.seek(walk)
    starts = [v.recording.columns(BackwardStarted)["position"][0] for v in both.views]
    assert all(p > s for p, s in zip(both._positions(), starts, strict=True))
    both.back()
    assert all(p <= s for p, s in zip(both._positions(), starts, strict=True))


def test_steps_of_two_trainings_stand_beside_each_other():
    both = SideBySide(training([3.0, 2.0, 1.0], every=10**9), training([3.0, 2.0, 1.5, 1.2], every=10**9))
    assert isinstance(both.views[0], LossView)
    assert both.marks == {0: "step 1", 1: "step 2", 2: "first difference, step 3"}
    assert both.first_unlike == 2
    said = []
    for _ in range(4):
        said.append(both.text.splitlines()[0].split(":")[0])
        both.step()
    assert said == ["1 of 4, alike so far", "2 of 4, alike so far", "3 of 4, first difference", "4 of 4, they differ"]
    assert "the loss at step 3." in both.text


def test_recordings_that_are_alike_have_no_difference_marked():
    both = SideBySide(product_plus_x(), product_plus_x())
    assert both.first_unlike is None
    assert "first difference" not in both.marks.values()
    assert "No difference: " in both.text


def test_both_pictures_show_the_same_moment_and_are_taken_away_together():
    both = SideBySide(steps_recorded(2), steps_recorded(2), names=("before", "after"))
    assert both.widget is not None
    both.next_mark()
    both.next_mark()
    assert [v.position for v in both.views] == both._positions()
    heads = [column.children[0].value for column in both.widget.children[3].children]
    assert heads == ["before", "after"]
    both.dispose()


def test_a_page_has_both_pictures_their_names_and_the_difference(tmp_path: Path):
    both = SideBySide(run(), run(4.0), view=GraphView, names=("before", "after"))
    both.bookmark("look")
    frames = both.frames()
    assert [p.caption.split(":")[0] for p in frames[-1].pictures] == ["before", "after"]
    assert frames[0].note == "look"
    page = both.export(tmp_path / "both.html").read_text("utf-8")
    assert "data-wide" in page
    assert "First difference on rank 0: the constants of multiply" in page
    assert "3 in before, 4 in after." in page


def test_one_that_grows_is_followed():
    old, rec = training([3.0, 2.0]), Recording(run="*")
    bus.attach(rec)
    try:
        both = SideBySide(old, rec, view=LossView)
        assert both.live
        for k in (1, 2, 3):
            bus.emit(StepFinished(k, 0, 4.0 - k, 64, 1.0))
        both.to_end()
        assert len(both.transport.stops) == 3
        assert both._positions()[1] == 3
    finally:
        rec.close()


def test_what_cannot_stand_side_by_side_is_refused_in_three_lines():
    for made, problem in (
        (lambda: SideBySide(training([1.0]), run()), "no view in common"),
        (lambda: SideBySide(GraphView(run()), run()), "not two views"),
        (lambda: SideBySide(3, run()), "shows a recording"),
        (lambda: Player(GraphView(run()), GraphView(run())), "must show one recording"),
    ):
        with pytest.raises(ViewError, match=problem) as caught:
            made()
        assert len(str(caught.value).splitlines()) == 3


def test_recordings_with_nothing_in_common_can_still_be_seen():
    with lab.record(kinds=[BackwardStarted]) as rec:
        (lab.tensor(2.0, requires_grad=True) * 3.0).backward()
    both = SideBySide(recorded([StepFinished(1, 0, 1.0, 1, 1.0)], kinds=[StepFinished]), rec, view=GraphView)
    assert both.comparison is None
    assert "no kind of events in common" in both.text
