"""What layers that look at the whole batch, random layers and unused parameters do on ranks."""

import math

import numpy as np
import pytest

import lab
from lab.data import Dataset, Loader
from lab.errors import ArgumentError, GradientError, UnsupportedError
from lab.nn import BatchNorm1d, Dropout, Linear, Module, ReLU, Sequential
from lab.optim import SGD
from lab.parallel import DataParallel, run_ranks
from lab.parallel.ranks.axis import axis
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.training.data_parallel import train_replica
from lab.parallel.training.layers import Chosen, Draws
from lab.parallel.training.packing import packed, unpacked
from lab.parallel.training.shards import shard_of
from lab.parallel.training.steering import Held, Order
from lab.training.trainer import Training
from tests.parallel.trainings import SOON, parameters, some_digits

pytestmark = [pytest.mark.usefixtures("no_run_outlives_its_test")]
SYNCHRONIZED, LOCAL, PER_RANK = Chosen("synchronized"), Chosen("local"), Chosen("", "per rank")


def normalised(dtype="float64"):
    with lab.settings(dtype=dtype):
        return Sequential(Linear(64, 8, rng=0), BatchNorm1d(8), ReLU(), Linear(8, 10, rng=1))


def with_dropout():
    return Sequential(Linear(64, 8, rng=0), Dropout(0.5, rng=3), Linear(8, 10, rng=1))


def training(make, n=102, batch_size=50, n_epochs=2):
    module = make()
    dtype = module.parameters()[0].dtype
    loader = Loader(some_digits(n, dtype), batch_size, rng=0)
    optimizer = SGD(module.parameters(), 0.1, momentum=0.9)
    return Training(module, loader, None, lab.cross_entropy, optimizer, n_epochs=n_epochs, measure_every=0)


def alone(make, **sizes):
    job = training(make, **sizes)
    job.begin("alone")
    while not job.finished:
        assert job.advance() is None
    return job.model.state_dict()


def trains(comm, payload, choice):
    """What a rank's copy holds at the end: parameters and running statistics."""
    comm.mailbox = Mailbox()
    comm.mailbox.put(Order(1, "go", math.inf))
    standing = train_replica(comm, payload, "run", "ring", choice=choice)
    copy = unpacked(payload)
    copy.stand(standing)
    return copy.model.state_dict()


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_synchronised_batch_normalisation_equals_one_process_with_uneven_shards(world_size):
    sizes = {"n": 103, "batch_size": 50}  # the last batch has 3
    expected = alone(normalised, **sizes)
    payload = packed(training(normalised, **sizes))
    found = run_ranks(trains, payload, SYNCHRONIZED, world_size=world_size)
    for state in found:
        assert state.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(state[name], value, rtol=0, atol=1e-12)


def test_the_axis_of_ranks_gives_batch_normalisation_the_gradient_of_the_whole_batch():
    rng = np.random.default_rng(0)
    x, w = rng.normal(5, 2, (10, 3, 4)), rng.normal(size=(10, 3, 4))

    def part(comm):
        mine = shard_of(comm.rank, comm.world_size, 10)
        with lab.settings(dtype="float64"):
            layer = BatchNorm1d(3, axis_name="ranks")
        leaf = lab.tensor(x[mine.start : mine.stop], requires_grad=True)
        with axis(comm):
            (layer(leaf) * w[mine.start : mine.stop]).sum().backward()
        return leaf.grad.numpy(), layer.scale.grad.numpy()

    with lab.settings(dtype="float64"):
        layer = BatchNorm1d(3, axis_name="ranks")
    leaf = lab.tensor(x, requires_grad=True)
    (layer(leaf) * w).sum().backward()
    parts = run_ranks(part, world_size=3)
    np.testing.assert_allclose(np.concatenate([g for g, _ in parts]), leaf.grad.numpy(), rtol=0, atol=1e-13)
    np.testing.assert_allclose(sum(g for _, g in parts), layer.scale.grad.numpy(), rtol=0, atol=1e-12)


def test_local_batch_normalisation_is_each_ranks_own_and_its_running_statistics_are_the_weighted_mean():
    data = some_digits(7, "float64")
    states = run_ranks(trains, packed(training(normalised, n=7, batch_size=7, n_epochs=1)), LOCAL, world_size=2)
    order = Loader(data, 7, rng=0).order(0)
    with lab.settings(dtype="float64"):
        first = Linear(64, 8, rng=0)
    seen = first(data.inputs[order]).numpy()
    shares = [(seen[:4], 4 / 7), (seen[4:], 3 / 7)]
    for state in states:
        np.testing.assert_allclose(state["1.running_mean"], 0.1 * sum(s * p.mean(0) for p, s in shares), atol=1e-12)
        variance = 0.9 + 0.1 * sum(s * p.var(0, ddof=1) for p, s in shares)
        np.testing.assert_allclose(state["1.running_var"], variance, atol=1e-12)
    for name, value in states[0].items():
        np.testing.assert_array_equal(states[1][name], value)


