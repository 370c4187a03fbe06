"""How ranks in shared memory end that are processes: their alarm rings, or one of them dies in mid collective."""

import subprocess
import sys

import pytest


def test_a_rank_that_waits_in_shared_memory_hears_its_alarm_at_once():
    command = [sys.executable, "-m", "tests.parallel.shared_alarm", *["1", "2000000"] * 3]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = [float(line) for line in done.stdout.split()]
    assert len(seconds) == 6
    assert max(seconds) < 1.0  # 0.1 is promised, and ten times that is for a machine that does something else as well


@pytest.mark.slow
def test_survivors_of_a_death_in_mid_collective_all_end_and_leave_nothing():
    _soak(first=0, n_rounds=12)


@pytest.mark.soak
def test_survivors_of_many_deaths_all_end(request):
    _soak(first=1000, n_rounds=100 * request.config.getoption("--soak"))


def _soak(first, n_rounds):
    command = [sys.executable, "-m", "tests.parallel.shared_soak", str(first), str(n_rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
