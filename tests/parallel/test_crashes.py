"""What a learner's rank program can do to itself: one error that says what, one worker lost at most, nothing left."""

import os
import random
import re
import signal
import threading
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from lab.errors import LostRankError, MeshError, RankError
from lab.events import CollectiveFinished, RankFinished, RankLost, RankStarted, record
from tests.parallel import programs
from tests.slices import sliced

pytestmark = pytest.mark.slow

SLACK = 30.0
"""Seconds that a machine may be busy with other things: more is no slow machine, but somebody who waits."""


def pids(cluster):
    return {pid for _, pid in cluster.launch(programs.where, world_size=4)}


def states(rec):
    """How each rank ended, by its own word."""
    return {event.rank: event.state for event in rec if isinstance(event, RankFinished)}


def lost(rec):
    return [event.lost_rank for event in rec if isinstance(event, RankLost)]


# --- one rank ends badly: F8


@sliced("transport")
@pytest.mark.parametrize("program", [programs.segfaults, programs.exits])
@pytest.mark.parametrize("transport", ["shared", "unix", "tcp"])
def test_a_rank_whose_process_ends_costs_that_worker_and_no_other(cluster, program, transport):
    before = pids(cluster)
    with record() as rec, pytest.raises(LostRankError, match="rank 2 was lost: its worker tcp://") as caught:
        cluster.launch(program, 2, transport=transport)
    assert caught.value.rank == 2
    assert len(before & pids(cluster)) == 3
    assert lost(rec) == [2]
    assert states(rec) == {0: "stopped", 1: "stopped", 3: "stopped"}


@pytest.mark.parametrize(
    ("program", "summary"),
    [(programs.leaves, "SystemExit: enough"), (programs.falls, "RecursionError: maximum recursion depth exceeded")],
)
def test_a_rank_that_exits_politely_or_falls_too_deep_costs_no_worker(cluster, program, summary):
    before = pids(cluster)
    with record() as rec, pytest.raises(RankError, match=f"raised on rank 1 of 4 at programs.py:.*\ngiven: {summary}"):
        cluster.launch(program, 1)
    assert pids(cluster) == before
    assert states(rec) == {0: "stopped", 1: "failed", 2: "stopped", 3: "stopped"}


def test_when_all_ranks_raise_at_once_one_is_told_and_no_worker_is_lost(cluster):
    before = pids(cluster)

    def program(comm):
        comm.barrier()
        raise ValueError(f"rank {comm.rank} has had enough")

    with record() as rec, pytest.raises(RankError, match=r"rank (\d) of 4 .*\n.*rank \1 has had enough"):
        cluster.launch(program)
    assert pids(cluster) == before
    assert "failed" in states(rec).values()
    assert lost(rec) == []


def test_a_result_of_a_gigabyte_is_refused_with_its_size_and_costs_no_worker(cluster):
    before = pids(cluster)
    with record() as rec, pytest.raises(MeshError, match="result of rank 1 is too large to be sent home") as caught:
        cluster.launch(programs.returns_much, 1 << 30)
    assert "given: 1024 MiB of at most 64" in str(caught.value)
    assert pids(cluster) == before
    assert states(rec)[1] == "failed"


def test_a_result_that_cannot_be_pickled_fails_that_rank_alone(cluster):
    told = "the result of rank 1 cannot be sent home\ngiven: a lock: TypeError: cannot pickle"
    with record() as rec, pytest.raises(MeshError, match=told):
        cluster.launch(programs.returns_a_lock)
    assert states(rec) == {0: "stopped", 1: "failed", 2: "stopped", 3: "stopped"}


# --- ranks make different calls: F9


@sliced("transport")
@pytest.mark.parametrize(
    "program",
    [programs.other_order, programs.one_rank_calls_something_else, programs.other_shape, programs.other_dtype],
    ids=lambda program: program.__name__,
)
@pytest.mark.parametrize("transport", ["shared", "unix", "tcp"])
def test_different_calls_are_told_with_both_ranks_both_calls_and_both_lines(cluster, program, transport):
    with record() as rec, pytest.raises(MeshError) as caught:
        cluster.launch(program, timeout=20.0, transport=transport, world_size=2)
    problem, given = str(caught.value).splitlines()[:2]
    assert problem == "ranks 0 and 1 make different calls"
    told = dict(re.findall(r"rank (\d): \S.*? at programs\.py:(\d+)", given))
    assert {int(rank): int(line) for rank, line in told.items()} == dict(
        enumerate(programs.lines_of(program, "on rank 0", "on rank 1"))
    )
    assert "failed" in states(rec).values()
    assert not any(isinstance(event, CollectiveFinished) for event in rec)  # nobody got a wrong sum


