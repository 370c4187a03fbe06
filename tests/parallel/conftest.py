"""One cluster of four workers for all tests that do not harm it for good, and a look at what was left behind."""

import threading
from pathlib import Path

import pytest

from lab.parallel.cluster import Cluster


@pytest.fixture(scope="session")
def cluster():
    with Cluster(4) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """After each test: no thread of ours, no socket of ours by the kernel's own table."""
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("lab-")] == []
    assert [line for line in Path("/proc/net/unix").read_text().splitlines() if "@lab-" in line] == []
