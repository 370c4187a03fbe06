"""Launches on real worker processes: results, sums, queues and refusals."""

import numpy as np
import pytest
from distributed import Client

from lab import settings
from lab.errors import ArgumentError, DTypeError, MeshError, RunError
from lab.events import ORIGIN, Origin, RankFinished, RankStarted, record
from lab.parallel.cluster import lease
from lab.parallel.cluster.cluster import Cluster, launch
from lab.parallel.cluster.dask_side.client import ClientSide
from lab.parallel.ranks.threads import run_local
from tests.parallel import programs
from tests.slices import sliced

pytestmark = pytest.mark.slow  # the cluster alone takes seconds


def test_results_come_by_rank_from_one_process_each(cluster):
    results = cluster.launch(programs.where)
    assert [rank for rank, _ in results] == [0, 1, 2, 3]
    assert len({pid for _, pid in results}) == 4


@sliced("transport")
@pytest.mark.parametrize("transport", ["shared", "unix", "tcp"])
@pytest.mark.parametrize("algorithm", ["ring", "naive"])
@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_all_reduce_is_the_plain_sum_also_where_sizes_do_not_divide(cluster, world_size, algorithm, transport):
    for shape, dtype in [((7,), "f4"), ((1,), "f8"), ((), "f4"), ((0,), "f4"), ((101, 13), "f8"), ((1_000_003,), "f4")]:
        want = sum(programs.data(rank, shape, dtype) for rank in range(world_size))
        got = cluster.launch(programs.reduces, shape, dtype, algorithm, world_size=world_size, transport=transport)
        assert [x.dtype for x in got] == [np.dtype(dtype)] * world_size
        for x in got:
            np.testing.assert_array_equal(x, want)


def test_workers_give_the_bits_that_threads_of_one_process_give(cluster):
    def program(comm):
        return comm.all_reduce_(np.random.default_rng(comm.rank).normal(size=1_234_567).astype("f4"))

    parts = [np.random.default_rng(rank).normal(size=1_234_567).astype("f4") for rank in range(4)]
    for here, there in zip(run_local("all_reduce", "ring", parts), cluster.launch(program), strict=True):
        np.testing.assert_array_equal(here, there)


def test_eight_ranks_on_eight_workers():
    with Cluster(8) as cluster:
        got = cluster.launch(programs.reduces, (1003,), "f8", "ring")
        want = sum(programs.data(rank, (1003,), "f8") for rank in range(8))
        assert all(np.array_equal(x, want) for x in got)
        assert len(got) == 8


def test_a_program_of_this_file_travels_by_value_with_its_arguments_and_sends_to_neighbours(cluster):
    factor = 10.0

    def shift(comm, offset):
        comm.send(np.full((2, 3), factor * comm.rank + offset), (comm.rank + 1) % comm.world_size, tag=5)
        return comm.recv(np.empty((2, 3)), (comm.rank - 1) % comm.world_size, tag=5)[0, 0]

    assert cluster.launch(shift, 1.0) == [31.0, 1.0, 11.0, 21.0]


def test_broadcast_gives_every_rank_what_the_root_has_and_strided_arrays_work(cluster):
    def program(comm):
        array = np.zeros((4, 6)) + comm.rank
        comm.broadcast_(array[:, ::2], root=2)
        return array[0].tolist()

    got = cluster.launch(program)
    assert got[3] == [2.0, 3.0, 2.0, 3.0, 2.0, 3.0]
    assert got[0] == [2.0, 0.0, 2.0, 0.0, 2.0, 0.0]


def test_settings_and_origin_travel_with_the_program(cluster, tmp_path):
    with settings(dtype="float64"):
        running = cluster.start(programs.surroundings)
        assert running.result() == [("float64", rank, "") for rank in range(4)]
    token = ORIGIN.set(Origin(0, "training 7"))
    try:
        assert [run for *_, run in cluster.launch(programs.surroundings)] == ["training 7"] * 4
        held = cluster.start(programs.waits_for_ever, str(tmp_path / "at"), timeout=1000)
        while not held.workers:
            assert not held.wait(0.01)
        with pytest.raises(MeshError, match="4 ranks wanted, 0 of 4 workers free, others held by training 7\n"):
            cluster.launch(programs.where, wait=0)
        held.stop()
        held.wait()
    finally:
        ORIGIN.reset(token)


def test_more_ranks_than_workers_are_refused_with_the_arithmetic(cluster):
    with pytest.raises(MeshError, match=r"not enough workers\ngiven: 9 ranks wanted, 4 workers"):
        cluster.launch(programs.where, world_size=9)


