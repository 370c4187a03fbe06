"""One cluster of four workers for all tests that do not harm it for good, and a look at what was left behind."""

import contextlib
import os
import threading
import time
from pathlib import Path

import pytest

from lab.parallel.cluster.cluster import Cluster
from lab.training import stop_all
from tests.parallel import programs
from tests.parallel.trainings import SOON

N_WORKERS = 4


@pytest.fixture(scope="session")
def session_cluster():
    with Cluster(N_WORKERS) as cluster:
        yield cluster


@pytest.fixture
def cluster(session_cluster):
    """All workers are there: one that the test before killed has been started again by its nanny."""
    session_cluster.client.wait_for_workers(N_WORKERS, timeout=60)
    return session_cluster


@pytest.fixture
def the_next_launch_works(cluster):
    """Whatever the test did to the cluster."""
    yield
    assert sorted(rank for rank, _ in cluster.launch(programs.where, world_size=4)) == [0, 1, 2, 3]


@pytest.fixture
def no_run_outlives_its_test():
    """For tests that leave a run in the middle; in others a run that goes on is a fault, which is seen below."""
    yield
    stop_all(SOON)


def family():
    """This process and all that descend from it: others on this machine may run ranks too."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def sockets_of_ranks():
    """Unix sockets of ours by the kernel's own table, and which process of the family holds each."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines() if "@lab-" in line]
    names = {f"socket:[{row[6]}]": row[7] for row in rows}
    held = []
    for pid in family():
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if (link := str(entry.readlink())) in names:
                        held.append((pid, names[link]))
    return held


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """After each test: no thread of ours, no socket of ours in any process of ours.

    Both are given a moment: a launch that was stopped ends in its own thread, and where the scheduler has gone, ranks
    find that out by themselves.
    """
    yield
    deadline = time.monotonic() + SOON
    for thread in [t for t in threading.enumerate() if t.name.startswith("lab-")]:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("lab-")] == []
    while (left := sockets_of_ranks()) and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert left == []
