"""Lesson 11 in a real JupyterLab, on four real workers: one is killed while it trains, and no loss is another."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.learner import ran_from_clean, shoot_all
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "11_data_parallel.ipynb"
TASKS = ("shard", "weighted_mean")


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


@pytest.mark.parametrize("name", TASKS)
def test_every_stub_is_answered_by_name(learner, name):
    learner.stub_is_named(name)


def test_a_worker_was_killed_for_real_and_the_losses_are_the_same_bits(learner):
    assert learner.kernel("[e.lost_rank for e in run.recording if isinstance(e, lab.events.RankLost)]") == [2]
    pids = learner.kernel("sorted(run.recording.columns(lab.events.RankStarted)['pid'].tolist())")
    assert learner.kernel("victim") in pids
    assert len(set(pids)) == 5
    assert learner.kernel("len(losses(run))") == 200
    assert learner.kernel("losses(run) == losses(quiet)")


def test_copies_stay_alike_with_an_all_reduce_and_drift_without(learner):
    assert learner.kernel("max(spread_together)") == 0
    assert learner.kernel("min(spread_apart)") > 0
    assert learner.kernel("apart") <= 1e-12


def test_predictions_are_answered_by_the_runs(learner):
    learner.choose("the difference", "1e-3")
    learner.told("the difference", "You said 1e-3, it is ")
    learner.predict("the loss", "3")
    learner.told("the loss", "You said 3, it is 2: 1 too high.")
    learner.predict("the spread", "0")
    learner.told("the spread", "You said 0, and so it is.")
    learner.predict("other losses", "180")
    learner.told("other losses", "You said 180, it is 0: 180 too high.")
    learner.choose("a step", "the mean")
    learner.told("a step", "You said the mean, it is the slowest.")


@pytest.mark.parametrize("name", TASKS)
def test_answers_that_are_typed_pass(learner, name):
    expect(learner.solve(name)).to_contain_text(f"{name}: right")


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_11", shots) >= 20
    assert learner.lab.errors == []
