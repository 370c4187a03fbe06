"""Lesson 05 in a real JupyterLab: predictions about gradients, and an init that is typed and trains a network."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.learner import ran_from_clean, shoot_all
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "05_watching_gradients.ipynb"


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


def test_the_curves_in_the_page_are_the_gradients_of_the_kernel(learner):
    learner.watch_lines("with_sigmoid = ", 2)
    (chart,) = learner.charts("with_sigmoid = ")
    for name, code in (("sigmoid", "with_sigmoid"), ("tanh", "with_tanh")):
        assert chart[name]["y"] == pytest.approx(learner.kernel(f"{code}.tolist()"))
        assert chart[name]["x"] == list(range(1, 11))


def test_predictions_are_answered_by_the_runs(learner):
    learner.predict("n", "6")
    learner.told("n", "close enough.")
    learner.predict("right digits", "90")
    learner.told("right digits", "You said 90, it is")
    learner.choose("the first gradient", "explodes")
    learner.told("the first gradient", "and so it is.")


def test_an_init_that_is_typed_teaches_ten_layers_to_read(learner):
    expect(learner.said("lesson.check(my_init)")).to_contain_text("the spread is the same for every width")
    assert learner.kernel("own.result.accuracy") < 0.3
    learner.solve("my_init")
    learner.run("own = lab.fit(")
    assert learner.kernel("own.result.accuracy") > 0.85


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_05", shots) >= 16
    assert learner.lab.errors == []
