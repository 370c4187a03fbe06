"""Micro-batches on ranks: the same gradient, one sum a step, or one a micro-batch."""

import math

import numpy as np
import pytest

import lab
from lab.data import Loader
from lab.errors import UnsupportedError
from lab.events import ChunkMoved, CollectiveStarted, record
from lab.nn import BatchNorm1d, Linear, Sequential
from lab.optim import Adam
from lab.parallel import DataParallel, run_ranks
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.training.data_parallel import train_replica
from lab.parallel.training.eager_sums import MICRO_BATCH
from lab.parallel.training.layers import Chosen
from lab.parallel.training.packing import packed, unpacked
from lab.parallel.training.steering import Order
from lab.training.accumulation import Accumulation
from lab.training.trainer import Training
from tests.parallel.trainings import network, parameters, some_digits
from tests.training.test_accumulation import OVER_TOKENS, mean_over_tokens, reader, sentences

pytestmark = [pytest.mark.usefixtures("no_run_outlives_its_test")]
WAYS = {
    "a step": Chosen(),
    "micro-batch": Chosen(sync=MICRO_BATCH),
    "buckets": Chosen(bucket_bytes=1000),
    "any world": Chosen(shards=8),
}


def of_digits(n_parts, dtype="float64"):
    module = network(dtype)
    loader = Loader(some_digits(103, dtype), 50, rng=0)  # the last batch has 3: empty shards, and empty parts of them
    return Training(module, loader, None, lab.cross_entropy, Adam(module.parameters(), 2e-3), n_epochs=3,
                    measure_every=0, accumulation=Accumulation(n_parts))  # fmt: skip


def of_sentences(n_parts, loss=OVER_TOKENS):
    module = reader()
    return Training(module, Loader(sentences(45), 20, rng=0), None, loss, Adam(module.parameters(), 2e-3), n_epochs=3,
                    measure_every=0, accumulation=Accumulation(n_parts))  # fmt: skip


def trains(comm, payload, algorithm, choice):
    comm.mailbox = Mailbox()
    comm.mailbox.put(Order(1, "go", math.inf))
    with record(kinds=[CollectiveStarted, ChunkMoved]) as rec:
        standing = train_replica(comm, payload, "run", algorithm, choice=choice)
    copy = unpacked(payload)
    copy.stand(standing)
    came = sum(e.n_bytes for e in rec if isinstance(e, ChunkMoved) and e.rank == comm.rank)
    return parameters(copy.model), came


def weights(job, choice=WAYS["a step"], algorithm="doubling", world_size=4):
    ranks = run_ranks(trains, packed(job), algorithm, choice, world_size=world_size)
    for found, _ in ranks:
        np.testing.assert_array_equal(found, ranks[0][0])
    return ranks[0]


def alone(job):
    job.begin("alone")
    while not job.finished:
        assert job.advance() is None
    return parameters(job.model)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_parts", [2, 5])
def test_in_float64_it_equals_one_process_that_does_not_cut(way, n_parts):
    found, _ = weights(of_digits(n_parts), WAYS[way])
    assert np.abs(found - alone(of_digits(1))).max() <= 1e-12


@pytest.mark.parametrize("way", WAYS)
def test_a_loss_over_tokens_is_weighed_by_tokens_over_ranks_too(way):
    for n_parts in (1, 3):
        found, _ = weights(of_sentences(n_parts), WAYS[way])
        assert np.abs(found - alone(of_sentences(1))).max() <= 1e-12


def test_weighed_by_examples_it_would_be_another_training():
    found, _ = weights(of_sentences(1, mean_over_tokens))
    assert np.abs(found - alone(of_sentences(1))).max() > 1e-6


def test_buckets_under_the_last_micro_batch_give_the_bits_of_a_sum_after_it():
    plain, _ = weights(of_digits(4, "float32"))
    np.testing.assert_array_equal(weights(of_digits(4, "float32"), Chosen(bucket_bytes=1000))[0], plain)


def test_a_sum_after_each_micro_batch_sends_as_many_times_the_bytes():
    _, once = weights(of_digits(1))
    _, cut = weights(of_digits(5))
    _, each = weights(of_digits(5), WAYS["micro-batch"])
    assert cut == once
    assert each == 5 * once


def test_a_loss_that_is_no_mean_over_examples_is_refused_until_it_says_what_it_counts():
    data, model = sentences(60), reader()
    model.load_state_dict({name: 30 * value for name, value in model.state_dict().items()})  # losses that differ
    with pytest.raises(UnsupportedError, match="mean over examples") as caught:
        lab.fit(model, data, loss=mean_over_tokens, batch_size=8, on=DataParallel(world_size=2))
    assert "Counted" in str(caught.value)


def test_synchronised_statistics_of_micro_batches_are_refused():
    model = Sequential(Linear(64, 16, rng=0), BatchNorm1d(16), Linear(16, 10, rng=1))
    with pytest.raises(UnsupportedError, match="normalised one by one"):
        lab.fit(model, some_digits(60), accumulate=2, on=DataParallel(world_size=2, batch_norm="synchronized"))


@pytest.mark.slow
def test_worker_processes_accumulate_as_one_process_does():
    train, ends = some_digits(103, "float64"), []
    for on in (None, DataParallel(world_size=2), DataParallel(world_size=2, sync="micro-batch")):
        model = network("float64")
        lab.fit(model, train, epochs=2, batch_size=50, accumulate=4, on=on).wait()
        ends.append(parameters(model))
    for end in ends[1:]:
        assert np.abs(end - ends[0]).max() <= 1e-12
