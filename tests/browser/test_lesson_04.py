"""Lesson 04 in a real JupyterLab: dual numbers, a Jacobian and a product with a Hessian are typed and checked."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from lab.teach import SOLUTIONS
from tests.browser.learner import ran_from_clean, shoot_all
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "04_forward_mode.ipynb"
TASKS = ("Dual", "jacobian", "hvp")
BOTH = "z = f(Dual(0.0, 2.0), Dual(3.0, 5.0))"


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


@pytest.mark.parametrize("name", TASKS)
def test_every_stub_is_answered_by_name(learner, name):
    learner.stub_is_named(name)


def test_predictions_are_answered_by_the_runs(learner):
    learner.predict("the speed of z", "8")
    learner.told("the speed of z", "and so it is.")
    learner.choose("the cheaper way", "jacfwd")
    learner.told("the cheaper way", "You said jacfwd")
    learner.choose("the product", "about 512 gradients")
    learner.told("the product", "it is a few gradients.")
    learner.choose("the shape", "(4, 2)")
    learner.told("the shape", "and so it is.")
    learner.choose("the gradients", "(64, 10)")
    learner.told("the gradients", "it is (64, 64, 10).")
    learner.predict("the outer slope", "1")
    learner.told("the outer slope", "You said 1, it is 2: 1 too low.")


def test_a_tangent_steps_through_the_operations_by_keyboard(learner):
    code = "Player(DualView(forward))"
    learner.button(code, "End").focus()
    learner.page.keyboard.press("Enter")
    expect(learner.cell(code)).to_contain_text("tangent 8")


def test_a_wrong_product_is_named_and_its_hint_opens_by_keyboard(learner):
    half = SOLUTIONS["Dual"].replace(" + self.value * other.tangent", "")
    expect(learner.answer("Dual", half)).to_contain_text("only x moves in the product")
    learner.hint_opens("Dual", "what does x * y gain when y moves?")


def test_answers_that_are_typed_pass_and_agree_with_the_lab(learner):
    for name in TASKS:
        learner.solve(name)
    learner.run(BOTH)
    learner.run("values, back = lab.vjp(")
    assert learner.kernel("bool(np.allclose(rows, jacobian(three_to_two, point)))")
    expect(learner.said(BOTH)).to_have_text("""{'yours': (0.0, 8.0), "the lab's": (0.0, 8.0)}""")
    assert learner.lab.cell_errors() == []


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_04", shots) >= 24
    assert learner.lab.errors == []
