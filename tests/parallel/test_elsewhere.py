"""Clusters that are not ours, scripts, and the death of those who hold the whole: each in processes of its own."""

import os
import re
import signal
import sys
import textwrap
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from lab.parallel.cluster.cluster import Cluster
from tests.parallel import programs
from tests.parallel.processes import ROOT, Program

pytestmark = pytest.mark.slow


def script(folder, text, **environment):
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    return Program(sys.executable, str(path), str(folder / "at"), **environment)


@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:9"])
def test_a_scheduler_and_workers_that_were_started_by_hand_serve_as_well(proxy):
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            Program(sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                    http_proxy=proxy, HTTP_PROXY=proxy)
        )  # fmt: skip
        address = scheduler.until(r"Scheduler at:\s+(tcp://\S+)")[1]
        workers = [
            stack.enter_context(
                Program(sys.executable, "-m", "dask", "worker", address, "--host", "127.0.0.1", "--nthreads", "1",
                        "--no-dashboard", http_proxy=proxy, HTTP_PROXY=proxy)
            )
            for _ in range(2)
        ]  # fmt: skip
        for worker in workers:
            worker.until(r"Registered to:")
        with Cluster(client=address) as cluster:
            assert [rank for rank, _ in cluster.launch(programs.where)] == [0, 1]
            got = cluster.launch(programs.reduces, (1003,), "f4", "ring", transport="tcp")
            assert (got[0] == sum(programs.data(rank, (1003,), "f4") for rank in range(2))).all()


def test_a_script_without_a_guard_is_told_so_and_starts_nothing(tmp_path):
    text = """
        from lab.parallel.cluster.cluster import Cluster

        cluster = Cluster(2)
        """
    with script(tmp_path, text) as program:
        told = program.rest()
    assert "a script must not start workers when it is imported" in told
    assert "script.py:4: cluster = Cluster(2)" in told
    assert 'hint:  put it under `if __name__ == "__main__":`' in told


LAUNCHES = """
    import sys
    import threading
    from pathlib import Path
    from lab.parallel.cluster.cluster import Cluster
    from tests.parallel import programs

    if __name__ == "__main__":
        with Cluster(2) as cluster:
            print("pids", *(pid for _, pid in cluster.launch(programs.where)), flush=True)
            running = cluster.start(programs.waits_for_ever, sys.argv[1], timeout=1000)

            def announce():
                while len(list(Path(sys.argv[1]).parent.glob("at-*"))) < 2:
                    pass
                print("running", flush=True)

            threading.Thread(target=announce).start()
            try:
                running.result()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                print(len(cluster.launch(programs.where)), "ranks again", flush=True)
    """


def gone(pid):
    """Wait for the end of a process that is not our child."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    import select

    ended = bool(select.select([fd], [], [], 30)[0])
    os.close(fd)
    return ended


def test_control_c_at_a_terminal_stops_all_ranks_and_the_cluster_goes_on(tmp_path):
    with script(tmp_path, LAUNCHES) as program:
        program.until("running")
        os.killpg(program.process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        program.until("interrupted")
        program.until("2 ranks again")


STARTS = """
    import distributed
    from lab.parallel.cluster.cluster import Cluster

    if __name__ == "__main__":
        try:
            print("starting", flush=True)
            with Cluster(2):
                print("started", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """


STOPPING = "Stopping ... (once more to stop at once)\n"


def members(session):
    """The processes of a session that are workers, or will be."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            of = int(entry.read_text().rpartition(")")[2].split()[3])
            if of == session and b"spawn_main" in entry.with_name("cmdline").read_bytes():
                found.append(int(entry.parent.name))
    return found


@pytest.mark.parametrize("n_processes", [0, 1, 2])
def test_control_c_while_workers_start_ends_them_and_says_nothing_of_dask(tmp_path, n_processes):
    with script(tmp_path, STARTS) as program:
        program.until("starting")
        while len(members(program.process.pid)) < n_processes:
            assert program.process.poll() is None
        os.killpg(program.process.pid, signal.SIGINT)
        told = program.rest()
        assert told.removeprefix(STOPPING) == "interrupted\n"
        assert told.startswith(STOPPING) or not n_processes  # it may come before anything has started
        assert all(map(gone, members(program.process.pid)))


def test_control_c_is_told_at_once_and_a_second_one_waits_for_nothing(tmp_path):
    text = STARTS.replace('print("interrupted"', 'print("interrupted with", threading.active_count() > 1').replace(
        "import distributed", "import distributed, threading"
    )
    with script(tmp_path, text) as program:
        program.until("starting")
        while len(started := members(program.process.pid)) < 2:
            assert program.process.poll() is None
        for pid in started:
            os.kill(pid, signal.SIGSTOP)  # as on a machine that is too busy: they would never have started
        os.killpg(program.process.pid, signal.SIGINT)
        program.until("Stopping")
        os.killpg(program.process.pid, signal.SIGINT)
        assert program.rest() == "interrupted with True\n"  # the rest is undone behind the scenes
        assert all(map(gone, started))
        assert program.process.wait() == 0


