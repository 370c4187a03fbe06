"""Messages say one step and two steps, an int and a float."""

import pytest

from lab.errors import PlanError, ScheduleError
from lab.parallel import check_schedule
from lab.parallel.paper.plans import steps_of
from lab.training.result import Result


@pytest.mark.parametrize(("n", "words"), [(1, "finished after 1 step"), (2, "finished after 2 steps")])
def test_a_result_of_one_step_is_told_in_the_singular(n, words):
    assert repr(Result("digits", "finished", n)).startswith(f"Result 'digits': {words}, ")


def test_what_is_no_plan_and_no_schedule_is_told_with_its_article():
    with pytest.raises(PlanError, match="gave no steps\ngiven: an int for rank 0"):
        steps_of(lambda rank, world_size, n_chunks: 3, 0, 2)
    with pytest.raises(ScheduleError, match="gave no actions\ngiven: a float for rank 0"):
        check_schedule(lambda rank, n_ranks, n_micro: 0.5, 2, 2)
