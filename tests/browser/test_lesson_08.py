"""Lesson 08 in a real JupyterLab: two passes of a learner's own, algebra, fusion with its bytes, places in memory."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.learner import ran_from_clean, shoot_all

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "08_compiler.ipynb"
TASKS = ("dead_code", "common", "places")


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


@pytest.mark.parametrize("name", TASKS)
def test_every_stub_is_answered_by_name(learner, name):
    learner.stub_is_named(name)


def test_with_the_stubs_two_passes_do_nothing_and_the_table_is_as_it_was(learner):
    assert learner.kernel("[row.n_equations for row in mine.rows[5:9]]") == [9, 9, 9, 9]
    assert learner.kernel("PASSES == before")


def test_predictions_are_answered_by_the_runs(learner):
    learner.predict("equations left", "6")
    learner.told("equations left", "You said 6, it is 5: 1 too high.")
    learner.predict("rules", "6")
    learner.told("rules", "You said 6, it is 3: 3 too high.")
    learner.predict("MB fused", "8")
    learner.told("MB fused", "and so it is.")
    learner.predict("kernels", "3")
    learner.told("kernels", "You said 3, it is 1: 2 too high.")
    learner.predict("places", "3")
    learner.told("places", "and so it is.")
    learner.choose("the bits", "the same")
    learner.told("the bits", "and so it is.")


def test_the_source_of_the_fused_loop_is_there_to_read(learner):
    expect(learner.said("display(PassesView(fused))")).to_contain_text("loop0")
    expect(learner.said("told, conditions")).to_contain_text("the sign of -0 is lost")


def test_a_stub_that_merges_nothing_has_a_hint_that_opens_by_keyboard(learner):
    learner.hint_opens("common", "look now.key() up in first")


def test_answers_that_are_typed_pass_and_leave_the_graph_that_the_labs_own_passes_leave(learner):
    for name in TASKS:
        learner.solve(name)
    learner.run('graph_pass("dead code")(dead_code)')
    assert learner.kernel("mine.compiled.optimized == found.compiled.optimized")
    assert learner.kernel("PASSES == before")
    assert learner.kernel("max(places(lives)) + 1 == n_places")
    assert learner.lab.cell_errors() == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_08", shots) >= 25
    assert learner.lab.errors == []
