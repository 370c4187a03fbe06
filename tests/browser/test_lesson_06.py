"""Lesson 06 in a real JupyterLab: predictions about memory, and a checkpoint that is typed and then measured."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.teach import EXERCISES, SOLUTIONS
from tests.browser.learner import Learner, shoot_all

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "06_memory.ipynb"
TASKS = ("mean_loss", "my_checkpoint", "most_held")
CURVE = "ks = [2**i for i in range(7)]"
PIECES = "pieces = lab.measure_memory("


def type_and_check(learner: Learner, name: str, source: str) -> str:
    """Type an answer into the cell of its stub; what the check says."""
    check = f"lesson.check({name})"
    learner.type(check, f"{source}\n\n{check}")
    return learner.said(check)


def test_the_whole_lesson_runs_without_an_error_in_cells_or_page(learner):
    assert learner.lab.cell_errors() == []
    assert learner.lab.errors == []
    assert learner.lab.foreign == []


@pytest.mark.parametrize("name", TASKS)
def test_every_stub_is_answered_by_name(learner, name):
    said = learner.said(f"lesson.check({name})")
    assert f"{name}: not yet" in said
    assert any(mutant.name in said for mutant in EXERCISES[name].mutants)


def test_a_box_tells_the_rule_that_says_what_is_kept(learner):
    cell = learner.cell("GraphView(forward)")
    cell.locator(".lab-node[data-key]", has_text="sin(").click()
    expect(cell).to_contain_text("ct * (cos(x))")
    assert "sin           x             8,000 bytes" in learner.said("kept = lab.saved_values(z)")


def test_predictions_are_answered_by_the_runs(learner):
    learner.predict("kept arrays", "3")
    expect(learner.status('lesson.reveal("kept arrays")')).to_contain_text("You said 3, it is 2: 1 too high.")
    learner.predict("arrays", "7")
    expect(learner.status('lesson.reveal("arrays")')).to_contain_text("and so it is.")
    learner.predict("the list", "28")
    expect(learner.status('lesson.reveal("the list")')).to_contain_text("close enough.")
    learner.predict("the best k", "8")
    expect(learner.status('lesson.reveal("the best k")')).to_contain_text("and so it is.")
    learner.choose("the halves", "about 16")
    expect(learner.status('lesson.reveal("the halves")')).to_contain_text("it is fewer arrays than 16.")
    learner.choose("the share", "about a sixth")
    expect(learner.status('lesson.reveal("the share")')).to_contain_text("it is about a third.")


def test_a_checkpoint_that_keeps_all_is_named_and_its_hint_opens_by_keyboard(learner):
    cell = learner.cell("lesson.check(my_checkpoint)")
    cell.locator("summary").focus()
    learner.page.keyboard.press("Enter")
    expect(cell.get_by_text("hand on args in its place")).to_be_visible()
    assert learner.kernel("pieces.ways['yours'].peak > 0.9 * pieces.ways['plain'].peak")


def test_answers_that_are_typed_pass_and_are_what_is_measured(learner):
    for name in TASKS:
        n_cases = sum(len(check.cases) for check in EXERCISES[name].checks)
        assert f"{name}: right in {n_cases} cases" in type_and_check(learner, name, SOLUTIONS[name])
    learner.run(PIECES)
    assert learner.kernel("pieces.ways['yours'].peak < 0.7 * pieces.ways['plain'].peak")
    learner.run(CURVE)
    (chart,) = learner.charts(CURVE)
    assert chart["yours"]["y"] == [65, 34, 20, 16, 20, 34, 65]
    assert chart["measured"]["y"] == pytest.approx(chart["yours"]["y"], abs=1)  # and Python's own objects
    assert learner.lab.cell_errors() == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_06", shots) >= 25
    assert learner.lab.errors == []
