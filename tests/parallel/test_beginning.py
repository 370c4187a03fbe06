"""Ranks whose models unpickle differently begin, and so end, with what rank 0 has; one collective makes them alike."""

import numpy as np

from lab.data import Loader
from lab.events import CollectiveStarted, record
from lab.nn import BatchNorm1d, Linear, Module
from lab.ops import cross_entropy
from lab.optim import SGD
from lab.parallel import run_ranks
from lab.parallel.training.beginning import begin_alike
from lab.parallel.training.packing import packed, unpacked
from lab.training.trainer import Training
from tests.parallel.trainings import some_digits, tells_all


class Drifting(Module):
    """It draws its numbers anew wherever it is unpacked, as one that reads them from its machine would."""

    def __init__(self):
        self.linear = Linear(64, 10, rng=0)
        self.norm = BatchNorm1d(64)

    def __call__(self, x):
        return self.linear(x)

    def __setstate__(self, state):
        self.__dict__.update(state)
        draws = np.random.default_rng()
        for tensor in (self.linear.weight, self.linear.bias, self.norm.running_mean, self.norm.running_var):
            tensor.value = draws.normal(size=tensor.shape).astype(tensor.dtype)


def drifting():
    module = Drifting()
    loader = Loader(some_digits(102), 50, rng=0)
    optimizer = SGD(module.linear.parameters(), 0.1)
    return packed(Training(module, loader, None, cross_entropy, optimizer, n_epochs=2, measure_every=0))


def held_by(training):
    model = training.model
    tensors = [*model.parameters(), model.norm.running_mean, model.norm.running_var]
    return b"".join(np.ascontiguousarray(tensor.value).tobytes() for tensor in tensors)


def test_a_model_that_unpickles_differently_on_each_rank_trains_as_replicas_of_rank_0s():
    ranks = run_ranks(tells_all, drifting(), "run", "ring", world_size=3)
    assert len({b"".join(values.tobytes() for values in at.values) for at, _ in ranks}) == 1
    sums = [[event.checksum for event in events if event.phase == "updated"] for _, events in ranks]
    assert len(set(sums[0])) == 6
    assert sums[1] == sums[2] == sums[0]


def test_parameters_that_nobody_moves_and_buffers_are_rank_0s_too():
    def program(comm, payload):
        training = unpacked(payload)
        before = held_by(training)
        begin_alike(comm, training)
        return before, held_by(training), [np.shares_memory(p.value, g.values) for g in training.optimizer.groups
                                           for p in g.parameters]  # fmt: skip

    ranks = run_ranks(program, drifting(), world_size=3)
    assert len({before for before, _, _ in ranks}) == 3
    assert {after for _, after, _ in ranks} == {ranks[0][0]}
    assert all(all(views) for _, _, views in ranks)


def test_it_is_one_collective_that_is_told_and_none_where_a_rank_is_alone():
    for world_size, n_told in ((1, 0), (3, 3)):
        with record(kinds=[CollectiveStarted]) as rec:
            run_ranks(lambda comm, payload: begin_alike(comm, unpacked(payload)), drifting(), world_size=world_size)
        assert [(event.operation, event.algorithm) for event in rec] == [("broadcast", "pipelined")] * n_told


def test_tensors_of_several_dtypes_go_in_the_same_broadcast():
    def program(comm):
        module = Drifting()
        module.linear.weight.value = np.full((64, 10), comm.rank, np.float64)
        module.linear.bias.value = np.full(10, comm.rank, np.float32)
        training = Training(module, Loader(some_digits(50), 50, rng=0), None, cross_entropy,
                            SGD(module.linear.parameters(), 0.1), n_epochs=1, measure_every=0)  # fmt: skip
        begin_alike(comm, training)
        return [(float(np.abs(p.value).sum()), p.dtype) for p in module.linear.parameters()]

    ranks = run_ranks(program, world_size=3)
    assert {size for found in ranks for size, _ in found} == {0.0}
    assert {str(dtype) for _, dtype in ranks[2]} == {"float64", "float32"}
