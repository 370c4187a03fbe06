"""Lesson 04 in a real JupyterLab: dual numbers, a Jacobian and a product with a Hessian are typed and checked."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.teach import EXERCISES, SOLUTIONS
from tests.browser.learner import Learner, shoot_all

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "04_forward_mode.ipynb"
TASKS = ("Dual", "jacobian", "hvp")
BOTH = "z = f(Dual(0.0, 2.0), Dual(3.0, 5.0))"


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


def test_predictions_are_answered_by_the_runs(learner):
    learner.predict("the speed of z", "8")
    expect(learner.status('lesson.reveal("the speed of z")')).to_contain_text("and so it is.")
    learner.choose("the cheaper way", "jacfwd")
    expect(learner.status('lesson.reveal("the cheaper way")')).to_contain_text("You said jacfwd")
    learner.choose("the product", "about 512 gradients")
    expect(learner.status('lesson.reveal("the product")')).to_contain_text("it is a few gradients.")
    learner.choose("the shape", "(4, 2)")
    expect(learner.status('lesson.reveal("the shape")')).to_contain_text("and so it is.")
    learner.choose("the gradients", "(64, 10)")
    expect(learner.status('lesson.reveal("the gradients")')).to_contain_text("it is (64, 64, 10).")
    learner.predict("the outer slope", "1")
    expect(learner.status('lesson.reveal("the outer slope")')).to_contain_text("You said 1, it is 2: 1 too low.")


def test_a_tangent_steps_through_the_operations_by_keyboard(learner):
    code = "Player(DualView(forward))"
    learner.button(code, "End").focus()
    learner.page.keyboard.press("Enter")
    expect(learner.cell(code)).to_contain_text("tangent 8")


def test_a_wrong_product_is_named_and_its_hint_opens_by_keyboard(learner):
    half = SOLUTIONS["Dual"].replace(" + self.value * other.tangent", "")
    assert "only x moves in the product" in type_and_check(learner, "Dual", half)
    cell = learner.cell("lesson.check(Dual)")
    cell.locator("summary").focus()
    learner.page.keyboard.press("Enter")
    expect(cell.get_by_text("what does x * y gain when y moves?")).to_be_visible()


def test_answers_that_are_typed_pass_and_agree_with_the_lab(learner):
    for name in TASKS:
        n_cases = sum(len(check.cases) for check in EXERCISES[name].checks)
        assert f"{name}: right in {n_cases} cases" in type_and_check(learner, name, SOLUTIONS[name])
    learner.run(BOTH)
    learner.run("values, back = lab.vjp(")
    assert learner.kernel("bool(np.allclose(rows, jacobian(three_to_two, point)))")
    assert learner.said(BOTH) == """{'yours': (0.0, 8.0), "the lab's": (0.0, 8.0)}"""
    assert learner.lab.cell_errors() == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_04", shots) >= 24
    assert learner.lab.errors == []
