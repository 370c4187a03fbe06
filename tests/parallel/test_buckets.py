"""Buckets change when gradients are summed, and nothing else."""

import math
from itertools import pairwise

import numpy as np
import pytest

import lab
from lab.data import Dataset, Loader
from lab.errors import ArgumentError
from lab.events import CollectiveStarted, LaneBusy, record
from lab.nn import BatchNorm1d, Linear, Module, Sequential, mlp
from lab.optim import SGD, Adam
from lab.optim.flat import FlatParameters
from lab.parallel import DataParallel, run_ranks
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.training.buckets import BucketRank, buckets_of
from lab.parallel.training.data_parallel import train_replica
from lab.parallel.training.layers import NOTHING, Chosen
from lab.parallel.training.packing import packed, unpacked
from lab.parallel.training.steering import Held, Order
from lab.training.trainer import Training
from tests.parallel.trainings import SOON, network, parameters, some_digits

pytestmark = [pytest.mark.usefixtures("no_run_outlives_its_test")]
IN_ANY_ORDER = ["naive", "doubling", "halving", "tree"]


def training(module, n=103, batch_size=50, n_epochs=4, dtype="float32"):
    loader = Loader(some_digits(n, dtype), batch_size, rng=0)  # the last batch has 3: empty shards on 4 ranks
    return Training(module, loader, None, lab.cross_entropy, Adam(module.parameters(), 2e-3), n_epochs=n_epochs,
                    measure_every=0)  # fmt: skip


def trains(comm, payload, algorithm, choice):
    """The weights at the end, and what this rank said of its lanes and collectives."""
    comm.mailbox = Mailbox()
    comm.mailbox.put(Order(1, "go", math.inf))
    with record(kinds=[LaneBusy, CollectiveStarted]) as rec:
        standing = train_replica(comm, payload, "run", algorithm, choice=choice)
    copy = unpacked(payload)
    copy.stand(standing)
    return parameters(copy.model), [event for event in rec if event.rank == comm.rank]


def weights(job, algorithm="doubling", bucket_bytes=0, world_size=4, choice=NOTHING):
    ranks = run_ranks(trains, packed(job), algorithm, choice._replace(bucket_bytes=bucket_bytes), world_size=world_size)
    for found, _ in ranks:
        np.testing.assert_array_equal(found, ranks[0][0])
    return ranks[0][0]


@pytest.mark.parametrize("bucket_bytes", [1, 2000, 1 << 20])
@pytest.mark.parametrize("algorithm", IN_ANY_ORDER)
def test_the_bits_are_those_without_buckets_where_a_plan_adds_all_entries_in_one_order(algorithm, bucket_bytes):
    expected = weights(training(network()), algorithm)
    np.testing.assert_array_equal(weights(training(network()), algorithm, bucket_bytes), expected)


def test_the_order_of_a_ring_hangs_on_the_bounds_of_its_chunks_yet_in_float64_it_equals_one_process():
    module = network("float64")
    job = training(module, dtype="float64")
    found = weights(training(network("float64"), dtype="float64"), "ring", 1000)
    job.begin("alone")
    while not job.finished:
        assert job.advance() is None
    assert np.abs(found - parameters(module)).max() <= 1e-12


def test_buckets_are_cut_from_the_last_parameter_to_the_first_and_hold_what_fits():
    flat = FlatParameters(mlp(64, 32, 10, rng=0).parameters())  # 2,048, 32, 320 and 10 entries of 4 bytes
    found = [(b.first, b.last, b.where.stop - b.where.start) for b in buckets_of([flat], 1400)]
    assert found == [(2, 3, 330), (1, 1, 32), (0, 0, 2048)]
    assert len(buckets_of([flat], 1)) == 4
    assert [(b.where.start, b.where.stop) for b in buckets_of([flat], 1 << 20)] == [(0, 2410)]


def test_all_reduces_are_started_before_backward_ends_and_lanes_tell_when_they_ran(monkeypatch):
    starts, start = [], BucketRank._start

    def noted(rank, bucket):
        starts.append(rank._went_back < rank._began)  # backward of this step has not ended
        start(rank, bucket)

    monkeypatch.setattr(BucketRank, "_start", noted)
    job = training(mlp(64, *[256] * 6, 10, rng=0), n=100, batch_size=100, n_epochs=3)
    for _, events in run_ranks(trains, packed(job), "direct", Chosen(bucket_bytes=1), world_size=2):
        begun = [event.operation for event in events if isinstance(event, CollectiveStarted)]
        assert begun == ["broadcast"] + ["all_reduce"] * (3 * 14)
        for step in (1, 2, 3):
            lanes = [event for event in events if isinstance(event, LaneBusy) and event.step == step]
            back, wait, *sums = lanes
            assert (back.lane, back.kind, wait.kind) == ("compute", "differentiate", "wait")
            assert [(event.lane, event.bucket) for event in sums] == [("communication", i) for i in range(14)]
            assert sum(event.n_bytes for event in sums) == 4 * (64 * 256 + 5 * 256 * 256 + 256 * 10 + 6 * 256 + 10)
            assert all(a.stop_ms <= b.start_ms for a, b in pairwise(sums))
            assert 0 <= back.start_ms < back.stop_ms <= wait.stop_ms
            assert sums[-1].stop_ms <= wait.stop_ms
    assert starts == [True] * (2 * 3 * 14)


