"""Collectives that come too fast for all of them to be told, and those that are told when they are over."""

from collections import Counter

import numpy as np
import pytest

import lab
from lab.events import ChunkMoved, CollectiveFinished, CollectiveStarted, Recording, bus
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.ranks.pace import BLOCK, FREE, SHARE, Pace
from tests.parallel import programs

N_CALLS = 6000


def test_collectives_that_leave_time_to_tell_them_are_all_told():
    now = iter(10 * np.arange(1000.0))
    pace = Pace(clock=lambda: next(now))
    assert all(pace.tells(number, 6, values=True) for number in range(5000))


@pytest.mark.parametrize("seconds", [1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("values", [True, False])
def test_what_is_told_takes_no_larger_share_of_the_time_than_was_said(seconds, values):
    number, cost = 0, 80e-6 if values else 25e-6
    pace = Pace(clock=lambda: number * seconds)
    told = 0
    for number in range(20_000):
        told += pace.tells(number, 10, values=values) and number >= FREE + BLOCK
    assert 0.2 * SHARE < told * 10 * cost / ((20_000 - FREE - BLOCK) * seconds) <= SHARE


def test_it_may_be_asked_twice_of_the_same_collective():
    now = iter(np.arange(1000.0) * 1e-3)
    pace, twice = Pace(clock=lambda: next(now)), Counter()
    for number in range(5000):
        twice[pace.tells(number, 4, values=False), pace.tells(number, 4, values=False)] += 1
    assert set(twice) == {(True, True), (False, False)}


def test_two_ranks_whose_clocks_differ_a_little_tell_the_same_collectives():
    number, seconds = 0, 60e-6
    one, other = Pace(clock=lambda: number * seconds), Pace(clock=lambda: number * seconds * 1.3 + 40)
    differ = 0
    for number in range(50_000):
        differ += one.tells(number, 4, values=False) != other.tells(number, 4, values=False)
    assert differ < 50


@pytest.mark.slow
def test_a_fast_loop_is_told_from_its_beginning_and_then_in_part_whole_collectives_and_the_rest_is_counted():
    with Cluster(2) as cluster, lab.record(detail="shape") as rec:
        found = cluster.launch(programs.adds_again_and_again, N_CALLS)
    assert len({str(total) for total in found}) == 1
    ranks = {rank: [e for e in rec if e.rank == rank] for rank in range(2)}
    for told in ranks.values():
        kinds = (CollectiveStarted, ChunkMoved, CollectiveFinished)
        of = {kind: {e.collective for e in told if type(e) is kind} for kind in kinds}
        assert of[CollectiveStarted] == of[ChunkMoved] == of[CollectiveFinished]
        assert set(range(FREE)) <= of[CollectiveStarted]
        assert len(of[CollectiveStarted]) < N_CALLS
    seen = sum(isinstance(e, (CollectiveStarted, ChunkMoved, CollectiveFinished)) for e in rec)
    assert seen + rec.dropped == 2 * N_CALLS * 4  # of two ranks, each with a beginning, two hops and an end


@pytest.mark.slow
def test_hops_that_are_told_late_have_their_times_and_come_before_the_end_of_their_collective():
    with Cluster(2) as cluster, lab.record(detail="shape") as rec:
        cluster.launch(programs.adds_again_and_again, 20)
    for rank in range(2):
        told = [e for e in rec if e.rank == rank and isinstance(e, (CollectiveStarted, ChunkMoved, CollectiveFinished))]
        assert [e.time_ns for e in told] == sorted(e.time_ns for e in told)
        kinds = [type(e) for e in told]
        assert kinds == [CollectiveStarted, ChunkMoved, ChunkMoved, CollectiveFinished] * 20
        assert [e.step for e in told if isinstance(e, ChunkMoved)] == [0, 1] * 20


@pytest.mark.slow
def test_who_listens_on_a_rank_hears_of_each_hop_when_it_has_come():
    with Cluster(2) as cluster:
        assert cluster.launch(hears_itself) == [[True, True]] * 2


def hears_itself(comm):
    """Whether its collective was still under way when each hop was told."""
    inside = []

    class Ear(Recording):
        def receive(self, batch):
            inside.extend(bool(comm.inside) for e in batch if isinstance(e, ChunkMoved))

    ear = Ear(kinds=[ChunkMoved])
    bus.attach(ear)
    emit = bus.emit

    def at_once(event):
        emit(event)
        bus.flush()

    type(bus).emit = lambda _self, event: at_once(event)
    try:
        comm.all_reduce_(np.ones(8))
    finally:
        type(bus).emit = lambda _self, event: emit(event)
        bus.detach(ear)
    return inside
