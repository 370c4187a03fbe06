"""Lesson 10 in a real JupyterLab, on four real workers: plans are typed, named when wrong, and run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from lab.teach import SOLUTIONS
from tests.browser.learner import ran_from_clean, shoot_all
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "10_all_reduce.ipynb"
HOLDS = """([cell, held]) => {
    const shown = [...cell.querySelectorAll('.lab-node[data-key][data-kind="constant"]')]
        .map(node => node.querySelector("text").textContent.split(".")[0].replace(/[^0-9]/g, ""));
    return JSON.stringify(shown.map(Number).sort((a, b) => a - b)) === JSON.stringify(held);
}"""
"""The numbers in the cells of a ring, without the mark of a mean and the thin spaces between thousands."""


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


def test_four_processes_ran_it(learner):
    workers = learner.kernel("sorted(set(ring.columns(lab.events.RankStarted)['pid'].tolist()))")
    assert len(workers) == 4
    assert learner.kernel("__import__('os').getpid()") not in workers


@pytest.mark.parametrize("name", ["simple", "ring", "broken"])
def test_stepping_to_the_end_shows_what_the_workers_held(learner, name):
    code = f"Player(RingView({name}))"
    n_stops = learner.kernel(f"len(RingView({name}).stop_positions({name}))")
    for stop in range(2, n_stops + 1):
        learner.press(code, "Step")
        expect(learner.cell(code).get_by_text(re.compile(rf"^{stop} of {n_stops}: "))).to_be_visible()
    held = [1111] * (4 if name == "simple" else 16)  # the simple way moves the buffer whole: its mean is shown
    if name == "broken":
        held = learner.kernel("halves.ravel().tolist()")
    learner.page.wait_for_function(HOLDS, arg=[learner.cell(code).element_handle(), sorted(held)])


def test_predictions_are_committed_and_answered_by_the_bytes_that_were_sent(learner):
    for name, guess, answer in (
        ("bytes of rank 0", "64", "You said 64 B, it is 96 B: 32 B too low."),
        ("bytes of each rank", "48", "You said 48 B, and so it is."),
        ("buffers", "1,875", "and so it is."),
        ("wrong numbers", "12", "You said 12, and so it is."),
    ):
        learner.predict(name, guess)
        learner.told(name, answer)
    learner.choose("the faster one", "ring")
    learner.told("the faster one", "You said ring, it is tree.")
    assert learner.kernel("[max(sent_simply), sent_in_ring, n_wrong]") == [96, [48] * 4, 12]


def test_both_stubs_are_answered_by_the_name_of_what_is_missing(learner):
    expect(learner.said("lesson.check(my_first_plan)")).to_contain_text("the sum is made but does not come back")
    expect(learner.said("lesson.check(my_all_reduce)")).to_contain_text("the all-gather is missing")


def test_a_wrong_plan_that_is_typed_is_told_its_first_wrong_hop(learner):
    wrong = SOLUTIONS["my_all_reduce"].replace("(rank + 1 - step) % n_chunks", "(rank - step) % n_chunks", 1)
    assert wrong != SOLUTIONS["my_all_reduce"]
    said = learner.answer("my_all_reduce", wrong)
    expect(said).to_contain_text(re.compile(r"On 4 ranks: rank \d, step \d: sent chunk \d, expected chunk \d"))
    expect(said).to_contain_text(re.compile("one off from the chunk that the neighbour sends|not finished"))


@pytest.mark.parametrize("name", ["my_first_plan", "my_all_reduce"])
def test_a_solution_that_is_typed_passes(learner, name):
    expect(learner.solve(name)).to_contain_text("What it costs: 6 steps on 4 ranks")


def test_the_plan_that_was_typed_runs_on_the_workers_and_every_rank_has_the_sum(learner):
    before = learner.kernel("sorted(set(own.columns(lab.events.RankStarted)['pid'].tolist()))")
    learner.run("Player(RingView(own))")  # on the workers that the lesson has left
    assert learner.lab.cell_errors() == []
    assert learner.kernel("results.tolist()") == [[1111] * 4] * 4
    assert learner.kernel("bytes_sent(own)") == [48] * 4
    after = learner.kernel("sorted(set(own.columns(lab.events.RankStarted)['pid'].tolist()))")
    assert len(after) == 4
    assert after == before


def test_a_plan_that_hangs_is_refused_in_three_lines(learner):
    said = learner.said("def all_wait")
    expect(said).to_contain_text("waits for chunk 0 from rank")
    expect(said).to_contain_text("ranks that wait for ever: 0, 1, 2, 3")


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_10", shots) >= 18
    assert learner.lab.errors == []
