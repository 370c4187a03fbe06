"""Lesson 12 in a real JupyterLab: micro-batches measured, weighed rightly and wrongly, and summed over four workers."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.learner import ran_from_clean, shoot_all
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "12_accumulation_and_precision.ipynb"
TASKS = ("fewest_parts", "shares")


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


@pytest.mark.parametrize("name", TASKS)
def test_every_stub_is_answered_by_name(learner, name):
    learner.stub_is_named(name)


def test_a_quarter_of_the_images_holds_about_a_quarter_and_the_gradient_stays(learner):
    assert 25 < learner.kernel("percent") < 35
    assert learner.kernel("max(row.difference for row in sizes.rows)") < 1e-5
    assert learner.kernel("[row.micro_batch for row in sizes.fitting]") == [64, 16, 4, 2]


def test_the_mistakes_part_from_whole_batches_and_the_right_weights_do_not(learner):
    (chart,) = learner.charts("MeansView(means)")
    apart = {name: trace["y"] for name, trace in chart.items()}  # of two lines of one name, that of the lower picture
    assert max(apart["weighed by count"]) < 1e-5
    assert max(apart["mean of means"]) > 1e-2


def test_predictions_are_answered_by_the_runs(learner):
    learner.predict("the memory", "25")
    learner.told("the memory", "You said 25 %, it is ")
    learner.choose("the time", "shorter")
    learner.told("the time", "You said shorter, it is longer.")
    learner.predict("the gradient", "1")
    learner.told("the gradient", "You said 1, it is 8")
    learner.choose("the loss", "8 x 32, 8 times the rate")
    learner.told("the loss", "You said 8 x 32, 8 times the rate, it is 8 x 32, same rate.")
    learner.predict("the bytes", "4")
    learner.told("the bytes", "You said 4 times, ")


@pytest.mark.parametrize("name", TASKS)
def test_answers_that_are_typed_pass(learner, name):
    expect(learner.solve(name)).to_contain_text(f"{name}: right")


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_12", shots) >= 18
    assert learner.lab.errors == []
