"""What a training needs of memory is told before it begins; a rank ended for its memory is told as such."""

import logging
import multiprocessing
import threading
import time

import numpy as np
import pytest

import lab
from lab.data import Dataset, Loader
from lab.errors import LostRankError, MeshError, RankMemoryError
from lab.events import RankLost
from lab.nn import Linear, Module
from lab.ops import cross_entropy
from lab.optim import SGD, Adam
from lab.parallel import Cluster, DataParallel
from lab.parallel.cluster import memory
from lab.parallel.cluster.dask_side.client import ClientSide
from lab.parallel.cluster.memory import BUSY_MB, MB, Room
from lab.parallel.cluster.need import Need, ended_for_memory, forewarn_ranks, n_ended_by_system
from lab.parallel.training.needs import need_of
from lab.parallel.training.restarts import Restarts
from lab.training.trainer import Training
from tests.parallel.trainings import SOON, network, parameters, some_digits

LIMIT_MB = 300


def training(module, data, batch_size=64):
    return Training(module, Loader(data, batch_size, rng=0), None, cross_entropy, Adam(module.parameters()),
                    n_epochs=1, measure_every=0)  # fmt: skip


# --- on paper


def test_what_is_certain_is_counted_to_the_byte():
    module, data = network(), some_digits(100)
    need = need_of(training(module, data), 1000, keeps=True)
    values = parameters(module).nbytes
    assert need.model == 4 * values  # values, gradients, and the two moments of Adam
    assert need.kept == 3 * 3 * values  # of values and moments: the last sound state, and two for the others
    assert need.data == data.inputs.nbytes + data.targets.nbytes + 2000
    assert need_of(training(module, data), 0, keeps=False).kept == 3 * values


def test_what_a_step_keeps_grows_with_the_examples_of_a_rank():
    need = need_of(training(network(), some_digits(100)), 0, keeps=False)
    assert need.per_example >= 32 * 4  # the hidden layer
    assert need.n_examples == 64
    assert need.of(3) - need.at_least == 22 * need.per_example


def test_a_loss_without_a_graph_needs_nothing_for_backward():
    module = network()
    made = Training(module, Loader(some_digits(10), 5, rng=0), None, lambda p, t: lab.tensor(1.0),
                    SGD(module.parameters(), 0.1), n_epochs=1, measure_every=0)  # fmt: skip
    assert need_of(made, 0, keeps=False).per_example == 0


def test_where_it_fits_and_where_nobody_knows_a_limit_nothing_is_said(caplog):
    forewarn_ranks(Need(model=400 * MB), [600 * MB] * 2)
    forewarn_ranks(Need(model=400 * MB), [0, 0])
    assert caplog.messages == []


def test_what_may_not_fit_by_the_estimate_is_warned_of_with_its_parts(caplog):
    with caplog.at_level(logging.WARNING):
        forewarn_ranks(Need(model=40 * MB, per_example=MB, n_examples=400), [300 * MB, 0])
    [said] = caplog.messages
    assert said.startswith(f"memory will be short: each of 2 ranks needs {BUSY_MB + 240} MB ({BUSY_MB} the worker, ")
    assert said.endswith("40 model and optimiser, 200 a step of 200 examples), and a worker may take 285 MB")


def test_another_loss_is_told_as_before():
    loss = LostRankError("rank 1 was lost: its worker a is gone", given="2 ranks", rank=1)
    assert ended_for_memory(loss, "a", None, 2, Need()) is loss


def test_a_loss_while_the_system_ended_processes_names_memory_and_what_is_free():
    loss = LostRankError("rank 1 was lost: its worker a is gone", given="2 ranks", rank=1)
    told = ended_for_memory(loss, "a", None, 2, None, n_others=1)
    assert isinstance(told, RankMemoryError)
    assert (told.rank, told.problem) == (1, f"{loss.problem}, while the system ended a process for want of memory")
    assert told.given.startswith("2 ranks; ")
    assert "are free" in told.given


def test_processes_that_the_system_ended_are_counted_where_it_counts_them(tmp_path):
    assert n_ended_by_system(tmp_path) == 0
    (tmp_path / "vmstat").write_text("nr_free_pages 5\noom_kill 3\n")
    assert n_ended_by_system(tmp_path) == 3


def test_a_run_that_gives_up_after_memory_kills_says_what_helps_against_those():
    restarts = Restarts("replace", 1)
    restarts.n = 1
    loss = RankMemoryError("rank 1 was lost", given="2 ranks", hint="a smaller batch", rank=1)
    refusal = restarts.refusal(loss)
    assert type(refusal) is RankMemoryError
    assert (refusal.hint, refusal.rank) == ("a smaller batch", 1)
    assert refusal.given == "loss number 2 of the run, which outlives 1 (max_restarts=1); 2 ranks"


