"""What ranks and learners can do to a launch: it ends with one error that names the rank, and the next launch works."""

import os
import signal
import threading

import numpy as np
import pytest

from lab.errors import LostRankError, MeshError, RankError, RunError
from lab.events import RankFinished, RankLost, RankStarted, WorkerSeen, record
from tests.parallel import programs
from tests.support import interrupt_within

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("the_next_launch_works")]


@pytest.fixture
def rec():
    """What was told at home: the witness that a fault really happened, and how each rank ended."""
    with record(kinds=[RankStarted, RankLost, RankFinished, WorkerSeen]) as recording:
        yield recording


def lost(rec):
    return [event.lost_rank for event in rec if isinstance(event, RankLost)]


def states(rec):
    return {event.rank: event.state for event in rec if isinstance(event, RankFinished)}


def pids(cluster):
    return {pid for _, pid in cluster.launch(programs.where)}


@pytest.mark.parametrize("kind", [ValueError, SystemExit, RecursionError])
@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_that_raises_ends_all_with_its_traceback(cluster, rank, kind):
    before = pids(cluster)
    with pytest.raises(RankError, match=f"raised on rank {rank} of 4 at programs.py:") as caught:
        cluster.launch(programs.raises, rank, kind)
    assert caught.value.rank == rank
    assert f"On rank {rank}:\n" in caught.value.traceback
    assert 'raise kind("bad luck")' in caught.value.traceback
    assert f"{kind.__name__}: bad luck" in caught.value.traceback
    assert isinstance(caught.value.__cause__, kind)
    assert pids(cluster) == before  # no worker was lost


def test_a_rank_that_raises_within_numpy_is_told_with_the_users_own_line(cluster):
    def program(comm):
        return np.ones((2, 3)).sum() if comm.rank else np.full(-1, 0.0)

    line = program.__code__.co_firstlineno + 1
    with pytest.raises(RankError, match=rf"raised on rank 0 of 4 at test_faults\.py:{line}\n") as caught:
        cluster.launch(program)
    assert "numeric.py" in caught.value.traceback


def test_when_all_raise_one_is_told(cluster):
    def program(comm):
        return 1 / (comm.rank * 0)

    with pytest.raises(RankError, match="ZeroDivisionError"):
        cluster.launch(program)


def test_an_exception_that_cannot_travel_comes_as_its_text(cluster):
    def program(comm):
        class Holding(Exception):  # noqa: N818 -- a name of a learner
            def __init__(self):
                super().__init__("holds a lock")
                self.lock = threading.Lock()

        raise Holding

    with pytest.raises(RankError, match="holds a lock") as caught:
        cluster.launch(program)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("rank", [0, 3])
def test_a_rank_that_exits_costs_one_worker(cluster, rank):
    before = pids(cluster)
    with pytest.raises(LostRankError, match=f"rank {rank} was lost") as caught:
        cluster.launch(programs.exits, rank)
    assert caught.value.rank == rank
    assert len(before - pids(cluster)) == 1


@pytest.mark.parametrize(
    ("rank", "phase"),
    [(0, 1), (1, 4), (3, 6), (2, 50), (1, "leave")],
    ids=["first step", "between reduce-scatter and all-gather", "last step", "later", "after the last step"],
)
def test_a_killed_rank_is_named_and_survivors_live(cluster, rank, phase, rec):
    before = pids(cluster)
    with pytest.raises(LostRankError, match=f"rank {rank} was lost: its worker tcp://") as caught:
        cluster.launch(programs.killed_at, rank, phase, 10, transport="unix")
    assert caught.value.rank == rank
    assert lost(rec) == [rank]
    assert len(before & pids(cluster)) == 3


def test_without_the_kill_the_program_passes_all_those_phases(cluster):
    assert cluster.launch(programs.killed_at, -1, 0, 10, transport="unix") == [60] * 4


def test_a_rank_killed_before_the_ranks_have_met_is_named(cluster, tmp_path):
    with pytest.raises(LostRankError, match=r"rank \d was lost"):
        cluster.launch(programs.takes, programs.KillsOnLoading(str(tmp_path / "killed")))
    assert (tmp_path / "killed").exists()


def test_the_only_rank_of_a_world_of_one_can_be_lost(cluster):
    with pytest.raises(LostRankError, match="rank 0 was lost"):
        cluster.launch(lambda comm: os.kill(os.getpid(), signal.SIGKILL), world_size=1)


def test_a_worker_that_no_rank_runs_on_may_die(cluster, rec, tmp_path):
    mine = cluster.start(programs.where, world_size=3)
    mine.result()
    idle = next(w for w in cluster.client.scheduler_info(n_workers=-1)["workers"] if w not in mine.workers)
    [pid] = cluster.client.run(os.getpid, workers=[idle]).values()

    noticed = tmp_path / "noticed"

    def program(comm):
        comm.barrier()
        if comm.rank == 0:
            os.kill(pid, signal.SIGKILL)
            while not noticed.exists():
                threading.Event().wait(0.01)
        for _ in range(50):
            comm.barrier()
        return comm.rank

    running = cluster.start(program, world_size=3)
    while idle in cluster.client.scheduler_info(n_workers=-1)["workers"]:
        assert not running.wait(0.01)
    noticed.touch()
    assert running.result() == [0, 1, 2]
    assert lost(rec) == []
    seen = [event for event in rec if isinstance(event, WorkerSeen) and event.worker == idle]
    assert seen[-1].state == "gone"


