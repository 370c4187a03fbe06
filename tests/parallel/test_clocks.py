"""Clocks of ranks: by round trips, and times in a recording when a worker's clock is an hour ahead."""

from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lab
from lab.events import (
    ActionFinished,
    ChunkMoved,
    ClockAligned,
    CollectiveFinished,
    CollectiveStarted,
    RankFinished,
    RankStarted,
    WorkerSeen,
    bus,
)
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.news.clocks import UNKNOWN_NS, Alignment, Reading, RoundTrip, align
from tests.parallel import processes

HOUR_NS = 3600 * 10**9


def trip(asked, answered, heard, *, day=0):
    """A round trip between clocks that both show the time of day `day` ahead."""
    there = Reading(answered, answered + day, answered)
    return RoundTrip(Reading(asked, asked + day, asked), there, heard)


def test_on_one_host_a_clock_that_may_be_ours_is_ours():
    assert align([trip(100, 150, 200), trip(300, 310, 400)], same_host=True) == (0, 0, True)
    assert align([], same_host=True) == (0, 0, True)


def test_on_one_host_a_clock_that_cannot_be_ours_is_believed():
    trips = [trip(100, HOUR_NS + 150, 200), trip(300, HOUR_NS + 320, 340)]  # each host's own time of day
    assert align(trips, same_host=True) == (HOUR_NS, 20, False)


def test_on_one_host_the_time_of_day_tells_the_offset_more_closely():
    asked, answered = Reading(100, 7000, 101), Reading(HOUR_NS + 5100, 12_000, HOUR_NS + 5103)
    assert align([RoundTrip(asked, answered, 9000)], same_host=True) == (HOUR_NS + 1, 7, False)
    assert align([RoundTrip(asked, answered, 9000)], same_host=False) == (HOUR_NS + 551, 4452, False)


def test_of_two_hosts_the_offset_is_measured_also_if_it_may_be_0():
    assert align([trip(100, 150, 210)], same_host=False) == (-5, 55, False)


def test_a_clock_that_does_not_answer_is_not_known():
    assert align([], same_host=False) == Alignment(0, UNKNOWN_NS, False)


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=8),
)
def test_the_true_offset_is_within_the_error_however_unequal_the_ways_are(offset, ways):
    now, trips = 10**18, []
    for there, back, pause in ways:
        trips.append(trip(now, now + there + offset, now + there + back))
        now += there + back + pause
    alignment = align(trips, same_host=False)
    assert abs(alignment.offset_ns - offset) <= alignment.error_ns
    assert alignment.error_ns <= min(there + back + 1 for there, back, _ in ways) / 2 + 0.5


AHEAD = """
import time

if not hasattr(time, "our_ns"):  # a worker loads this twice
    time.our_ns = time.perf_counter_ns
    time.perf_counter_ns = lambda: time.our_ns() + {ahead}
"""


@pytest.fixture(scope="module")
def a_cluster_with_a_fast_clock(tmp_path_factory):
    """Two workers, one of which lives an hour ahead."""
    preload = tmp_path_factory.mktemp("preload") / "ahead.py"
    preload.write_text(AHEAD.format(ahead=HOUR_NS))
    with ExitStack() as stack:
        address = stack.enter_context(processes.scheduler())
        stack.enter_context(processes.worker(address))
        stack.enter_context(processes.worker(address, "--preload", str(preload)))
        yield stack.enter_context(Cluster(client=address))


def acts(comm):
    from time import perf_counter_ns

    for _ in range(20):
        start = perf_counter_ns()
        comm.all_reduce_(np.ones(10_000))
        bus.emit(ActionFinished("F", comm.rank, 0, False, start, perf_counter_ns(), 1))
    return perf_counter_ns()


@pytest.mark.slow
def test_times_of_a_worker_whose_clock_is_an_hour_ahead_are_told_in_ours(a_cluster_with_a_fast_clock):
    with lab.record() as rec:
        clocks = a_cluster_with_a_fast_clock.launch(acts)
    ahead = int(np.argmax(clocks))
    assert abs(abs(clocks[0] - clocks[1]) - HOUR_NS) < 60e9  # it really is
    aligned = {e.rank: e for e in rec if isinstance(e, ClockAligned)}
    assert aligned[1 - ahead] == ClockAligned(0, 0, True)
    clock = aligned[ahead]
    assert not clock.same_clock
    assert abs(clock.offset_ns - HOUR_NS) <= clock.error_ns < 1e9  # microseconds on a quiet machine

    entered, began = {}, {}
    n_checked = 0
    for e in rec:
        if isinstance(e, RankStarted):
            began[e.rank] = e.time_ns
        if isinstance(e, CollectiveStarted):
            entered[e.rank, e.collective] = e.time_ns
        if isinstance(e, CollectiveFinished):
            assert e.time_ns > entered[e.rank, e.collective]
        if isinstance(e, ActionFinished):
            assert began[e.rank] < e.start_ns
            assert e.start_ns < e.end_ns <= e.time_ns
        if isinstance(e, RankFinished):
            assert e.time_ns > began[e.rank]
        if isinstance(e, ChunkMoved):  # received after it was sent
            assert e.time_ns > entered[e.src, e.collective]
            n_checked += 1
    assert n_checked == 80
    times = [e.time_ns for e in rec if e.rank == ahead and not isinstance(e, ClockAligned | WorkerSeen)]
    assert times == sorted(times)
