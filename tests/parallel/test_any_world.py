"""With virtual shards, the loss curve and the weights do not depend on the number of ranks, bit for bit."""

import math

import numpy as np
import pytest

import lab
from lab.data import Dataset, Loader
from lab.errors import ArgumentError
from lab.events import StepFinished, record
from lab.nn import Dropout, Linear, Module, Sequential, mlp
from lab.optim import SGD, Adam
from lab.parallel import DataParallel, run_ranks
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.training.any_world import refuse_another_world, tree_sum
from lab.parallel.training.data_parallel import train_replica
from lab.parallel.training.layers import Chosen
from lab.parallel.training.packing import packed, unpacked
from lab.parallel.training.shards import shard_of
from lab.parallel.training.steering import Held, Order
from lab.training.trainer import Training
from tests.parallel.trainings import SOON, network, parameters, some_digits

pytestmark = [pytest.mark.usefixtures("no_run_outlives_its_test")]
EIGHT = Chosen(shards=8)


def training(module, n=103, batch_size=50, n_epochs=4, dtype="float32"):
    loader = Loader(some_digits(n, dtype), batch_size, rng=0)  # the last batch has 3: empty shards
    return Training(module, loader, None, lab.cross_entropy, Adam(module.parameters(), 2e-3), n_epochs=n_epochs,
                    measure_every=0)  # fmt: skip


def curve(comm, payload, algorithm="ring", choice=EIGHT):
    """The losses that rank 0 tells, and what each rank holds at the end."""
    comm.mailbox = Mailbox()
    comm.mailbox.put(Order(1, "go", math.inf))
    with record(kinds=[StepFinished]) as rec:
        standing = train_replica(comm, payload, "run", algorithm, choice=choice)
    copy = unpacked(payload)
    copy.stand(standing)
    return [event.loss for event in rec if event.rank == comm.rank], parameters(copy.model)


def curves(make, world_size, algorithm="ring", choice=EIGHT, **sizes):
    ranks = run_ranks(curve, packed(training(make(), **sizes)), algorithm, choice, world_size=world_size)
    for _, weights in ranks:
        np.testing.assert_array_equal(weights, ranks[0][1])
    return ranks[0]


@pytest.mark.parametrize("algorithm", ["ring", "doubling", "tree"])
def test_the_loss_curves_of_1_2_4_and_8_ranks_coincide_bit_for_bit(algorithm):
    losses, weights = curves(network, 1, algorithm)
    assert len(losses) == len(set(losses)) == 12
    for world_size in (2, 4, 8):
        others, found = curves(network, world_size, algorithm)
        assert others == losses
        np.testing.assert_array_equal(found, weights)


def test_without_virtual_shards_the_same_curves_differ():
    assert curves(network, 1, choice=Chosen())[0] != curves(network, 4, choice=Chosen())[0]


