"""Machines as learners have them: folders, ports, proxies, names, versions that are not as hoped, no lab at all.

Each in processes of its own, where what is wrong is really so.
"""

import contextlib
import os
import socket
import sys
import textwrap
from contextlib import ExitStack

import numpy as np
import pytest

from lab.errors import MeshError
from lab.events import RankStarted, record
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.cluster.versions import versions
from tests.parallel import programs
from tests.parallel.processes import ROOT, Program, scheduler, worker

pytestmark = pytest.mark.slow

LAUNCHES = """
    from pathlib import Path

    import numpy as np

    from lab.parallel.cluster.cluster import Cluster
    from tests.parallel import programs

    if __name__ == "__main__":
        with Cluster(2) as cluster:
            for transport in ("shared", "unix", "tcp"):
                print("sums", [x.tolist() for x in cluster.launch(programs.reduces, (3,), "i8", "ring",
                                                                  transport=transport)])
        print("the end")
    """
SUMS = [sum(programs.data(rank, (3,), "i8") for rank in range(2)).tolist()] * 2

AS_EVERYBODY = """
import os, sys
from tests.support import without_root_powers
without_root_powers()
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def sums_in(folder, *options, **environment):
    """Run the script, without root's powers, and see that it computes and says nothing more."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(LAUNCHES))
    with Program(sys.executable, "-c", AS_EVERYBODY, *options, str(script), **environment) as program:
        told = program.rest().splitlines()
    assert told == [f"sums {SUMS}"] * 3 + ["the end"]


# --- temporary folders: F13


def test_a_deep_temporary_folder_is_no_trouble_and_stays_empty_of_sockets(tmp_path):
    deep = tmp_path.joinpath(*["a-rather-long-name"] * 8)
    deep.mkdir(parents=True)
    sums_in(tmp_path, TMPDIR=str(deep))
    assert [path for path in deep.rglob("*") if path.is_socket() or path.name.startswith("lab-")] == []


@pytest.mark.parametrize("kind", ["read-only", "missing"])
def test_without_a_temporary_folder_that_can_be_used_it_works_too(tmp_path, kind):
    folder = tmp_path / "tmp"
    if kind == "read-only":
        folder.mkdir(mode=0o500)
    sums_in(tmp_path, TMPDIR=str(folder))
    if kind == "read-only":
        assert list(folder.iterdir()) == []


# --- ports, proxies and names: F14


def test_a_taken_dashboard_port_and_proxies_that_lead_nowhere_are_not_even_noticed(tmp_path):
    nowhere = "http://127.0.0.1:9"
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # somebody else has it: taken is taken
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        sums_in(tmp_path, "-W", "error::UserWarning", http_proxy=nowhere, https_proxy=nowhere, all_proxy=nowhere,
                HTTP_PROXY=nowhere, HTTPS_PROXY=nowhere, ALL_PROXY=nowhere, no_proxy="", NO_PROXY="")  # fmt: skip


