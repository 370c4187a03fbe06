"""Another order of additions gives other bits of a float32 sum, and it is measured by how much."""

import math

import numpy as np
import pytest

from lab.errors import ArgumentError, MeshError, PlanError
from lab.events import OrderMeasured, record
from lab.parallel import measure_orders, run_ranks
from lab.parallel.paper.orders import ORDERS, exact_sum, pairwise_sum, summed


def gradients(n_ranks=8, n=1000, dtype="float32"):
    rng = np.random.default_rng(0)
    return [rng.normal(size=n).astype(dtype) for _ in range(n_ranks)]


def test_each_order_is_that_of_the_plan_on_ranks():
    arrays = gradients()
    for algorithm in ("naive", "ring", "tree", "halving"):
        ranks = run_ranks(lambda comm, a=algorithm: comm.all_reduce_(arrays[comm.rank].copy(), a), world_size=8)
        np.testing.assert_array_equal(ranks[0], summed(arrays, algorithm))


def test_counts_and_distances_are_those_found_by_hand():
    arrays = gradients()
    exact = np.array([np.float32(math.fsum(float(a[i]) for a in arrays)) for i in range(1000)])
    np.testing.assert_array_equal(exact_sum(arrays), exact)
    first, *others = measure_orders(arrays)
    assert [first.algorithm, *(o.algorithm for o in others)] == list(ORDERS)
    assert first.n_other == 0
    for order in (first, *others):
        total = summed(arrays, order.algorithm)
        ulp = [abs(float(t) - float(e)) / float(np.spacing(abs(e))) for t, e in zip(total, exact, strict=True)]
        assert order.n_entries == 1000
        assert order.n_inexact == int((total != exact).sum())
        assert order.n_other == int((total != summed(arrays, "naive")).sum())
        assert order.max_ulp == max(ulp)
        assert math.isclose(order.mean_ulp, sum(ulp) / 1000)
    assert all(order.n_other > 0 for order in others)
    assert f"{order.n_inexact} of 1000 entries inexact" in str(order).replace(",", "")


def test_pairwise_is_the_order_of_halving_for_a_power_of_two():
    arrays = gradients()
    np.testing.assert_array_equal(pairwise_sum(arrays), summed(arrays, "halving"))


def test_whole_numbers_in_floats_have_one_sum_in_all_orders():
    arrays = [np.arange(5, dtype="float32") + rank for rank in range(4)]
    assert [(o.n_inexact, o.n_other, o.max_ulp) for o in measure_orders(arrays)] == [(0, 0, 0.0)] * len(ORDERS)


def test_each_order_is_told_once():
    with record(kinds=[OrderMeasured]) as rec:
        found = measure_orders(gradients(3, 10, "float64"), ["ring", "pairwise"])
    assert [(e.algorithm, e.n_inexact, e.max_ulp) for e in rec] == [(o[0], o.n_inexact, o.max_ulp) for o in found]
    assert {(e.n_ranks, e.n_entries, e.dtype) for e in rec} == {(3, 10, "float64")}


def test_what_has_no_exact_sum_is_refused():
    with pytest.raises(ArgumentError, match="nothing to sum"):
        measure_orders([])
    with pytest.raises(ArgumentError, match="only sums of floating-point"):
        measure_orders([np.arange(3)])
    with pytest.raises(ArgumentError, match="no exact value"):
        measure_orders([np.array([np.inf])])
    with pytest.raises(PlanError):
        measure_orders(gradients(), ["rings"])
    with pytest.raises(MeshError):
        measure_orders([np.zeros(2), np.zeros(3)])