def test_a_stopped_rank_runs_into_the_time_out_and_is_named(cluster, rec):
    with pytest.raises(LostRankError, match=r"rank 1 does not answer: rank \d waited too long in") as caught:
        cluster.launch(programs.stops, 1, timeout=1.0)
    assert caught.value.rank == 1
    assert lost(rec) == [1]
    assert states(rec) == {0: "stopped", 2: "stopped", 3: "stopped"}


def test_a_rank_that_awakes_when_the_others_have_gone_ends_itself(cluster):
    running = cluster.start(programs.stops, 2, timeout=1.0)
    with pytest.raises(LostRankError, match="rank 2 does not answer"):
        running.result()
    nanny_of = {w: i["nanny"] for w, i in cluster.client.scheduler_info(n_workers=-1)["workers"].items()}
    by_nanny = {worker.worker_address: worker.pid for worker in cluster.client.cluster.workers.values()}
    assert running.workers[2] in nanny_of
    os.kill(by_nanny[running.workers[2]], signal.SIGCONT)


def test_a_rank_in_an_endless_loop_is_interrupted_and_its_worker_lives(cluster):
    before = pids(cluster)
    with (
        record(kinds=[RankFinished]) as rec,
        pytest.raises(RunError, match=r"the launch took longer than 0\.5 s"),
    ):
        cluster.launch(programs.loops_for_ever, 1, time_limit=0.5)
    assert states(rec) == dict.fromkeys(range(4), "stopped")
    assert pids(cluster) == before


def test_a_rank_that_cannot_be_interrupted_has_its_worker_restarted(cluster):
    before = pids(cluster)
    with pytest.raises(RunError, match="longer than"):
        cluster.launch(lambda comm: comm.rank or threading.Event().wait(), time_limit=1.0)
    assert len(before & pids(cluster)) == 3


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (programs.one_rank_calls_something_else, ["ranks 0 and", "all_reduce ring float64[4] at programs.py:",
                                                  "broadcast flat float64[4] root 0 at programs.py:"]),
        (programs.other_dtype, ["make different calls", "float64[4]", "float32[4]"]),
        (programs.one_rank_misses_a_call, ["rank 1 has ended its program", "barrier at programs.py:"]),
    ],
)  # fmt: skip
def test_different_calls_are_named_with_ranks_and_lines(cluster, program, words):
    with pytest.raises(MeshError) as caught:
        cluster.launch(program, timeout=10.0)
    for word in words:
        assert word in str(caught.value)


def test_a_rank_that_never_calls_is_found_by_the_time_out(cluster):
    def program(comm):
        if comm.rank == 2:
            threading.Event().wait(8)  # computes, say
        comm.all_reduce_(np.ones(3))

    with pytest.raises(LostRankError, match=r"rank 2 has not made this call: rank \d waited too long in all_reduce"):
        cluster.launch(program, timeout=2.0)


def test_results_that_cannot_be_sent_home_are_told(cluster):
    with pytest.raises(MeshError, match="result of rank 1 cannot be sent home"):
        cluster.launch(programs.returns_a_lock)
    with pytest.raises(MeshError, match="result of rank 1 is too large to be sent home\ngiven: 70 MiB of at most 64"):
        cluster.launch(programs.returns_much, 70 << 20)


def test_an_interrupt_in_a_waiting_cell_stops_all_ranks(cluster, tmp_path):
    running = cluster.start(programs.waits_for_ever, str(tmp_path / "at"))
    arrived = threading.Event()

    def interrupt():
        while len(list(tmp_path.iterdir())) < 4:
            arrived.wait(0.01)
        interrupt_within(type(running).result)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        running.result()
    thread.join()
    with pytest.raises(RunError, match="the launch was stopped"):
        running.result()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_rank_may_fork(cluster):
    assert cluster.launch(programs.forks) == [0, 1, 2, 3]


def test_other_versions_on_a_worker_are_refused_with_a_table(cluster, monkeypatch):
    from lab.parallel.cluster import launching

    monkeypatch.setattr(launching, "versions", lambda: {"numpy": "0.1"})
    with pytest.raises(MeshError, match=r"other versions than this process\ngiven: numpy 0.1 here, \d.* on tcp://"):
        cluster.launch(programs.where)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_worker_that_is_lost_again_and_again_comes_back_each_time(cluster, soak):
    """A LocalCluster gave up for good a worker that happened to be away 15 s after an earlier loss."""
    for _ in range(8 * soak):
        with pytest.raises(LostRankError, match="does not answer"):
            cluster.launch(programs.stops, 2, timeout=1.0)
        assert len(cluster.launch(programs.where, world_size=4)) == 4
        with pytest.raises(LostRankError, match="was lost"):
            cluster.launch(programs.exits, 2)
        assert len(cluster.launch(programs.where, world_size=4)) == 4
