"""Data-parallel training on real workers is training in one process, up to the order of additions."""

import os
from functools import partial

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, MeshError, PlanError, RunError, UnsupportedError
from lab.nn import Linear, Module
from lab.optim import SGD, Adagrad, Cosine
from lab.parallel import COLLECTIVES, DataParallel, Pipeline, Recv, Send, run_ranks
from lab.parallel.training.packing import packed
from lab.training.trainer import Training
from tests.parallel.trainings import (
    OPTIMIZERS,
    SOON,
    network,
    parameters,
    reference,
    some_digits,
    tells_all,
)
from tests.slices import sliced

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_run_outlives_its_test")]

WORLDS = [pytest.param(world_size, algorithm, id=f"{algorithm}-{world_size}")
          for algorithm in ("ring", "naive") for world_size in (1, 2, 4)]  # fmt: skip


def trained(on, dtype, optimizer, *, n, batch_size, epochs):
    module = network(dtype)
    run = lab.fit(module, some_digits(n, dtype), batch_size=batch_size, epochs=epochs, measure_every=0,
                  optimizer=OPTIMIZERS[optimizer](module.parameters()), on=on)  # fmt: skip
    return parameters(module) if run.wait(SOON) else None, run


# 102 examples in batches of 50: shards of 13 and 12, and a last batch of 2, smaller than four ranks.
UNEVEN = {"n": 102, "batch_size": 50}


@sliced("optimizer")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(("world_size", "algorithm"), WORLDS)
def test_in_float64_it_equals_one_process_over_21_steps(cluster, world_size, algorithm, optimizer):
    plain, _ = trained(None, "float64", optimizer, **UNEVEN, epochs=7)
    spread, run = trained(DataParallel(cluster, world_size, algorithm), "float64", optimizer, **UNEVEN, epochs=7)
    assert run.result.n_steps == 21
    assert np.abs(spread - plain).max() <= 1e-12
    if world_size == 1:
        np.testing.assert_array_equal(spread, plain)


@sliced("optimizer")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(("world_size", "algorithm"), WORLDS)
def test_in_float32_it_has_the_bits_of_the_same_additions_in_one_process(cluster, world_size, algorithm, optimizer):
    spread, run = trained(DataParallel(cluster, world_size, algorithm), "float32", optimizer, **UNEVEN, epochs=4)
    alike = network()
    reference(alike, OPTIMIZERS[optimizer](alike.parameters()), some_digits(102), batch_size=50, n_steps=12,
              world_size=world_size, algorithm=algorithm)  # fmt: skip
    assert run.result.n_steps == 12
    np.testing.assert_array_equal(spread, parameters(alike))


@sliced("optimizer")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("world_size", [2, 4])
def test_in_float32_it_stays_near_one_process_over_10_steps(cluster, world_size, optimizer):
    plain, _ = trained(None, "float32", optimizer, n=640, batch_size=64, epochs=1)
    spread, run = trained(DataParallel(cluster, world_size), "float32", optimizer, n=640, batch_size=64, epochs=1)
    assert run.result.n_steps == 10
    assert np.linalg.norm(spread - plain) <= 1e-5 * np.linalg.norm(plain)