def test_the_interrupt_button_while_workers_start_shows_a_keyboard_interrupt_and_nothing_of_dask(tmp_path):
    with (tmp_path / "told").open("w+") as told:
        manager, client = start_new_kernel(stdout=told, stderr=told, cwd=ROOT)
        try:
            client.execute("from lab.parallel import Cluster; import distributed, os; os.getpid()")
            [reply] = [m for m in shown(client) if m["msg_type"] == "execute_result"]
            session = os.getsid(int(reply["content"]["data"]["text/plain"]))
            client.execute("cluster = Cluster(2)")
            while not members(session):
                assert manager.is_alive()
            manager.interrupt_kernel()
            stopping, error = [m for m in shown(client) if m["msg_type"] in {"error", "stream", "display_data"}]
            assert stopping["content"]["text"] == STOPPING
            assert error["content"]["ename"] == "KeyboardInterrupt"
            assert all(map(gone, members(session)))
            client.execute("with Cluster(2) as cluster: print(cluster.launch(lambda comm: comm.rank))")
            assert [m["content"]["text"] for m in shown(client) if m["msg_type"] == "stream"] == ["[0, 1]\n"]
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
        told.seek(0)
        words = told.read()
        assert not [word for word in ("Traceback", "distributed", "KeyboardInterrupt") if word in words], words


def shown(client):
    """What a cell shows until its end."""
    messages = []
    while not messages or messages[-1]["content"].get("execution_state") != "idle":
        messages.append(client.get_iopub_msg(timeout=60))
    return messages


def test_when_the_notebook_is_killed_nothing_stays(tmp_path):
    with script(tmp_path, LAUNCHES) as program:
        pids = [int(pid) for pid in program.until(r"pids (\d+ \d+)")[1].split()]
        program.until("running")
        program.process.kill()
        assert all(map(gone, pids))


def test_when_only_the_client_goes_ranks_end_and_the_workers_serve_others(tmp_path, cluster):
    text = f"""
        from lab.parallel.cluster.cluster import Cluster
        from tests.parallel import programs

        with Cluster(client={cluster.client.scheduler.address!r}) as there:
            running = there.start(programs.waits_for_ever, {str(tmp_path / "at")!r}, timeout=1000)
            while not running.workers:
                assert not running.wait(0.02)
            print("running", flush=True)
            running.result()
        """
    with script(tmp_path, text) as program:
        program.until("running")
        program.process.kill()
        assert len(cluster.launch(programs.where, world_size=4)) == 4


def test_when_the_scheduler_dies_the_launch_ends_with_an_error():
    from lab.errors import LabError

    with ExitStack() as stack:
        scheduler = stack.enter_context(
            Program(sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        )
        address = scheduler.until(r"Scheduler at:\s+(tcp://\S+)")[1]
        worker = stack.enter_context(
            Program(sys.executable, "-m", "dask", "worker", address, "--host", "127.0.0.1", "--nthreads", "1",
                    "--no-dashboard", "--nworkers", "2")
        )  # fmt: skip
        worker.until("Registered to:")
        worker.until("Registered to:")
        with Cluster(client=address) as cluster:
            pids = [pid for _, pid in cluster.launch(programs.where)]
            running = cluster.start(programs.waits_for_ever, str(Path(os.devnull)), timeout=1000)
            while not running.workers:
                assert not running.wait(0.02)
            scheduler.process.kill()
            with pytest.raises(LabError, match="the scheduler has gone"):
                running.result()
            assert cluster.client.status != "closed"  # we have not waited for as long as the client hopes
            with pytest.raises(LabError, match="the scheduler has gone"):
                cluster.launch(programs.where)
            assert all(map(gone, pids))


HANGS = """
    import os, signal
    from lab.parallel import Cluster

    if __name__ == "__main__":
        cluster = Cluster(2)
        pids = cluster.client.run(os.getpid).values()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        cluster.close()
        print("closed", *[os.path.exists(f"/proc/{pid}") for pid in pids])
    """


def test_a_cluster_whose_workers_are_stopped_is_closed_with_a_word_and_leaves_nothing(tmp_path):
    with script(tmp_path, HANGS) as program:
        first, second = program.rest().splitlines()
        assert program.process.wait() == 0
    assert re.fullmatch(r"Closing the cluster: 2 workers \(process \d+, \d+\) have not ended yet; .*", first)
    assert second == "closed False False"


PAUSED = """
    import lab
    from lab.nn import mlp
    from lab.parallel import DataParallel

    if __name__ == "__main__":
        run = lab.fit(mlp(64, 8, 10, rng=0), lab.data.digits()[0], on=DataParallel(world_size=2), paused=True)
        run.step()
        print(run.wait_until("paused", timeout=60), run.state)
    """


def test_a_script_that_ends_with_a_paused_run_on_ranks_ends_without_a_word(tmp_path):
    with script(tmp_path, PAUSED) as program:
        assert program.rest() == "True paused\n"
        assert program.process.wait() == 0
        assert all(map(gone, members(program.process.pid)))
