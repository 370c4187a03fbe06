"""What is free is read from folders that look like a system's; what is needed is compared with it before a start."""

import logging
import multiprocessing

import pytest

from lab.errors import MeshError
from lab.parallel import Cluster
from lab.parallel.cluster import memory
from lab.parallel.cluster.memory import BUSY_MB, IDLE_MB, MB, SMALLEST_LIMIT_MB, Room, forewarn, room

GIB = 1 << 30


@pytest.fixture
def system(tmp_path):
    """Writes files of a made-up system and gives its folders."""

    def made(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("memory_", "memory.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "proc", tmp_path / "groups"

    return made


MACHINE = {"proc__meminfo": "MemTotal: 8388608 kB\nMemFree: 100 kB\nMemAvailable: 4194304 kB\n"}


def test_without_a_limit_the_room_is_what_the_machine_has_available(system):
    assert room(*system(**MACHINE, proc__self__cgroup="0::/\n")) == Room(4 * GIB, 8 * GIB, "this machine")


def test_the_limit_of_a_container_counts_and_idle_files_do_not(system):
    found = room(*system(**MACHINE, proc__self__cgroup="0::/mine\n", groups__mine__memory_max=f"{GIB}\n",
                         groups__mine__memory_current=f"{GIB // 2}\n",
                         groups__mine__memory_stat=f"anon 5\ninactive_file {GIB // 4}\nactive_file 7\n"))
    assert found == Room(GIB * 3 // 4, GIB, "limit of the container")


def test_the_tightest_of_the_groups_above_us_decides(system):
    found = room(*system(**MACHINE, proc__self__cgroup="0::/outer/inner\n", groups__outer__inner__memory_max="max\n",
                         groups__outer__inner__memory_current="1\n", groups__outer__memory_max=f"{2 * GIB}\n",
                         groups__outer__memory_current=f"{GIB}\n"))
    assert found == Room(GIB, 2 * GIB, "limit of the container")


def test_the_first_version_of_control_groups_is_read_too(system):
    found = room(*system(**MACHINE, proc__self__cgroup="9:cpu,memory:/mine\n0::/\n",
                         groups__memory__mine__memory_limit_in_bytes=f"{GIB}\n",
                         groups__memory__mine__memory_usage_in_bytes=f"{GIB}\n",
                         groups__memory__mine__memory_stat=f"total_inactive_file {GIB // 8}\n"))
    assert found == Room(GIB // 8, GIB, "limit of the container")


def test_a_limit_that_means_none_is_none(system):
    found = room(*system(**MACHINE, proc__self__cgroup="9:memory:/\n0::/\n",
                         groups__memory__memory_limit_in_bytes="9223372036854771712\n",
                         groups__memory__memory_usage_in_bytes="5\n"))
    assert found == Room(4 * GIB, 8 * GIB, "this machine")


def test_a_system_that_tells_nothing_gives_no_room_and_no_limit(tmp_path):
    assert room(tmp_path / "proc", tmp_path / "groups") is None
    assert forewarn(4, None) is None


def test_this_machine_has_room():
    here = room()
    assert here is not None
    assert 0 < here.free <= here.total


def test_workers_that_fit_share_what_is_free(caplog):
    assert forewarn(4, Room(4000 * MB, 8000 * MB)) == 1000 * MB
    assert caplog.records == []


def test_workers_that_will_not_fit_while_they_train_are_warned_of_with_the_arithmetic(caplog):
    with caplog.at_level(logging.WARNING):
        assert forewarn(4, Room((4 * BUSY_MB - 1) * MB, 1000 * MB, "limit of the container")) == SMALLEST_LIMIT_MB * MB
    said = caplog.messages[0]
    assert f"4 x {BUSY_MB} = {4 * BUSY_MB} MB while they train" in said
    assert f"{4 * BUSY_MB - 1} MB of 1,000 are free (limit of the container)" in said


@pytest.mark.parametrize(("free", "hint"), [
    (200, "Cluster(1), or close other notebooks"), (50, "close other notebooks"),
])
def test_workers_that_do_not_fit_at_all_are_refused_with_what_would(free, hint):
    with pytest.raises(MeshError, match="there is too little memory for 4 workers") as caught:
        forewarn(4, Room(free * MB, 1000 * MB))
    assert f"4 x {IDLE_MB} = {4 * IDLE_MB} MB while they wait" in caught.value.given
    assert caught.value.hint.startswith(hint)


def test_a_cluster_for_which_there_is_no_memory_is_refused_before_anything_starts(monkeypatch):
    monkeypatch.setattr(memory, "room", lambda: Room(100 * MB, 512 * MB, memory.CONTAINER))
    before = multiprocessing.active_children()
    with pytest.raises(MeshError, match="there is too little memory for 4 workers"):
        Cluster(4)
    assert multiprocessing.active_children() == before


def test_each_worker_of_a_cluster_may_take_its_part_of_what_is_free(cluster):
    info = cluster.client.scheduler_info(n_workers=-1)
    limits = {worker["memory_limit"] for worker in info["workers"].values()}
    assert len(limits) == 1
    here = room()
    assert SMALLEST_LIMIT_MB * MB <= limits.pop() <= here.total // 4
