"""Lesson 09 in a real JupyterLab: predictions about threads, a list scheduler that is typed, and batches ahead."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.learner import ran_from_clean, shoot_all
from tests.browser.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "09_scheduling.ipynb"
TASKS = ("critical_path", "list_schedule", "step_ms")
AHEAD = "steady = [paced("


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


@pytest.mark.parametrize("name", TASKS)
def test_every_stub_is_answered_by_name(learner, name):
    learner.stub_is_named(name)


def test_schedules_are_drawn_a_letter_for_each_ms(learner):
    expect(learner.said("Drawn(in_turn(small_needs")).to_contain_text("thread 2  cdddd...")
    expect(learner.said("Drawn(in_turn(nine, takes, 3)")).to_contain_text("thread 0  aaaiiiiiiiii  12 ms")
    expect(learner.said("Drawn(in_turn(nine, less, 3)")).to_contain_text("thread 0  aaeeehhh.....  13 ms")


def test_bars_of_the_threads_are_in_the_page_and_the_bounds_hold(learner):
    bars = learner.cell("ScheduleView(threads)").locator(".lab-node[data-key]")
    expect(bars.first).to_be_visible()
    assert learner.kernel("all(a >= b > c for a, b, c in zip(at_most, [p - 1e-9 for p in on_paper], brent))")
    assert learner.kernel("two.utilisation <= 1.01")


def test_a_broken_file_is_told_in_its_turn_and_all_numbers_are_the_same(learner):
    expect(learner.said("n_given += 1")).to_contain_text("the loop had 2 batches before")
    assert learner.kernel("all(np.array_equal(run, eager.numpy()) for run in runs)")
    assert learner.kernel("len({row.loss for row in real.rows})") == 1


def test_predictions_are_answered_by_the_runs(learner):
    learner.predict("the time", "16")
    learner.told("the time", "You said 16 ms, it is 8 ms: 8 ms too high.")
    learner.choose("better code", "sooner")
    learner.told("better code", "You said sooner, it is later.")
    learner.choose("two threads", "no faster")
    learner.told("two threads", "You said no faster")
    learner.predict("a step", "10")
    learner.told("a step", "You said 10 ms, it is 12 ms: 2 ms too low.")
    learner.choose("a disk that stutters", "as slow")
    learner.told("a disk that stutters", "You said as slow")


def test_one_thread_for_all_is_named_and_its_hint_opens_by_keyboard(learner):
    learner.hint_opens("list_schedule", "The one that is free first takes the next")


def test_answers_that_are_typed_pass_and_are_what_is_drawn(learner):
    for name in TASKS:
        learner.solve(name)
    learner.run(AHEAD)

    def drawn() -> None:
        (chart,) = learner.charts(AHEAD)
        assert chart["yours"]["y"] == chart["plan"]["y"] == [22, 12, 12, 12, 12]
        assert min(chart["measured"]["y"]) >= 12  # whoever waits so long cannot be faster

    eventually(learner.page, drawn)
    assert learner.lab.cell_errors() == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_09", shots) >= 25
    assert learner.lab.errors == []
