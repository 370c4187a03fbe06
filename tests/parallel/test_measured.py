"""Measured spans in the terms of the schedule checker."""

from __future__ import annotations

import pytest

from lab.errors import ScheduleError
from lab.parallel import SCHEDULES, Action, Slot, check_schedule
from lab.parallel.paper.measured import measured, on_paper


@pytest.mark.parametrize("order", sorted(SCHEDULES))
@pytest.mark.parametrize(("n_ranks", "n_micro"), [(1, 1), (2, 3), (4, 8)])
def test_a_run_without_delays_measures_what_paper_says(order, n_ranks, n_micro):
    paper = check_schedule(order, n_ranks, n_micro, forward=3.0, backward=5.0)
    late = [slot._replace(start=slot.start + 7, stop=slot.stop + 7) for slot in reversed(paper.slots)]
    found = measured(late)
    assert found == paper
    assert on_paper(found) == paper


def test_stages_of_one_rank_count_for_the_text_book():
    paper = check_schedule("gpipe", 2, 4, chunks_per_rank=2)
    assert measured(paper.slots).ideal_bubble == paper.ideal_bubble == 1 / 9
    assert on_paper(measured(paper.slots)).makespan == paper.makespan


def test_delays_are_bubble():
    slots = [Slot(0, Action("F", 0, 0), 0, 1), Slot(0, Action("B", 0, 0), 3, 5)]
    assert measured(slots).bubble == pytest.approx(0.4)
    assert on_paper(measured(slots)).bubble == 0


def test_no_spans_and_half_a_step_are_refused():
    with pytest.raises(ScheduleError, match="nothing was measured"):
        measured([])
    half = measured(check_schedule("gpipe", 2, 2).slots[:5])
    with pytest.raises(ScheduleError, match="never, expected once"):
        on_paper(half)
