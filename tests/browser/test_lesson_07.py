"""Lesson 07 in a real JupyterLab: predictions about graphs, a tracer that notices its branches, a loop and a key."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.learner import ran_from_clean, shoot_all
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "07_static_and_dynamic.ipynb"
TASKS = ("traced", "halvings", "cache_key")


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


@pytest.mark.parametrize("name", TASKS)
def test_every_stub_is_answered_by_name(learner, name):
    learner.stub_is_named(name)


def test_what_was_captured_is_drawn_with_its_verdicts(learner):
    shape = learner.nodes("by_shape = lab.compare_captures(")
    assert ("another value", "") in shape.values()
    value = learner.nodes("by_value = lab.compare_captures(")
    assert value["111.0"][0] == "equal"
    epochs = learner.nodes("RetraceView(epochs)")
    assert [words for label, (words, _) in epochs.items() if words == "traced"] == ["traced", "traced"]


def test_what_cannot_be_traced_or_read_is_refused_in_the_page(learner):
    expect(learner.said("lab.jit(size)(3.0)")).to_contain_text("lab.cond or lab.where for if")
    expect(learner.said("lab.script(remembered)")).to_contain_text("a comprehension")


def test_predictions_are_answered_by_the_runs(learner):
    learner.predict("equations", "5")
    learner.told("equations", "You said 5, it is 4: 1 too high.")
    learner.predict("the last call", "5")
    learner.told("the last call", "You said 5, it is 2: 3 too high.")
    learner.choose("two entries", "something else")
    learner.told("two entries", "and so it is.")
    learner.predict("steps", "111")
    learner.told("steps", "and so it is.")
    learner.predict("traces", "2")
    learner.told("traces", "and so it is.")


def test_a_burned_branch_is_named_and_its_hint_opens_by_keyboard(learner):
    learner.hint_opens("traced", "tape.holds(x) says whether a tape is good for x")


def test_answers_that_are_typed_pass_and_do_what_the_lesson_says(learner):
    for name in TASKS:
        learner.solve(name)
    assert learner.kernel("[traced(size)(x) for x in (3.0, -3.0)]") == [6.0, 4.0]
    assert learner.kernel("[v.item() for v in lab.jit(halvings)(100.0)]") == [0.78125, 7.0]
    assert learner.kernel("cache_key((pixels, 1)) == cache_key((pixels + 1, 2))")
    assert learner.lab.cell_errors() == []


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_07", shots) >= 25
    assert learner.lab.errors == []
