"""Lesson 15 in a real JupyterLab, on four real workers: orders are typed, refused when they hang, and carried out."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.learner import ran_from_clean, shoot_all
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "15_pipeline.ipynb"
LIVE = (
    "[int(c['n_live'][c['rank'] == rank].max())"
    " for c in [%s.recording.columns(lab.events.ActionFinished)] for rank in range(4)]"
)
"""The most activations that each rank held."""
HANGS = """\
def my_schedule(rank, n_ranks, n_micro):
    for m in range(n_micro):
        if rank == 0:
            yield Action("F", rank, m)
            yield Action("B", rank, m)
        else:
            yield Action("F", rank, m)
    if rank > 0:
        for m in range(n_micro):
            yield Action("B", rank, m)
"""


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


def test_the_four_pieces_have_the_weights_of_one_process(learner):
    gap = learner.kernel("gap")
    assert gap < 1e-4
    learner.choose("the weights", "equal to 4 digits" if gap else "the same bits")
    learner.told("the weights", "and so it is.")


@pytest.mark.parametrize(("run", "code"), [("gpipe", "PipelineView(gpipe)"), ("own", "PipelineView(own)")])
def test_every_action_of_the_run_is_a_bar_in_the_page(learner, run, code):
    assert learner.kernel(f"len({run}.recording.columns(lab.events.ActionFinished)['rank'])") == 2 * 64
    bars = learner.cell(code).locator(".lab-node[data-key][data-kind$=_span]")
    expect(bars).to_have_count(64)
    expect(learner.cell(code)).to_contain_text("Paced run")


def test_predictions_are_answered_by_the_plan_on_paper_whatever_the_machine_measured(learner):
    learner.predict("waiting", "25")
    learner.told("waiting", "You said 25 %, it is 75 %: 50 % too low.")
    learner.predict("the bubble", "27")
    learner.told("the bubble", "it is 27.27 %: close enough.")
    measured = learner.kernel("[float(waiting(one_by_one)), float(waiting(gpipe))]")
    assert 70 < measured[0] <= 100  # a busy machine only adds to it
    assert 20 < measured[1] <= 100
    learner.predict("activations", "8")
    learner.told("activations", "You said 8, and so it is.")


def test_both_stubs_are_answered_by_name(learner):
    expect(learner.said("lesson.check(bubble)")).to_contain_text("it is ranks over pieces")
    expect(learner.said("lesson.check(my_schedule)")).to_contain_text("all forwards come first (GPipe)")


def test_an_order_that_hangs_is_refused_with_the_two_actions_that_wait(learner):
    said = learner.said("hangs = parse_table")
    expect(said).to_contain_text("the schedule cannot make progress")
    expect(said).to_contain_text("rank 0 waits at 0B0 for 1B0, rank 1 waits at 1F1 for 0F1")
    said = learner.answer("my_schedule", HANGS)
    expect(said).to_contain_text("the schedule cannot make progress")
    expect(said).to_contain_text("rank 0 waits at 0B0 for 1B0")
    expect(said).to_contain_text("two ranks wait for each other")


@pytest.mark.parametrize("name", ["bubble", "my_schedule"])
def test_a_solution_that_is_typed_passes(learner, name):
    learner.solve(name)


def test_the_order_that_was_typed_is_carried_out_with_few_activations(learner):
    assert learner.kernel(LIVE % "own") == [8] * 4  # so far that of the stub
    learner.run("own = pipelined(my_schedule)")
    assert learner.lab.cell_errors() == []
    assert learner.kernel(LIVE % "own") == [4, 3, 2, 1]


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_15", shots) >= 18
    assert learner.lab.errors == []
