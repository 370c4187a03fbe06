"""Plans and schedules that a learner got wrong before the first hop: three lines that name the thing."""

import traceback

import pytest

from lab.errors import LabError, PlanError, ScheduleError
from lab.parallel import Action, Recv, Send, check_plan, check_schedule, parse_table
from lab.parallel.paper.check_plan import MOST_RANKS


def two(rank, world_size):
    yield from ()


def divides(rank, n_ranks, n_micro):
    yield Action("F", rank, 0)
    yield Action("B", rank, 1 // (rank - 1))


def without_reduce(rank, world_size, n_chunks):
    yield Send(1 - rank, 0, 1), Recv(1 - rank, 0, 1)


def listed_without_reduce(rank, world_size, n_chunks):
    return [(Send(1 - rank, 0, 1), Recv(1 - rank, 0, 1))]


@pytest.mark.parametrize(
    ("wrong", "kind", "match"),
    [
        (
            lambda: check_plan("all_reduce", "ring", 2.5),
            PlanError,
            "world_size is a whole number of at least 1\ngiven: world_size=2.5\nhint:  for example world_size=4",
        ),
        (
            lambda: check_plan("all_reduce", "ring", "4"),
            PlanError,
            "world_size is a whole number of at least 1\ngiven: world_size='4'",
        ),
        (lambda: check_plan("all_reduce", "ring", None), PlanError, "at least 1\ngiven: world_size=None"),
        (lambda: check_plan("all_reduce", "ring", True), PlanError, "at least 1\ngiven: world_size=True"),
        (
            lambda: check_plan("all_reduce", "ring", 4, 1.5),
            PlanError,
            "n_chunks is a whole number of at least 1\ngiven: n_chunks=1.5",
        ),
        (
            lambda: check_plan("all_reduce", 3, 4),
            PlanError,
            "a plan is a name or a generator function\ngiven: plan=3\nhint:  'direct', 'double_tree', 'd",
        ),
        (
            lambda: check_plan("all_reduce", two, 4),
            PlanError,
            r"'two' is no plan .*\ngiven: it takes \(rank, world_size\)",
        ),
        (lambda: check_plan("all_reduce", without_reduce, 2), PlanError, "reduce=True or reduce=False"),
        (lambda: check_plan("all_reduce", listed_without_reduce, 2), PlanError, "reduce=True or reduce=False"),
        (lambda: check_schedule("1f1b", 2.5, 3), ScheduleError, "n_ranks is a whole .* 1\ngiven: n_ranks=2.5"),
        (lambda: check_schedule("1f1b", "a", 2), ScheduleError, "n_ranks is a whole .* 1\ngiven: n_ranks='a'"),
        (lambda: check_schedule("1f1b", 2, None), ScheduleError, "n_micro is a whole .* 1\ngiven: n_micro=None"),
        (lambda: check_schedule(parse_table("F0 B0"), 1, 1.0), ScheduleError, "at least 1\ngiven: n_micro=1.0"),
        (
            lambda: check_schedule(two, 2, 2),
            ScheduleError,
            r"'two' is no schedule .*\ngiven: it takes \(rank, world_size",
        ),
        (
            lambda: check_plan("all_reduce", "ring", MOST_RANKS + 1),
            PlanError,
            "too long to prove\ngiven: world_size=129",
        ),
    ],
)
def test_what_is_no_plan_and_no_schedule_is_told_in_three_lines(wrong, kind, match):
    with pytest.raises(kind, match=match) as caught:
        wrong()
    assert len(str(caught.value).splitlines()) == 3


def test_the_largest_world_that_is_stated_is_proved():
    assert check_plan("broadcast", "flat", MOST_RANKS).world_size == MOST_RANKS


def test_a_schedule_that_raises_is_told_with_its_name_and_the_line_and_the_error_before_it():
    with pytest.raises(ScheduleError) as caught:
        check_schedule(divides, 2, 2)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("schedule 'divides' raised ZeroDivisionError on rank 1 of 2 ranks, action 1: ")
    line = divides.__code__.co_firstlineno + 2
    assert lines[1] == f'given: test_calling.py:{line}: yield Action("B", rank, 1 // (rank - 1))'
    assert lines[2] == "hint:  list(divides(1, 2, 2)) in a cell raises it alone, for %debug"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_recv_that_does_not_say_whether_it_adds_leads_to_the_line_that_wrote_it():
    with pytest.raises(LabError) as caught:
        check_plan("all_reduce", without_reduce, 2)
    assert "Recv(1 - rank, 0, 1)" in traceback.extract_tb(caught.value.__traceback__)[-1].line
