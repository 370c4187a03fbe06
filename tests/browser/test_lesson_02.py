"""Lesson 02 in a real JupyterLab: slopes by hand are typed and checked, a wrong one is named, a rule is mended."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.teach import SOLUTIONS
from tests.browser.learner import ran_from_clean, right, shoot_all
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "02_three_ways.ipynb"
SLOPES = ("forward_difference", "central_difference", "richardson")
RULE = "checked = lab.measure_rule("


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


@pytest.mark.parametrize("name", [*SLOPES, "softmax_rule"])
def test_every_stub_is_answered_by_name(learner, name):
    learner.stub_is_named(name)


def test_predictions_are_answered_by_the_measurements(learner):
    learner.predict("n", "-8")
    learner.told("n", "close enough.")
    learner.predict("operations", "43")
    learner.told("operations", "and so it is.")
    crossing = learner.kernel("crossing")
    learner.predict("inputs", "900")
    learner.told("inputs", f"You said 900, it is {crossing:.4g}:")
    learner.predict("the slope", "1")
    learner.told("the slope", "You said 1, it is 0: 1 too high.")


def test_a_wrong_difference_is_named_and_its_hint_opens_by_keyboard(learner):
    doubled = SOLUTIONS["central_difference"].replace("(2 * h)", "h")
    expect(learner.answer("central_difference", doubled)).to_contain_text("it divides by h")
    learner.hint_opens("central_difference", "how far is it from x - h to x + h?")


def test_differences_that_are_typed_pass_and_come_nearer_one_by_one(learner):
    for name in SLOPES:
        learner.solve(name)
    learner.run("estimates = {")
    errors = learner.kernel("[abs(float(slope) - errors.truth) for slope in estimates.values()]")
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-15 < errors[-2] < 1e-6


def test_a_rule_is_mended_and_its_map_becomes_right(learner):
    assert learner.kernel("checked.report.ok") is False
    learner.type("def softmax_rule(p, ct):", SOLUTIONS["softmax_rule"])
    learner.run(RULE)
    assert learner.kernel("checked.report.ok") is True
    expect(learner.cell(RULE)).to_contain_text("right")
    learner.run("lesson.check(softmax_rule)")
    expect(learner.said("lesson.check(softmax_rule)")).to_contain_text(right("softmax_rule"))
    assert learner.lab.cell_errors() == []


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_02", shots) >= 20
    assert learner.lab.errors == []