def test_two_launches_share_the_workers_and_a_third_waits_for_its_turn(cluster, tmp_path):
    first = cluster.start(programs.waits_for_ever, str(tmp_path / "a"), world_size=3)
    second = cluster.start(programs.where, world_size=1)
    assert second.result()[0][0] == 0
    with pytest.raises(MeshError, match="2 ranks wanted, 1 of 4 workers free, others held by a launch\n"):
        cluster.launch(programs.where, world_size=2, wait=0)
    third = cluster.start(programs.where, world_size=4)
    first.stop()
    with pytest.raises(RunError, match="the launch was stopped"):
        first.result()
    assert first.state == "stopped"
    assert len(third.result()) == 4


def test_launches_follow_each_other_and_hold_nothing(cluster):
    before = cluster.launch(programs.resources)
    for _ in range(10):
        cluster.launch(programs.where)
    after = cluster.launch(programs.resources)
    for b, a in zip(before, after, strict=True):
        assert a["eventfd"] == b["eventfd"]
        assert a["sockets"] <= b["sockets"] + 4  # ten launches have opened thirty; Dask's own pool breathes
        assert a["threads"] == b["threads"] == []


def test_a_launch_by_client_and_by_address_uses_the_cluster_that_is_there(cluster):
    pids = {pid for _, pid in cluster.launch(programs.where)}
    assert {pid for _, pid in launch(programs.where, client=cluster.client)} == pids
    assert {pid for _, pid in launch(programs.where, client=cluster.client.scheduler.address)} == pids
    with pytest.raises(MeshError, match="the scheduler cannot be reached"):
        launch(programs.where, client="nonsense")


def test_what_cannot_be_sent_is_refused_before_anything_starts(cluster):
    import threading

    lock = threading.Lock()
    with pytest.raises(ArgumentError, match=r"cannot be sent to workers\ngiven: TypeError"):
        cluster.launch(lambda comm: lock)
    with pytest.raises(ArgumentError, match="too large to be sent"):
        cluster.launch(programs.takes, bytes(40 << 20))
    with pytest.raises(ArgumentError, match="a program is a function"):
        cluster.launch(3)
    with pytest.raises(ArgumentError, match=r"no such transport\ngiven: transport='pigeon'"):
        cluster.launch(programs.where, transport="pigeon")


def test_wrong_arguments_of_a_call_are_told_on_the_rank(cluster):
    with pytest.raises(Exception, match="ranks exchange numbers") as caught:
        cluster.launch(lambda comm: comm.all_reduce_(np.array(["a"])))
    assert isinstance(caught.value.__cause__, DTypeError)
    with pytest.raises(Exception, match="has no such peer"):
        cluster.launch(lambda comm: comm.send(np.ones(1), comm.rank))


def test_two_learners_on_one_cluster_do_not_meet_and_stopping_one_changes_no_bit_of_the_other(cluster, tmp_path):
    from distributed import Client

    address = cluster.client.scheduler.address
    alone = cluster.launch(programs.reduces_for, 300, 7, world_size=2)
    with Client(address) as one, Client(address) as two, record(kinds=[RankStarted, RankFinished]) as rec:
        first, second = Cluster(client=one), Cluster(client=two)
        hers = second.start(programs.waits_for_ever, str(tmp_path / "at"), world_size=2, timeout=1000)
        while len(list(tmp_path.glob("at-*"))) < 2:
            assert not hers.wait(0.01)
        his = first.start(programs.reduces_for, 300, 7, world_size=2)
        while not his.workers:  # before hers are free again: he would be given those
            assert not his.wait(0.01)
        with pytest.raises(MeshError, match=r"3 ranks wanted, [0-2] of 4 workers free"):
            second.launch(programs.where, world_size=3, wait=0)
        with pytest.raises(MeshError, match="5 ranks wanted, 4 workers"):
            first.launch(programs.where, world_size=5)
        hers.stop()
        together = his.result()
        with pytest.raises(RunError, match="the launch was stopped"):
            hers.result()
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)
    assert hers.run != his.run
    assert not set(hers.workers) & set(his.workers)
    generations = {event.generation for event in rec if isinstance(event, RankStarted)}
    assert len(generations) == 2
    assert sorted(event.state for event in rec if isinstance(event, RankFinished)) == ["finished"] * 2 + ["stopped"] * 2


def test_a_client_that_goes_in_the_middle_takes_its_own_run_with_it_and_no_other(cluster, tmp_path):
    from distributed import Client

    his = cluster.start(programs.reduces_for, 300, 7, world_size=2)
    with Client(cluster.client.scheduler.address) as other:
        hers = Cluster(client=other).start(programs.waits_for_ever, str(tmp_path / "at"), world_size=2, timeout=1000)
        while len(list(tmp_path.glob("at-*"))) < 2:
            assert not hers.wait(0.01)
    assert hers.wait(30)
    assert len(his.result()) == 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"world_size": "4"}, "world_size is a whole number of at least 1"),
        ({"world_size": 0}, "world_size is a whole number of at least 1"),
        ({"world_size": True}, "world_size is a whole number of at least 1"),
        ({"timeout": "soon"}, "timeout is a number"),
        ({"timeout": float("nan")}, "a time-out is a positive number of seconds"),
        ({"time_limit": 0}, "a time-out is a positive number of seconds"),
        ({"wait": None}, "wait is a number"),
    ],
)
def test_options_that_are_none_are_refused_where_they_are_given(cluster, options, problem):
    with pytest.raises(ArgumentError, match=problem):
        cluster.launch(programs.where, **options)