# --- with real workers


@pytest.fixture(scope="module")
def small():
    """Two workers that may take 300 MB each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "room", lambda: Room(2 * LIMIT_MB * MB, 1000 * MB, memory.CONTAINER))
        cluster = Cluster(2)
    with cluster:
        yield cluster


@pytest.fixture
def both(small):
    small.client.wait_for_workers(2, timeout=60)
    return small


def hoard():
    """Take too much and hold it until the nanny ends this process."""
    taken = np.ones(LIMIT_MB * MB // 8 + 1)
    threading.Event().wait(SOON)
    return taken


class Hungry(Module):
    """On a rank that has two examples, a step takes more memory than a worker may."""

    def __init__(self):
        self.layer = Linear(64, 10, rng=0)

    def forward(self, x):
        if multiprocessing.current_process().daemon and len(x) == 2:
            hoard()
        return self.layer(x)


@pytest.mark.slow
def test_a_rank_that_its_nanny_ends_for_its_memory_is_told_with_both_numbers_and_the_cluster_goes_on(both):
    def program(comm):
        if comm.rank == 1:
            hoard()
        comm.barrier()

    with pytest.raises(RankMemoryError) as caught, lab.record(kinds=[RankLost]) as rec:
        both.launch(program)
    problem, given, hint = str(caught.value).splitlines()
    assert problem.startswith("rank 1 was lost: its worker tcp://127.0.0.1:")
    assert problem.endswith(f" MB of the {LIMIT_MB} MB that it may, and was ended")
    assert given.startswith("given: 2 ranks, run-")
    assert hint == "hint:  a smaller batch or model; or fewer workers, which get more each; the cluster goes on"
    assert [event.reason for event in rec] == [problem]
    both.client.wait_for_workers(2, timeout=60)
    assert both.launch(lambda comm: comm.rank) == [0, 1]


@pytest.mark.slow
@pytest.mark.usefixtures("no_run_outlives_its_test")
def test_a_training_that_needs_more_than_its_workers_have_says_so_after_its_restarts(both):
    data = Dataset(np.zeros((20, 64), "float32"), np.arange(20) % 10)
    run = lab.fit(Hungry(), data, batch_size=5, epochs=1, measure_every=0, on=DataParallel(both, max_restarts=1))
    with pytest.raises(RankMemoryError) as caught:
        run.wait(SOON)
    problem, given, _ = str(caught.value).splitlines()
    assert problem.startswith("rank 1 was lost")
    assert f"of the {LIMIT_MB} MB that it may" in problem
    assert "loss number 2 of the run, which outlives 1 (max_restarts=1)" in given
    assert f"{BUSY_MB} MB were expected of each" in given


@pytest.mark.slow
def test_a_worker_that_is_paused_for_its_memory_gets_no_rank_and_the_launch_says_why(both):
    def fill(n_bytes, dask_worker):
        import psutil

        dask_worker.filled = np.ones((n_bytes - psutil.Process().memory_info().rss) // 8)

    def empty(dask_worker):
        del dask_worker.filled

    def paused():
        return [seen["worker"] for seen in ClientSide(both.client).look() if seen["state"] == "paused"]

    assert both.launch(lambda comm: comm.all_reduce_(np.ones(1)).item(), world_size=2) == [2, 2]  # all is loaded
    [one, _] = both.client.scheduler_info(n_workers=-1)["workers"]
    both.client.run(fill, int(0.87 * LIMIT_MB * MB), workers=[one])
    until = time.monotonic() + SOON
    while paused() != [one] and time.monotonic() < until:
        threading.Event().wait(0.05)
    with pytest.raises(MeshError, match="there are not enough workers") as caught:
        both.launch(lambda comm: comm.rank, world_size=2, wait=0)
    assert caught.value.given == "2 ranks wanted, 1 of 2 workers free, 1 paused: its memory is nearly full"
    both.client.run(empty, workers=[one])
    assert both.launch(lambda comm: comm.rank, world_size=2) == [0, 1]


@pytest.mark.slow
@pytest.mark.usefixtures("no_run_outlives_its_test")
def test_a_training_that_cannot_fit_is_refused_before_its_first_step(both):
    module = Linear(64, 50_000, rng=0)
    data = Dataset(np.zeros((20, 64), "float32"), np.arange(20))
    run = lab.fit(module, data, batch_size=5, epochs=1, measure_every=0,
                  optimizer=SGD(module.parameters(), 0.1), on=DataParallel(both, 1))  # fmt: skip
    with pytest.raises(MeshError) as caught:
        run.wait(SOON)
    assert caught.value.problem == "the training does not fit into the memory of its workers"
    assert f"and a worker may take {round(0.95 * LIMIT_MB)} MB" in caught.value.given
    assert run.progress[0] == 0