def test_a_missing_rank_is_told_with_the_line_that_waits_for_it(cluster):
    with record() as rec, pytest.raises(MeshError, match="rank 1 has ended its program, and rank") as caught:
        cluster.launch(programs.one_rank_misses_a_call, timeout=20.0)
    second = programs.lines_of(programs.one_rank_misses_a_call, "if comm.rank != 1")[0] + 1
    assert f"barrier at programs.py:{second}" in str(caught.value)
    assert sum(isinstance(event, CollectiveFinished) for event in rec) == 4  # the first barrier alone


# --- kill -9 at any moment


def kill_at_random(cluster, transport, seed):
    """Kill one rank somewhere in its all-reduces; how long everybody needed to know."""
    draw = random.Random(seed)
    rank, n_loops, n_elements = draw.randrange(4), draw.randrange(1, 40), draw.choice([100, 30_011, 1 << 20])
    delay = draw.random() * 0.01
    print(f"seed {seed}: {transport}, kill rank {rank} after {n_loops} calls and {delay * 1e3:.1f} ms, {n_elements}")

    def program(comm):
        if comm.rank == rank:
            def kill():
                threading.Event().wait(delay)  # in the middle of whatever it does then
                os.kill(os.getpid(), signal.SIGKILL)

            buffer = np.zeros(n_elements, np.float32)
            for _ in range(n_loops):
                comm.all_reduce_(buffer)
            threading.Thread(target=kill).start()
        programs.adds_for_ever(comm, n_elements)

    with record(kinds=[RankStarted, RankLost, RankFinished]) as rec:
        start = perf_counter()
        with pytest.raises(LostRankError, match=f"rank {rank} was lost: its worker tcp://") as caught:
            cluster.launch(program, transport=transport)
        seconds = perf_counter() - start
    assert caught.value.rank == rank
    assert lost(rec) == [rank]
    assert set(states(rec)) == {0, 1, 2, 3} - {rank}
    assert cluster.launch(programs.adds_again_and_again, 3, world_size=4) == [1003 * (3 * 6 + 4 * 3)] * 4
    return seconds


@sliced("transport")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("transport", ["shared", "unix", "tcp"])
def test_a_rank_killed_at_a_random_moment_ends_the_launch_and_the_next_one_works(cluster, transport, seed):
    assert kill_at_random(cluster, transport, seed) < 2.0 + SLACK


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("transport", ["shared", "unix", "tcp"])
def test_a_hundred_kills_are_all_told_within_two_seconds(cluster, transport, soak):
    first = random.SystemRandom().randrange(1 << 30)
    seconds = [kill_at_random(cluster, transport, seed) for seed in range(first, first + 50 * soak)]
    assert sorted(seconds)[len(seconds) // 2] < 2.0
    assert max(seconds) < 2.0 + SLACK


# --- nothing stays


def in_shared_memory():
    """Segments of this user that are no semaphores of multiprocessing, whose owner removes them when it ends."""
    folder = Path("/dev/shm")
    return {path.name for path in folder.iterdir() if path.owner() == Path.home().owner()} if folder.exists() else set()


def test_after_successes_errors_and_kills_the_workers_hold_what_they_held(cluster):
    def everything():
        cluster.launch(programs.where)
        with pytest.raises(RankError):
            cluster.launch(programs.raises, 1, ValueError)
        with pytest.raises(MeshError):
            cluster.launch(programs.other_dtype)
        with pytest.raises(LostRankError):
            cluster.launch(programs.exits, 3)

    everything()  # what is made once is made now
    pids(cluster)
    before_here = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    before_shm = in_shared_memory()
    before = dict(zip((pid for _, pid in cluster.launch(programs.where)), cluster.launch(programs.open_files),
                      strict=True))  # fmt: skip
    for _ in range(3):
        everything()
    pids(cluster)
    after = dict(zip((pid for _, pid in cluster.launch(programs.where)), cluster.launch(programs.open_files),
                     strict=True))  # fmt: skip
    survivors = set(before) & set(after)
    assert survivors
    for pid in survivors:
        assert after[pid] == before[pid]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before_here[0] + 8  # Dask's own pool of connections breathes
    assert threading.active_count() <= before_here[1] + 1
    assert {name for name in in_shared_memory() - before_shm if not name.startswith("sem.")} == set()
