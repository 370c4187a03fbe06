"""Lesson 06 in a real JupyterLab: predictions about memory, and a checkpoint that is typed and then measured."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.learner import ran_from_clean, shoot_all
from tests.browser.waiting import eventually
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "06_memory.ipynb"
TASKS = ("mean_loss", "my_checkpoint", "most_held")
CURVE = "ks = [2**i for i in range(7)]"
PIECES = "pieces = lab.measure_memory("


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


@pytest.mark.parametrize("name", TASKS)
def test_every_stub_is_answered_by_name(learner, name):
    learner.stub_is_named(name)


def test_a_box_tells_the_rule_that_says_what_is_kept(learner):
    cell = learner.cell("GraphView(forward)")
    cell.locator(".lab-node[data-key]", has_text="sin(").click()
    expect(cell).to_contain_text("ct * (cos(x))")
    expect(learner.said("kept = lab.saved_values(z)")).to_contain_text("sin           x             8,000 bytes")


def test_predictions_are_answered_by_the_runs(learner):
    learner.predict("kept arrays", "3")
    learner.told("kept arrays", "You said 3, it is 2: 1 too high.")
    learner.predict("arrays", "7")
    learner.told("arrays", "and so it is.")
    learner.predict("the list", "28")
    learner.told("the list", "close enough.")
    learner.predict("the best k", "8")
    learner.told("the best k", "and so it is.")
    learner.choose("the halves", "about 16")
    learner.told("the halves", "it is fewer arrays than 16.")
    learner.choose("the share", "about a sixth")
    learner.told("the share", "it is about a third.")


def test_a_checkpoint_that_keeps_all_is_named_and_its_hint_opens_by_keyboard(learner):
    learner.hint_opens("my_checkpoint", "hand on args in its place")
    assert learner.kernel("pieces.ways['yours'].peak > 0.9 * pieces.ways['plain'].peak")


def test_answers_that_are_typed_pass_and_are_what_is_measured(learner):
    for name in TASKS:
        learner.solve(name)
    learner.run(PIECES)
    assert learner.kernel("pieces.ways['yours'].peak < 0.7 * pieces.ways['plain'].peak")
    learner.run(CURVE)

    def drawn() -> None:
        (chart,) = learner.charts(CURVE)
        assert chart["yours"]["y"] == [65, 34, 20, 16, 20, 34, 65]
        assert chart["measured"]["y"] == pytest.approx(chart["yours"]["y"], abs=1)  # and Python's own objects

    eventually(learner.page, drawn)
    assert learner.lab.cell_errors() == []


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_06", shots) >= 25
    assert learner.lab.errors == []
