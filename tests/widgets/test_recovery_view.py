"""RecoveryView: who was struck, lost and replaced, and where the training went on, as events told it."""

from __future__ import annotations

import pytest

from lab.events import (
    RankFinished,
    RankLost,
    RankStarted,
    RunStarted,
    SnapshotWritten,
    StateKept,
    StepFinished,
    TrainingResumed,
    WorkerHandled,
)
from tests.widgets.golden_cluster import address
from tests.widgets.golden_pipeline import MS, recorded_by_ranks
from widgets import RecoveryView
from widgets.fold import Stretch
from widgets.pictures.twin import svg_of


def started(at, generation, workers):
    return [(at, rank, RankStarted(generation, 2, address(w), 1000 + w)) for rank, w in enumerate(workers)]


def step(at, n):
    return (at * MS, 0, StepFinished(n, 0, 2.0 / n, 64, 1.0))


def story(*, resumed_from=2):
    """Two ranks: rank 1 is killed after step 3, known 20 ms later, and replaced."""
    rows = [*started(0, 1, (0, 1)), step(10, 1), step(20, 2), (25 * MS, 1, StateKept(2, 100, 0.1)), step(30, 3)]
    rows += [(40 * MS, 0, WorkerHandled(address(1), 1001, "killed", 0.0))]
    rows += [(60 * MS, 0, RankLost(1, 1, address(1), "x")), *started(100 * MS, 2, (0, 2)), step(110, 4)]
    rows += [(110 * MS, 0, TrainingResumed(1, resumed_from, 1, 2, "ranks", 50.0))]
    rows += [step(120, 5), (125 * MS, 0, SnapshotWritten(5, "a.snap", 10, 1.0))]
    rows += [(130 * MS, rank, RankFinished(2, "finished", 30.0, "")) for rank in (0, 1)]
    return recorded_by_ranks(rows, "digits")


def traces(view, position=None):
    figure = view.picture_at(len(view.recording) if position is None else position).figure
    return {trace.name: trace for trace in figure.data}


def test_folding_many_equals_folding_one_by_one():
    rec = story()
    view = RecoveryView(rec)
    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event)
        assert view.fold_many(view.start(), Stretch(rec, 0, k)) == one
        assert view.fold_many(view.fold_many(view.start(), Stretch(rec, 0, k // 2)), Stretch(rec, k // 2, k)) == one


def test_kill_detection_and_resumption_are_marks_on_the_lanes_and_on_the_loss():
    drawn = traces(RecoveryView(story()))
    assert (drawn["killed by hand"].x, drawn["killed by hand"].y) == (pytest.approx((0.04,)), (1,))
    assert (drawn["loss is known"].x, drawn["loss is known"].y) == (pytest.approx((0.06,)), (1,))
    assert drawn["all go on"].x[0] == pytest.approx(0.11)
    on = drawn["goes on from here"]
    assert (on.x, on.y) == (pytest.approx((0.11,)), pytest.approx((0.5,)))
    assert drawn["state kept"].x == pytest.approx([0.025])
    assert drawn["written to disk"].x == pytest.approx([0.125])


def test_ranks_that_started_before_the_run_was_told_have_their_lane():
    begun = RunStarted("digits", 64, 1, 10, "mlp", "SGD")
    rec = recorded_by_ranks([*started(0, 1, (0, 1)), (MS, 0, begun), step(5, 1)], "digits")
    assert len(traces(RecoveryView(rec))["rank runs"].x) == 6


def test_a_lane_has_a_gap_between_the_loss_and_its_replacement():
    x, y = (list(traces(RecoveryView(story()))["rank runs"][axis]) for axis in "xy")
    spans = [(y[i], round(x[i], 3), round(x[i + 1], 3)) for i in range(0, len(x), 3)]
    assert spans == [(0, 0.0, 0.1), (1, 0.0, 0.06), (0, 0.1, 0.13), (1, 0.1, 0.13)]


def test_the_caption_says_when_it_was_known_and_which_steps_were_done_again():
    said = RecoveryView(story()).picture_at(len(story())).caption
    assert "Rank 1 was struck at 0.04 s; its loss was known 0.02 s later; all went on 0.05 s after that" in said
    assert "from the state of ranks after step 2: step 3 was done again." in said
    assert "no step that was told was done again" in RecoveryView(story(resumed_from=3)).text_at(99)
    assert "from the beginning: steps 1 to 3 were done again" in RecoveryView(story(resumed_from=0)).text_at(99)


def test_before_the_training_goes_on_it_says_so():
    view = RecoveryView(story())
    n = next(i for i, event in enumerate(view.recording) if isinstance(event, RankLost)) + 1
    assert view.sentence_at(n).endswith("nothing has gone on yet.")
    assert "all go on" not in traces(view, n)


def test_it_has_a_still_twin():
    svg = svg_of(RecoveryView(story()).picture_at(99), "dark")
    assert "killed by hand" in svg


def test_a_recording_without_ranks_says_how_to_get_one():
    view = RecoveryView(recorded_by_ranks([step(1, 1)], "digits"))
    assert "RecoveryView shows a training on ranks, with their losses" in view.text_at(9)
