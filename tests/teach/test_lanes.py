"""Schedules on paper: they keep the rules and the bounds that lesson 09 tells of, and its anomaly is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.graph.dependencies import on_paper, priorities
from lab.teach import EXERCISES
from lab.teach.exercises import queue_signs
from lab.teach.exercises.queues import Job, how_soon, least
from lab.teach.guard import Answer
from lab.teach.lanes import Drawn, end_of, in_turn

NINE = ((), (), (), (), (3,), (3,), (3,), (3,), (0,))
TAKES = (3, 2, 2, 2, 4, 4, 4, 4, 9)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A small graph with costs and a number of threads."""
    n = draw(st.integers(1, 9))
    needs = tuple(tuple(sorted(draw(st.sets(st.integers(0, k - 1), max_size=3)))) if k else () for k in range(n))
    costs = draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    return Job(needs, costs, priorities(needs, costs), draw(st.integers(1, 4)))


@given(jobs(), st.booleans())
def test_threads_in_turn_keep_every_rule_and_both_bounds(job, by_priority):
    first = {"first": lambda k: -job.priority[k]} if by_priority else {}
    places = in_turn(job.needs, job.costs, job.n_threads, **first)
    assert not queue_signs.wrong(job, places)
    end, work, span = end_of(places, job.costs), sum(job.costs), max(job.priority)
    assert max(work / job.n_threads, span) <= end <= work / job.n_threads + span
    assert end <= (2 - 1 / job.n_threads) * least(job) + 1e-9


@given(jobs())
def test_the_labs_own_schedule_keeps_the_rules_that_the_learners_is_judged_by(job):
    slots = sorted(on_paper(tuple(job.needs), job.costs, job.n_threads), key=lambda slot: slot.number)
    assert not queue_signs.wrong(job, [(slot.lane, slot.start) for slot in slots])


def test_what_would_help_makes_nine_equations_end_later():
    fewer_needs = (*((),) * 6, (3,), (3,), (0,))
    less = [cost - 1 for cost in TAKES]
    assert end_of(in_turn(NINE, TAKES, 3), TAKES) == 12
    assert end_of(in_turn(NINE, less, 3), less) == 13
    assert end_of(in_turn(NINE, TAKES, 4), TAKES) == 15
    assert end_of(in_turn(fewer_needs, TAKES, 3), TAKES) == 16


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([(0, 0), (0, 1), (1, 2)], "runs 0 and 1 at the same time"),
        ([(0, 0), (1, 0), (1, 1)], "2 starts at 1 ms, and waits for 0, which ends at 2 ms"),
        ([(0, 0), (1, 1), (1, 2)], "at 0 ms thread 1 is idle, though 1 is ready"),
    ],
)
def test_the_first_wrong_place_is_told_with_its_times(places, words):
    exercise, case = EXERCISES["list_schedule"], (((), (), (0,)), (2, 1, 1), (3, 1, 1), 2)
    found = [wrong for check in exercise.checks if check.judge and (wrong := check.judge(case, tuple(places)))]
    assert words in found[0].problem


def test_another_rule_is_right_and_is_told_what_it_costs():
    case = EXERCISES["list_schedule"].checks[0].cases[0]
    needs, costs, _, n_threads = case
    told = how_soon([(case, Answer(tuple(map(tuple, in_turn(needs, costs, n_threads)))))])
    assert "It is right, and ends at 11 ms" in told
    assert "9 ms would do" in told


def test_a_drawn_schedule_has_a_letter_for_each_ms_and_dots_for_waiting():
    assert repr(Drawn([(1, 0), (0, 0), (0, 3)], (3, 1, 1))) == "thread 0  b..c  4 ms\nthread 1  aaa."
