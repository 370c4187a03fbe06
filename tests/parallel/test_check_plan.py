"""Every plan of the house is proved on paper for worlds of 1 to 64, and computes what it promises, to the bit."""

import functools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import MeshError, PlanError
from lab.parallel import COLLECTIVES, OPERATIONS, block, check_plan, elements, simulate_arrays
from lab.parallel.paper.operations import AT_LEAST_ONCE, PLACES, places, promised
from lab.parallel.paper.plans import algorithms
from tests.parallel.cuts import cuts
from tests.slices import sliced

KEYS = [pytest.param(*key, id="-".join(key)) for key in COLLECTIVES]
WORLDS = [*range(1, 10), 13, 16, 31, 64]


@pytest.mark.parametrize(("operation", "algorithm"), KEYS)
def test_every_plan_keeps_its_promise(operation, algorithm):
    for world_size in WORLDS:
        wanted = {world_size, 1, max(1, world_size - 1), world_size + 3} if world_size < 20 else {world_size}
        for n_chunks in cuts(operation, world_size, wanted):
            report = check_plan(operation, algorithm, world_size, n_chunks)
            assert (report.world_size, report.n_chunks) == (world_size, n_chunks)


@pytest.mark.slow
@sliced("operation", "algorithm", every=3)
@pytest.mark.parametrize(("operation", "algorithm"), KEYS)
def test_every_plan_keeps_its_promise_in_every_world_up_to_64(operation, algorithm):
    for world_size in range(1, 65):
        check_plan(operation, algorithm, world_size)


def test_every_operation_has_a_plan_and_every_plan_an_operation():
    assert {operation for operation, _ in COLLECTIVES} == set(OPERATIONS)


@given(st.sampled_from(sorted(COLLECTIVES)), st.integers(1, 8), st.integers(1, 11), st.integers(0, 40))
def test_every_plan_computes_what_it_promises(key, world_size, n_chunks, n_elements):
    rng = np.random.default_rng(n_elements)
    (n_chunks,) = cuts(key[0], world_size, [n_chunks])
    n_elements *= n_chunks if key[0] in PLACES else 1
    arrays = [rng.integers(-9, 10, n_elements) for _ in range(world_size)]
    before = [array.copy() for array in arrays]
    results = simulate_arrays(COLLECTIVES[key], arrays, n_chunks)
    np.testing.assert_equal(arrays, before)
    if key[0] in AT_LEAST_ONCE:
        return  # it computes nothing: who came is counted as often as it is heard of
    promise, origin = promised(key[0], world_size, n_chunks), places(key[0], world_size, n_chunks)
    for rank in range(world_size):
        for chunk in range(n_chunks):
            part = elements(chunk, chunk + 1, n_chunks, n_elements)
            if (promise[rank, chunk] >= 0).all():
                source = int(origin[rank, chunk])
                there = elements(source, source + 1, n_chunks, n_elements)
                expected = sum(times * array[there] for times, array in zip(promise[rank, chunk], arrays, strict=True))
                np.testing.assert_array_equal(results[rank][part], expected)


@pytest.mark.parametrize("algorithm", algorithms("all_reduce"))
@pytest.mark.parametrize("world_size", range(1, 9))
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (17,), (5, 1, 7)])
def test_an_all_reduce_is_the_plain_sum_in_any_shape(algorithm, world_size, shape):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape) for _ in range(world_size)]
    arrays = [np.asarray(array) for array in arrays]
    for result in simulate_arrays(COLLECTIVES["all_reduce", algorithm], arrays):
        assert result.shape == shape
        np.testing.assert_allclose(result, sum(arrays), rtol=1e-12, atol=1e-12)


def float32_buffers(world_size, n_elements=1003):
    rng = np.random.default_rng(7)
    return [(rng.normal(size=n_elements) * 10.0 ** rng.integers(-3, 4, n_elements)).astype(np.float32)
            for _ in range(world_size)]  # fmt: skip


