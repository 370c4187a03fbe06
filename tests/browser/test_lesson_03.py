"""Lesson 03 in a real JupyterLab: an engine is typed in five steps, a wrong step is named, and the engine runs."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.teach import EXERCISES, SOLUTIONS
from tests.browser.learner import Learner, shoot_all

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "03_reverse_mode.ipynb"
STEPS = ("Value", "backward_order", "walk", "unbroadcast", "backward")
SWAPPED = SOLUTIONS["Value"].replace("(ct * other.data, ct * self.data)", "(ct * self.data, ct * other.data)")
ENGINES = "(after_two, found)"
"""In the cell that runs the faults again."""


def type_a_step(learner: Learner, name: str, source: str) -> str:
    """Type a step into the cell of its stub and check it; what the check said."""
    check = f"lesson.check({name})"
    if name == "backward":  # the longest: its check stands in a cell of its own
        learner.type("def backward(root):", source)
        learner.run(check)
    else:
        learner.type(check, f"{source}\n\n{check}")
    return learner.said(check)


def test_the_whole_lesson_runs_without_an_error_in_cells_or_page(learner):
    assert learner.lab.cell_errors() == []
    assert learner.lab.errors == []
    assert learner.lab.foreign == []


def test_every_stub_is_answered_by_name_and_run_all_is_no_try(learner):
    for name in STEPS:
        said = learner.said(f"lesson.check({name})")
        assert f"{name}: not yet" in said
        assert any(mutant.name in said for mutant in EXERCISES[name].mutants)
    assert learner.kernel(
        "[json.load(open('my_progress.json'))['lessons']['03']['exercises'][n]['tries'] for n in " + repr(STEPS) + "]"
    ) == [0] * len(STEPS)


def test_the_faults_of_the_usual_engine_are_what_the_kernel_says(learner):
    learner.predict("arrivals at x", "32768")
    expect(learner.status('lesson.reveal("arrivals at x")')).to_contain_text("and so it is.")
    learner.predict("x.grad", "8")
    expect(learner.status('lesson.reveal("x.grad")')).to_contain_text("You said 8, it is 11: 3 too low.")
    learner.predict("numbers in w.grad", "12")
    expect(learner.status('lesson.reveal("numbers in w.grad")')).to_contain_text("and so it is.")
    learner.choose("the long sum", "an error")
    expect(learner.status('lesson.reveal("the long sum")')).to_contain_text("and so it is.")


def test_a_wrong_step_is_named_and_its_hint_opens_by_keyboard(learner):
    said = type_a_step(learner, "Value", SWAPPED)
    assert "the two parts are swapped" in said
    cell = learner.cell("lesson.check(Value)")
    cell.locator("summary").focus()
    learner.page.keyboard.press("Enter")
    expect(cell.get_by_text("the first part is for self")).to_be_visible()


def test_five_steps_that_are_typed_pass_and_are_an_engine(learner):
    for name in STEPS:
        n_cases = sum(len(check.cases) for check in EXERCISES[name].checks)
        assert f"{name}: right in {n_cases} cases" in type_a_step(learner, name, SOLUTIONS[name])
    for code in ("walk(backward_order(f(x, y)))", ENGINES, "def operation(", "def yours():"):
        learner.run(code)
    assert learner.lab.cell_errors() == []
    assert "'yours': (8.0, 3.0)" in learner.said("walk(backward_order(f(x, y)))")
    assert "'yours': (8.0, 10001.0)" in learner.said(ENGINES)
    apart = learner.kernel("apart")
    assert apart < 1e-12
    learner.choose("the gradients", "equal to 12 digits" if apart else "the same bits")
    expect(learner.status('lesson.reveal("the gradients")')).to_contain_text("and so it is.")


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_03", shots) >= 18
    assert learner.lab.errors == []
