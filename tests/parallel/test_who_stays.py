"""Workers that somebody started by hand: a rank that cannot be ended there, and a worker that leaves."""

import signal
from contextlib import ExitStack

import pytest

from lab.errors import LostRankError, MeshError, RunError
from lab.parallel.cluster.cluster import Cluster
from tests.parallel import programs
from tests.parallel.processes import scheduler, worker

pytestmark = pytest.mark.slow


def test_a_rank_in_c_code_on_a_worker_without_a_nanny_is_named_and_nobody_waits_for_it():
    with ExitStack() as stack:
        address = stack.enter_context(scheduler())
        for _ in range(2):
            stack.enter_context(worker(address, "--no-nanny"))
        with Cluster(client=address) as cluster:
            assert len(cluster.launch(programs.where)) == 2
            running = cluster.start(programs.counts_in_c, 1, time_limit=2.0)
            with pytest.raises(RunError, match="the launch took longer than 2 s") as late:
                running.result()
            stuck = running.workers[1]
            assert f"hint:  worker {stuck} could not be ended and has no nanny: kill or restart it" in str(late.value)
            with pytest.raises(MeshError) as refused:
                cluster.launch(programs.where, world_size=2, wait=1e9)  # which would wait for ever
            told = str(refused.value)
            assert f"2 ranks wanted, 1 of 2 workers free, worker {stuck} still runs a rank that was to end; " in told
            assert "it has no nanny: kill it or restart it" in told
            assert "world_size=1 works now" in told
            assert "others" not in told
            assert len(cluster.launch(programs.where, world_size=1)) == 1


def test_workers_that_never_began_their_rank_are_not_said_to_stay():
    with ExitStack() as stack:
        address = stack.enter_context(scheduler())
        gone, *others = [stack.enter_context(worker(address, "--no-nanny")) for _ in range(3)]
        with Cluster(client=address) as cluster:
            assert len(cluster.launch(programs.where)) == 3
            for other in others:  # it can take no task now, so its rank does not begin before the run is over
                other.process.send_signal(signal.SIGSTOP)
            launch = cluster.start(programs.where, world_size=3, timeout=60)
            gone.process.kill()
            for other in others:
                other.process.send_signal(signal.SIGCONT)
            with pytest.raises((LostRankError, MeshError)) as lost:
                launch.result()
            assert "could not be ended" not in str(lost.value)
            assert len(cluster.launch(programs.where)) == 2


def test_a_launch_without_a_number_takes_the_workers_that_are_there_now():
    with ExitStack() as stack:
        address = stack.enter_context(scheduler())
        leaves, *_ = [stack.enter_context(worker(address)) for _ in range(3)]
        with Cluster(client=address) as cluster:
            assert len(cluster.launch(programs.where)) == 3
            leaves.process.send_signal(signal.SIGTERM)
            leaves.process.wait()
            assert len(cluster.launch(programs.where, wait=0)) == 2
            with pytest.raises(MeshError, match=r"1 lost and not yet back\nhint:  world_size=2 works now"):
                cluster.launch(programs.where, world_size=3, wait=0)
