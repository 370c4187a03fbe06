"""Recordings of launches on real workers: complete, in order, live, and what is in them when a rank is killed."""

import contextlib
import json
import os
import signal
import socket
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path
from time import perf_counter_ns

import numpy as np
import pytest
from distributed import Client

import lab
from lab.errors import LostRankError, RankError
from lab.events import (
    ORIGIN,
    ChunkMoved,
    ClockAligned,
    CollectiveFinished,
    CollectiveStarted,
    Detail,
    LeafUsed,
    OpRecorded,
    Origin,
    RankFinished,
    RankLost,
    RankStarted,
    Recording,
    RunStateChanged,
    StepFinished,
    StrangerRefused,
    WorkerSeen,
    bus,
    listen,
    record,
)
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.cluster.dask_side.names import NAME
from lab.parallel.ranks.threads import run_ranks
from tests.parallel import programs
from tests.parallel.processes import Program

pytestmark = pytest.mark.slow


def of(rec, kind, **fields):
    return [e for e in rec if type(e) is kind and all(getattr(e, name) == value for name, value in fields.items())]


def assert_causal(rec):
    """Every chunk comes from who had it: the sender has entered the collective, and has got what it passes on."""
    entered, got = set(), set()
    for e in rec:
        if isinstance(e, CollectiveStarted):
            entered.add((e.collective, e.rank))
        if isinstance(e, ChunkMoved):
            assert e.rank == e.dst
            assert (e.collective, e.src) in entered
            assert e.step == 0 or (e.collective, e.step - 1, e.src, e.start) in got  # of a ring
            got.add((e.collective, e.step, e.dst, e.start))


# --- complete, in order, with values


@pytest.mark.parametrize("detail", ["value", "shape"])  # hops are told as they come, or when all have come
def test_a_recording_has_all_that_all_ranks_did_in_the_order_of_time(cluster, detail):
    with lab.record(detail=detail) as rec:
        cluster.launch(programs.reduces, (10,), "f8", "ring")
    counts = Counter(type(e).__name__ for e in rec)
    assert counts.pop("WorkerSeen") >= 8  # and again each second
    assert counts == {"ClockAligned": 4, "RankStarted": 4, "CollectiveStarted": 4, "ChunkMoved": 24,
                      "CollectiveFinished": 4, "RankFinished": 4}  # fmt: skip
    ranks = [e for e in rec if type(e) is not WorkerSeen]
    assert Counter(e.rank for e in ranks) == dict.fromkeys(range(4), 11)
    assert {e.run for e in rec} == {""}
    times = [e.time_ns for e in ranks]
    assert times == sorted(times)
    assert_causal(rec)
    assert rec.dropped == 0
    assert [e.same_clock for e in of(rec, ClockAligned)] == [True] * 4


