"""Plans of memory: each number from the graph itself, and runs that hold what was planned."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, ConcretizationError, GraphError
from lab.events import MemoryPlanBegun, MemoryPlanMade, RunHeld, ValuePlaced
from lab.experiments.plan import APART, INTERPRETED, ORDERED, REUSED, within

UNIT = 8 * 128 * 128


def f(x):
    a = lab.exp(x)
    return a @ ((a @ x) @ (x @ x))


@pytest.fixture(scope="module")
def found():
    return lab.measure_plan(f, np.random.default_rng(0).normal(size=(128, 128)) / 16)


def values_of(found, plan):
    return [e for e in found.recording if isinstance(e, ValuePlaced) and e.plan == plan]


def test_the_plans_come_in_their_order_each_below_the_one_before(found):
    assert [row.plan for row in found.rows[:3]] == [APART, REUSED, ORDERED]
    sizes = [row.n_bytes for row in found.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[2]
    assert found.rows[-1].n_bytes <= found.rows[-1].budget
    assert found.rows[-1].n_again > 0
    begun = found.recording[0]
    assert begun == MemoryPlanBegun("f", tuple(r.plan for r in found.rows), sizes[0], begun.most_equations, False)
    assert [e for e in found.recording if isinstance(e, MemoryPlanMade)] == [MemoryPlanMade(*r) for r in found.rows]


def test_without_reuse_no_two_values_share_a_place_and_with_it_none_do_at_a_time(found):
    for row in found.rows:
        values = values_of(found, row.plan)
        assert len(values) == row.n_values
        ends = [(v.offset, v.offset + v.n_bytes, v.start, v.stop) for v in values]
        for i, (low, high, start, stop) in enumerate(ends):
            assert high <= row.n_bytes
            for other in ends[:i]:
                lies_apart = other[1] <= low or high <= other[0]
                if row.plan == APART:
                    assert lies_apart
                else:
                    assert lies_apart or other[3] <= start or stop <= other[2]
    assert sum(v.n_bytes for v in values_of(found, APART)) == found.rows[0].n_bytes


def test_what_is_alive_is_the_sum_of_the_bars_that_stand_over_an_equation(found):
    for row in found.rows:
        assert row.peak_bytes == max(row.alive_bytes) == row.alive_bytes[row.peak_at]
        values = values_of(found, row.plan)
        over = sum(v.n_bytes for v in values if v.start <= row.peak_at <= v.stop)
        assert row.peak_bytes <= over  # an op of NumPy may write over what it reads last


def test_runs_hold_what_was_planned(found):
    told = {e.way: e for e in found.recording if isinstance(e, RunHeld)}
    assert list(told) == [INTERPRETED, ORDERED, *(row.plan for row in found.rows[3:])]
    for way, e in told.items():
        assert e.n_bytes == found.held[way]
        assert abs(e.n_bytes - e.planned_bytes) < UNIT / 8


def test_a_budget_can_be_named_and_is_refused_where_it_cannot_be_met():
    x = np.ones((16, 16))
    lowest = lab.measure_plan(f, x).rows[-1].n_bytes
    rows = lab.measure_plan(f, x, budgets=[lowest]).rows
    assert [row.plan for row in rows] == [APART, REUSED, ORDERED, within(lowest)]
    assert len(lab.measure_plan(f, x, budgets=[]).rows) == 3
    with pytest.raises(GraphError, match="no memory plan within the budget was found"):
        lab.measure_plan(f, x, budgets=[10])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: lab.measure_plan("f"), ArgumentError),
        (lambda: lab.measure_plan(lambda x: x, 1.0, budgets=[0.5]), ArgumentError),
        (lambda: lab.measure_plan(lambda x: x if x > 0 else -x, 1.0), ConcretizationError),
    ],
)
def test_bad_arguments_are_said_in_three_lines(call, error):
    with pytest.raises(error) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize("budgets", [3, "3", 2.5])
def test_budgets_that_are_not_some_numbers_are_refused_in_three_lines(budgets):
    with pytest.raises(ArgumentError, match=r"budgets are some numbers of bytes\ngiven: budgets=.*\nhint:  "):
        lab.measure_plan(lab.sin, np.ones(3), budgets=budgets)
