"""Every picture says where its numbers are from: read from the recording, the same on every machine."""

from __future__ import annotations

import pytest

from lab.events import Recording, RunStarted, StepFinished, bus
from tests.widgets.golden import falling, product_plus_x, recorded, training
from tests.widgets.golden_pipeline import pipeline
from widgets.export.report import report_page
from widgets.player import Player
from widgets.provenance import provenance_of
from widgets.view import View
from widgets.views.graph.view import GraphView
from widgets.views.training.loss import LossView

CREATED = "2026-11-29T20:14:59+00:00"


def dated(recording: Recording) -> Recording:
    recording.meta["created"] = CREATED
    return recording


def test_a_training_names_its_run_and_when_it_was_recorded():
    made, words = provenance_of(dated(training([1.0])))
    assert (made, words) == ("run", "Run golden, recorded 29 Nov 2026, 20:14 UTC")


@pytest.mark.parametrize(("paced", "words"), [(False, "Run-3, recorded"), (True, "Paced run-3, recorded")])
def test_a_run_that_nobody_named_is_not_called_a_run_twice(paced, words):
    rec = dated(pipeline(paced=paced))
    named = dated(recorded([RunStarted("run-3", 1, 1, 1, "m", "SGD"), *rec]))
    assert provenance_of(named).words.startswith(words)


def test_the_graph_of_a_step_is_called_a_step_of_its_run_and_not_the_run():
    rec = dated(training([1.0]))
    rec.meta["title"] = "step 1,234 of golden"
    assert provenance_of(rec).words == "Step 1,234 of golden, recorded 29 Nov 2026, 20:14 UTC"
    rec.meta["title"] = "what I tried"
    assert provenance_of(rec).words.startswith("Run golden, ")


def test_ranks_are_counted():
    words = provenance_of(dated(pipeline(n_ranks=3))).words
    assert words == "Run digits, recorded 29 Nov 2026, 20:14 UTC, 3 ranks"


def test_one_paced_action_makes_it_paced():
    made, words = provenance_of(dated(pipeline(paced=True)))
    assert made == "paced"
    assert words.startswith("Paced run digits, recorded 29 Nov 2026, 20:14 UTC, 4 ranks: ")
    assert words.endswith("no measure of this machine")


@pytest.mark.parametrize(("made", "words"), [
    ("simulated", "Simulation recorded 29 Nov 2026, 20:14 UTC: nothing ran"),
    ("throttled", "Run over throttled links recorded 29 Nov 2026, 20:14 UTC: no measure of this machine"),
])  # fmt: skip
def test_a_recording_can_say_that_it_is_no_ordinary_run(made, words):
    rec = dated(product_plus_x())
    rec.meta["made"] = made
    assert provenance_of(rec) == (made, words)


@pytest.mark.parametrize("claim", ["run", "live", "<b>", ""])
def test_no_claim_of_a_file_makes_a_paced_run_look_better(claim):
    rec = pipeline(paced=True)
    rec.meta["made"] = claim
    assert provenance_of(rec).made == "paced"


@pytest.mark.parametrize("created", ["", "yesterday", "9999-12-31T23:59:59-14:00", "1" * 100_000])
def test_a_file_without_a_date_that_can_be_read_has_none(created):
    rec = training([1.0])
    rec.meta["created"] = created
    assert provenance_of(rec).words == "Run golden, recorded"


def test_the_time_is_the_same_wherever_it_is_read(monkeypatch):
    rec = training([1.0])
    rec.meta["created"] = "2026-11-29T22:14:59+02:00"
    assert provenance_of(rec).words.endswith("29 Nov 2026, 20:14 UTC")


def test_a_recording_from_a_file_names_the_file_without_its_folder(tmp_path):
    dated(training([1.0])).save(tmp_path / "run.rec")
    loaded = Recording.load(tmp_path / "run.rec")
    assert loaded.path == str(tmp_path / "run.rec")
    assert provenance_of(loaded).words == "Run golden, recorded 29 Nov 2026, 20:14 UTC; from run.rec"
    assert LossView(loaded).picture_at(len(loaded)).provenance.endswith("; from run.rec")


def test_where_nothing_was_recorded_no_run_is_claimed():
    assert provenance_of(dated(Recording())) == ("", "A recording without events, begun 29 Nov 2026, 20:14 UTC")


def test_a_report_is_the_same_of_a_recording_and_of_its_file(tmp_path):
    rec = training(falling(12))
    rec.save(tmp_path / "run.rec")
    assert report_page(Recording.load(tmp_path / "run.rec")) == report_page(rec)


def test_a_long_name_is_cut_and_stays_on_one_line():
    rec = dated(recorded([StepFinished(1, 0, 1.0, 1, 1.0)]))
    rec.path = f"/folder/{'x' * 500}\n.rec"
    words = provenance_of(rec).words
    assert len(words) < 150
    assert "\n" not in words


def test_a_live_picture_says_so_until_the_recording_ends_and_a_still_one_never():
    rec = dated(Recording(run="*"))
    bus.attach(rec)
    view = LossView(rec)
    try:
        host = view.host
        bus.emit(StepFinished(1, 0, 1.0, 1, 1.0))
        view._tick()
        assert host._wanted["made"] == "live"
        assert host._wanted["provenance"] == "Live run recording since 29 Nov 2026, 20:14 UTC"
        still = view.picture_at(len(rec))
        assert (still.made, still.provenance) == ("run", "Run recording since 29 Nov 2026, 20:14 UTC")
    finally:
        rec.close()
    view._tick()
    assert host._wanted["made"] == "run"
    assert host._wanted["provenance"] == "Run recorded 29 Nov 2026, 20:14 UTC"
    view.dispose()


def test_a_still_twin_of_a_run_that_goes_on_says_of_when_it_is():
    rec = dated(Recording(run="*"))
    bus.attach(rec)
    view = LossView(rec)
    try:
        assert "When its cell ran: Loss of a training run: nothing was measured yet." in view.svg()
        assert "When its cell ran" not in view.picture_at(len(rec)).caption
    finally:
        rec.close()
    assert "When its cell ran" not in view.svg()


def test_every_way_out_carries_it():
    rec = dated(product_plus_x())
    view: View = GraphView(rec)
    words = "Run recorded 29 Nov 2026, 20:14 UTC"
    assert words in view.svg()
    assert view.host._sent["provenance"] == words
    assert {p.provenance for frame in Player(GraphView(rec)).frames() for p in frame.pictures} == {words}
    view.dispose()


def test_a_moving_picture_has_it_below_the_caption(tmp_path):
    text = GraphView(dated(product_plus_x())).export(tmp_path / "a.svg").read_text()
    assert "Run recorded 29 Nov 2026, 20:14 UTC" in text