def test_the_gradient_of_a_leaf_arrives_once_complete_although_it_is_used_twice():
    w, v = lab.tensor([2.0, 3.0], requires_grad=True), lab.tensor([1.0, 1.0], requires_grad=True)
    came = []
    with lab.config.using(arrived=lambda leaf, gradient: came.append((leaf, gradient.tolist()))):
        (w * (w * v)).sum().backward()
    assert {leaf.id: gradient for leaf, gradient in came} == {v.node.id: [4.0, 9.0], w.node.id: [4.0, 6.0]}
    assert len(came) == 2
    assert w.grad.numpy().tolist() == [4.0, 6.0]


class Branches(Module):
    """A second layer that only examples with a large first pixel reach; the one between is used by nobody first."""

    def __init__(self):
        self.first, self.second, self.third = Linear(64, 10, rng=0), Linear(64, 10, rng=1), Linear(64, 10, rng=2)

    def forward(self, x):
        reached = np.asarray(x)[:, 10:11] > 0.5
        out = self.first(x) + self.third(x)
        return out + reached * self.second(x) if reached.any() else out


def test_ranks_whose_examples_use_other_parameters_start_the_same_buckets_in_the_same_order():
    expected = weights(training(Branches(), n=40, batch_size=5), world_size=3)
    np.testing.assert_array_equal(weights(training(Branches(), n=40, batch_size=5), bucket_bytes=1, world_size=3),
                                  expected)  # fmt: skip


def test_local_batch_normalisation_goes_with_buckets():
    def job():
        module = Sequential(Linear(64, 8, rng=0), BatchNorm1d(8), Linear(8, 10, rng=1))
        return training(module, n=100)

    expected = weights(job(), choice=Chosen("local"), world_size=2)
    np.testing.assert_array_equal(weights(job(), bucket_bytes=300, choice=Chosen("local"), world_size=2), expected)


def test_hooks_and_events_of_operations_put_all_buckets_behind_backward_and_change_no_bits():
    def watched(comm, payload, choice):
        with lab.anomaly_mode():
            return trains(comm, payload, "doubling", choice)[0]

    expected = weights(training(network()), world_size=2)
    for found in run_ranks(watched, packed(training(network())), Chosen(bucket_bytes=1), world_size=2):
        np.testing.assert_array_equal(found, expected)


def test_a_loss_that_is_no_number_ends_the_step_on_all_ranks_and_training_goes_on_after_a_rewind():
    module, data = mlp(64, 8, 10, rng=0), some_digits(16)
    inputs = data.inputs.copy()
    inputs[Loader(data, 8, rng=0).order(0)[-1]] = np.nan  # rank 1's, in the second batch
    job = Training(module, Loader(Dataset(inputs, data.targets), 8, rng=0), None, lab.cross_entropy,
                   SGD(module.parameters(), 0.1), n_epochs=3, measure_every=0)  # fmt: skip
    comms, troubles = {}, []

    class Home(Mailbox):
        def put(self, word):
            if isinstance(word, Held) and word.trouble is not None:
                troubles.append(word.trouble)
                comms[0].mailbox.put(Order(2, "rewind"))
                comms[0].mailbox.put(Order(3, "stop"))

    def meets(comm, payload):
        comm.mailbox, comm.home, comms[comm.rank] = Mailbox(), Home(), comm
        comm.mailbox.put(Order(1, "go", math.inf))
        return train_replica(comm, payload, "run", "ring", choice=Chosen(bucket_bytes=100)).step

    assert run_ranks(meets, packed(job), world_size=2, timeout=5.0) == [0, 0]
    [trouble] = troubles
    assert str(trouble).startswith("the loss became nan at step 2 on rank 1\n")


@pytest.mark.slow
def test_real_workers_with_buckets_have_the_bits_of_those_without(cluster):
    found = []
    for bucket_bytes in (None, 2000):
        module = network()
        run = lab.fit(module, some_digits(102), batch_size=50, epochs=4, measure_every=0,
                      optimizer=Adam(module.parameters(), 2e-3),
                      on=DataParallel(cluster, 2, "doubling", bucket_bytes=bucket_bytes))  # fmt: skip
        assert run.wait(SOON).n_steps == 12
        found.append(parameters(module))
        n_lanes = sum(isinstance(event, LaneBusy) for event in run.recording)
        assert n_lanes == (0 if bucket_bytes is None else 2 * 12 * (2 + 2))
    np.testing.assert_array_equal(*found)


def test_what_does_not_go_with_buckets_is_refused():
    for options, problem in [
        ({"bucket_bytes": 0}, "bucket_bytes"),
        ({"bucket_bytes": "1 MiB"}, "bucket_bytes"),
        ({"bucket_bytes": 100, "deterministic": "any world"}, "virtual shards are added before"),
        ({"bucket_bytes": 100, "batch_norm": "synchronized"}, "talks in backward"),
    ]:
        with pytest.raises(ArgumentError, match=problem):
            DataParallel(**options)