def test_a_loss_that_is_no_number_on_one_rank_ends_the_step_on_all_where_they_meet_in_backward():
    job = training(normalised)
    inputs, order = job.loader.dataset.inputs.copy(), job.loader.order(0)
    inputs[order[-1]] = np.nan  # the last rank's, in the last batch
    job.loader.dataset = Dataset(inputs, job.loader.dataset.targets)

    troubles = []

    class Home(Mailbox):
        def put(self, word):
            if isinstance(word, Held) and word.trouble:
                troubles.append(word.trouble)
                comms[0].mailbox.put(Order(2, "stop"))

    def meets(comm, payload):
        comm.mailbox, comm.home, comms[comm.rank] = Mailbox(), Home(), comm
        comm.mailbox.put(Order(1, "go", math.inf))
        train_replica(comm, payload, "run", "ring", choice=SYNCHRONIZED)

    comms = {}
    run_ranks(meets, packed(job), world_size=2, timeout=5.0)
    [trouble] = troubles
    assert str(trouble).startswith("the loss became nan at step 3 on rank 1\ngiven: ")


def test_ranks_without_an_example_cannot_normalise_together():
    job = training(normalised, n=102)  # a last batch of 2 for 3 ranks
    with pytest.raises(UnsupportedError, match="given: a batch of 2 examples for 3 ranks"):
        run_ranks(trains, packed(job), SYNCHRONIZED, world_size=3)


def test_random_layers_draw_by_rank_and_step_and_the_same_in_another_run():
    payload = packed(training(with_dropout))
    once = run_ranks(trains, payload, PER_RANK, world_size=2)
    again = run_ranks(trains, payload, PER_RANK, world_size=2)
    for name, value in once[0].items():
        np.testing.assert_array_equal(again[1][name], value)  # also equal on both ranks


def test_what_a_generator_draws_hangs_on_its_seed_the_rank_and_the_step():
    def drawn(rank, *steps):
        model = Sequential(Dropout(0.5, rng=1), Dropout(0.5, rng=1))
        draws = Draws([m for _, m in model.named_modules()], rank)
        out = []
        for step in steps:
            draws.at(step)
            out.append([int(model[i].rng.integers(2**62)) for i in range(2)])
        return out

    a, b = drawn(0, 1, 2), drawn(1, 1, 2)
    assert len({n for step in (*a, *b) for n in step}) == 8
    assert drawn(0, 2) == a[1:]


class Branches(Module):
    """A second layer that only examples with a large first pixel reach."""

    def __init__(self):
        with lab.settings(dtype="float64"):
            self.first, self.second, self.never = Linear(64, 10, rng=0), Linear(64, 10, rng=1), Linear(2, 2, rng=2)

    def forward(self, x):
        out = self.first(x)
        reached = np.asarray(x)[:, :1] > 0
        return out + reached * self.second(x) if reached.any() else out


def branching(only_used=True):
    data = some_digits(8, "float64")
    data.inputs[:, 0] = 0
    module = Branches()
    job_data = Dataset(data.inputs, data.targets)
    loader = Loader(job_data, 8, shuffle=False)
    job_data.inputs[0, 0] = 1.0  # rank 0's example alone
    used = [p for n, p in module.named_parameters() if not (only_used and n.startswith("never"))]
    return Training(module, loader, None, lab.cross_entropy, SGD(used, 0.1), n_epochs=3, measure_every=0)


def test_a_parameter_that_one_ranks_examples_do_not_use_gets_the_gradient_of_the_others():
    job = branching()
    job.begin("alone")
    while not job.finished:
        assert job.advance() is None
    for state in run_ranks(trains, packed(branching()), Chosen(), world_size=2):
        for name, value in job.model.state_dict().items():
            np.testing.assert_allclose(state[name], value, rtol=0, atol=1e-12)


def test_a_parameter_that_no_rank_uses_is_refused_as_in_one_process():
    job = branching(only_used=False)
    job.begin("alone")
    with pytest.raises(GradientError, match="2 of 6 parameters have no gradient") as here:
        job.advance()
    with pytest.raises(GradientError) as there:
        run_ranks(trains, packed(branching(only_used=False)), Chosen(), world_size=2)
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize(("option", "hint"), [({"batch_norm": "sync"}, "synchronized"), ({"random": True}, "per rank")])
def test_a_way_that_is_none_is_refused_where_it_is_written(option, hint):
    with pytest.raises(ArgumentError, match=rf"there is no such way for .*\ngiven: .*\nhint:  .*{hint}"):
        DataParallel(**option)


@pytest.mark.slow
def test_on_workers_batch_normalisation_and_dropout_train_and_come_home(cluster):
    def make():
        with lab.settings(dtype="float64"):
            return Sequential(Linear(64, 8, rng=0), BatchNorm1d(8), Dropout(0.1, rng=0), Linear(8, 10, rng=1))

    module = make()
    on = DataParallel(cluster, 3, batch_norm="synchronized", random="per rank")
    run = lab.fit(module, some_digits(300, "float64"), batch_size=50, epochs=2, on=on)
    assert run.wait(SOON)
    assert run.state == "finished"
    assert np.abs(module[1].running_mean.numpy()).max() > 0
    assert not np.array_equal(parameters(module), parameters(make()))
