"""Links made slow: how long messages are held back, what is told of it, and that no bit changes."""

import re

import numpy as np
import pytest

from lab.errors import ArgumentError, MeshError
from lab.events import CollectiveStarted, record
from lab.parallel import Throttle, run_ranks
from lab.parallel.ranks import execute as executing
from lab.parallel.transport import throttle as throttling
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.throttle import Brake
from tests.parallel import programs

SLOW = Throttle(bytes_per_s=1e6, latency_s=0.25)


@pytest.fixture
def held(monkeypatch):
    """Seconds by rank for which messages were to be held back; nothing really waits."""
    found = {}

    def hold(self, messages, *, first=True):
        for peer, n_bytes in messages:
            seconds = self.throttle.seconds(self._rank, peer, n_bytes, first=first)
            found.setdefault(self._rank, []).append(seconds)

    monkeypatch.setattr(Brake, "hold", hold)
    return found


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_ring_takes_the_time_of_the_text_book(held, n):
    size = 1200 * n
    run_ranks(lambda comm: comm.all_reduce_(np.ones(size, np.float32)), world_size=n, throttle=SLOW)
    goodbye_not_included = 2 * (n - 1) * (0.25 + 4 * size / n / 1e6)
    assert {rank: pytest.approx(goodbye_not_included) for rank in range(n)} == {r: sum(s) for r, s in held.items()}


def test_latency_is_paid_once_for_a_message_also_when_it_goes_in_segments(held, monkeypatch):
    monkeypatch.setattr(executing, "SEGMENT", 4000)
    run_ranks(lambda comm: comm.all_reduce_(np.ones(10_000, np.float32)), world_size=2, throttle=SLOW)
    assert sum(held[0]) == pytest.approx(2 * (0.25 + 20_000 / 1e6))


def test_single_links_may_be_slower_in_one_direction(held):
    links = Throttle(links={(0, 1): Throttle(latency_s=3.0)})

    def program(comm):
        if comm.rank == 0:
            comm.send(np.ones(10), 1)
            comm.send(np.ones(10), 2)
        elif comm.rank == 1:
            comm.recv(np.ones(10), 0)
            comm.send(np.ones(10), 0)
        comm.recv(np.ones(10), 0 if comm.rank == 2 else 1) if comm.rank != 1 else None

    run_ranks(program, world_size=3, throttle=links)
    assert held == {0: [3.0, 0.0], 1: [0.0]}


def test_messages_are_held_until_their_time_is_over(monkeypatch):
    now, slept = [0.0], []

    class Clocked(Alarm):
        def wait(self, seconds):
            slept.append(seconds)
            now[0] += seconds
            return False

    def clock():
        now[0] += 1e-4
        return now[0]

    monkeypatch.setattr(throttling, "perf_counter", clock)
    alarm = Clocked()
    Brake(SLOW, 0, alarm).hold([(1, 500_000), (2, 500_000)])
    alarm.close()
    assert len(slept) == 1
    assert 1.5 <= now[0] < 1.5 + 1e-3


def test_whoever_is_held_hears_the_alarm():
    alarm = Alarm()
    alarm.ring("stopped", "Stop was pressed")
    with pytest.raises(MeshError, match="Stop was pressed"):
        Brake(Throttle(latency_s=1000.0), 0, alarm).hold([(1, 8)])
    alarm.close()


def test_no_bit_changes_and_the_events_say_how_slow_it_was(held):
    def program(comm):
        return comm.all_reduce_(np.random.default_rng(comm.rank).normal(size=1000))

    with record() as seen:
        slow = run_ranks(program, world_size=3, throttle=SLOW)
    for array, wanted in zip(slow, run_ranks(program, world_size=3), strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert {e.throttle for e in seen if isinstance(e, CollectiveStarted)} == {"1 MB/s, 250 ms"}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Throttle(bytes_per_s=0), "a bandwidth is above 0\ngiven: bytes_per_s=0\nhint:  for example 1e9"),
        (lambda: Throttle(bytes_per_s="1e9"), "bytes_per_s is a number\ngiven: bytes_per_s='1e9'"),
        (lambda: Throttle(bytes_per_s=float("nan")), "a bandwidth is above 0\ngiven: bytes_per_s=nan"),
        (lambda: Throttle(latency_s=-1), "a latency is no less than 0 seconds\ngiven: latency_s=-1"),
        (lambda: Throttle(latency_s=float("inf")), "a latency is no less than 0 seconds\ngiven: latency_s=inf"),
        (lambda: Throttle(links=[(0, 1)]), "links are given by their ends\ngiven: links=[(0, 1)]"),
        (lambda: Throttle(links={(0, 0): Throttle()}), "two ends and a Throttle of its own\ngiven: (0, 0)"),
        (lambda: Throttle(links={(0, 1): 1e6}), "two ends and a Throttle of its own\ngiven: (0, 1): 1000000"),
        (lambda: run_ranks(lambda comm: None, world_size=1, throttle=1e6), "by a Throttle\ngiven: throttle="),
    ],
)
def test_throttles_that_cannot_be_are_refused_in_three_lines(make, told):
    with pytest.raises(ArgumentError, match=re.escape(told)) as raised:
        make()
    assert str(raised.value).count("\n") == 2


def test_workers_are_slowed_down_by_their_launch(cluster):
    slow = Throttle(bytes_per_s=1e9, latency_s=0.01)
    with record(kinds=[CollectiveStarted]) as seen:
        got = cluster.launch(programs.reduces, (1000,), "f4", "ring", world_size=2, throttle=slow)
    want = sum(programs.data(rank, (1000,), "f4") for rank in range(2))
    for array in got:
        np.testing.assert_array_equal(array, want)
    started = [e for e in seen if isinstance(e, CollectiveStarted)]
    assert {e.throttle for e in started} == {"1000 MB/s, 10 ms"}
