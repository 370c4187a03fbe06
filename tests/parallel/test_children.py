"""Processes that a rank starts end with it, however it ends, and no other process does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.errors import RankError, RunError
from lab.parallel.cluster.children import Children
from tests.parallel import programs

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"  # of the dead
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "error"),
    [("returns", None), ("raises", RankError), ("waits", RunError)],
)
def test_children_of_a_rank_and_theirs_end_with_it_and_the_worker_lives(cluster, how, error, tmp_path):
    before = sorted(cluster.client.run(os.getpid).values())
    running = cluster.start(programs.has_children, str(tmp_path), how, world_size=2, time_limit=8.0 if error else None)
    if error is None:
        running.result()
    else:
        with pytest.raises(error):
            running.result()
    started = [int(pid) for file in tmp_path.iterdir() for pid in file.read_text().split()]
    assert len(started) == 4
    assert len(cluster.launch(programs.where, world_size=4)) == 4  # all ranks have ended
    assert not any(map(alive, started))
    assert sorted(cluster.client.run(os.getpid).values()) == before


def test_who_was_there_before_lives_on():
    with subprocess.Popen(SLEEPS) as old:
        children = Children()
        with subprocess.Popen(SLEEPS) as new:
            assert children.end() == 1
            assert old.poll() is None
            new.wait()
        assert children.end() == 0
        old.kill()


def test_one_that_the_program_waits_for_is_left_to_it():
    children = Children()
    with subprocess.Popen(SLEEPS) as child:
        assert children.end(reap=False) == 1
        assert child.wait() == -9