@pytest.mark.parametrize("world_size", range(1, 9))
def test_a_ring_adds_block_b_from_rank_b_plus_1_around_to_b_bit_for_bit(world_size):
    arrays = float32_buffers(world_size)
    expected = np.empty_like(arrays[0])
    for b in range(world_size):
        part = elements(*block(b, world_size, world_size), world_size, expected.size)
        around = [arrays[(b + 1 + i) % world_size][part] for i in range(world_size)]
        expected[part] = functools.reduce(operator.add, around)
    results = simulate_arrays(COLLECTIVES["all_reduce", "ring"], arrays)
    assert {result.tobytes() for result in results} == {expected.tobytes()}
    assert results[0].dtype == np.float32


@pytest.mark.parametrize("world_size", range(1, 9))
def test_the_naive_plan_adds_from_rank_0_upwards_bit_for_bit(world_size):
    arrays = float32_buffers(world_size)
    expected = functools.reduce(operator.add, arrays)
    results = simulate_arrays(COLLECTIVES["all_reduce", "naive"], arrays)
    assert {result.tobytes() for result in results} == {expected.tobytes()}


def test_ring_and_naive_add_in_another_order_and_so_give_other_bits():
    arrays = float32_buffers(4)
    ring, naive = (simulate_arrays(COLLECTIVES["all_reduce", a], arrays)[0] for a in ("ring", "naive"))
    assert ring.tobytes() != naive.tobytes()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 64])
def test_the_text_book_numbers_of_the_ring(n):
    report = check_plan("all_reduce", "ring", n)
    assert report.steps == 2 * (n - 1)
    assert report.sends == report.chunks_sent == (2 * (n - 1),) * n
    assert report.bytes_sent(n * 1000, 4) == (2 * (n - 1) * 4000,) * n
    assert report.links == {(r, (r + 1) % n): 2 * (n - 1) for r in range(n) if n > 1}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 64])
def test_the_naive_plan_takes_as_many_steps_but_all_bytes_pass_one_rank(n):
    report = check_plan("all_reduce", "naive", n)
    assert report.steps == 2 * (n - 1)
    assert report.chunks_sent == ((n - 1) * n, *[n] * (n - 1))
    assert report.bytes_sent(1000, 4) == ((n - 1) * 4000, *[4000] * (n - 1))
    assert all(0 in link for link in report.links)


def test_bytes_are_exact_where_the_size_does_not_divide():
    report = check_plan("all_reduce", "ring", 4)
    sizes = [2, 3, 2, 3]  # 10 elements in 4 chunks
    twice = sum(sizes) * 2  # in each phase a rank sends all chunks but one
    not_sent = {rank: sizes[rank] + sizes[(rank + 1) % 4] for rank in range(4)}
    assert report.bytes_sent(10, 8) == tuple(8 * (twice - not_sent[rank]) for rank in range(4))
    assert report.bytes_by_link(10, 8) == {(r, (r + 1) % 4): report.bytes_sent(10, 8)[r] for r in range(4)}
    assert sum(report.bytes_sent(10, 8)) == 8 * 2 * 3 * 10


def test_a_ring_of_fewer_chunks_than_ranks_sends_nothing_where_a_block_is_empty():
    report = check_plan("all_reduce", "ring", 4, 2)
    assert report.steps == 6
    assert len(report.hops) == 2 * 3 * 2


def test_what_one_rank_receives_is_what_it_was_when_the_step_began():
    shifted = simulate_arrays(COLLECTIVES["shift", "direct"], [np.array([r]) for r in range(5)])
    assert [int(x[0]) for x in shifted] == [4, 0, 1, 2, 3]


def test_arrays_that_differ_are_refused_by_rank():
    ring = COLLECTIVES["all_reduce", "ring"]
    with pytest.raises(MeshError, match=r"given: rank 0: float64 \(3,\), rank 2: float64 \(4,\)"):
        simulate_arrays(ring, [np.ones(3), np.ones(3), np.ones(4)])
    with pytest.raises(MeshError, match=r"rank 1: float32"):
        simulate_arrays(ring, [np.ones(3), np.ones(3, np.float32)])


def test_unknown_operations_and_worlds_without_ranks_are_refused():
    with pytest.raises(PlanError, match="such operation\ngiven: operation='all_redcue'\nhint:  did you mean 'all_"):
        check_plan("all_redcue", COLLECTIVES["all_reduce", "ring"], 2)
    with pytest.raises(PlanError, match="world_size=0"):
        check_plan("all_reduce", "ring", 0)
