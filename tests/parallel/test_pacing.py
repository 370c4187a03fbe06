"""The paced device: spans on paper follow the text book, whatever a sleep is late, unless it is far behind."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import ArgumentError, MeshError
from lab.parallel import run_ranks
from lab.parallel.pipeline.pacing import Device, Paced, PacedDevice, device_for
from lab.parallel.ranks import machine

MS = 1_000_000


class Clock:
    """A clock that only sleeping and working move; each sleep is late by what is left of `late`."""

    def __init__(self, now_ns=0, late=()):
        self.now_ns, self.late, self.naps = now_ns, list(late), []

    def __call__(self):
        return self.now_ns

    def sleep(self, seconds):
        self.naps.append(seconds)
        self.now_ns += round(seconds * 1e9) + (self.late.pop(0) if self.late else 0)

    def work(self, ns):
        self.now_ns += ns


def device(clock, times=None):
    return PacedDevice(times or Paced(20, 40), clock, clock.sleep)


def act(paced, clock, kind, work_ns=0, after_ns=0):
    start = paced.begin(kind, after_ns)
    clock.work(work_ns)
    return start, paced.end(kind, start)


def test_actions_last_their_nominal_time_and_follow_each_other():
    clock = Clock(now_ns=1000 * MS)
    paced = device(clock)
    spans = [act(paced, clock, kind, work_ns=7 * MS) for kind in "FFB"]
    assert spans == [(1000 * MS, 1020 * MS), (1020 * MS, 1040 * MS), (1040 * MS, 1080 * MS)]
    assert clock.now_ns == 1080 * MS


def test_what_a_sleep_is_late_is_made_up_by_the_next():
    clock = Clock(now_ns=1000 * MS, late=[3 * MS, 4 * MS, 2 * MS])
    paced = device(clock)
    spans = [act(paced, clock, "F") for _ in range(3)]
    assert [end - spans[0][0] for _, end in spans] == [20 * MS, 40 * MS, 60 * MS]
    assert clock.now_ns == 1062 * MS  # not 1069


def test_an_action_begins_when_what_it_needs_was_done_on_paper():
    clock = Clock(now_ns=1003 * MS)  # the message came 3 ms after the sender was done
    assert act(device(clock), clock, "B", after_ns=1000 * MS) == (1000 * MS, 1040 * MS)


def test_more_than_a_quarter_behind_the_paper_gives_in():
    clock = Clock(now_ns=1005 * MS)
    paced = device(clock)
    assert act(paced, clock, "F", after_ns=1000 * MS)[0] == 1000 * MS  # a quarter exactly
    clock.work(5 * MS + 1)
    assert act(paced, clock, "F")[0] == 1025 * MS + 1
    clock = Clock(now_ns=1000 * MS)
    assert act(device(clock), clock, "F", work_ns=26 * MS) == (1000 * MS, 1026 * MS)


def test_a_long_action_is_slept_in_naps_so_that_a_stop_is_heard():
    clock = Clock(now_ns=1)
    act(device(clock, Paced(1000, 1000)), clock, "F")
    assert len(clock.naps) == 20
    assert max(clock.naps) <= 0.05


@given(st.lists(st.tuples(st.sampled_from("FB"), st.integers(0, 60), st.integers(0, 30), st.integers(-50, 9)),
                max_size=30))  # fmt: skip
def test_spans_never_overlap_never_are_short_and_never_begin_too_early(actions):
    clock = Clock(now_ns=10**9, late=[late * MS for _, _, late, _ in actions])
    paced, spans, needed = device(clock), [], []
    for kind, work, _, after in actions:
        needed.append(clock.now_ns + min(after, 0) * MS)
        spans.append((kind, *act(paced, clock, kind, work * MS, needed[-1])))
        assert clock.now_ns >= spans[-1][2]  # nothing is sent before it is done on paper
    assert all(stop - start >= Paced(20, 40).nominal_ns(kind) for kind, start, stop in spans)
    assert all(before[2] <= after[1] for before, after in pairwise(spans))
    assert all(start >= need for need, (_, start, _) in zip(needed, spans, strict=True))


def test_without_pacing_times_are_measured():
    found = Device()
    start = found.begin("F", after_ns=10**18)
    assert start <= found.end("F", start) < 10**18


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), 60_001])
def test_a_nominal_time_is_above_nothing_and_below_a_minute(wrong):
    with pytest.raises(ArgumentError, match=f"at most a minute\ngiven: backward_ms={wrong}"):
        Paced(backward_ms=wrong)
    with pytest.raises(ArgumentError, match="forward_ms is a number\ngiven: forward_ms='20'"):
        Paced("20")


def test_ranks_of_one_host_may_be_paced():
    assert run_ranks(lambda comm: device_for(comm, Paced()).paced, world_size=3) == [True] * 3
    assert run_ranks(lambda comm: device_for(comm, None).paced, world_size=2) == [False] * 2


def test_ranks_of_two_hosts_are_refused_on_all(monkeypatch, tmp_path):
    def program(comm):
        if comm.rank == 1:
            comm.agree = lambda hosts, agree=comm.agree: agree(np.where(hosts, hosts + 1, 0))
        with pytest.raises(MeshError) as caught:
            device_for(comm, Paced())
        return str(caught.value)

    monkeypatch.setattr(machine, "BOOT", tmp_path / "none")  # as on a system without /proc: the host's name
    said = "a paced pipeline needs all ranks on one host\ngiven: 3 ranks on 2"
    hint = "hint:  its times are those of one clock; leave out paced="
    assert run_ranks(program, world_size=3) == [f"{said}\n{hint}"] * 3
