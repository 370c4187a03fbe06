"""Workers that this process started are killed, stopped and slowed by hand; all others are left alone."""

import os
import signal
import time
from pathlib import Path

import pytest

from lab.errors import ArgumentError, LostRankError, MeshError
from lab.events import RankLost, WorkerHandled, record
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.cluster.hands import Hands
from tests.parallel import programs
from tests.parallel.trainings import SOON

PID = 4711


@pytest.fixture
def struck(monkeypatch):
    """Signals that were sent, and to whom; none arrives."""
    sent = []
    monkeypatch.setattr(os, "kill", lambda pid, sig: sent.append((pid, signal.Signals(sig).name)))
    return sent


def status(pid):
    """What the kernel says of a process: T for stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(true):
    """Look until it is true."""
    end = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < end
        os.sched_yield()


def test_each_action_sends_its_signal_and_is_told(struck):
    hands = Hands(lambda: {"a": PID})
    with record() as rec:
        hands.stop("a")
        assert hands.state_of("a") == (PID, 0.0)
        hands.go_on("a")
        assert hands.state_of("a") is None
        hands.kill("a", pid=PID)
    assert struck == [(PID, "SIGSTOP"), (PID, "SIGCONT"), (PID, "SIGKILL")]
    assert [(e.worker, e.pid, e.action) for e in rec] == [("a", PID, w) for w in ("stopped", "let go on", "killed")]


def test_what_was_meant_for_a_process_that_has_gone_does_not_meet_the_one_in_its_place(struck):
    with pytest.raises(MeshError, match=r"process 12, now 4711\nhint:  the new one was not touched"):
        Hands(lambda: {"a": PID}).kill("a", pid=12)
    assert struck == []


def test_a_worker_of_somebody_else_is_refused(struck):
    with pytest.raises(MeshError, match="no such worker was started here"):
        Hands(lambda: {"a": PID}).stop("b")
    assert struck == []


def test_a_cluster_that_is_used_and_not_started_here_gives_no_process_out(cluster):
    theirs = Cluster(client=cluster.client)
    worker = next(iter(cluster.processes()))
    assert theirs.processes() == {}
    with pytest.raises(MeshError, match="no such worker was started here"):
        theirs.hands.kill(worker)


@pytest.mark.parametrize("share", [0, 1, -0.5, 2])
def test_a_share_of_no_time_or_of_all_is_refused(struck, share):
    with pytest.raises(ArgumentError, match="a slow worker runs for a share of its time"):
        Hands(lambda: {"a": PID}).slow("a", share)
    assert struck == []


def test_a_slow_worker_is_stopped_and_let_go_on_by_turns_until_it_is_left_alone(struck):
    hands = Hands(lambda: {"a": PID})
    hands.slow("a", 0.5)
    until(lambda: [name for _, name in struck].count("SIGSTOP") >= 3)
    hands.go_on("a")
    until(lambda: hands._thread is None)
    assert struck[-1] == (PID, "SIGCONT")


def test_a_slow_worker_that_is_stopped_for_good_is_not_woken_by_its_last_turn(struck):
    hands = Hands(lambda: {"a": PID})
    hands.slow("a", 0.5)
    until(lambda: (PID, "SIGSTOP") in struck)
    hands.stop("a")
    until(lambda: hands._thread is None)
    assert struck[-1] == (PID, "SIGSTOP")


def test_a_stopped_worker_stands_still_and_goes_on(cluster):
    worker, pid = next(iter(cluster.processes().items()))
    cluster.hands.stop(worker, pid=pid)
    until(lambda: status(pid) == "T")
    cluster.hands.go_on(worker, pid=pid)
    until(lambda: status(pid) != "T")
    assert sorted(rank for rank, _ in cluster.launch(programs.where, world_size=4)) == [0, 1, 2, 3]


def test_the_end_of_a_cluster_lets_a_stopped_worker_go_on():
    with Cluster(1) as one:
        (worker, pid), *_ = one.processes().items()
        one.hands.stop(worker)
        until(lambda: status(pid) == "T")
        one.hands.let_all_go_on()
        until(lambda: status(pid) != "T")
        assert one.hands.state_of(worker) is None


def test_a_killed_worker_is_told_in_the_recording_of_its_launch(cluster, the_next_launch_works):
    with record(kinds=[WorkerHandled, RankLost]) as rec:
        running = cluster.start(programs.adds_for_ever)
        until(lambda: running.state == "running")
        cluster.hands.kill(running.workers[1])
        with pytest.raises(LostRankError):
            running.result(SOON)
    assert [type(e).__name__ for e in rec] == ["WorkerHandled", "RankLost"]