def test_a_launch_over_a_closed_client_says_so(cluster):
    client = Client(cluster.client.scheduler.address)
    client.close()
    with pytest.raises(MeshError, match="the connection to the cluster is closed\ngiven: a Client that is closed"):
        launch(programs.where, client=client)


@pytest.mark.parametrize("n_workers", ["4", 2.5, True, 0, float("nan")])
def test_a_number_of_workers_that_is_none_is_refused(n_workers):
    with pytest.raises(ArgumentError, match="n_workers is a whole number of at least 1\ngiven: n_workers="):
        Cluster(n_workers)
    with pytest.raises(ArgumentError, match="world_size is a whole number of at least 1"):
        launch(programs.where, world_size=n_workers)


def test_a_client_that_is_none_is_refused():
    with pytest.raises(ArgumentError, match=r"used through a Client or an address\ngiven: client=3"):
        Cluster(client=3)


def test_a_cluster_that_was_started_here_never_launches_fewer_ranks_in_silence(monkeypatch):
    monkeypatch.setattr(lease, "RETURNS", 0.0)  # as if a worker took very long to be restarted
    with Cluster(2) as cluster:
        assert len(cluster.launch(programs.where)) == 2
        gone, *_ = cluster.client.scheduler_info(n_workers=-1)["workers"]
        cluster.client.retire_workers([gone])
        with pytest.raises(MeshError, match="2 ranks wanted, 1 of 2 workers free, 1 lost and not yet back"):
            cluster.launch(programs.where, wait=0)
        assert len(cluster.launch(programs.where, world_size=1)) == 1


@pytest.mark.parametrize("how", ["launching", "waiting"])
def test_a_client_that_is_closed_in_the_middle_is_told(cluster, tmp_path, how):
    first = cluster.start(programs.waits_for_ever, str(tmp_path / "first"), timeout=1000) if how == "waiting" else None
    while first is not None and not first.workers:
        assert not first.wait(0.01)
    client = Client(cluster.client.scheduler.address)
    running = Cluster(client=client).start(programs.waits_for_ever, str(tmp_path / "at"), timeout=1000)
    while not (running.waits_for if first else len(list(tmp_path.glob("at-*"))) == 4):
        assert not running.wait(0.01)
    client.close()
    with pytest.raises(MeshError, match="the connection to the cluster is closed\ngiven: a Client that is clos"):
        running.result()
    if first is not None:
        first.stop()
        first.wait()


def test_a_cluster_that_is_closed_is_not_entered_again(cluster):
    other = Cluster(client=cluster.client.scheduler.address)
    other.close()
    with pytest.raises(MeshError, match="the connection to the cluster is closed"), other:
        pass


def test_a_rank_that_wants_workers_of_its_own_is_told(cluster):
    def nests(comm):
        return launch(programs.where, world_size=1)

    with pytest.raises(MeshError, match="a worker cannot start workers\ngiven: a Cluster or a launch inside of a rank"):
        cluster.launch(nests)


def test_where_workers_cannot_start_one_error_says_why(monkeypatch, tmp_path):
    import distributed

    import __main__

    def fails(**_):
        raise RuntimeError("Nanny failed to start.") from OSError("no more processes")

    with monkeypatch.context() as patch:
        patch.setattr(distributed, "LocalCluster", fails)
        with pytest.raises(MeshError, match="the workers cannot be started\ngiven: OSError: no more processes\nhint"):
            Cluster(1)
    with monkeypatch.context() as patch:
        patch.setattr(__main__, "__file__", "<stdin>")
        patch.setattr(__main__, "__spec__", None)
        with pytest.raises(MeshError, match="workers cannot load this program again\ngiven: <stdin>"):
            Cluster(1)
    with monkeypatch.context() as patch:
        gone = tmp_path / "gone"
        gone.mkdir()
        patch.chdir(gone)
        gone.rmdir()
        with pytest.raises(MeshError, match="in a directory that is gone"):
            Cluster(1)


def test_a_client_that_is_closed_while_a_launch_begins_is_told_as_that(monkeypatch):
    before = ClientSide.install

    def install(side):
        side.client.close()
        return before(side)

    with Cluster(1) as cluster, Client(cluster.client.scheduler.address) as client:
        monkeypatch.setattr(ClientSide, "install", install)
        with pytest.raises(MeshError, match=r"the connection to the cluster is closed\ngiven: a Client that is closed"):
            launch(programs.where, client=client)