def test_the_weights_are_those_of_a_tree_of_shards_added_by_hand():
    module, data = network(), some_digits(50)
    optimizer = SGD(module.parameters(), 0.1)
    job = Training(module, Loader(data, 50, rng=0), None, lab.cross_entropy, optimizer, n_epochs=1, measure_every=0)
    [(_, found), _] = run_ranks(curve, packed(job), world_size=2)
    [batch], [group] = list(job.loader.epoch(0)), optimizer.groups
    parts = []
    for number in range(8):
        part = shard_of(number, 8, 50).of(batch)
        optimizer.zero_grad()
        lab.cross_entropy(module(lab.tensor(part.inputs)), part.targets).backward()
        optimizer.gather()
        parts.append(group.gradients * np.float32(len(part.inputs) / 50))
    pairs = [parts[i] + parts[i + 1] for i in (0, 2, 4, 6)]
    group.gradients[...] = (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
    optimizer.apply()
    np.testing.assert_array_equal(found, parameters(module))


def test_in_float64_it_equals_one_process():
    module = network("float64")
    job = training(module, dtype="float64")
    _, found = curves(lambda: network("float64"), 4, dtype="float64")
    job.begin("alone")
    while not job.finished:
        assert job.advance() is None
    assert np.abs(found - parameters(module)).max() <= 1e-12


@pytest.mark.parametrize("shards", [6, 12])
def test_another_number_of_shards_serves_the_powers_of_two_that_divide_it(shards):
    losses, weights = curves(network, 1, choice=Chosen(shards=shards))
    others, found = curves(network, 2, choice=Chosen(shards=shards))
    assert others == losses
    np.testing.assert_array_equal(found, weights)


def test_dropout_draws_by_the_shard_so_that_any_world_draws_the_same():
    def make():
        return Sequential(Linear(64, 8, rng=0), Dropout(0.5, rng=3), Linear(8, 10, rng=1))

    choice = Chosen(random="per rank", shards=8)
    losses, weights = curves(make, 1, choice=choice)
    others, found = curves(make, 4, choice=choice)
    assert others == losses
    np.testing.assert_array_equal(found, weights)


class SometimesTwo(Module):
    """The second branch sees only examples whose first pixel is set."""

    def __init__(self):
        self.first, self.second = Linear(64, 10, rng=0), Linear(64, 10, rng=1)

    def forward(self, x):
        mark = x.numpy()[:, :1]
        return self.first(x) + self.second(x) * mark if mark.any() else self.first(x)


def test_a_parameter_that_only_some_shards_use_trains_alike_in_any_world():
    data = some_digits(16)
    inputs = data.inputs.copy()
    inputs[:, 0] = 0
    inputs[5, 0] = 1

    def found(world_size):
        module = SometimesTwo()
        job = Training(module, Loader(Dataset(inputs, data.targets), 16, rng=0), None, lab.cross_entropy,
                       SGD(module.parameters(), 0.1), n_epochs=3, measure_every=0)  # fmt: skip
        return run_ranks(curve, packed(job), world_size=world_size)[0]

    losses, weights = found(1)
    for world_size in (2, 4):
        assert found(world_size)[0] == losses
        np.testing.assert_array_equal(found(world_size)[1], weights)


@pytest.mark.slow
@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_real_workers_find_the_curve_of_8_threads(cluster, world_size):
    module = network()
    run = lab.fit(module, some_digits(103), batch_size=50, epochs=2, optimizer=Adam(module.parameters(), 2e-3),
                  measure_every=0, on=DataParallel(cluster, world_size, deterministic="any world"))  # fmt: skip
    assert run.wait(SOON).n_steps == 6
    losses, weights = curves(network, 8, n_epochs=2)
    assert [event.loss for event in run.recording if isinstance(event, StepFinished)] == losses
    np.testing.assert_array_equal(parameters(module), weights)


def test_a_loss_that_is_no_number_in_one_shard_names_its_rank():
    data = some_digits(16)
    inputs = data.inputs.copy()
    order = Loader(data, 16, rng=0).order(0)
    inputs[order[13]] = np.nan  # shard 6, rank 1 of 2
    module = mlp(64, 8, 10, rng=0)
    job = Training(module, Loader(Dataset(inputs, data.targets), 16, rng=0), None, lab.cross_entropy,
                   SGD(module.parameters(), 0.1), n_epochs=1, measure_every=0)  # fmt: skip
    comms, troubles = {}, []

    class Home(Mailbox):
        def put(self, word):
            if isinstance(word, Held) and word.trouble is not None:
                troubles.append(word.trouble)
                comms[0].mailbox.put(Order(2, "stop"))

    def meets(comm, payload):
        comm.mailbox, comm.home, comms[comm.rank] = Mailbox(), Home(), comm
        comm.mailbox.put(Order(1, "go", math.inf))
        train_replica(comm, payload, "run", "ring", choice=EIGHT)

    run_ranks(meets, packed(job), world_size=2, timeout=5.0)
    [trouble] = troubles
    assert str(trouble).startswith("the loss became nan at step 1 on rank 1\ngiven: ")


def test_what_depends_on_the_number_of_ranks_is_refused_with_its_arithmetic():
    for options, problem in [
        ({"world_size": 3}, "3 is between 2 and 4"),
        ({"world_size": 8, "shards": 12}, "12 = 8 x 1 \\+ 4"),
        ({"deterministic": "always"}, "no such way for deterministic="),
        ({"shards": 0}, "shards"),
        ({"shards": 1000}, "too many virtual shards"),
        ({"algorithm": "naive"}, "an order of its own"),
        ({"on_loss": "shrink"}, "fewer ranks"),
        ({"batch_norm": "local"}, "statistics rank by rank"),
    ]:
        with pytest.raises(ArgumentError, match=problem):
            DataParallel(**({"deterministic": "any world"} | options))
    with pytest.raises(ArgumentError, match="16 x 0"):
        refuse_another_world(16, 8)
    assert DataParallel(world_size=3, shards=8).deterministic is None


def test_ranks_refuse_a_world_that_was_not_known_before():
    with pytest.raises(ArgumentError, match="power of two"):
        run_ranks(curve, packed(training(network())), "ring", EIGHT, world_size=3)


def test_the_tree_of_losses_is_that_of_gradients():
    numbers = np.random.default_rng(0).normal(size=8).tolist()
    a, b, c, d = (numbers[i] + numbers[i + 1] for i in (0, 2, 4, 6))
    assert tree_sum(numbers) == (a + b) + (c + d)
    assert tree_sum(numbers[:3]) == numbers[0] + (numbers[1] + numbers[2])