def hooked(folder, text):
    """An environment in which every Python runs `text` first."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(textwrap.dedent(text))
    return {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def test_a_host_whose_name_means_nothing_serves_as_well(tmp_path):
    odd = """
        import socket

        def gethostname():
            return "bücher_пк.nowhere.invalid"

        def fail(*_):
            raise socket.gaierror(-2, "Name or service not known")

        socket.gethostname = socket.getfqdn = lambda *_: gethostname()
        socket.gethostbyname = socket.gethostbyname_ex = fail
        """
    sums_in(tmp_path, **hooked(tmp_path / "odd", odd))


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as door:
            door.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_workers_that_have_an_address_of_ipv6_alone_meet_there(tmp_path):
    host = "[::1]" if has_ipv6() else "127.0.0.1"  # a container without IPv6 has nothing to go wrong
    with ExitStack() as stack:
        address = stack.enter_context(scheduler(host))
        assert host in address
        for _ in range(2):
            stack.enter_context(worker(address, host=host))
        with Cluster(client=address) as cluster:
            for transport in ("shared", "unix", "tcp"):
                got = cluster.launch(programs.reduces, (3,), "i8", "ring", transport=transport)
                assert [x.tolist() for x in got] == SUMS


# --- other versions, and no lab at all: F17


OLD_NUMBA = """
    import importlib.metadata

    real = importlib.metadata.version
    importlib.metadata.version = lambda name: "0.1" if name == "numba" else real(name)
    """
NO_LAB = """
    import sys

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "lab":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Blocked())
    """


def test_workers_with_other_versions_are_refused_in_a_table_before_anything_runs(tmp_path):
    with ExitStack() as stack:
        address = stack.enter_context(scheduler())
        stack.enter_context(worker(address))
        stack.enter_context(worker(address, **hooked(tmp_path / "old", OLD_NUMBA)))
        with Cluster(client=address) as cluster, record() as rec:
            with pytest.raises(MeshError) as caught:
                cluster.launch(programs.waits_for_ever, str(tmp_path / "at"))
            lines = str(caught.value).splitlines()
            assert len(lines) == 3
            assert lines[0] == "workers have other versions than this process"
            assert lines[1].startswith(f"given: numba {versions()['numba']} here, 0.1 on tcp://127.0.0.1:")
            assert list(tmp_path.glob("at*")) == []
            assert not any(isinstance(event, RankStarted) for event in rec)


def test_a_worker_without_the_lab_is_named_and_the_others_serve(tmp_path):
    with ExitStack() as stack:
        address = stack.enter_context(scheduler())
        stack.enter_context(worker(address))
        stack.enter_context(worker(address, **hooked(tmp_path / "none", NO_LAB)))
        with Cluster(client=address) as cluster:
            ours = versions()["lab"]
            told = rf"the cluster cannot load the lab\ngiven: lab {ours} here, none on tcp://\S+\nhint:  install"
            with pytest.raises(MeshError, match=told):
                cluster.launch(programs.waits_for_ever, str(tmp_path / "at"))
            assert list(tmp_path.glob("at*")) == []
            with pytest.raises(MeshError, match="1 of 2 workers free, 1 without the lab or still starting"):
                cluster.launch(programs.where, world_size=2, wait=0)
            assert cluster.launch(programs.where, world_size=1)[0][0] == 0


def test_a_scheduler_without_the_lab_is_told(tmp_path):
    with ExitStack() as stack:
        address = stack.enter_context(scheduler(**hooked(tmp_path / "none", NO_LAB)))
        stack.enter_context(worker(address))
        with (
            Cluster(client=address) as cluster,
            pytest.raises(MeshError, match=r"cannot load the lab\n.*\nhint:  install autodiff-lab on the scheduler"),
        ):
            cluster.launch(programs.where)


# --- threads, forks and children: F24


def test_workers_that_are_threads_of_this_process_serve_as_well_and_share_no_array():
    from distributed import Client, LocalCluster

    shared = np.zeros(3)

    def program(comm):
        shared[:] = comm.rank + 1
        comm.barrier()
        return comm.all_reduce_(shared)

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as local,
        Client(local) as client,
        Cluster(client=client) as cluster,
        record(kinds=[RankStarted]) as rec,
    ):
        got = cluster.launch(program)
    assert [x.tolist() for x in got] == [[3.0] * 3] * 2
    assert shared.tolist() == [0.0] * 3
    assert [event.pid for event in rec] == [os.getpid()] * 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_beside_a_launch_keeps_none_of_its_sockets_and_disturbs_nothing(cluster, tmp_path):
    running = cluster.start(programs.adds_again_and_again, 300, world_size=4)
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert running.result() == [1003 * sum(4 * loop + 6 for loop in range(300))] * 4


def test_a_process_that_a_rank_starts_afresh_inherits_no_connection(cluster):
    assert cluster.launch(programs.spawns, world_size=2) == [0, 0]
