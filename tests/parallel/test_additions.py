"""Whether all ranks of a right plan add in the same order, as check_plan tells and real arrays show."""

import numpy as np
import pytest

from lab.parallel import COLLECTIVES, Recv, Send, check_plan, simulate_arrays


def everybody_to_all(rank, n, k):
    """Right, but each rank begins with its own part and adds the others in the order of ranks."""
    others = [peer for peer in range(n) if peer != rank]
    yield tuple(Send(peer, 0, k) for peer in others) + tuple(Recv(peer, 0, k, True) for peer in others)


def butterfly(rank, n, k):
    """Partners swap what they have; the two sides of each addition are swapped too, which changes no bit."""
    distance = 1
    while distance < n:
        yield Send(rank ^ distance, 0, k), Recv(rank ^ distance, 0, k, True)
        distance *= 2


@pytest.mark.parametrize(("plan", "world_size", "is_same"), [
    (everybody_to_all, 1, True), (everybody_to_all, 2, True), (everybody_to_all, 3, False),
    (everybody_to_all, 4, False), (butterfly, 2, True), (butterfly, 4, True), (butterfly, 8, True)])  # fmt: skip
def test_ranks_add_in_the_same_order_exactly_if_their_bits_are_equal(plan, world_size, is_same):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=1000).astype(np.float32) for _ in range(world_size)]
    assert check_plan("all_reduce", plan, world_size).same_order is is_same
    assert (len({result.tobytes() for result in simulate_arrays(plan, arrays)}) == 1) is is_same


@pytest.mark.parametrize("key", COLLECTIVES, ids="-".join)
def test_in_every_plan_of_the_house_all_add_in_the_same_order(key):
    assert all(check_plan(*key, world_size).same_order for world_size in (1, 2, 3, 4, 8))


def test_the_report_says_in_words_how_ranks_add():
    assert str(check_plan("all_reduce", "ring", 4)).endswith("1.5 buffers; all add in one order")
    assert str(check_plan("broadcast", "flat", 4)).endswith("buffers")  # nothing is added
    report = check_plan("all_reduce", everybody_to_all, 3)
    assert repr(report).endswith("; not all add in one order, so their last bits may differ")
    assert report.disorder == "chunk 0 is 0 + 1 + 2 on rank 0, 2 + 0 + 1 on rank 2"


def test_a_sum_of_many_ranks_is_told_in_a_line():
    assert len(check_plan("all_reduce", everybody_to_all, 40).disorder) < 120