def test_a_schedule_and_clipping_by_the_norm_of_the_whole_batch_are_those_of_one_process(cluster):
    found = []
    for on in (DataParallel(cluster, 3), None):
        module = network("float64")
        optimizer = Adagrad(module.parameters(), Cosine(0.02, 12), clip_norm=0.5)
        run = lab.fit(module, some_digits(102, "float64"), batch_size=50, epochs=4, optimizer=optimizer, on=on)
        assert run.wait(SOON).n_steps == 12
        found.append((parameters(module), run.hyperparameters["learning_rate"]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9, atol=1e-12)
    assert found[0][1] == found[1][1] == 0.0


def payload(module, data, *, batch_size, epochs, optimizer="adam"):
    loader = lab.data.Loader(data, batch_size, rng=0)
    made = OPTIMIZERS[optimizer](module.parameters())
    return packed(Training(module, loader, None, lab.cross_entropy, made, n_epochs=epochs, measure_every=0))


@sliced("optimizer")
@pytest.mark.parametrize("algorithm", ["ring", "naive"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_all_replicas_hold_the_same_bits_and_say_so(cluster, algorithm, optimizer):
    sent = payload(network(), some_digits(102), batch_size=50, epochs=4, optimizer=optimizer)
    ranks = cluster.launch(tells_all, sent, "run", algorithm)
    held = {b"".join(a.tobytes() for a in (*at.values, *at.slots[0].values())) for at, _ in ranks}
    assert len(held) == 1
    sums = [[event.checksum for event in events if event.phase == "updated"] for _, events in ranks]
    assert len(sums[0]) == len(set(sums[0])) == 12
    assert all(each == sums[0] for each in sums)


def test_a_replica_tells_its_shard_its_gradient_the_sum_and_the_update():
    sent = payload(network(), some_digits(12), batch_size=10, epochs=1)
    ranks = run_ranks(tells_all, sent, "run", "ring", world_size=4)
    for rank, (_, events) in enumerate(ranks):
        assert [(e.step, e.phase) for e in events] == [
            (step, phase) for step in (1, 2) for phase in ("shard", "gradient", "reduced", "updated")
        ]
        of_ten, of_two = [(0, 3), (3, 6), (6, 8), (8, 10)][rank], [(0, 1), (1, 2), (2, 2), (2, 2)][rank]
        assert [(e.start, e.stop, e.n_global) for e in events[::4]] == [(*of_ten, 10), (*of_two, 2)]
        assert np.isnan(events[0].loss)
        assert np.isfinite([e.loss for e in events[1:4]]).all()
        assert np.isnan([e.loss for e in events[4:]]).all() == (rank >= 2)  # an empty shard has no loss
        assert np.isnan(events[0].norm)
        assert (events[5].norm == 0) == (rank >= 2)
    for phase in (2, 3):
        assert len({events[phase].norm for _, events in ranks}) == 1
    losses = [events[1].loss for _, events in ranks]
    assert len(set(losses)) == 4


def test_the_result_is_what_evaluation_of_the_model_here_finds(cluster):
    module, test = network(), lab.data.digits("test")
    run = lab.fit(module, some_digits(500), validation=test, epochs=3, on=DataParallel(cluster, 2))
    result = run.wait(SOON)
    found = lab.evaluate(module, test)
    assert (result.state, result.n_steps, result.n_epochs, result.accuracy) == ("finished", 24, 3, found.accuracy)
    assert run.progress == (24, 24)


def test_training_goes_on_from_where_an_optimiser_stands(cluster):
    """What the optimiser learned before goes to the ranks, and what it learned there comes back."""
    here, there = network(), network()
    for module, on in ((here, None), (there, DataParallel(cluster, 1))):
        optimizer = OPTIMIZERS["adam"](module.parameters())
        for place in (None, on, None):
            lab.fit(module, some_digits(100), epochs=2, optimizer=optimizer, on=place).wait(SOON)
        assert optimizer.n_steps == 12
    np.testing.assert_array_equal(parameters(there), parameters(here))


def test_a_cluster_may_be_given_by_client_or_address(cluster):
    plain, _ = trained(None, "float32", "sgd", **UNEVEN, epochs=1)
    for where in (cluster.client, cluster.client.scheduler.address):
        spread, _ = trained(DataParallel(where, 1), "float32", "sgd", **UNEVEN, epochs=1)
        np.testing.assert_array_equal(spread, plain)


def test_without_a_cluster_one_is_started_and_closed():
    run = lab.fit(network(), some_digits(64), epochs=1, on=DataParallel(world_size=2))
    assert run.wait(SOON).state == "finished"


# --- what is refused ---------------------------------------------------------------------------------------------


def test_more_ranks_than_workers_fail_with_the_arithmetic(cluster):
    run = lab.fit(network(), some_digits(64), on=DataParallel(cluster, 9))
    with pytest.raises(MeshError, match=r"not enough workers\ngiven: 9 ranks wanted, 4 workers\nhint: "):
        run.wait(SOON)
    assert run.state == "failed"


class Locked(Linear):
    def __init__(self):
        import threading

        super().__init__(64, 10, rng=0)
        self.lock = threading.Lock()


class Counts(Linear):
    n_calls = 0

    def __init__(self):
        super().__init__(64, 10, rng=0)
        self.n_calls = 0

    def forward(self, x):
        self.n_calls += 1
        return super().forward(x)


class Noisy(Linear):
    def __init__(self):
        super().__init__(64, 10, rng=0)
        self.rng = np.random.default_rng(0)

    def forward(self, x):
        return super().forward(x) + self.rng.normal(size=10)


class NoisyFromNowhere(Linear):
    def forward(self, x):
        return super().forward(x) + lab.random_uniform(lab.random_key(), shape=(10,))


class Dropout(Linear):
    """The same key at each call: nothing is remembered, and yet it depends on the place in the batch."""

    def forward(self, x):
        kept = lab.random_uniform(np.array([1, 2], np.uint64), shape=x.shape) < 0.5
        return super().forward(x * kept)


class Normalises(Linear):
    def forward(self, x):
        out = super().forward(x)
        return out - out.mean(axis=0)


class Remembers(Linear):
    """What it keeps of a call does not depend on earlier ones: an activation to look at."""

    def forward(self, x):
        self.seen = super().forward(x)
        return self.seen


@pytest.mark.parametrize(
    ("make", "loss", "error", "message"),
    [
        (Locked, None, ArgumentError, r"the model cannot be sent to workers\ngiven: TypeError.*\nhint:  open files"),
        (Counts, None, UnsupportedError, r"remembers calls .*\ngiven: n_calls changes from call to call\nhint:  each"),
        (Noisy, None, UnsupportedError, r"remembers calls cannot be split over ranks\ngiven: rng changes"),
        (lambda: lab.nn.Sequential(Linear(64, 10), lab.nn.BatchNorm1d(10)), None, UnsupportedError,
         r"remembers calls .*\ngiven: 1\.running_mean changes .*\nhint:  DataParallel\(batch_norm="),
        (lambda: lab.nn.Sequential(Linear(64, 10), lab.nn.Dropout()), None, UnsupportedError,
         r"remembers calls cannot be split over ranks\ngiven: 1\.rng changes .*\nhint:  DataParallel\(random="),
        (lambda: NoisyFromNowhere(64, 10), None, UnsupportedError, r"other random numbers .*\ngiven: two .*\nhint:  "),
        (lambda: Dropout(64, 10), None, UnsupportedError, r"must not depend on the others of .*\ngiven: .*\nhint"),
        (lambda: Normalises(64, 10), None, UnsupportedError, r"must not depend on the others of its batch\ngiven: "),
        (network, lambda p, y: lab.cross_entropy(p, y) * len(y), UnsupportedError,
         r"a mean over examples to be split .*\ngiven: [\d.]+ for the whole batch, [\d.]+ as the mean of its 2 shards"),
        (lambda: Linear(3, 10), None, ValueError, r"cannot take this input"),
    ],
)  # fmt: skip
def test_what_replicas_would_do_otherwise_is_refused_at_the_call(cluster, make, loss, error, message):
    with pytest.raises(error, match=message):
        lab.fit(make(), some_digits(64), loss=loss or lab.cross_entropy, on=DataParallel(cluster, 2))


@pytest.mark.parametrize("on", [partial(DataParallel, world_size=2), partial(Pipeline, n_stages=2, n_micro=2)])
def test_a_loss_that_is_a_mean_on_the_first_batch_only_is_refused_too(cluster, on):
    data, order = some_digits(64), lab.data.Loader(some_digits(64), 8, rng=0).order(0)
    data.targets[order[-3:]] = -1  # three of the last batch are masked

    def masked(prediction, targets):
        kept = np.flatnonzero(targets >= 0)
        return lab.cross_entropy(prediction[kept], targets[kept])

    with pytest.raises(UnsupportedError, match=r"must be a mean over examples .*\ngiven: .* \(batch 8 of 8\)\nhint: "):
        lab.fit(network(), data, batch_size=8, loss=masked, on=on(cluster))


def test_what_a_model_keeps_of_the_last_call_is_no_memory(cluster):
    module = Remembers(64, 10, rng=0)
    for _ in range(2):
        assert lab.fit(module, some_digits(64), epochs=1, on=DataParallel(cluster, 2)).wait(SOON).n_steps == 1
        module(some_digits(3).inputs)


def test_other_arguments_are_refused_at_the_call(cluster):
    with pytest.raises(ArgumentError, match=r"batch_size is a whole number of at least 1\ngiven: batch_size=0"):
        lab.fit(network(), some_digits(64), batch_size=0, on=DataParallel(cluster))


def test_an_option_that_is_none_is_refused_where_it_is_written():
    with pytest.raises(PlanError, match="no plan"):
        DataParallel(algorithm="telepathy")
    with pytest.raises(ArgumentError, match=r"algorithm= is a name or a plan\ngiven: algorithm=3\nhint:  algorithm="):
        DataParallel(algorithm=3)
    with pytest.raises(ArgumentError, match=r"tell steps, replicas or chunks\ngiven: told='all'\nhint:  one of"):
        DataParallel(told="all")
    with pytest.raises(ArgumentError, match=r"world_size is a whole number of at least 1\ngiven: world_size=0"):
        DataParallel(world_size=0)


def adds_nothing(rank, n, k):
    """A ring that forgot to add: every rank ends with somebody else's part."""
    for step in COLLECTIVES["all_reduce", "ring"](rank, n, k):
        yield tuple(hop._replace(reduce=False) if isinstance(hop, Recv) else hop for hop in step)


def everybody_to_all(rank, n, k):
    """The right sum, by another order of additions on each rank."""
    others = [peer for peer in range(n) if peer != rank]
    yield tuple(Send(peer, 0, k) for peer in others) + tuple(Recv(peer, 0, k, True) for peer in others)


def my_ring(rank, n, k):
    return COLLECTIVES["all_reduce", "ring"](rank, n, k)


NOT_ADDED = r"rank 0, step 0: stored chunk \d from rank \d over the part of rank 0\n"
OTHER_ORDER = (r"this plan adds in another order on other ranks, so replicas would not stay alike\n"
               r"given: plan 'everybody_to_all' on \d ranks: chunk 0 is .* on rank 0, .* on rank 2\n"
               r"hint:  add each chunk on one rank")  # fmt: skip
WRONG = [pytest.param(adds_nothing, NOT_ADDED, id="wrong"), pytest.param(everybody_to_all, OTHER_ORDER, id="order")]


@pytest.mark.parametrize(("plan", "message"), WRONG)
def test_a_plan_of_ones_own_that_is_no_all_reduce_is_refused_at_the_call(cluster, plan, message):
    for on in (DataParallel(cluster, 3, plan), DataParallel(world_size=3, algorithm=plan),
               DataParallel(cluster, algorithm=plan)):  # fmt: skip
        with pytest.raises(PlanError, match=message):
            lab.fit(network(), some_digits(64), on=on)


@pytest.mark.parametrize(("plan", "message"), WRONG)
def test_where_the_number_of_ranks_shows_at_the_beginning_a_plan_of_ones_own_ends_the_run(cluster, plan, message):
    module = network()
    before = parameters(module)
    run = lab.fit(module, some_digits(64), on=DataParallel(cluster.client, algorithm=plan))
    with pytest.raises(PlanError, match=message):
        run.wait(SOON)
    assert run.state == "failed"
    np.testing.assert_array_equal(parameters(module), before)


def test_a_right_plan_of_ones_own_trains_to_the_bits_of_the_ring(cluster):
    ring, _ = trained(DataParallel(cluster, 3), "float32", "sgd", **UNEVEN, epochs=1)
    own, _ = trained(DataParallel(cluster, 3, my_ring), "float32", "sgd", **UNEVEN, epochs=1)
    np.testing.assert_array_equal(own, ring)
    _, run = trained(DataParallel(cluster, 2, everybody_to_all), "float32", "sgd", **UNEVEN, epochs=1)
    assert run.result.n_steps == 3  # of two ranks both add in the same order


def test_two_runs_on_one_optimiser_are_refused(cluster):
    module = network()
    optimizer = SGD(module.parameters())
    run = lab.fit(module, some_digits(64), optimizer=optimizer, on=DataParallel(cluster, 1), paused=True)
    for on in (None, DataParallel(cluster, 1)):
        with pytest.raises(RunError, match=r"this model is being trained already\ngiven: Run 'run.*\nhint:  "):
            lab.fit(module, some_digits(64), optimizer=optimizer, on=on)
    run.stop()
    run.wait(SOON)


class Raises(Module):
    def __init__(self):
        self.inner, self.home = Linear(64, 10, rng=0), os.getpid()

    def forward(self, x):
        if len(x) == 6 and os.getpid() != self.home:  # rank 2 of 3 alone has so few, in the second batch
            raise ZeroDivisionError("bad luck")
        return self.inner(x)


def test_a_mistake_in_the_model_is_told_with_the_traceback_of_its_rank(cluster):
    run = lab.fit(Raises(), some_digits(64 + 20), batch_size=64, on=DataParallel(cluster, 3))
    with pytest.raises(lab.errors.RankError, match=r"raised on rank 2 of 3 at test_data_parallel.py:\d+\ngiven: Zero"):
        run.wait(SOON)
