"""Lesson 03 in a real JupyterLab: an engine is typed in five steps, a wrong step is named, and the engine runs."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from lab.teach import SOLUTIONS
from tests.browser.learner import Learner, ran_from_clean, right, shoot_all
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "03_reverse_mode.ipynb"
STEPS = ("Value", "backward_order", "walk", "unbroadcast", "backward")
SWAPPED = SOLUTIONS["Value"].replace("(ct * other.data, ct * self.data)", "(ct * self.data, ct * other.data)")
ENGINES = "(after_two, found)"
"""In the cell that runs the faults again."""


def type_a_step(learner: Learner, name: str) -> Locator:
    """Type a step into the cell of its stub and check it; what the check said."""
    if name != "backward":
        return learner.answer(name, SOLUTIONS[name])
    learner.type("def backward(root):", SOLUTIONS[name])  # the longest: its check stands in a cell of its own
    learner.run("lesson.check(backward)")
    return learner.said("lesson.check(backward)")


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


def test_every_stub_is_answered_by_name_and_run_all_is_no_try(learner):
    for name in STEPS:
        learner.stub_is_named(name)
    assert learner.kernel(
        "[json.load(open('my_progress.json'))['lessons']['03']['exercises'][n]['tries'] for n in " + repr(STEPS) + "]"
    ) == [0] * len(STEPS)


def test_the_faults_of_the_usual_engine_are_what_the_kernel_says(learner):
    learner.predict("arrivals at x", "32768")
    learner.told("arrivals at x", "and so it is.")
    learner.predict("x.grad", "8")
    learner.told("x.grad", "You said 8, it is 11: 3 too low.")
    learner.predict("numbers in w.grad", "12")
    learner.told("numbers in w.grad", "and so it is.")
    learner.choose("the long sum", "an error")
    learner.told("the long sum", "and so it is.")


def test_a_wrong_step_is_named_and_its_hint_opens_by_keyboard(learner):
    expect(learner.answer("Value", SWAPPED)).to_contain_text("the two parts are swapped")
    learner.hint_opens("Value", "the first part is for self")


def test_five_steps_that_are_typed_pass_and_are_an_engine(learner):
    for name in STEPS:
        expect(type_a_step(learner, name)).to_contain_text(right(name))
    for code in ("walk(backward_order(f(x, y)))", ENGINES, "def operation(", "def yours():"):
        learner.run(code)
    assert learner.lab.cell_errors() == []
    expect(learner.said("walk(backward_order(f(x, y)))")).to_contain_text("'yours': (8.0, 3.0)")
    expect(learner.said(ENGINES)).to_contain_text("'yours': (8.0, 10001.0)")
    apart = learner.kernel("apart")
    assert apart < 1e-12
    learner.choose("the gradients", "equal to 12 digits" if apart else "the same bits")
    learner.told("the gradients", "and so it is.")


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_03", shots) >= 18
    assert learner.lab.errors == []
