"""Cost of Jacobians: passes are counted by hand, the crossing is that of lines whose crossing is known."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError
from lab.events import CostBegun, CostMeasured, CrossingFound, OpRecorded
from lab.experiments.cost import WAYS, crossing


@pytest.fixture(scope="module")
def found():
    return lab.measure_cost(sizes=[1, 3, 40], fixed=2, repeats=1)


def test_passes_are_those_of_the_text_book(found):
    for c in found.rows:
        expected = {"numeric": (c.n_inputs + 1, 0), "forward": (c.n_inputs, 0), "reverse": (1, c.n_outputs)}[c.way]
        assert (c.runs, c.walks) == expected, c


def test_each_way_is_measured_at_each_size_of_each_sweep(found):
    shapes = [(1, 2), (3, 2), (40, 2), (2, 1), (2, 3), (2, 40)]
    sweeps = ["inputs"] * 3 + ["outputs"] * 3
    expected = [(s, w, *shape) for s, shape in zip(sweeps, shapes, strict=True) for w in WAYS]
    assert [c[:4] for c in found.rows] == expected
    assert all(c.elapsed_ms > 0 for c in found.rows)


def test_the_three_ways_give_the_same_jacobian():
    made = []

    def make(n, m):
        weights = np.arange(n * m, dtype=float).reshape(n, m) / 10
        made.append(lambda x: lab.sin(x @ weights))
        return made[-1]

    lab.measure_cost(make, sizes=[3], fixed=2, repeats=1)
    x = np.linspace(-1.0, 1.0, 3)
    exact = np.cos(x @ (np.arange(6.0).reshape(3, 2) / 10)) * (np.arange(6.0).reshape(3, 2) / 10)
    np.testing.assert_allclose(lab.jacrev(made[0])(x).numpy(), exact.T)
    assert len(made) == 2


def test_crossings_of_powers_are_exact_whichever_line_rises():
    sizes = [1, 2, 4, 8, 16, 32]
    assert crossing(sizes, [3.0 * n for n in sizes], [30.0] * 6) == (10.0, True)
    assert crossing(sizes, [30.0] * 6, [3.0 * n for n in sizes]) == (10.0, False)
    assert crossing(sizes, [1.0] * 6, [2.0] * 6) == (None, False)


def test_a_disturbed_point_moves_no_crossing_and_makes_none():
    sizes, flat = [1, 2, 4, 8, 16, 32, 64], [6.0] * 7
    assert crossing(sizes, [1.0, 2.0, 4.0, 8.0, 16.0, 1.0, 64.0], flat) == (6.0, True)
    assert crossing(sizes, [9.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0], flat) == (6.0, True)
    assert crossing(sizes, [1.0, 1.0, 9.0, 1.0, 1.0, 1.0, 1.0], flat) == (None, False)


def test_of_several_crossings_the_last_counts():
    assert crossing([1, 2, 4, 8], [1.0, 4.0, 1.0, 4.0], [2.0] * 4) == (pytest.approx(4 * 2**0.5), True)


def test_crossings_are_told_as_they_were_found(found):
    told = {(e.sweep, e.slower, e.faster): e.at for e in found.recording if isinstance(e, CrossingFound)}
    assert told == found.crossings
    assert [CostMeasured(*c) for c in found.rows] == [e for e in found.recording if isinstance(e, CostMeasured)]


def test_who_records_single_operations_meanwhile_is_told_that_it_costs():
    with lab.record(kinds=[OpRecorded]):
        found = lab.measure_cost(sizes=[1], fixed=1, repeats=1)
    assert found.told
    assert [e.told for e in found.recording if isinstance(e, CostBegun)] == [True]
    assert not lab.measure_cost(sizes=[1], fixed=1, repeats=1).told


@pytest.mark.parametrize(("call", "words"), [
    (lambda: lab.measure_cost(3), "needs a function"), (lambda: lab.measure_cost(sizes=[4, 2]), "ascending"),
    (lambda: lab.measure_cost(sizes=[]), "whole numbers"), (lambda: lab.measure_cost(sizes=[1.5]), "whole number"),
    (lambda: lab.measure_cost(sizes=[0, 2]), "whole number"), (lambda: lab.measure_cost(repeats=0), "whole number"),
        (lambda: lab.measure_cost(sizes="ab"), "whole number"),
        (lambda: lab.measure_cost(lambda n: n), "two arguments"),
    (lambda: lab.measure_cost(lambda n, m: lab.sin, sizes=[2], fixed=3), "returns m"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused_in_three_lines(call, words):
    with pytest.raises(ArgumentError, match=words) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