def test_values_are_what_each_rank_holds_after_each_hop(cluster):
    with lab.record(kinds=[CollectiveStarted, ChunkMoved]) as rec:
        [total, *_] = cluster.launch(programs.reduces, (10,), "f8", "ring")
    held = {e.rank: e.value.copy() for e in of(rec, CollectiveStarted)}
    for rank, array in held.items():
        assert array.tolist() == programs.data(rank, (10,), "f8").tolist()
    bounds = [10 * chunk // 4 for chunk in range(5)]
    before = {rank: array.copy() for rank, array in held.items()}
    for e in of(rec, ChunkMoved):
        part = slice(bounds[e.start], bounds[e.stop])
        assert e.n_bytes == 8 * len(e.value)
        came = held[e.src][part]
        assert e.value.tolist() == (held[e.dst][part] + came if e.reduces else came).tolist()
        held[e.dst][part] = e.value
    assert all(array.tolist() == total.tolist() for array in held.values())
    assert before[0].tolist() != total.tolist()


def test_values_come_only_if_they_are_asked_for_and_small(cluster):
    with lab.record(detail="shape") as rec:
        cluster.launch(programs.reduces, (10,), "f8", "ring", world_size=2)
    assert {e.value is None for e in of(rec, ChunkMoved) + of(rec, CollectiveStarted)} == {True}
    with lab.record() as rec:
        cluster.launch(programs.reduces, (6000,), "f4", "ring", world_size=2)
    assert {e.value is None for e in of(rec, CollectiveStarted)} == {True}
    assert {len(e.value) for e in of(rec, ChunkMoved)} == {3000}


def test_a_saved_recording_of_a_launch_is_the_same_when_it_is_loaded(cluster, tmp_path):
    with lab.record() as rec:
        cluster.launch(programs.reduces, (10,), "f8", "ring")
    rec.save(tmp_path / "run.rec")
    again = Recording.load(tmp_path / "run.rec")
    assert list(again) == list(rec)
    assert [(e.rank, e.run, e.time_ns) for e in again] == [(e.rank, e.run, e.time_ns) for e in rec]


def test_a_second_launch_goes_into_the_same_recording(cluster):
    with lab.record() as rec:
        for _ in range(2):
            cluster.launch(programs.reduces, (10,), "f8", "ring")
    first, second = (of(rec, RankStarted)[i].generation for i in (0, -1))
    assert second > first
    assert len(of(rec, RankFinished, generation=first, state="finished")) == 4
    assert len(of(rec, RankFinished, generation=second, state="finished")) == 4
    assert_causal(rec[: len(rec) // 2])


def test_a_launch_belongs_to_the_run_in_which_it_was_made(cluster):
    token = ORIGIN.set(Origin(0, "training 7"))
    try:
        with lab.record() as rec:
            cluster.launch(programs.where, world_size=2)
    finally:
        ORIGIN.reset(token)
    assert {(e.rank, e.run) for e in of(rec, RankStarted)} == {(0, "training 7"), (1, "training 7")}
    with lab.record() as rec:
        token = ORIGIN.set(Origin(0, "training 8"))
        try:
            cluster.launch(programs.where, world_size=2)
        finally:
            ORIGIN.reset(token)
    assert len(rec) == 0  # of another run, which has a recording of its own


def test_ranks_that_are_threads_are_recorded_with_their_rank_and_the_run_of_who_launched():
    token = ORIGIN.set(Origin(0, "training 9"))
    try:
        with lab.record() as rec:
            run_ranks(programs.reduces, (10,), "f8", "ring", world_size=3)
    finally:
        ORIGIN.reset(token)
    assert Counter((e.rank, e.run) for e in rec) == {(rank, "training 9"): 1 + 4 + 1 for rank in range(3)}
    assert_causal(rec)


def test_workers_that_are_threads_of_this_process_are_heard_once():
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        with lab.record() as rec:
            running = Cluster(client=client).start(programs.reduces, (10,), "f8", "ring")
            running.result()
        assert running.catch_up(60.0)
    counts = Counter((type(e).__name__, e.rank) for e in rec if type(e) is not WorkerSeen)
    assert counts == {
        **{(name, rank): 1 for rank in range(2) for name in ("ClockAligned", "RankStarted", "RankFinished")},
        **{(name, rank): 1 for rank in range(2) for name in ("CollectiveStarted", "CollectiveFinished")},
        **{("ChunkMoved", rank): 2 for rank in range(2)},
    }
    assert_causal(rec)


# --- only what is wanted


def listens(comm):
    """What this worker's bus has to do."""
    comm.barrier()
    names = [thread.name for thread in threading.enumerate() if thread.name == "lab-relay"]
    return len(bus.listeners), len(names), bus.operations, bus.detail, bus.values


def test_when_nobody_listens_nothing_is_made_or_sent(cluster):
    assert cluster.launch(listens, world_size=2) == [(0, 0, False, Detail.SHAPE, False)] * 2
    with lab.record():
        assert cluster.launch(listens, world_size=2) == [(1, 1, False, Detail.SHAPE, True)] * 2
    with lab.record(kinds=[OpRecorded], detail="statistics"):
        assert cluster.launch(listens, world_size=2) == [(1, 1, True, Detail.STATISTICS, False)] * 2
    assert cluster.launch(listens, world_size=2) == [(0, 0, False, Detail.SHAPE, False)] * 2


def multiplies(comm):
    x = lab.tensor(float(comm.rank), requires_grad=True)
    (x * x).backward()
    comm.barrier()


def test_operations_of_ranks_come_to_who_names_them(cluster):
    with lab.record(kinds=[OpRecorded, LeafUsed]) as rec:
        cluster.launch(multiplies, world_size=2)
    assert Counter((e.rank, type(e)) for e in rec) == {(r, k): 1 for r in range(2) for k in (OpRecorded, LeafUsed)}
    with lab.record() as rec:
        cluster.launch(multiplies, world_size=2)
    assert of(rec, OpRecorded) == []
    assert len(of(rec, RankFinished)) == 2


# --- while it runs


def converses(comm):
    """Does an all-reduce for each number that rank 0 is told, until it is 0."""
    numbers = np.ones(1)
    while numbers[0]:
        numbers[0] = 0
        if comm.rank == 0:
            assert comm.mailbox.wait(60.0)
            numbers[0] = comm.mailbox.take()[0]
        comm.broadcast_(numbers)
        if bus.listeners:
            bus.emit(StepFinished(int(numbers[0]), 0, 0.5, 1, 1.0))


def test_events_come_while_the_program_runs(cluster):
    seen = threading.Semaphore(0)
    heard = []

    def hear(e):
        heard.append((e.rank, e.step))
        seen.release()

    with listen(hear, kinds=[StepFinished]):
        running = cluster.start(converses, world_size=3)
        for step in (1, 2, 3):
            running.say(step)
            for _ in range(3):
                assert seen.acquire(timeout=60.0)
            assert running.state == "running"
            assert sorted(heard[-3:]) == [(rank, step) for rank in range(3)]
        running.say(0)
        running.result()


def emits(comm, n_events):
    for step in range(n_events):
        if bus.listeners:
            bus.emit(RunStateChanged(step, "running"))
    comm.barrier()


def test_a_listener_that_is_slow_costs_the_ranks_nothing_and_a_recording_beside_it_is_complete(cluster):
    told, slow = [], threading.Event()

    def dawdle(e):
        told.append(e)
        slow.wait(0.05)

    with listen(dawdle, kinds=[RunStateChanged], limit=100) as listening, lab.record(kinds=[RunStateChanged]) as rec:
        cluster.launch(emits, 3000, world_size=2)
        slow.set()
    assert len(rec) + rec.dropped == 6000
    assert [e.step for e in rec if e.rank == 1] == sorted(e.step for e in rec if e.rank == 1)
    assert listening.dropped + len(told) == 6000


class Stuck:
    """A listener that takes its time, as none should."""

    detail, sources = Detail.SHAPE, False

    def __init__(self):
        self.free, self.n_taken, self.n_lost = threading.Event(), 0, 0

    def wants(self, kind):
        return kind is RunStateChanged

    def receive(self, batch):
        self.n_taken += len(batch)
        self.free.wait()

    def lost(self, n_events):
        self.n_lost += n_events

    def detached(self, why):
        raise AssertionError from why


def test_a_listener_that_is_stuck_does_not_hold_up_the_launch(cluster):
    stuck = Stuck()
    bus.attach(stuck)
    try:
        assert cluster.launch(emits, 2000, world_size=2) == [None, None]
        [feed] = [thread for thread in threading.enumerate() if thread.name == "lab-feed"]
    finally:
        stuck.free.set()
    feed.join()
    bus.detach(stuck)
    assert stuck.n_taken > 0


def test_more_than_there_is_room_for_is_counted(cluster):
    n_events = 60_000
    with record(kinds=[RunStateChanged]) as rec:
        cluster.launch(emits, n_events, world_size=2)
    assert len(rec) + rec.dropped == 2 * n_events
    for rank in range(2):
        steps = [e.step for e in rec if e.rank == rank]
        assert steps == sorted(set(steps))


# --- when it goes wrong


def killed_later(comm, marker, rank):
    """`rank` is killed when it is told; the others are in a collective then."""
    comm.all_reduce_(np.ones(4))
    if comm.rank == rank:
        assert comm.mailbox.wait(60.0)
        Path(marker).write_text(str(perf_counter_ns()))
        os.kill(os.getpid(), signal.SIGKILL)
    comm.all_reduce_(np.ones(4))


def test_a_kill_during_a_recorded_launch_leaves_what_came_and_says_who_was_lost(cluster, tmp_path):
    with lab.record() as rec:
        running = cluster.start(killed_later, str(tmp_path / "at"), 2)
        while len(of(rec, CollectiveStarted, collective=1)) < 3:  # what came before is here, and those wait
            assert not running.wait(0.02)
        running.say("die", rank=2)
        with pytest.raises(LostRankError, match="rank 2 was lost"):
            running.result()
        ended = perf_counter_ns()
        dead = running.workers[2]
        assert len(cluster.launch(programs.where, world_size=4)) == 4
    assert ended - int((tmp_path / "at").read_text()) < 2e9  # 30 ms on a quiet machine
    [lost] = of(rec, RankLost)
    assert (lost.lost_rank, lost.worker) == (2, dead)
    generation = lost.generation
    assert {e.rank for e in of(rec, RankStarted, generation=generation)} == {0, 1, 2, 3}
    assert {(e.rank, e.state) for e in of(rec, RankFinished, generation=generation)} == {
        (rank, "stopped") for rank in (0, 1, 3)
    }
    assert len(of(rec, CollectiveFinished, collective=0, operation="all_reduce")) == 4
    assert_causal(rec[: rec.positions(RankLost)[0]])
    *before, last = [e.state for e in of(rec, WorkerSeen, worker=dead)]
    assert (set(before), last) == ({"leased"}, "gone")
    newcomers = {e.worker for e in of(rec, WorkerSeen)} - set(running.workers)
    assert len(newcomers) == 1  # its replacement, in the launch after


def test_a_rank_that_raises_is_recorded_with_its_reason(cluster):
    with lab.record() as rec, pytest.raises(RankError, match="bad luck"):
        cluster.launch(programs.raises, 1, ValueError)
    ends = {e.rank: (e.state, e.reason) for e in of(rec, RankFinished)}
    assert ends[1] == ("failed", "ValueError: bad luck")
    assert {state for rank, (state, _) in ends.items() if rank != 1} == {"stopped"}
    assert of(rec, RankLost) == []


def test_a_stranger_at_a_rank_s_port_is_recorded(cluster, tmp_path):
    release = tmp_path / "release"

    def busy(path):
        while not Path(path).exists():
            pass

    workers = list(cluster.client.scheduler_info(n_workers=-1)["workers"])
    task = cluster.client.submit(busy, str(release), workers=[workers[-1]], pure=False)
    with lab.record() as rec:
        running = cluster.start(programs.where, world_size=4, transport="tcp")

        def addresses(dask_scheduler, run=running.run):
            known = dask_scheduler.plugins[NAME].runs.get(run)
            return dict(known.addresses) if known else {}

        while len(listening := cluster.client.run_on_scheduler(addresses)) < 3:  # one worker is busy, three wait for it
            assert not running.wait(0.02)
        for address in listening.values():
            _, host, port = address.split(":")
            with contextlib.closing(socket.create_connection((host, int(port)))) as knock:
                knock.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(54))
        release.touch()
        assert len(running.result()) == 4
    task.result()
    assert Counter(e.rank for e in of(rec, StrangerRefused)) == dict.fromkeys(listening, 1)
    assert {e.reason for e in of(rec, StrangerRefused)} <= {"gave a wrong proof", "left without a proof"}


RECORDS = """
    import json, sys
    import lab
    from lab.events import RankStarted
    from lab.parallel.cluster.cluster import Cluster
    from tests.parallel import programs

    with Cluster(client=sys.argv[1]) as there:
        with lab.record() as rec:
            running = there.start(programs.reduces_beside, 40, sys.argv[2], sys.argv[3], world_size=2)
            running.result()
        seen = [(type(e).__name__, e.rank, e.worker if isinstance(e, RankStarted) else "") for e in rec]
        print("seen", json.dumps([running.workers, seen]), flush=True)
    """


def test_launches_of_two_clients_at_once_do_not_mix(cluster, tmp_path):
    path, at = tmp_path / "other.py", [str(tmp_path / "theirs"), str(tmp_path / "ours")]
    path.write_text(textwrap.dedent(RECORDS))
    with Program(sys.executable, str(path), cluster.client.scheduler.address, *at) as other:
        with lab.record() as rec:
            mine = cluster.start(programs.reduces_beside, 40, *reversed(at), world_size=2)
            mine.result()
        theirs, seen = json.loads(other.until(r"seen (.*)")[1])
    assert set(theirs) & set(mine.workers) == set()
    for workers, events in [
        (mine.workers, [(type(e).__name__, e.rank, getattr(e, "worker", "")) for e in rec]),
        (theirs, [tuple(e) for e in seen]),
    ]:
        assert Counter(e for e in events if e[0] != "WorkerSeen") == {
            **{("RankStarted", rank, workers[rank]): 1 for rank in range(2)},
            **{("ClockAligned", rank, ""): 1 for rank in range(2)},
            **{(name, rank, ""): 40 for rank in range(2) for name in ("CollectiveStarted", "CollectiveFinished")},
            **{("ChunkMoved", rank, ""): 80 for rank in range(2)},
            **{("RankFinished", rank, ""): 1 for rank in range(2)},
        }


# --- workers


def test_workers_are_seen_leased_then_idle_and_about_once_a_second_while_a_launch_lives(cluster):
    with lab.record(kinds=[WorkerSeen]) as rec:
        running = cluster.start(converses, world_size=3)
        while len(rec) < 12:  # at the start, and twice while it runs
            assert not running.wait(0.02)
        running.say(0)
        running.result()
    by_worker = {}
    for e in rec:
        by_worker.setdefault(e.worker, []).append(e)
    assert len(by_worker) == 4
    for worker, seen in by_worker.items():
        leased = worker in running.workers
        states = [(e.state, e.holds) for e in seen]
        n_leased = states.count(("leased", running.run))
        assert n_leased >= 2 if leased else n_leased == 0
        assert states == [("leased", running.run)] * n_leased + [("idle", "")] * (len(seen) - n_leased)
        assert seen[-1].state == "idle"
        assert len({e.pid for e in seen}) == 1
        assert all(0 < e.memory_bytes < e.memory_limit_bytes for e in seen[1:])
    times = sorted({e.time_ns // 100_000_000 for e in rec})
    assert times[-1] - times[0] >= 20  # tenths of a second
